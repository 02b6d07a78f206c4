"""Real servers that carried out a log hold what the replay in memory says; and what is changed on
them is found."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import applier
from applier.cli.main import main
from applier.mysql.contents.verify import TableReport, verify
from applier.mysql.into import ReplayWatch, replay_into
from applier.mysql.into_options import IntoOptions
from applier.options import parse_options
from applier.tables.catalog import Tables
from tests.captures_support import CAPTURES, logs
from tests.mysql.server_support import (
    VERSIONS,
    Servers,
    client,
    connection,
    endpoint,
    load_before,
    pipe,
    version_of,
)
from tests.servers.fixtures import ServerFactory

NO_KEY = CAPTURES / "open" / "my_nokey_duplicates"
"""Tables with twins: the committed subset has this log too."""
XA = CAPTURES / "open" / "my_xa"
ONE_OF_EACH = [
    CAPTURES / "open" / name
    for name in ("my56_anonymous_nochecksum", "my57_xa", "my_nokey_duplicates", "ma_ddl")
]


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
    schema = capture / "before.sql"
    tables = (
        applier.load_schema(schema, server=version_of(capture))
        if "CREATE" in schema.read_text()
        else Tables()
    )
    assert applier.replay(logs(capture), into=tables).error is None
    with closing(connection(server)) as target:
        result = verify(target, tables)
    assert [report.as_dict() for report in result.tables if not report.equal] == []
    after = json.loads((capture / "meta.json").read_text())["tables_after"]
    assert {report.table: report.found_rows for report in result.tables} == {
        name: table["rows"] for name, table in after.items()
    }


SEEDED = """
CREATE DATABASE d;
USE d;
CREATE TABLE `k` (a INT PRIMARY KEY, v VARCHAR(20), f FLOAT, d DOUBLE, t DATETIME(3),
    b VARBINARY(9), n DECIMAL(20,5)) ENGINE=InnoDB;
INSERT INTO `k` VALUES (1, 'one', 1.1, 1e15, '2024-01-01 01:01:01.001', 'x', 1);
INSERT INTO `k` VALUES (2, '', 0, 0.1, NULL, '', 0.1), (3, NULL, 0, -0e0, 0, NULL, -1);
CREATE TABLE `w` (v VARCHAR(20), f DOUBLE, j TEXT) ENGINE=InnoDB CHARACTER SET latin1;
INSERT INTO `w` VALUES ('x', 0.1, 'a'), ('x', 0.1, 'a'), ('x', 0.1, 'a'), ('', 0, ''),
    (NULL, NULL, NULL), ('y ', -1e-300, 'A');
