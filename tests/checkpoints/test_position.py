"""Places in a log, in order."""

from __future__ import annotations

from checkpoints.position import Position


def test_files_are_ordered_by_number() -> None:
    places = [
        Position("binlog.1000000", 4),
        Position("binlog.999999", 900),
        Position("binlog.999999", 4),
        Position("binlog.000010", 5000),
    ]
    assert [str(place) for place in sorted(places)] == [
        "binlog.000010:5000",
        "binlog.999999:4",
        "binlog.999999:900",
        "binlog.1000000:4",
    ]


def test_equality_and_hash() -> None:
    assert Position("a.000001", 4) == Position("a.000001", 4)
    assert len({Position("a.000001", 4), Position("a.000001", 4), Position("a.000001", 5)}) == 2
    assert Position("a.000001", 4) <= Position("a.000001", 4) < Position("a.000002", 4)
    assert Position("without-number", 7) < Position("without-number", 8)
