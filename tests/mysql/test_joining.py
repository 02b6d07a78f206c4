"""Rows events of tables that the server scans travel as one; the rows must end as they would one
event after the other."""

from __future__ import annotations

import struct
from base64 import b64decode
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

import applier
from applier.mysql.client.dialect import ACCEPTED, TargetDialect
from applier.mysql.client.pipeline import PipelineStatement
from applier.mysql.feed import Feed
from applier.mysql.statements.native import NativeRows
from applier.mysql.statements.target_tables import TargetTable, TargetTables
from applier.options import parse_options
from tests.binlog.build import event, gtid, log, payload, query, rows, table_map, write, xid

WIDTH = 2
T, U = table_map(types=b"\3\3"), table_map(2, table=b"u", types=b"\3\3")
KINDS = {"write": 30, "update": 31, "delete": 32}
Change = tuple[str, tuple[tuple[int, int], ...]]
"""Kind, and (a, b) of each image."""


class Keyless(TargetTables):
    """No table has a key but `keyed`."""

    def __init__(self) -> None:
        pass

    def of(self, database: str, table: str) -> TargetTable:
        return TargetTable(transactional=True, scanned=table != "keyed")


def image(row: tuple[int, int]) -> bytes:
    return b"\0" + struct.pack("<ii", *row)


def changes(
    kind: str, *images: tuple[int, int], table_id: int = 1, end: bool = True
) -> tuple[int, bytes]:
    return rows(KINDS[kind], b"".join(map(image, images)), table_id, WIDTH, flags=int(end))


def transaction(number: int, *events: tuple[int, bytes]) -> tuple[tuple[int, bytes], ...]:
    return (gtid(number), query(b"BEGIN"), *events, xid())


def literals(folder: Path, content: bytes, *, one_by_one: bool = False) -> list[PipelineStatement]:
    writer = NativeRows(
        TargetDialect(ACCEPTED["9.7"], {}, {}, False, hashes=True),
        parse_options(),
        1 << 20,
        Keyless(),
    )
    writer.one_by_one = one_by_one
    statements: list[PipelineStatement] = []
    for source in Feed([str(write(folder, content))], parse_options()):
        writer.describe(source.format)
        for one in source.events:
            if writer.add(one, source.format):
                statements += writer.flush()
    return statements + writer.flush()


def shipped(statements: list[PipelineStatement]) -> list[tuple[int, bytes]]:
    """(Type, body) of all events, split by the lengths in their headers."""
    found = []
    for statement in statements:
        data = b64decode(statement.sql[8:-1], validate=True)
        while data:
            length = struct.unpack_from("<I", data, 9)[0]
            found.append((data[4], data[19 : length - 4]))
            assert len(data) >= length
            data = data[length:]
    return found


def test_deletes_of_several_transactions_are_one_event(tmp_path: Path) -> None:
    parts = [transaction(number + 1, T, changes("delete", (number, number))) for number in range(3)]
    assert shipped(literals(tmp_path, log(*(one for part in parts for one in part)))) == [
        T,
        changes("delete", (0, 0), (1, 1), (2, 2)),
    ]


def test_deletes_of_other_seconds_are_joined_and_inserts_are_not(tmp_path: Path) -> None:
    """An insert's second is what NOW() is for a column that only the target has."""
    content = log()
    for second, kind in enumerate(("delete", "delete", "write", "write", "delete")):
        for code, body in transaction(second + 1, T, changes(kind, (second, second))):
            content += event(code, body, at=len(content), timestamp=1_700_000_000 + second)
    assert shipped(literals(tmp_path, content)) == [
        *(T, changes("delete", (0, 0), (1, 1), end=False), changes("write", (2, 2))),
        *(T, changes("write", (3, 3), end=False), changes("delete", (4, 4))),
    ]