CREATE TABLE `empty` (a INT) ENGINE=InnoDB;
"""
"""A table with a key, one without and with twins, and one without rows."""

Found = tuple[str, int, int, tuple[str, ...]]
"""Table, rows missing, rows too many, and the columns that differ between rows of one key."""
CORRUPTIONS: dict[str, tuple[str, Found]] = {
    "one row changed": ("UPDATE d.k SET v = 'two' WHERE a = 2", ("d.k", 1, 1, ("v",))),
    "upper case": ("UPDATE d.k SET v = 'One' WHERE a = 1", ("d.k", 1, 1, ("v",))),
    "no text for NULL": ("UPDATE d.k SET v = '' WHERE a = 3", ("d.k", 1, 1, ("v",))),
    "NULL for no text": ("UPDATE d.w SET v = NULL WHERE v = ''", ("d.w", 1, 1, ())),
    "NULL for zero": ("UPDATE d.k SET f = NULL WHERE a = 2", ("d.k", 1, 1, ("f",))),
    "a space at the end": ("UPDATE d.k SET v = 'one ' WHERE a = 1", ("d.k", 1, 1, ("v",))),
    "a space less": ("UPDATE d.w SET v = 'y' WHERE v = 'y'", ("d.w", 1, 1, ())),
    "a zero byte at the end": ("UPDATE d.k SET b = X'7800' WHERE a = 1", ("d.k", 1, 1, ("b",))),
    "the last bit of a FLOAT": ("UPDATE d.k SET f = 1.1000001430511475e0 WHERE a = 1",
                                ("d.k", 1, 1, ("f",))),
    "the last bit of a DOUBLE":
        ("UPDATE d.k SET d = 1000000000000000.125e0 WHERE a = 1", ("d.k", 1, 1, ("d",))),
    "the last bit of a small one":
        ("UPDATE d.k SET d = 0.10000000000000002e0 WHERE a = 2", ("d.k", 1, 1, ("d",))),
    "a bit of one twin": ("UPDATE d.w SET f = 0.09999999999999999e0 WHERE v = 'x' LIMIT 1",
                          ("d.w", 1, 1, ())),
    "a thousandth of a second":
        ("UPDATE d.k SET t = '2024-01-01 01:01:01.002' WHERE a = 1", ("d.k", 1, 1, ("t",))),
    "NULL for a zero date": ("UPDATE d.k SET t = NULL WHERE a = 3", ("d.k", 1, 1, ("t",))),
    "the last digit": ("UPDATE d.k SET n = 0.10001 WHERE a = 2", ("d.k", 1, 1, ("n",))),
    "a twin less": ("DELETE FROM d.w WHERE v = 'x' LIMIT 1", ("d.w", 1, 0, ())),
    "a twin more": ("INSERT INTO d.w VALUES ('x', 0.1, 'a')", ("d.w", 0, 1, ())),
    "another key": ("UPDATE d.k SET a = 4 WHERE a = 3", ("d.k", 1, 1, ())),
    "a row more": ("INSERT INTO d.empty VALUES (NULL)", ("d.empty", 0, 1, ())),
    "all rows gone": ("TRUNCATE d.w", ("d.w", 6, 0, ())),
    "a table gone": ("DROP TABLE d.k", ("d.k", 3, 0, ())),
    "a table more": ("CREATE TABLE d.more AS SELECT 1", ("d.more", 0, 1, ())),
    "an empty table gone": ("DROP TABLE d.empty", ("d.empty", 0, 0, ())),
    "the sign of zero": ("UPDATE d.k SET d = 0 WHERE a = 3", ("d.k", 1, 1, ("d",))),
}  # fmt: skip
NO_SIGNED_ZERO = frozenset({"mariadb"})


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_changed_is_found_and_named(version: str, servers: Servers) -> None:
    server = servers.empty(version)
    tables = applier.load_schema(SEEDED, server=version)
    wrong: dict[str, object] = {}
    with closing(connection(server)) as target:
        for name, (statement, found) in {
            "nothing": ("DO 0", ("", 0, 0, ())),
            **CORRUPTIONS,
        }.items():
            server.execute(
                "SET sql_mode = ''",
                "DROP DATABASE IF EXISTS d",
                *SEEDED.strip().rstrip(";").split(";\n"),
                statement,
            )
            different = [report for report in verify(target, tables).tables if not report.equal]
            said = [
                (report.table, report.missing, report.extra, _differing(report))
                for report in different
            ]
            expected = (
                []
                if name == "nothing" or (name == "the sign of zero" and version in NO_SIGNED_ZERO)
                else [found]
            )
            if said != expected:
                wrong[name] = said
    assert wrong == {}


def _differing(report: TableReport) -> tuple[str, ...]:
    return tuple(name for row in report.differences for name in row.differing)


def test_the_command(
    servers: Servers,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = servers.empty("9.7")
    load_before(server, NO_KEY)
    pipe(server, NO_KEY)
    monkeypatch.setenv("BINLAG_PASSWORD", server.password)
    url = f"mysql://root@localhost?socket={server.socket}"
    arguments = [
        "verify",
        *map(str, logs(NO_KEY)),
        "--schema",
        str(NO_KEY / "before.sql"),
        "--into",
        url,
    ]
    assert _exit_code(arguments) == 0
    assert capsys.readouterr().out.startswith("no difference: ")
    table = next(iter(json.loads((NO_KEY / "meta.json").read_text())["tables_after"]))
    assert _exit_code([*arguments, "--table", table, "--table", "d.typo"]) == 0
    told = capsys.readouterr()
    assert (told.out.startswith("no difference: 1 table"), told.err) == (
        True,
        "binlag: --table d.typo names no table that was compared\n",
    )
    database, name = table.split(".")
    server.execute(f"DELETE FROM `{database}`.`{name}` LIMIT 2")
    assert _exit_code([*arguments, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert not said["equal"]
    assert [
        (report["table"], report["missing"], report["extra"])
        for report in said["tables"]
        if not report["equal"]
    ] == [(table, 2, 0)]
    assert _exit_code([*arguments, "--table", f"{database}.another"]) == 2
    assert "names nothing that is in the log" in capsys.readouterr().err
    assert (
        _exit_code(["verify", *map(str, logs(NO_KEY)), "--stop-position", "4", "--into", url]) == 2
    )
    assert "no table to compare" in capsys.readouterr().err
    server.execute(f"DROP TABLE `{database}`.`{name}`")
    assert _exit_code(arguments) == 1
    assert "it is not on the server" in capsys.readouterr().out


def test_part_of_a_log_under_another_name(
    servers: Servers, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """verify takes the options that the replay took; what they leave out is not looked at."""
    server = servers.empty("9.7")
    monkeypatch.setenv("BINLAG_PASSWORD", server.password)
    table = next(iter(json.loads((NO_KEY / "meta.json").read_text())["tables_after"]))
    database, name = table.split(".")
    dump = (NO_KEY / "before.sql").read_text()
    with subprocess.Popen(
        client(server), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as process:
        process.communicate(dump.replace(f"`{database}`", "`elsewhere`").encode())
    url = f"mysql://root@localhost?socket={server.socket}"
    chosen = [
        *map(str, logs(NO_KEY)),
        "--into",
        url,
        "--table",
        table,
        "--rewrite-db",
        f"{database}:elsewhere",
    ]
    assert _exit_code(["replay", *chosen, "--force"]) == 0
    schema = str(NO_KEY / "before.sql")
    capsys.readouterr()
    assert _exit_code(["verify", *chosen, "--schema", schema, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [report["table"] for report in said["tables"]] == [f"elsewhere.{name}"]
    server.execute(f"DELETE FROM elsewhere.`{name}` LIMIT 1")
    assert _exit_code(["verify", *chosen, "--schema", schema]) == 1
    assert capsys.readouterr().out.startswith(f"elsewhere.{name}; ")


def test_a_database_that_the_log_dropped_must_be_gone(
    servers: Servers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = servers.empty("5.7")
    source.execute("FLUSH BINARY LOGS")
    file = source.binlog_files()[-1]
    source.execute(
        "CREATE DATABASE gone",
        "CREATE TABLE gone.t (a INT)",
        "INSERT INTO gone.t VALUES (1)",
        "DROP DATABASE gone",
    )
    source.execute("FLUSH BINARY LOGS")
    log = Path(shutil.copy(file, tmp_path))
    server = servers.empty("5.7")
    options = IntoOptions(force=True)
    assert replay_into([str(log)], endpoint(server), parse_options(), options).error is None
    password = tmp_path / "password"
    password.write_text(server.password)
    arguments = [
        "verify",
        str(log),
        "--into",
        f"mysql://root@localhost?socket={server.socket}",
        "--password-file",
        str(password),
    ]
    assert _exit_code(arguments) == 0
    server.execute("CREATE DATABASE gone", "CREATE TABLE gone.t (a INT)")
    capsys.readouterr()
    assert _exit_code(arguments) == 1
    assert "gone.t: it is on the server only" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["INT", "FLOAT", "BINARY(2)", "VARCHAR(9)"])
def test_a_generated_column_that_is_not_computed_in_memory(
    kind: str, servers: Servers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = servers.empty("5.7")
    server.execute("FLUSH BINARY LOGS")
    file = server.binlog_files()[-1]
    server.execute(
        "CREATE DATABASE d", "CREATE TABLE d.t (a VARCHAR(9))", "INSERT INTO d.t VALUES ('x')"
    )
    server.execute(f"ALTER TABLE d.t ADD b {kind} AS (a LIKE '!x' ESCAPE '!')", "FLUSH BINARY LOGS")
    log = Path(shutil.copy(file, tmp_path))
    server.execute("DROP DATABASE d")
    assert (
        replay_into([str(log)], endpoint(server), parse_options(), IntoOptions(force=True)).error
        is None
    )
    password = tmp_path / "password"
    password.write_text(server.password)
    arguments = [
        "verify",
        str(log),
        "--into",
        f"mysql://root@localhost?socket={server.socket}",
        "--password-file",
        str(password),
    ]
    assert _exit_code(arguments) == 2
    assert "d.t: not comparable: it cannot be read in memory" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("version", "table", "row"),
    [
        ("5.7", "(j JSON NOT NULL) ENGINE=CSV", "'{}'"),
        ("9.7", "(i INT MASKING POLICY p) ENGINE=InnoDB", "1"),
    ],
)
def test_rows_that_the_server_cannot_show(
    version: str,
    table: str,
    row: str,
    servers: Servers,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """5.7 stores a JSON document in a CSV table, and answers each SELECT with 3144; 9.7 knows
    masking policies, and without their component answers with 6561."""
    server = servers.empty(version)
    server.execute("FLUSH BINARY LOGS")
    log = server.binlog_files()[-1]
    server.execute(
        "CREATE DATABASE d", f"CREATE TABLE d.t {table}", f"INSERT INTO d.t VALUES ({row})"
    )
    password = tmp_path / "password"
    password.write_text(server.password)
    url = f"mysql://root@localhost?socket={server.socket}"
    arguments = ["verify", str(log), "--into", url, "--password-file", str(password)]
    assert _exit_code(arguments) == 2
    assert "d.t: not comparable: the server cannot show all of its rows" in capsys.readouterr().out


def test_a_foreign_key_without_its_index(servers: Servers, tmp_path: Path) -> None:
    """MariaDB drops it where foreign_key_checks=0, and shows a statement that would make it
    again."""
    server = servers.empty("mariadb")
    server.execute("FLUSH BINARY LOGS")
    file = server.binlog_files()[-1]
    server.execute("CREATE DATABASE d", "CREATE TABLE d.p (a INT PRIMARY KEY) ENGINE=InnoDB")
    server.execute(
        "CREATE TABLE d.c (b INT, KEY k (b), FOREIGN KEY (b) REFERENCES p (a)) ENGINE=InnoDB"
    )
    with closing(server.connect(autocommit=True)) as session, session.cursor() as cursor:
        cursor.execute("SET foreign_key_checks = 0")
        cursor.execute("DROP INDEX k ON d.c")
    server.execute("FLUSH BINARY LOGS")
    log = Path(shutil.copy(file, tmp_path))
    server.execute("DROP DATABASE d")
    assert (
        replay_into([str(log)], endpoint(server), parse_options(), IntoOptions(force=True)).error
        is None
    )
    password = tmp_path / "password"
    password.write_text(server.password)
    arguments = [
        "verify",
        str(log),
        "--into",
        f"mysql://root@localhost?socket={server.socket}",
        "--password-file",
        str(password),
    ]
    assert _exit_code(arguments) == 0
    server.execute("CREATE INDEX k ON d.c (b)")
    assert _exit_code(arguments) == 1


@pytest.mark.parametrize("mode", ["native", "sql"])
@pytest.mark.parametrize("capture", [NO_KEY, XA], ids=lambda capture: capture.name)
def test_wherever_the_replay_stands(
    capture: Path,
    mode: str,
    servers: Servers,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The log counts up to where the replay has come, prepared XA transactions not."""
    server = servers.empty("9.7")
    monkeypatch.setenv("BINLAG_PASSWORD", server.password)
    schema = capture / "before.sql"
    options = IntoOptions(apply=mode, schema=str(schema))
    files = [str(log) for log in logs(capture)]
    places = set()
    interrupted = True
    while interrupted:
        seen = itertools.count(1)
        outcome = replay_into(
            files,
            endpoint(server),
            parse_options(),
            options,
            ReplayWatch(stopped=lambda seen=seen: next(seen) >= 9),
        )  # type: ignore[misc]
        interrupted = outcome.interrupted
        assert outcome.error is None
        places.add((outcome.file, outcome.position))
        assert (
            _exit_code(
                [
                    "verify",
                    *files,
                    "--schema",
                    str(schema),
                    "--into",
                    f"mysql://root@localhost?socket={server.socket}",
                ]
            )
            == 0
        )
    assert len(places) > 3


