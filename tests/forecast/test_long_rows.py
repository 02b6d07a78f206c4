"""How much of a log's images is written outside of its rows' pages, and what that costs."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import applier
from applier.forecast.inventory.facts import facts_of_tables
from applier.forecast.measurement.measured import Memory
from applier.forecast.measurement.measurement_grid import LONG_ROWS, Cell, grid
from applier.forecast.plan import ForecastPlan, run
from applier.forecast.prices.calibration import default_calibration
from applier.forecast.prices.margin import margin
from applier.forecast.prices.scenario import Scenario
from applier.forecast.prices.units import PLACE
from applier.forecast.workload.index_changes import with_index_changes
from applier.forecast.workload.long_rows import (
    ADDRESS_BYTES,
    MOST_BYTES,
    SHORTEST_BYTES,
    outside,
    written_outside,
)
from lookup.table_shape import PRIMARY
from lookup.versions import RULES
from tests.binlog.build import gtid, log, query, rows, table_map, write, xid
from tests.forecast import logs

SCHEMA = """
CREATE DATABASE d;
CREATE TABLE d.t (id INT PRIMARY KEY, body LONGBLOB, name VARCHAR(100));
"""
FACTS = facts_of_tables(applier.load_schema(SCHEMA))
MAP = table_map(types=b"\3\xfc\x0f", metadata=b"\4\x64\0")
WRITE, UPDATE, DELETE = 30, 31, 32
LONG, OTHER = b"a" * 20_000, b"b" * 20_000


def image(number: int, body: bytes, name: bytes = b"n") -> bytes:
    packed = struct.pack("<iI", number, len(body)) + body
    return b"\0" + packed + bytes([len(name)]) + name


def shares(folder: Path, kind: int, *images: bytes) -> dict[str, float]:
    path = write(
        folder, log(gtid(1), query(b"BEGIN"), MAP, rows(kind, b"".join(images), width=3), xid())
    )
    return dict(with_index_changes(FACTS, [str(path)]).facts["d.t"].long_shares)


@pytest.mark.parametrize(
    ("kind", "images", "expected"),
    [
        (WRITE, [image(1, LONG)], {"write": 1.0}),
        (WRITE, [image(1, LONG), image(2, b"short" * 1000)], {"write": 0.8}),
        (WRITE, [image(1, b"a" * 8_000)], {}),
        (UPDATE, [image(1, LONG), image(1, OTHER)], {"update": 0.5}),
        (UPDATE, [image(1, LONG), image(1, LONG, b"other")], {}),
        (UPDATE, [image(1, b"short"), image(1, LONG)], {"update": 1.0}),
        (DELETE, [image(1, LONG)], {}),
    ],
)
def test_what_a_change_writes_outside(
    kind: int, images: list[bytes], expected: dict[str, float], tmp_path: Path
) -> None:
    found = shares(tmp_path, kind, *images)
    assert found == {name: pytest.approx(share, rel=0.01) for name, share in expected.items()}


def test_an_event_longer_than_the_sample_is_looked_at(tmp_path: Path) -> None:
    assert shares(tmp_path, WRITE, image(1, b"a" * (3 << 20))) == {
        "write": pytest.approx(1.0, rel=0.01)
    }


def test_a_minimal_image_shows_what_was_changed() -> None:
    assert written_outside({}, {1: LONG}) == len(LONG)
    assert written_outside({1: LONG, 2: b"n"}, {2: b"other"}) == 0


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.integers(0, 8), st.integers(0, 12_000) | st.none()))
def test_the_longest_values_leave_until_the_rest_fits(lengths: dict[int, int | None]) -> None:
    row = {at: None if length is None else b"x" * length for at, length in lengths.items()}
    left = {at: length for at, length in lengths.items() if length is not None}
    moved = set[int]()
    while sum(left.values()) + len(moved) * ADDRESS_BYTES > MOST_BYTES:
        longest = max(left, key=lambda at: left[at])
        if left.pop(longest) <= SHORTEST_BYTES:
            break
        moved.add(longest)
    assert {len(row[at] or b"") for at in outside(row)} == {lengths[at] for at in moved}
    assert len(outside(row)) == len(moved)


def test_new_values_cost_more_than_the_same_bytes_that_stay(tmp_path: Path) -> None:
    """20,000 bytes at the price of a long byte, beside that of the images."""

    def seconds(*images: bytes) -> float:
        path = write(
            tmp_path,
            log(gtid(1), query(b"BEGIN"), MAP, rows(UPDATE, b"".join(images), width=3), xid()),
        )
        found = run(ForecastPlan(files=[str(path)], facts=FACTS, server="9.7")).summary()
        return float(found["worst"][0]["seconds"])

    price = default_calibration("9.7").prices["long byte"]
    more = seconds(image(1, LONG), image(1, OTHER)) - seconds(image(1, LONG), image(1, LONG))
    assert more == pytest.approx(20_000 * price, rel=0.02)


@pytest.mark.parametrize("kind", ["write", "update", "delete"])
def test_cells_have_long_rows(kind: str, tmp_path: Path) -> None:
    """What a cell's log holds is what its facts say of it."""
    cell = Cell(PRIMARY, 1_000, kind, 1, 1, 10, max(LONG_ROWS))
    amounts = Memory("9.7").measure(cell).amounts
    long = 0 if kind == "delete" else 10 * cell.filler
    assert amounts[PLACE["long byte"]] == pytest.approx(long, rel=0.01)
    assert any(one.filler == cell.filler and one.kind == kind for one in grid(RULES["9.7"]))


def test_prices_that_know_long_rows_have_no_wider_margin_for_them() -> None:
    one = replace(FACTS["d.t"], row_bytes=20_000.0, in_log=True)
    prices = replace(logs.calibration(spread=0.2), shown=frozenset({"long byte"}))
    assert margin(Scenario("as it is", RULES["9.7"]), {"d.t": one}, prices) == (
        pytest.approx(0.2),
        [],
    )
