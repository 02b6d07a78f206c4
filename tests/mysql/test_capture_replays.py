"""Every log of a real server, replayed into the version that wrote it: the tables are those that
its source had at the end.

In native and in SQL mode, one server a version. `after/` is what the source itself said;
`binlag verify` must find the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from servers.server import Server

from applier.cli.main import main
from applier.mysql.into import replay_into
from applier.mysql.into_options import IntoOptions
from applier.options import parse_options
from tests.captures_support import CAPTURES, captures, logs
from tests.mysql.after import differences
from tests.mysql.server_support import Servers, endpoint, version_of
from tests.servers.fixtures import ServerFactory


@dataclass(frozen=True)
class Log:
    """What one server wrote: its log, the tables before it where there were some, and the tables
    after it."""

    name: str
    version: str
    files: tuple[str, ...]
    after: Path
    rows: dict[str, int]
    schema: str | None = None


def _of_capture(capture: Path) -> Log:
    dump = capture / "before.sql"
    rows = {
        name: table["rows"]
        for name, table in json.loads((capture / "meta.json").read_text())["tables_after"].items()
    }
    schema = str(dump) if dump.read_bytes().strip() != b"-- empty" else None
    return Log(
        capture.name,
        version_of(capture),
        tuple(map(str, logs(capture))),
        capture / "after",
        rows,
        schema,
    )


def _of_replica(folder: Path) -> Log:
    """A source whose replica was watched, or the replica's relay logs: these were complete whenever
    they were copied. All of 9.7."""
    after = folder.parent / "source" / "after"
    rows = {file.stem: file.read_bytes().count(b"\n") - 1 for file in after.glob("*.tsv")}
    return Log(
        f"{folder.parent.name}-{folder.name}", "9.7", tuple(map(str, logs(folder))), after, rows
    )


REPLICAS = [
    folder
    for name in ("source", "relay_*")
    for folder in sorted((CAPTURES / "open").glob(f"my_relay_*/{name}"))
]
LOGS = [
    *map(_of_capture, captures()),
    *(_of_replica(folder) for folder in REPLICAS if (folder.parent / "source" / "after").exists()),
]


@pytest.fixture(scope="module")
def servers(server_factory: ServerFactory) -> Iterator[Servers]:
    servers = Servers(server_factory)
    yield servers
    servers.close()


def verified(
    server: Server, log: Log, capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, int], list[object]]:
    """Exit code of `binlag verify`, the rows that it counted in each table, and the tables that
    differ."""
    schema = ["--schema", log.schema] if log.schema else []
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "verify",
                *log.files,
                *schema,
                "--into",
                f"mysql://root@localhost?socket={server.socket}",
                "--json",
            ]
        )
    tables = json.loads(capsys.readouterr().out)["tables"]
    assert isinstance(ended.value.code, int)
    return (
        ended.value.code,
        {table["table"]: table["found_rows"] for table in tables},
        [table for table in tables if not table["equal"]],
    )


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("mode", ["native", "sql"])
@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_the_server_holds_what_the_source_held(
    log: Log,
    mode: str,
    servers: Servers,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = servers.empty(log.version)
    monkeypatch.setenv("BINLAG_PASSWORD", server.password)
    chosen = IntoOptions(apply=mode, schema=log.schema)
    outcome = replay_into(log.files, endpoint(server), parse_options(), chosen)
    assert outcome.error is None
    assert [note for note in outcome.notes if "differ" in note] == []
    assert differences(server, log.after) == []
    assert verified(server, log, capsys) == (0, log.rows, [])
    again = replay_into(log.files, endpoint(server), parse_options(), chosen)
    assert (again.transactions, again.rows, again.total_transactions) == (
        0,
        0,
        outcome.total_transactions,
    )