def test_what_a_killed_replay_left_half_done_comes_first(
    servers: Servers, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A part beyond the position, a DDL statement, a dump: only the replay itself knows how to go
    on."""
    server = servers.empty("9.7")
    files = [str(log) for log in logs(NO_KEY)]
    options = IntoOptions(schema=str(NO_KEY / "before.sql"))
    first = replay_into(
        files, endpoint(server), parse_options(), options, ReplayWatch(stopped=lambda: True)
    )
    assert first.interrupted
    password = tmp_path / "password"
    password.write_text(server.password)
    schema = ["--schema", str(NO_KEY / "before.sql")]
    arguments = [
        "verify",
        *files,
        *schema,
        "--into",
        f"mysql://root@localhost?socket={server.socket}",
        "--password-file",
        str(password),
    ]
    server.execute(
        f"INSERT INTO binlag.done VALUES ('{first.replay}', 1, '{first.file}', 4, {first.position})"
    )
    assert _exit_code(arguments) == 0
    server.execute(
        f"INSERT INTO binlag.done VALUES ('{first.replay}', 2, '{first.file}', "
        f"{first.position + 100}, {first.position + 200})"
    )
    assert _said(arguments, capsys) == (
        2,
        "with transactions committed beyond its position. Next: run it again, then verify",
    )
    server.execute("DELETE FROM binlag.done")
    state = server.query("SELECT binlag_state FROM binlag.slave_relay_log_info")[0][0]
    for more, words in (
        (',"ddl":["x",4,""]', "in a DDL statement"),
        (',"loaded":false', "while its dump was loaded"),
    ):
        server.execute(
            f"UPDATE binlag.slave_relay_log_info SET binlag_state = '{state[:-1]}{more}}}'"
        )
        assert _said(arguments, capsys) == (2, f"{words}. Next: run it again, then verify")


def test_a_folder_with_an_index(
    servers: Servers, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    server = servers.empty("9.7")
    for log in logs(NO_KEY):
        shutil.copy(log, tmp_path)
    (tmp_path / "binlog.index").write_text("".join(f"./{log.name}\n" for log in logs(NO_KEY)))
    password = tmp_path / "password"
    password.write_text(server.password)
    account = [
        "--into",
        f"mysql://root@localhost?socket={server.socket}",
        "--password-file",
        str(password),
    ]
    arguments = [str(tmp_path), "--schema", str(NO_KEY / "before.sql"), *account, "--json"]
    assert _exit_code(["replay", *arguments]) == 0
    capsys.readouterr()
    assert _exit_code(["verify", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 797


def _said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code, and what is said behind "ended"."""
    capsys.readouterr()
    return _exit_code(arguments), capsys.readouterr().err.partition(" ended ")[2].strip()


def _exit_code(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code