@pytest.mark.parametrize(
    ("second", "joined"),
    [
        (((3, 3), (4, 4)), True),
        (((2, 2), (4, 4)), False),  # looks for what the first leaves
        (((1, 1), (4, 4)), False),  # looks for what the first looks for
        (((3, 3), (1, 1)), False),  # leaves what the first looks for
        (((3, 3), (2, 2)), True),
    ],
)
def test_updates_are_joined_while_they_have_no_row_in_common(
    tmp_path: Path, second: tuple[tuple[int, int], tuple[int, int]], joined: bool
) -> None:
    first = (1, 1), (2, 2)
    content = log(
        *transaction(1, T, changes("update", *first)),
        *transaction(2, T, changes("update", *second)),
    )
    together = [changes("update", *first, *second)]
    apart = [changes("update", *first, end=False), changes("update", *second)]
    assert shipped(literals(tmp_path, content)) == [T, *(together if joined else apart)]


def test_what_stands_between_them_or_has_a_key_is_not_joined(tmp_path: Path) -> None:
    keyed = table_map(3, table=b"keyed", types=b"\3\3")
    events = [
        *(
            changes("delete", (1, 1), end=False),
            changes("delete", (2, 2), table_id=2, end=False),
            changes("delete", (3, 3), end=False),
        ),
        *(changes("delete", (4, 4), table_id=3, end=False), changes("delete", (5, 5), table_id=3)),
    ]
    assert shipped(literals(tmp_path, log(*transaction(1, T, U, keyed, *events)))) == [
        T,
        U,
        keyed,
        *events,
    ]


def test_events_of_compressed_transactions_are_joined(tmp_path: Path) -> None:
    inner = [
        b"".join(
            event(*one, checksum=False) for one in transaction(1, T, changes("delete", (n, n)))[1:]
        )
        for n in range(2)
    ]
    content = log(gtid(1), payload(inner[0]), gtid(2), payload(inner[1]))
    assert shipped(literals(tmp_path, content)) == [T, changes("delete", (0, 0), (1, 1))]


def test_one_by_one_joins_nothing(tmp_path: Path) -> None:
    parts = [transaction(number + 1, T, changes("delete", (number, number))) for number in range(2)]
    content = log(*(one for part in parts for one in part))
    assert len(literals(tmp_path, content, one_by_one=True)) == 2


ROWS = st.tuples(st.integers(0, 2), st.integers(0, 1))


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[Change]]:
    """Rows of a table, many of them equal, and changes that a source may have made to them."""
    start = draw(st.lists(ROWS, min_size=3, max_size=12))
    there, made = list(start), list[Change]()
    for _ in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["delete", "update", "update", "write"]))
        if kind == "write" or not there:
            made.append(("write", (draw(ROWS),)))
            there += made[-1][1]
            continue
        count = draw(st.integers(1, min(3, len(there))))
        places = draw(
            st.lists(st.integers(0, len(there) - 1), min_size=count, max_size=count, unique=True)
        )
        found = [there[at] for at in places]
        there = [row for at, row in enumerate(there) if at not in places]
        if kind == "delete":
            made.append(("delete", tuple(found)))
            continue
        new = [draw(ROWS) for _ in found]
        there += new
        made.append(
            ("update", tuple(side for pair in zip(found, new, strict=True) for side in pair))
        )
    return start, made


@pytest.mark.parametrize("key", ["", ", KEY (a)"])
@given(history=histories())
def test_the_rows_end_as_they_would_one_by_one(
    key: str, history: tuple[list[tuple[int, int]], list[Change]]
) -> None:
    """On the emulated 9.7, in the order of the scan; where single events end in an error, nothing
    is said of joined ones."""
    start, made = history
    with TemporaryDirectory() as name:
        folder = Path(name)
        content = log(
            *(
                one
                for number, change in enumerate(made, 1)
                for one in transaction(number, T, changes(change[0], *change[1]))
            )
        )
        together = log(query(b"BEGIN"), *shipped(literals(folder, content)), xid())
        ended = []
        for file, data in (("binlog.000001", content), ("binlog.000002", together)):
            tables = applier.load_schema(f"CREATE TABLE d.t (a INT, b INT{key})", server="9.7")
            for row in start:
                tables["d.t"].insert(row)
            result = applier.replay([str(write(folder, data, file))], into=tables, server="9.7")
            ended.append((result.error, tables["d.t"].rows()))
        if ended[0][0] is None:
            assert ended[1] == ended[0]
