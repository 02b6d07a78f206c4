"""How many index entries updates change: beside the images themselves, in every form of log that a
forecast reads."""

from __future__ import annotations

import gzip
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import applier
from applier.forecast.inventory.facts import facts_of_tables
from applier.forecast.workload import index_changes, sampled_rows
from applier.forecast.workload.index_changes import with_index_changes
from tests.binlog.build import gtid, log, query, rows, table_map, write, xid

BEGIN, UPDATE, DELETE = query(b"BEGIN"), 31, 32
SCHEMA = """
CREATE DATABASE d;
CREATE TABLE d.t (id INT PRIMARY KEY, a INT, b INT, c INT, KEY (a), KEY (b, a), UNIQUE (b));
CREATE TABLE d.u (id INT PRIMARY KEY, a INT);
"""
FACTS = facts_of_tables(applier.load_schema(SCHEMA))
KEYS = ({1}, {2, 1}, {2})
MAP = table_map(types=b"\3\3\3\3")
Row = tuple[int, int, int, int]


def image(row: Row) -> bytes:
    return b"\0" + struct.pack("<4i", *row)


def update(*pairs: tuple[Row, Row], number: int = 1) -> list[tuple[int, bytes]]:
    return [
        gtid(number),
        BEGIN,
        MAP,
        rows(UPDATE, b"".join(image(a) + image(b) for a, b in pairs), width=4),
        xid(),
    ]


def entries(*files: Path) -> float | None:
    return with_index_changes(FACTS, [str(file) for file in files]).facts["d.t"].updated_entries


def naive(pairs: list[tuple[Row, Row]]) -> float:
    changed = 0
    for before, after in pairs:
        differing = {at for at in range(4) if before[at] != after[at]}
        changed += 3 if 0 in differing else sum(bool(key & differing) for key in KEYS)
    return 2 * changed / len(pairs)


ROWS = st.tuples(*[st.integers(0, 2)] * 4)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.tuples(ROWS, ROWS), min_size=1, max_size=4), min_size=1, max_size=6))
def test_as_the_images_say(
    tmp_path_factory: pytest.TempPathFactory, transactions: list[list[tuple[Row, Row]]]
) -> None:
    events = [
        one for number, pairs in enumerate(transactions, 1) for one in update(*pairs, number=number)
    ]
    path = write(tmp_path_factory.mktemp("log"), log(*events))
    assert entries(path) == pytest.approx(naive([pair for pairs in transactions for pair in pairs]))


OLD: Row = (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("new", "expected"),
    [((1, 1, 1, 2), 0), ((1, 2, 1, 1), 4), ((1, 1, 2, 1), 4), ((1, 2, 2, 1), 6), ((2, 1, 1, 1), 6)],
)
def test_which_indexes(new: Row, expected: float, tmp_path: Path) -> None:
    """A changed primary key changes all of them: their entries hold it."""
    assert entries(write(tmp_path, log(*update((OLD, new))))) == expected


@pytest.mark.parametrize(("step", "stays"), [(1, 0.9), (500, 0.0)])
def test_how_many_entries_stay_in_their_leaf(step: int, stays: float, tmp_path: Path) -> None:
    """1,000 values in ten leaves: the next value is mostly in the same one."""
    pairs = [((at, at, 0, 0), (at, (at + step) % 1000, 0, 0)) for at in range(1000)]
    events = [one for at, pair in enumerate(pairs, 1) for one in update(pair, number=at)]
    facts = {"d.t": replace(FACTS["d.t"], leaf_pages={"a": 10.0})}
    found = with_index_changes(facts, [str(write(tmp_path, log(*events)))]).facts["d.t"]
    assert found.index_stays == {"a": pytest.approx(stays, abs=0.11)}
    assert found.index_changes == {"a": 1.0, "b": 1.0, "b_2": 0.0}


def test_updates_of_a_log_of_which_a_sample_is_read(tmp_path: Path) -> None:
    pair = ((1, 1, 0, 0), (1, 2, 0, 0))
    few = [write(tmp_path, log(*update(pair, pair)))]
    assert with_index_changes(FACTS, [str(few[0])]).facts["d.t"].log_updates == pytest.approx(
        2, rel=0.02
    )
    events = [one for number in range(1, 40_001) for one in update(pair, number=number)]
    path = tmp_path / "large"
    path.write_bytes(log(*events))
    assert with_index_changes(FACTS, [str(path)]).facts["d.t"].log_updates == pytest.approx(
        40_000, rel=0.05
    )


