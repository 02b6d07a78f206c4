"""What the exec mode and the skip list let pass is counted by row, whichever way rows are looked
for."""

from __future__ import annotations

from pathlib import Path

import pytest

import applier
from tests.binlog.build import int_image, log, query, rows, table_map, write, xid

KEYED = "CREATE TABLE d.t (a INT PRIMARY KEY);"
INDEXED = "CREATE TABLE d.t (a INT, KEY k (a));"
KEYLESS = "CREATE TABLE d.t (a INT);"
WRITE, DELETE = 30, 32


Row = tuple[object, ...]


def replayed(
    folder: Path, table: str, kind: int, numbers: tuple[int, ...], **options: str
) -> tuple[dict[str, int], list[Row]]:
    """Notes and rows after one event over a table that holds 2, 3 and 4."""
    content = log(
        query(b"BEGIN"), table_map(), rows(kind, b"".join(map(int_image, numbers))), xid()
    )
    tables = applier.load_schema(
        f"CREATE DATABASE d; {table} INSERT INTO d.t VALUES (2), (3), (4);"
    )
    result = applier.replay([write(folder, content)], into=tables, **options)
    assert result.error is None
    return result.notes, sorted(tables["d.t"].rows())


@pytest.mark.parametrize("table", [KEYED, INDEXED, KEYLESS])
def test_each_missing_row_counts_once_in_idempotent_mode(table: str, tmp_path: Path) -> None:
    notes, left = replayed(tmp_path, table, DELETE, (1, 2, 9, 3, 8), exec_mode="idempotent")
    assert notes == {"let pass by --exec-mode idempotent: error 1032 on table d.t": 3}
    assert left == [(4,)]


@pytest.mark.parametrize(
    ("table", "count", "left"),
    [(KEYED, 1, [(3,), (4,)]), (INDEXED, 5, [(2,), (3,), (4,)]), (KEYLESS, 3, [(4,)])],
)
def test_what_a_skipped_miss_ends(
    table: str, count: int, left: list[tuple[int]], tmp_path: Path
) -> None:
    """An index scan at the row; a hash scan over an index at the first value that no row has, 1
    here; one over the table not at all."""
    notes, found = replayed(tmp_path, table, DELETE, (2, 1, 3, 9, 8), skip_errors="1032")
    assert notes == {"let pass by --skip-errors: error 1032 on table d.t": count}
    assert found == left


def test_each_row_in_the_way_counts_once(tmp_path: Path) -> None:
    notes, left = replayed(tmp_path, KEYED, WRITE, (1, 2, 3), exec_mode="idempotent")
    assert notes == {"let pass by --exec-mode idempotent: error 1062 on table d.t": 2}
    assert left == [(1,), (2,), (3,), (4,)]


def test_nothing_let_pass_is_no_note(tmp_path: Path) -> None:
    assert replayed(tmp_path, KEYLESS, DELETE, (2, 3), exec_mode="idempotent") == ({}, [(4,)])
