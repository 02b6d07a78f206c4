"""The gallery of bugs (docs/gallery.md) as data: errors, rows read, what a crash leaves; and that
real servers do the same."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from servers.server import Server

import applier
from applier.crashtest.crash_runs import Kind
from applier.crashtest.matrix import Setup, WorkloadSpec, try_all
from applier.mysql.client.url import Endpoint
from applier.mysql.into import replay_into
from applier.mysql.into_options import IntoOptions
from applier.options import parse_options
from applier.tables.catalog import Tables
from checkpoints.outcomes import Medium
from checkpoints.simulated_disk import Coverage
from tests.servers.fixtures import ServerFactory

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "examples" / "gallery"
PAGE = ROOT / "docs" / "gallery.md"
SCAN, HASH, HASH_ONLY = "INDEX_SCAN,TABLE_SCAN", "INDEX_SCAN,HASH_SCAN", "TABLE_SCAN,HASH_SCAN"


def replayed(
    name: str, server: str, row_search: str | None = None
) -> tuple[applier.ReplayResult, Tables]:
    replica = FOLDER / f"{name}.replica.sql"
    tables = applier.load_schema(replica, server=server) if replica.exists() else Tables()
    return applier.replay(
        [FOLDER / f"{name}.binlog"], into=tables, server=server, row_search=row_search
    ), tables


def number(result: applier.ReplayResult) -> int | None:
    return result.error.number if result.error is not None else None


# what the server's applier does

ERRORS = [
    ("changed_twice", "5.6", HASH, 1032),
    ("changed_twice", "5.7", HASH, 1032),
    ("changed_twice", "8.0.16", None, 1032),
    ("changed_twice", "8.0.17", None, None),
    ("changed_twice", "5.7", SCAN, None),
    ("back_and_forth", "5.7", HASH, 1032),
    ("back_and_forth", "8.0", None, 1032),
    ("back_and_forth", "9.7", None, 1032),
    ("back_and_forth", "8.0", SCAN, None),
    ("smaller_value", "5.7", HASH, 1032),
    ("smaller_value", "9.7", None, 1032),
    ("smaller_value", "8.0", SCAN, None),
    ("shifted_keys", "5.7", HASH_ONLY, 1062),
    ("shifted_keys", "8.0", HASH_ONLY, 1062),
    ("shifted_keys", "8.0", None, None),
    ("same_checksum", "8.0.16", None, None),
    ("same_checksum", "8.0.17", None, 1032),
    ("same_checksum", "8.0.42", None, 1032),
    ("same_checksum", "8.0.46", None, None),
    ("same_checksum", "8.0.42", SCAN, None),
    ("twins", "8.0", None, 1062),
    ("twins", "9.7", None, 1062),
    ("twins", "8.0", SCAN, None),
]


@pytest.mark.parametrize(("name", "server", "row_search", "error"), ERRORS)
def test_the_applier_stops_where_the_bug_is_and_nowhere_else(
    name: str, server: str, row_search: str | None, error: int | None
) -> None:
    result, _ = replayed(name, server, row_search)
    assert number(result) == error
    if error is not None:
        assert result.error is not None and result.error.table == "gallery.t1"


def test_twins_change_in_the_opposite_order() -> None:
    """Both tables are the source's as multisets until a key numbers the rows."""
    right, wrong = (
        replayed("twins", "8.0", search)[1]["gallery.t1"].rows() for search in (SCAN, HASH)
    )
    assert right == [(1, 6, 2), (1, 7, 3), (1, 5, 4)]
    assert wrong == [(1, 6, 2), (1, 5, 3)], (
        "id 1 was 7 here and 5 on the source; it is gone, and 5 is still there"
    )


@pytest.mark.parametrize(
    ("server", "algorithm", "rows_read"),
    [("5.6", "table scan", 34), ("5.7.22", "table scan", 34), ("5.7.23", "index scan", 4)],
)
def test_a_second_unique_key(server: str, algorithm: str, rows_read: int) -> None:
    result, _ = replayed("second_key", server)
    assert [event.algorithm for event in result.events] == [algorithm]
    assert (
        result.counters["read_rnd_next" if algorithm == "table scan" else "read_key"] == rows_read
    )


def test_a_table_without_a_key_is_read_in_full_for_each_row() -> None:
    """4,000 rows: half of 4,000² and more under a table scan, once per event under a hash."""
    old, new = replayed("no_key", "5.7")[0], replayed("no_key", "8.0")[0]
    assert (old.counters["delete"], new.counters["delete"]) == (4000, 4000)
    assert old.counters["read_rnd_next"] == 4_011_207
    assert new.counters["read_rnd_next"] == 41_471


# the same on real servers


