"""Changes that meet rows of the log's own, which stand behind those: forecasts beside what the
emulator reads, and beside lists."""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import applier
from applier.forecast.inventory.facts import OwnRows
from applier.forecast.workload import own_rows
from applier.forecast.workload.own_rows import OwnRowsReader, stands_as_written
from tests.binlog.build import gtid, log, query, rows, table_map, write, xid

WRITE, UPDATE, DELETE = 30, 31, 32
ROWS, VALUES, HOT, CHANGES = 400, 20, 20, 600
Row = tuple[int, int]
Change = tuple[int, Row, Row | None]
"""Kind, row, and what an update makes of it."""


def image(row: Row) -> bytes:
    return b"\0" + struct.pack("<2i", *row)


def written(folder: Path, changes: list[Change]) -> str:
    events: list[tuple[int, bytes]] = []
    for number, (kind, before, after) in enumerate(changes, 1):
        images = image(before) + (b"" if after is None else image(after))
        body = [table_map(types=b"\3\3"), rows(kind, images, width=2)]
        events += [gtid(number), query(b"BEGIN"), *body, xid()]
    return str(write(folder, log(*events)))


def rewriting() -> Iterator[Change]:
    """Three of four changes meet one of a few rows, which is deleted and written again."""
    chance = random.Random(4)
    values = {id: id % VALUES for id in range(ROWS)}
    for _ in range(CHANGES):
        id = chance.randrange(HOT) if chance.random() < 0.75 else chance.randrange(HOT, ROWS)
        now = id, values[id]
        values[id] = chance.randrange(VALUES)
        if chance.random() < 0.3:
            yield UPDATE, now, (id, now[1])
            values[id] = now[1]
        else:
            yield DELETE, now, None
            yield WRITE, (id, values[id]), None


@pytest.mark.parametrize("keys", [", KEY (k)", ""])
@pytest.mark.parametrize("version", ["5.7", "9.7"])
def test_reads_of_rows_that_are_written_again(keys: str, version: str, tmp_path: Path) -> None:
    filled = ", ".join(str((id, id % VALUES)) for id in range(ROWS))
    schema = tmp_path / "schema.sql"
    schema.write_text(
        f"CREATE DATABASE d; CREATE TABLE d.t (id INT, k INT{keys});"
        f" INSERT INTO d.t VALUES {filled};"
    )
    path = written(tmp_path, list(rewriting()))
    tables = applier.load_schema(schema.read_text())
    replayed = applier.replay([path], into=tables, server=version)
    assert replayed.error is None
    really = sum(one.counters.rows_read for one in replayed.costs.values())
    found = applier.forecast([path], str(schema), server=version, workers=1).summary()
    assert found["tables"][0]["rows_read"] == pytest.approx(really, rel=0.1)
    assert any("stand behind those" in text for text in found["assumptions"])
    changes = sum(kind != WRITE for kind, _, _ in rewriting())
    numbers = [one["numbers"] for one in found["tables"][0]["reasons"]]
    each = [one["reads"] for one in numbers if "reads" in one]
    assert each == pytest.approx([really / changes] * len(each), rel=0.1)
    assert each or not keys


@given(st.lists(st.tuples(st.sampled_from([WRITE, UPDATE, DELETE]), *[st.integers(0, 3)] * 2)))
def test_which_rows_are_the_logs_own(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, int]]
) -> None:
    changes: list[Change] = [
        (kind, (id, 0), (other, 0) if kind == UPDATE else None) for kind, id, other in steps
    ]
    own: list[Row] = []
    met, changed, behind = Counter[int](), Counter[int](), Counter[int]()
    for kind, row, after in changes:
        changed[kind] += kind != WRITE
        if kind == WRITE:
            own.append(row)
        elif row in own:
            met[kind] += 1
            place = own.index(row)
            behind[kind] += len(own) - 1 - place
            own[place : place + 1] = [] if after is None else [after]
    seen = OwnRowsReader(["d.t"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_rows, "FEWEST_CHANGES", 1)
        seen.read([written(tmp_path_factory.mktemp("log"), changes)])
        found = list(seen.found())
    wanted = {
        name: OwnRows(met[kind] / changed[kind], behind[kind] / met[kind])
        for name, kind in (("update", UPDATE), ("delete", DELETE))
        if met[kind]
    }
    share = met.total() / max(changed.total(), 1)
    assert found == ([("d.t", share, wanted)] if wanted else [])


def test_images_that_lack_a_column_tell_no_rows_apart(tmp_path: Path) -> None:
    partial = b"".join(b"\0" + struct.pack("<i", value) for value in range(200))
    kind, whole = rows(DELETE, partial, width=2)
    made = kind, whole.replace(b"\2\3" + partial, b"\2\1" + partial)
    assert made[1] != whole
    events = [gtid(1), query(b"BEGIN"), table_map(types=b"\3\3"), made, xid()]
    seen = OwnRowsReader(["d.t"])
    seen.read([str(write(tmp_path, log(*events)))])
    assert list(seen.found()) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a INT", True),
        ("a INT, KEY (a)", True),
        ("a INT, UNIQUE (a)", True),
        ("a INT NOT NULL, UNIQUE (a)", False),
        ("a CHAR(9) NOT NULL, UNIQUE (a(3))", True),
        ("a INT PRIMARY KEY", False),
    ],
)
def test_tables_in_the_order_of_writing(body: str, expected: bool) -> None:
    (table,) = applier.load_schema(f"CREATE DATABASE d; CREATE TABLE d.t ({body});")
    assert stands_as_written(table.definition) is expected
    (other,) = applier.load_schema(f"CREATE DATABASE d; CREATE TABLE d.t ({body}) ENGINE=MyISAM;")
    assert not stands_as_written(other.definition)