def test_no_update_shows_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, log(gtid(1), BEGIN, MAP, rows(DELETE, image(OLD), width=4), xid()))
    found = with_index_changes(FACTS, [str(path)]).facts
    assert found == FACTS | {
        "d.t": replace(FACTS["d.t"], in_log=True, log_others=pytest.approx(1, rel=0.02))
    }


def test_compressed_cut_off_and_missing_logs(tmp_path: Path) -> None:
    """Who reads the whole log has the words for them."""
    whole = log(*update((OLD, (1, 2, 2, 1))), *update((OLD, OLD), number=2))
    (tmp_path / "b.gz").write_bytes(gzip.compress(whole))
    assert entries(tmp_path / "b.gz") == 3
    (tmp_path / "cut").write_bytes(whole[:-45])
    assert entries(tmp_path / "cut") == 6
    assert entries(tmp_path / "none") is None
    (tmp_path / "text").write_text("no log")
    assert entries(tmp_path / "text") is None
    assert with_index_changes(FACTS, ["-"]) == (FACTS, frozenset())


WHOLE = log(*update((OLD, (1, 2, 2, 1))), *update((OLD, OLD), number=2))


@settings(max_examples=300, deadline=None)
@given(st.integers(4, len(WHOLE) - 1), st.integers(0, 7))
def test_damaged_logs_show_what_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, at: int, bit: int
) -> None:
    damaged = bytearray(WHOLE)
    damaged[at] ^= 1 << bit
    found = entries(write(tmp_path_factory.mktemp("log"), bytes(damaged)))
    assert found is None or 0 <= found <= 6


def test_rows_of_more_columns_than_their_table(tmp_path: Path) -> None:
    """Who reads the whole log says BL111."""
    wide = [gtid(2), BEGIN, MAP, rows(UPDATE, bytes(40), width=9), xid()]
    assert entries(write(tmp_path, log(*update((OLD, (1, 2, 2, 1))), *wide))) == 6


def test_stretches_of_a_long_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes late in the log counts, though not all of it is read."""
    monkeypatch.setattr(sampled_rows, "STRETCH_BYTES", 2000)
    monkeypatch.setattr(index_changes, "STRETCH_BYTES", 2000)
    quiet = [one for number in range(1, 400) for one in update((OLD, OLD), number=number)]
    busy = [one for number in range(400, 800) for one in update((OLD, (1, 2, 2, 1)), number=number)]
    (tmp_path / "binlog.000001").write_bytes(log(*quiet, *busy))
    found = entries(tmp_path / "binlog.000001")
    assert found is not None
    assert 2 <= found <= 4
    first = write(tmp_path, log(*quiet))
    second = tmp_path / "binlog.000002"
    second.write_bytes(log(*busy))
    both = entries(first, second)
    assert both is not None
    assert 2 <= both <= 4


def price(path: Path) -> dict[str, Any]:
    schema = path.with_suffix(".sql")
    schema.write_text(SCHEMA)
    return applier.forecast([str(path)], schema=str(schema), row_counts="*=1000").summary()


def test_an_update_of_an_index_costs_more_than_another(tmp_path: Path) -> None:
    seconds = {}
    for name, new in (("c", (1, 1, 1, 2)), ("a", (1, 2, 1, 1)), ("all", (1, 2, 2, 1))):
        path = write(tmp_path, log(*update((OLD, new))))
        seconds[name] = price(path)["tables"][0]["seconds"]
    assert seconds["c"] < seconds["a"] < seconds["all"]


def test_what_the_log_did_not_show_is_assumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, log(*update((OLD, OLD))))
    assert not [text for text in price(path)["assumptions"] if "secondary index" in text]
    monkeypatch.setattr(index_changes, "STRETCH_BYTES", 0)
    said = [text for text in price(path)["assumptions"] if "secondary index" in text]
    assert said == ["updates of d.t change no column of a secondary index"]