@pytest.fixture(scope="module", params=["5.7", "9.7"])
def real(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Iterator[Server]:
    server = server_factory(request.param, options={"log_bin_trust_function_creators": True})
    yield server
    server.close()


def test_real_servers_stop_at_the_same_logs(real: Server) -> None:
    """The log's own rows events, carried out by the server: error for error, and row for row where
    there is none."""
    version = real.installed.recipe.name
    searches = [SCAN, HASH, HASH_ONLY] if version == "5.7" else [None]
    names = (
        "changed_twice",
        "back_and_forth",
        "smaller_value",
        "shifted_keys",
        "twins",
        "same_checksum",
    )
    for search in searches:
        if search is not None:
            real.execute(f"SET GLOBAL slave_rows_search_algorithms = '{search}'")
        for name in names:
            real.execute("DROP DATABASE IF EXISTS gallery")
            where = Endpoint(user=real.user, socket=str(real.socket), password=real.password)
            into = IntoOptions(force=True, replay_id=f"{name} {search}")
            outcome = replay_into([str(FOLDER / f"{name}.binlog")], where, parse_options(), into)
            result, tables = replayed(name, version, search)
            assert getattr(outcome.error, "number", None) == number(result), (
                name,
                search,
                outcome.error,
            )
            assert sorted(real.query("SELECT * FROM gallery.t1")) == sorted(
                tables["gallery.t1"].rows()
            ), (name, search)


# what a crash leaves

CRASHES: list[tuple[dict[str, Any], Kind, int, str, str]] = [
    ({"server": "5.6", "repository": "FILE", "auto_position": False}, Kind.PROCESS, 3,
     "re-executes", "error 1062"),
    ({"server": "5.6", "repository": "TABLE", "auto_position": False}, Kind.PROCESS, 3,
     "consistent", ""),
    ({"server": "5.6", "repository": "TABLE", "auto_position": False, "recovery": False},
     Kind.PROCESS, 3, "re-executes", "error 1062"),
    ({"server": "5.6", "repository": "TABLE", "workers": 4}, Kind.PROCESS, 4, "cannot start",
     "error 1872"),
    ({"server": "5.7", "repository": "TABLE", "workers": 4}, Kind.PROCESS, 4, "consistent", ""),
    ({"server": "5.7", "repository": "TABLE", "recovery": False}, Kind.OS, 3, "cannot start",
     "error 1594"),
    ({"server": "5.7", "repository": "TABLE"}, Kind.OS, 3, "consistent", ""),
    ({"server": "8.0", "repository": "TABLE", "auto_position": False, "workers": 4}, Kind.OS, 3,
     "cannot start", "error 1872"),
    ({"server": "8.0", "repository": "TABLE", "auto_position": False, "workers": 4, "sync": 1},
     Kind.OS, 3, "consistent", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "kind", "transactions", "verdict", "error"),
    CRASHES,
    ids=lambda value: str(value)[:40],
)
def test_a_crash_ends_as_the_page_says(
    options: dict[str, Any], kind: Kind, transactions: int, verdict: str, error: str
) -> None:
    setup = Setup(**options)
    [cell] = try_all(
        [setup],
        WorkloadSpec(transactions),
        [kind],
        medium=Medium(sector_bytes=512),
        coverage=Coverage.EDGES,
        jobs=1,
    )
    assert cell.worst == verdict
    if error:
        assert str(cell.first[cell.worst].judgement).startswith(f"{verdict}: {error}")


# saved positions


@pytest.fixture(scope="module")
def positions() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gallery_positions", FOLDER / "positions.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SAVED = {
    "rows-event": {"consistent": 7, "re-executes": 6, "cannot start": 6},
    "table-map": {"consistent": 20, "cannot start": 16},
    "before-the-rows": {"consistent": 8, "loses rows": 5, "cannot start": 6},
    "unknown-table": {"consistent": 9, "re-executes": 6, "loses rows": 4},
    "next-transaction": {"consistent": 15, "loses rows": 21},
    "gtid-at-begin": {"consistent": 6, "loses rows": 8},
    "rotate-event": {"consistent": 5, "re-executes": 6, "cannot start": 4},
    "count-not-reset": {"consistent": 11, "re-executes": 7, "loses rows": 3},
    "at-commit": {"consistent": 5, "re-executes": 9},
    "with-the-rows": {"consistent": 5},
}
"""Way to save a position -> how many of the disks that a kill may leave end how."""


def test_every_way_to_save_a_position_is_judged(positions: ModuleType) -> None:
    assert {
        name: dict(Counter(map(str, positions.try_all(name).counts().elements())))
        for name in positions.CONSUMERS
    } == SAVED


def test_the_log_of_the_consumers_has_statements_of_several_rows_events(
    positions: ModuleType,
) -> None:
    kinds = [
        event.kind
        for event in positions.EVENTS
        if event.kind in ("gtid", "table map", "rows", "commit")
    ]
    letters = "".join(kind[0] for kind in kinds)
    assert letters == "gtrrrtrc" + "gtrc" + "gtrrtrc"


# the page


def test_every_input_of_the_gallery_is_on_the_page_and_the_other_way_round() -> None:
    page = PAGE.read_text()
    named = set(re.findall(r"examples/gallery/([\w.]+)", page))
    kinds = (".binlog", ".py", ".yaml", ".replica.sql")
    assert named | {"positions.binlog"} == {
        path.name for path in FOLDER.iterdir() if path.name.endswith(kinds)
    }
    assert set(SAVED) <= set(re.findall(r"positions\.py ([\w-]+)", page))


SEEN = re.compile(
    r"https://(bugs\.mysql\.com/bug\.php\?id=\d+|github\.com/[\w-]+/[\w-]+/(issues|pull)/\d+|dev\.mysql\.com/worklog/task/\?id=\d+)"
)


def test_every_entry_says_who_saw_it_and_shows_a_command() -> None:
    sections = re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    assert len(sections) >= 20
    for section in sections:
        title = section.splitlines()[0]
        assert SEEN.search(section), title
        assert "```console\n$ " in section, title
