"""Every capture replays to exactly the tables that the real server had at its end, under every
option set that the server had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import applier
from tests.captures_support import as_9_7_shows, captures, logs

SELECTABLE = (
    "INDEX_SCAN,TABLE_SCAN",
    "INDEX_SCAN,HASH_SCAN",
    "TABLE_SCAN,HASH_SCAN",
    "INDEX_SCAN,TABLE_SCAN,HASH_SCAN",
    "INDEX_SCAN",
    "TABLE_SCAN",
)
"""slave_rows_search_algorithms of 5.6 and 5.7."""
REPEATED_ROW = {"my56_multitable_savepoints": 41437, "my57_multitable_savepoints": 59814}
"""Where an event updates one row twice: a hash scan looks for both before images in one pass and
does not find the second. A real 5.7.29 that applied the log of my57_ stopped at the same event with
the same error and the same handler counters."""
LONG_DOUBLES = ("5.6", "5.7", "mariadb")
"""Servers whose result has room for all digits of a DOUBLE; a dump always has them."""


def server_of(capture: Path) -> str:
    version = str(json.loads((capture / "meta.json").read_text())["server"])
    return "mariadb" if "mariadb" in version.lower() else ".".join(version.split(".")[:2])


def runs() -> list[tuple[Path, str | None]]:
    return [
        (capture, chosen)
        for capture in captures()
        for chosen in (SELECTABLE if server_of(capture) in ("5.6", "5.7") else (None,))
    ]


@pytest.mark.parametrize(
    ("capture", "row_search"),
    [pytest.param(*run, id=f"{run[0].name}-{run[1] or 'own'}") for run in runs()],
)
def test_replays_to_the_tables_of_the_server(
    capture: Path, row_search: str | None, tmp_path: Path
) -> None:
    server = server_of(capture)
    tables = applier.load_schema(capture / "before.sql", server=server)
    result = applier.replay(logs(capture), into=tables, row_search=row_search)
    if capture.name in REPEATED_ROW and row_search is not None and "HASH_SCAN" in row_search:
        assert result.error is not None
        assert (result.error.number, result.error.position) == (1032, REPEATED_ROW[capture.name])
        return
    assert result.error is None
    assert result.incomplete_transaction is None
    tables.dump(tmp_path)
    dumped = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    expected = {path.name: path.read_bytes() for path in (capture / "after").iterdir()}
    assert sorted(dumped) == sorted(expected)
    if server_of(capture) not in LONG_DOUBLES:
        dumped = {name: as_9_7_shows(data) for name, data in dumped.items()}
    assert [name for name in expected if dumped[name] != expected[name]] == []
