"""Real servers that carried out a log hold what the replay in memory says; and what is changed on them is found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import applier
from applier.cli.main import main
from applier.mysql.verify import verify
from tests.captures_support import CAPTURES, logs
from tests.mysql.server_support import Servers, connection, load_before, pipe, version_of
from tests.servers.fixtures import ServerFactory

NO_KEY = CAPTURES / "open" / "my_nokey_duplicates"
"""Tables with twins: the committed subset has this log too."""
ONE_OF_EACH = [CAPTURES / "open" / name for name in ("my56_anonymous_nochecksum", "my57_xa", "my_nokey_duplicates", "ma_ddl")]


@pytest.fixture(scope="module")
def servers(server_factory: ServerFactory) -> Iterator[Servers]:
    servers = Servers(server_factory)
    yield servers
    servers.close()


@pytest.mark.parametrize("capture", ONE_OF_EACH, ids=lambda capture: capture.name)
def test_a_server_that_got_the_log_from_the_pipe_is_equal(capture: Path, servers: Servers) -> None:
    server = servers.empty(version_of(capture))
    load_before(server, capture)
    pipe(server, capture)
    tables = applier.load_schema(capture / "before.sql", server=version_of(capture))
    assert applier.replay(logs(capture), into=tables).error is None
    with closing(connection(server)) as target:
        result = verify(target, tables)
    assert [report.as_dict() for report in result.tables if not report.equal] == []
    after = json.loads((capture / "meta.json").read_text())["tables_after"]
    assert {report.table: report.found_rows for report in result.tables} == {name: table["rows"] for name, table in after.items()}


@pytest.mark.parametrize(
    ("statement", "missing", "extra"),
    [
        ("UPDATE {keyless} SET {column} = {column} + 1 WHERE {column} IS NOT NULL LIMIT 1", 1, 1),
        ("DELETE FROM {keyless} LIMIT 1", 1, 0),
        ("DELETE FROM {keyless} LIMIT 3", 3, 0),
        ("INSERT INTO {keyless} SELECT * FROM {keyless} LIMIT 2", 0, 2),
    ],
)
def test_what_was_changed_is_found(statement: str, missing: int, extra: int, servers: Servers, tmp_path: Path) -> None:
    server = servers.empty("9.7")
    load_before(server, NO_KEY)
    pipe(server, NO_KEY)
    tables = applier.load_schema(NO_KEY / "before.sql", server="9.7")
    applier.replay(logs(NO_KEY), into=tables)
    table = max((table for table in tables if not any(key.unique for key in table.definition.keys)), key=len)
    column = next(column.name for column in table.definition.columns if column.type in ("int", "bigint", "smallint"))
    name = f"`{table.definition.database}`.`{table.definition.name}`"
    server.execute(statement.format(keyless=name, column=f"`{column}`"))
    with closing(connection(server)) as target:
        result = verify(target, tables)
    (different,) = [report for report in result.tables if not report.equal]
    assert (different.table, different.missing, different.extra) == (table.definition.full_name, missing, extra)
    assert len(different.differences) == missing + extra


def test_the_command(servers: Servers, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    server = servers.empty("9.7")
    load_before(server, NO_KEY)
    pipe(server, NO_KEY)
    monkeypatch.setenv("BINLAG_PASSWORD", server.password)
    url = f"mysql://root@localhost?socket={server.socket}"
    arguments = ["verify", *map(str, logs(NO_KEY)), "--schema", str(NO_KEY / "before.sql"), "--into", url]
    assert _exit_code(arguments) == 0
    assert capsys.readouterr().out.startswith("no difference: ")
    table = next(iter(json.loads((NO_KEY / "meta.json").read_text())["tables_after"]))
    database, name = table.split(".")
    server.execute(f"DELETE FROM `{database}`.`{name}` LIMIT 2")
    assert _exit_code([*arguments, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert not said["equal"]
    assert [(report["table"], report["missing"], report["extra"]) for report in said["tables"] if not report["equal"]] == [(table, 2, 0)]
    assert _exit_code([*arguments, "--table", f"{database}.another"]) == 0
    server.execute(f"DROP TABLE `{database}`.`{name}`")
    assert _exit_code(arguments) == 1
    assert "it is not on the server" in capsys.readouterr().out


def _exit_code(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code
