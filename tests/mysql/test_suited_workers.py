"""How many connections a replay takes when nobody says: several where transactions are large."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from applier.mysql.into import LARGE_BYTES, LOOK_BYTES, SUITED_WORKERS, suited_workers
from applier.mysql.into_options import IntoOptions
from applier.mysql.positions.checkpoint import Checkpoint
from applier.options import parse_options
from tests.binlog.build import gtid, int_image, log, query, rows, table_map, write, xid


def transaction(number: int, size: int, table: bytes = b"t") -> tuple[tuple[int, bytes], ...]:
    return (
        gtid(number),
        query(b"BEGIN"),
        table_map(table=table),
        rows(30, int_image(1) * (size // 5)),
        xid(),
    )


def suited(folder: Path, content: bytes, into: dict[str, Any] | None = None, **options: Any) -> int:
    return suited_workers(
        [str(write(folder, content))],
        parse_options(**options),
        IntoOptions(**(into or {})),
        Checkpoint("r"),
    )


@pytest.mark.parametrize(
    ("sizes", "workers"),
    [
        ([2 * LARGE_BYTES] * 3, SUITED_WORKERS),
        ([100] * 20, 1),
        ([100] * 50 + [2 * LARGE_BYTES], 1),
        ([LOOK_BYTES] + [100] * 100, SUITED_WORKERS),  # no more than so much is looked at
        ([], 1),
    ],
)
def test_large_transactions_take_several(tmp_path: Path, sizes: list[int], workers: int) -> None:
    content = log(
        *(event for number, size in enumerate(sizes, 1) for event in transaction(number, size))
    )
    assert suited(tmp_path, content) == workers


@pytest.mark.parametrize("into", [{"apply": "sql"}, {"gtid": True}])
def test_one_where_several_do_not_help(tmp_path: Path, into: dict[str, Any]) -> None:
    assert suited(tmp_path, log(*transaction(1, 2 * LARGE_BYTES)), into) == 1


def test_what_is_not_wanted_does_not_count(tmp_path: Path) -> None:
    content = log(*transaction(1, 2 * LARGE_BYTES), *transaction(2, 100))
    assert suited(tmp_path, content, start_position=len(log(*transaction(1, 2 * LARGE_BYTES)))) == 1


def test_a_damaged_log_is_left_to_the_replay(tmp_path: Path) -> None:
    assert suited(tmp_path, log(*transaction(1, 2 * LARGE_BYTES))[:-40] + b"?" * 40) == 1
