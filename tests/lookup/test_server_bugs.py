"""Known bugs and surprises of the servers, each in the versions that have it; every run is checked
against the naive engine, too."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import pytest

from applier.tables.engine import MemoryTable
from lookup.batch import ApplyOptions, RowsShape
from lookup.handler import Counters, Row
from lookup.rows import RowsPlan
from lookup.server_hash import row_checksum
from lookup.table import Column, Key, KeyPart, TableDefinition
from lookup.versions import RULES, parse_row_search, rules_for
from tests.oracle.apply import NaiveApplier
from tests.oracle.cases import BIGINT_PAIRS, overlay
from tests.oracle.checksum import checksum
from tests.oracle.engine import NaiveTable

OLD, NEW = ("5.6", "5.7"), ("8.0", "8.4", "9.7")
HASH = "INDEX_SCAN,HASH_SCAN"
SCAN = "INDEX_SCAN,TABLE_SCAN"
A = Key("a", (KeyPart(0),))
UNIQUE_A = Key("a", (KeyPart(0),), unique=True)
B = Key("b", (KeyPart(1),))
PRIMARY = Key("PRIMARY", (KeyPart(0),), unique=True)


def ints(count: int, *, nullable: bool = True) -> tuple[Column, ...]:
    return tuple(Column("abcd"[at], "int", nullable=nullable) for at in range(count))


@dataclass
class Run:
    """One event applied: how it ended, what it read, what the table holds then."""

    error: int | None
    row: int | None
    reads: dict[str, int]
    rows: list[Row]


def run(
    version: str,
    rows: list[Row],
    kind: str,
    images: list[Any],
    *keys: Key,
    columns: tuple[Column, ...] | None = None,
    search: str = HASH,
    idempotent: bool = False,
    skip: frozenset[int] = frozenset(),
    image_columns: tuple[int, ...] | None = None,
    engine: str = "InnoDB",
) -> Run:
    columns = columns or ints(len(rows[0]))
    definition = TableDefinition(
        "d", "t", columns, keys, engine=engine, charset="latin1", collation="latin1_swedish_ci"
    )
    defaults = tuple(None if column.nullable else 0 for column in columns)
    everything = tuple(range(len(columns)))
    held = everything if image_columns is None else image_columns
    complete = held == everything
    shape = RowsShape(
        kind,
        () if kind == "write" else held,
        () if kind == "delete" else held,
        None if complete else overlay(defaults, held),
        complete,
        True,
        defaults,
    )
    options = ApplyOptions(rules_for(version), parse_row_search(search), idempotent, skip)
    table, naive = MemoryTable(definition), NaiveTable(definition)
    for row in rows:
        table.insert(row)
        naive.insert(row)
    counters, naive_counters = Counters(), Counters()
    outcome = RowsPlan(table, shape, options).apply(images, counters)
    done = NaiveApplier(naive, shape, options, defaults, lambda key: 1.0).apply(
        images, naive_counters
    )
    assert counters.as_dict() == naive_counters.as_dict()
    assert table.stored_rows() == naive.rows()
    assert outcome.rows_changed == done.rows_changed
    assert (None if outcome.error is None else outcome.error.number) == (
        None if done.error is None else done.error[0]
    )
    reads = {name: count for name, count in counters.as_dict().items() if count}
    failure = outcome.error
    if failure is None:
        return Run(None, None, reads, table.stored_rows())
    return Run(failure.number, failure.row, reads, table.stored_rows())


# bug #72788: one row changed more than once in one event


REPLACE_TWICE = [((1, 2), (1, 3)), ((1, 3), (1, 4))]
"""REPLACE INTO t VALUES (1,3),(1,4) on a table that holds (1,2)."""


@pytest.mark.parametrize("version", OLD)
def test_72788_a_row_replaced_twice_is_not_found_again(version: str) -> None:
    done = run(version, [(1, 2)], "update", REPLACE_TWICE, UNIQUE_A)
    assert (done.error, done.rows) == (1032, [(1, 3)])
    assert done.reads == {"read_key": 1, "read_next": 1, "update": 1}


@pytest.mark.parametrize("version", NEW)
def test_72788_the_changed_row_is_looked_up_again(version: str) -> None:
    done = run(version, [(1, 2)], "update", REPLACE_TWICE, UNIQUE_A)
    assert (done.error, done.rows) == (None, [(1, 4)])
    assert done.reads == {"read_key": 1, "update": 2}


@pytest.mark.parametrize("version", OLD)
def test_72788_does_not_happen_without_a_hash(version: str) -> None:
    done = run(version, [(1, 2)], "update", REPLACE_TWICE, UNIQUE_A, search=SCAN)
    assert (done.error, done.rows) == (None, [(1, 4)])
    assert done.reads == {"read_key": 2, "update": 2}


@pytest.mark.parametrize(
    ("version", "error", "rows"),
    [*((old, 1032, [(2,)]) for old in OLD), *((new, None, [(3,)]) for new in NEW)],
)
def test_72788_over_the_table(version: str, error: int | None, rows: list[Row]) -> None:
    done = run(version, [(1,)], "update", [((1,), (2,)), ((2,), (3,))])
    assert (done.error, done.rows) == (error, rows)
    assert done.reads["read_rnd_next"] == (1 if error is None else 2)


@pytest.mark.parametrize("version", ["5.6", "5.7", "8.0"])
def test_72788_stays_where_the_hash_goes_over_the_primary_key(version: str) -> None:
    done = run(
        version,
        [(1, 2)],
        "update",
        REPLACE_TWICE,
        PRIMARY,
        columns=ints(2, nullable=False),
        search="TABLE_SCAN,HASH_SCAN",
    )
    assert (done.error, done.rows) == (1032, [(1, 3)])


@pytest.mark.parametrize("version", OLD)
def test_a_row_moved_to_a_later_key_is_met_again_there(version: str) -> None:
    done = run(version, [(1, 0)], "update", [((1, 0), (2, 0)), ((2, 0), (3, 0))], A)
    assert (done.error, done.rows) == (None, [(3, 0)])
    assert done.reads == {"read_key": 2, "read_next": 1, "update": 2}


# PS-9391: the distinct keys are visited in their own order


@pytest.mark.parametrize("version", (*OLD, *NEW))
def test_ps_9391_an_intermediate_value_below_the_first_is_looked_for_too_early(
    version: str,
) -> None:
    done = run(version, [(5, 0)], "update", [((5, 0), (3, 0)), ((3, 0), (7, 0))], A)
    assert (done.error, done.rows) == (1032, [(5, 0)])
    assert done.reads == {"read_key": 1}


@pytest.mark.parametrize(
    ("version", "reads"),
    [("5.7", {"read_key": 2, "read_next": 1, "update": 2}), ("9.7", {"read_key": 1, "update": 2})],
)
def test_ps_9391_does_not_happen_when_the_value_rises(version: str, reads: dict[str, int]) -> None:
    done = run(version, [(5, 0)], "update", [((5, 0), (6, 0)), ((6, 0), (7, 0))], A)
    assert (done.error, done.rows, done.reads) == (None, [(7, 0)], reads)


@pytest.mark.parametrize("version", NEW)
def test_ps_9391_idempotent_finds_the_row_by_its_second_look(version: str) -> None:
    """As many errors as entries do not end the scan while the changed row still matches
    something."""
    done = run(
        version, [(5, 0)], "update", [((5, 0), (3, 0)), ((3, 0), (7, 0))], A, idempotent=True
    )
    assert (done.error, done.rows) == (None, [(7, 0)])
    assert done.reads == {"read_key": 2, "read_next": 1, "update": 2}


@pytest.mark.parametrize("version", OLD)
def test_ps_9391_idempotent_stops_at_as_many_errors_as_entries(version: str) -> None:
    done = run(
        version, [(5, 0)], "update", [((5, 0), (3, 0)), ((3, 0), (7, 0))], A, idempotent=True
    )
    assert (done.error, done.rows) == (None, [(3, 0)])


@pytest.mark.parametrize("version", (*OLD, *NEW))
def test_shifting_a_unique_key_collides_when_the_smallest_value_comes_first(version: str) -> None:
    """UPDATE t SET a = a + 1 ORDER BY a DESC: right in the order of the event, 1062 in the order of
    the keys."""
    shift = [((3, 0), (4, 0)), ((2, 0), (3, 0)), ((1, 0), (2, 0))]
    done = run(version, [(1, 0), (2, 0), (3, 0)], "update", shift, UNIQUE_A)
    assert (done.error, done.row, done.rows) == (1062, 2, [(1, 0), (2, 0), (3, 0)])


# bug #101828: rows with the same CRC32


COLLIDING = BIGINT_PAIRS
BIGINTS = tuple(Column(name, "bigint", unsigned=True, nullable=False) for name in "ab")


def test_101828_the_rows_collide() -> None:
    definition = TableDefinition("d", "t", BIGINTS)
    crc = row_checksum(definition, (0, 1), frozenset())
    first, second = map(crc, COLLIDING)
    assert (
        first
        == second
        == zlib.crc32(b"\xff" + b"".join(value.to_bytes(8, "little") for value in COLLIDING[0]))
    )
    assert [checksum(definition, row, (0, 1), null_flags=True) for row in COLLIDING] == [
        first,
        second,
    ]


@pytest.mark.parametrize("version", (*OLD, *NEW))
def test_101828_rows_that_collide_are_told_apart(version: str) -> None:
    """8.0 stands for its newest releases, which are mended."""
    done = run(
        version, list(COLLIDING), "update", [(COLLIDING[1], (1, COLLIDING[1][1]))], columns=BIGINTS
    )
    assert (done.error, done.rows) == (None, [COLLIDING[0], (1, COLLIDING[1][1])])
    assert done.reads["read_rnd_next"] == 2


@pytest.mark.parametrize("version", ["8.0.17", "8.0.42"])
def test_101828_the_first_row_gets_the_change_of_the_second(version: str) -> None:
    """Its columns that the change names, as InnoDB writes only what differs between the old record
    and the new one."""
    done = run(
        version, list(COLLIDING), "update", [(COLLIDING[1], (1, COLLIDING[1][1]))], columns=BIGINTS
    )
    assert (done.error, done.rows) == (None, [(1, COLLIDING[0][1]), COLLIDING[1]])
    assert done.reads["read_rnd_next"] == 1


@pytest.mark.parametrize("version", ["8.0.16", "8.0.42", "9.7"])
def test_101828_a_delete_is_not_looked_up_again(version: str) -> None:
    done = run(version, list(COLLIDING), "delete", [COLLIDING[1]], columns=BIGINTS)
    assert (done.error, done.rows) == (None, [COLLIDING[0]])


@pytest.mark.parametrize("version", OLD)
def test_101828_colliding_entries_leave_in_the_order_of_the_hash(version: str) -> None:
    one, two = COLLIDING
    rows = [one, two, one, two]
    done = run(version, rows, "delete", [one, two, one, two], columns=BIGINTS)
    assert (done.error, done.rows, done.reads["read_rnd_next"]) == (None, [], 4)


# the hash over the table


@pytest.mark.parametrize("version", (*OLD, *NEW))
def test_a_scan_stops_at_the_row_that_empties_the_hash(version: str) -> None:
    done = run(version, [(value,) for value in range(9)], "delete", [(3,), (1,)])
    assert done.reads == {"read_first": 1, "read_key": 1, "read_rnd_next": 4, "delete": 2}


@pytest.mark.parametrize("version", (*OLD, *NEW))
def test_of_identical_rows_as_many_as_there_are_entries_change(version: str) -> None:
    done = run(version, [(1, 0)] * 5, "update", [((1, 0), (2, 0))] * 2)
    assert done.rows == [(2, 0), (2, 0), (1, 0), (1, 0), (1, 0)]


@pytest.mark.parametrize("version", (*OLD, *NEW))
def test_identical_before_images_leave_the_hash_last_in_first_out(version: str) -> None:
    done = run(version, [(1, 0)] * 2, "update", [((1, 0), (2, 0)), ((1, 0), (3, 0))])
    assert done.rows == [(3, 0), (2, 0)]


@pytest.mark.parametrize(
    ("version", "found"), [("5.6", False), ("5.7", False), ("8.0", True), ("9.7", True)]
)
def test_null_flags_of_columns_that_the_source_lacks(version: str, found: bool) -> None:
    """The event hashes their defaults' flags, the table its rows' own: 5.6 and 5.7 do not find a
    row that is not the default."""
    done = run(version, [(1, 7)], "delete", [(1,)], image_columns=(0,))
    assert done.error == (None if found else 1032)
    assert run(version, [(1, None)], "delete", [(1,)], image_columns=(0,)).error is None


@pytest.mark.parametrize("version", NEW)
def test_a_refused_update_is_looked_up_again_as_if_it_stood(version: str) -> None:
    """The record buffer still holds the refused after image; what matches it is applied to the row
    that never changed."""
    done = run(
        version,
        [(1, 0), (2, 0)],
        "update",
        [((1, 0), (2, 0)), ((2, 0), (3, 5))],
        UNIQUE_A,
        idempotent=True,
    )
    assert (done.error, done.rows) == (None, [(3, 5), (2, 0)])
    assert done.reads == {"read_key": 1, "update": 2}


@pytest.mark.parametrize("version", OLD)
def test_a_refused_update_is_not_looked_up_again_before_8_0_17(version: str) -> None:
    done = run(
        version,
        [(1, 0), (2, 0)],
        "update",
        [((1, 0), (2, 0)), ((2, 0), (3, 5))],
        UNIQUE_A,
        idempotent=True,
    )
    assert (done.error, done.rows) == (None, [(1, 0), (3, 5)])


# the hash over an index


@pytest.mark.parametrize("version", (*OLD, *NEW))
def test_keys_that_the_collation_calls_equal_are_visited_once(version: str) -> None:
    text = (
        Column("a", "char", length=4, charset="latin1", collation="latin1_swedish_ci"),
        Column("b", "int"),
    )
    done = run(
        version,
        [(b"a", 0), (b"A", 0), (b"b", 0)],
        "delete",
        [(b"A", 0), (b"a", 0)],
        A,
        columns=text,
    )
    assert (done.error, done.rows) == (None, [(b"b", 0)])
    assert done.reads == {"read_key": 1, "read_next": 1, "delete": 2}


@pytest.mark.parametrize("version", (*OLD, *NEW))
def test_a_group_left_by_exhaustion_costs_one_failing_read(version: str) -> None:
    done = run(version, [(1, 0), (2, 0), (3, 0)], "delete", [(3, 0), (1, 0), (2, 0)], A)
    assert done.reads == {"read_key": 3, "read_next": 2, "delete": 3}


# index scan and table scan


@pytest.mark.parametrize("version", list(RULES))
def test_a_row_found_by_its_primary_key_is_not_compared(version: str) -> None:
    done = run(version, [(1, 7)], "delete", [(1, 9)], PRIMARY, columns=ints(2, nullable=False))
    assert (done.error, done.rows) == (None, [])


@pytest.mark.parametrize(
    ("version", "reads"),
    [
        ("5.6", {"read_first": 2, "read_key": 2, "read_rnd_next": 8}),
        ("5.7", {"read_first": 2, "read_key": 2, "read_rnd_next": 8}),
        ("8.0", {"read_first": 2, "read_key": 2, "read_rnd_next": 8}),
        ("mariadb", {"read_rnd_next": 4}),
    ],
)
def test_a_missing_row_costs_two_scans(version: str, reads: dict[str, int]) -> None:
    done = run(version, [(1,), (2,), (3,)], "delete", [(9,)], search=SCAN)
    assert (done.error, done.reads) == (1032, reads)


@pytest.mark.parametrize(("version", "steps"), [("5.6", 3), ("5.7", 2), ("8.0", 2), ("mariadb", 3)])
def test_a_missing_row_is_looked_for_to_the_end_of_the_index(version: str, steps: int) -> None:
    """5.6 and MariaDB step with index_next, the others stop where the value ends. All but the last
    step read an entry."""
    done = run(version, [(0, 0), (1, 0), (1, 1), (2, 0)], "delete", [(1, 9)], A, search=SCAN)
    assert (done.error, done.reads) == (1032, {"read_key": 1, "read_next": steps})


@pytest.mark.parametrize("version", ["5.6", "5.7", "8.0"])
def test_a_nullable_unique_key_is_compared_only_when_its_value_holds_null(version: str) -> None:
    done = run(
        version,
        [(1, 7), (None, 7), (None, 9)],
        "delete",
        [(1, 0), (None, 9)],
        UNIQUE_A,
        search=SCAN,
    )
    assert (done.error, done.rows) == (None, [(None, 7)])
    assert done.reads == {"read_key": 2, "read_next": 1, "delete": 2}


@pytest.mark.parametrize(
    ("version", "algorithm"), [("5.6", "read_rnd_next"), ("5.7", "read_key"), ("8.0", "read_key")]
)
def test_5_6_scans_the_table_although_there_is_a_second_unique_key(
    version: str, algorithm: str
) -> None:
    keys = (PRIMARY, Key("b", (KeyPart(1),), unique=True))
    done = run(
        version,
        [(1, 1), (2, 2)],
        "delete",
        [(2,)],
        *keys,
        columns=ints(2, nullable=False),
        search=SCAN,
        image_columns=(1,),
    )
    assert (done.error, done.rows) == (None, [(1, 1)])
    assert algorithm in done.reads


def test_mariadb_compares_columns_that_the_image_lacks() -> None:
    done = run("mariadb", [(1, 7)], "delete", [(1,)], A, image_columns=(0,))
    assert (done.error, done.rows) == (1032, [(1, 7)])
    assert run("mariadb", [(1, None)], "delete", [(1,)], A, image_columns=(0,)).error is None
    assert run("9.7", [(1, 7)], "delete", [(1,)], A, image_columns=(0,)).error is None


def test_mariadb_takes_a_primary_key_that_the_image_lacks() -> None:
    """And looks for its default."""
    key = Key("PRIMARY", (KeyPart(1),), unique=True)
    columns = (Column("a", "int"), Column("b", "int", nullable=False))
    done = run(
        "mariadb", [(5, 1), (6, 0)], "delete", [(5,)], key, columns=columns, image_columns=(0,)
    )
    assert (done.error, done.rows) == (None, [(5, 1)])
    assert done.reads == {"read_rnd": 1, "delete": 1}


@pytest.mark.parametrize("version", ["5.7", "9.7", "mariadb"])
def test_innodb_finds_nothing_in_a_spatial_key(version: str) -> None:
    columns = (Column("g", "geometry", nullable=False, srid=0), Column("b", "int"))
    definition = TableDefinition("d", "t", columns, (Key("g", (KeyPart(0),), kind="spatial"),))
    for search in (HASH, SCAN, "INDEX_SCAN", "HASH_SCAN"):
        table = MemoryTable(definition)
        table.insert((b"point", 1))
        counters = Counters()
        shape = RowsShape("delete", (0, 1))
        options = ApplyOptions(RULES[version], parse_row_search(search))
        outcome = RowsPlan(table, shape, options).apply([(b"point", 1)], counters)
        assert outcome.error is not None
        assert (outcome.error.number, outcome.error.handler_error) == (1032, "HA_ERR_KEY_NOT_FOUND")
        assert {name: count for name, count in counters.as_dict().items() if count} == {
            "read_key": 1
        }


# what the event loop does with errors
