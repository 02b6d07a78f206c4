"""SQL mode on real servers: twins, rows that differ, and what the exec mode and the skip list let
pass."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from servers.server import Server

import applier
from applier.binlog.reader import LogReader
from applier.binlog.transactions import group
from applier.mysql.contents.verify import Verification, verify
from applier.mysql.into import replay_into
from applier.mysql.into_options import IntoOptions
from applier.mysql.outcome import TargetOutcome
from applier.options import parse_options
from applier.tables.catalog import Tables
from tests.captures_support import CAPTURES, logs
from tests.mysql.server_support import VERSIONS, Servers, connection, endpoint, load_before
from tests.servers.fixtures import ServerFactory

NO_KEY = CAPTURES / "open" / "my_nokey_duplicates"
TAGGED = CAPTURES / "open" / "my_tagged_gtid"


@pytest.fixture(scope="module")
def servers(server_factory: ServerFactory) -> Iterator[Servers]:
    servers = Servers(server_factory)
    yield servers
    servers.close()


def replay_sql(
    server: Server, files: list[Path], name: str = "test", **options: Any
) -> TargetOutcome:
    parsed = parse_options(**options)
    return replay_into(
        [str(file) for file in files],
        endpoint(server),
        parsed,
        IntoOptions(apply="sql", force=True, replay_id=name),
    )


def compare(server: Server, tables: Tables) -> Verification:
    with closing(connection(server)) as target:
        return verify(target, tables)


def differences(server: Server, tables: Tables) -> list[dict[str, Any]]:
    return [report.as_dict() for report in compare(server, tables).tables if not report.equal]


@pytest.fixture(scope="module")
def sources(server_factory: ServerFactory) -> Iterator[Servers]:
    sources = Servers(server_factory)
    yield sources
    sources.close()


def written(source: Server, folder: Path, setup: tuple[str, ...], *statements: str) -> Path:
    """A copy of the log that the statements leave behind; `setup` is before it."""
    source.execute(*setup, "FLUSH BINARY LOGS")
    file = source.binlog_files()[-1]
    source.execute(*statements, "FLUSH BINARY LOGS")
    return Path(shutil.copy(file, folder))


def starts(file: Path) -> list[int]:
    return [transaction.start for transaction in group(LogReader([str(file)]))]


@pytest.mark.parametrize("version", VERSIONS)
def test_twins_go_one_at_a_time(
    version: str, servers: Servers, sources: Servers, tmp_path: Path
) -> None:
    values = ", ".join(["(1, 'x', 1.1)"] * 5 + ["(2, NULL, NULL)"] * 3 + ["(3, 'z', -0.5)"])
    create = (
        "CREATE DATABASE twins",
        "CREATE TABLE twins.t (a INT, b VARCHAR(9), c FLOAT) ENGINE=InnoDB",
    )
    file = written(
        sources.empty(version),
        tmp_path,
        (),
        *create,
        f"INSERT INTO twins.t VALUES {values}",
        "DELETE FROM twins.t WHERE a = 1 LIMIT 2",
        "UPDATE twins.t SET a = a + 1 WHERE a < 3 ORDER BY a DESC LIMIT 3",
        "UPDATE twins.t SET c = NULL, b = 'new' WHERE b = 'x' LIMIT 2",
        "DELETE FROM twins.t WHERE a IN (2, 3) LIMIT 2",
        "DELETE FROM twins.t",
        "INSERT INTO twins.t VALUES (7, 'seven', 7e30)",
    )
    server, tables = servers.empty(version), Tables()
    places = starts(file)
    for start, stop in pairwise([4, *places[3:]]):
        wanted = {"start_position": start, "stop_position": stop}
        assert applier.replay([file], into=tables, **wanted).error is None
        assert replay_sql(server, [file], f"twins{start}", **wanted).error is None
        assert differences(server, tables) == []


@pytest.mark.parametrize(
    ("version", "in_transaction"),
    [  # a server with GTIDs makes none within a transaction (3748)
        case for case in product(VERSIONS, (False, True)) if case != ("9.7", True)
    ],
)
def test_a_temporary_table_hides_no_row_of_the_table_behind_it(
    version: str, in_transaction: bool, servers: Servers, sources: Servers, tmp_path: Path
) -> None:
    """One session's temporary table is open in the replay's session, too, which is only one."""
    source = sources.empty(version)
    source.execute("FLUSH BINARY LOGS")
    file = source.binlog_files()[-1]
    with (
        closing(source.connect(autocommit=True)) as hiding,
        closing(source.connect(autocommit=True)) as other,
    ):
        log_as(other, "ROW", "CREATE DATABASE h", "CREATE TABLE h.t (a INT) ENGINE=InnoDB")
        log_as(other, "ROW", "INSERT INTO h.t VALUES (1)")
        made = ("CREATE TEMPORARY TABLE h.t (a INT) ENGINE=InnoDB", "INSERT INTO h.t VALUES (7)")
        around = ("BEGIN", "COMMIT") if in_transaction else ()
        log_as(hiding, "STATEMENT", *around[:1], *made, *around[1:])
        log_as(other, "ROW", "INSERT INTO h.t VALUES (2)", "UPDATE h.t SET a = 3 WHERE a = 1")
        with hiding.cursor() as cursor:
            cursor.execute("DROP TEMPORARY TABLE h.t")
        log_as(other, "ROW", "INSERT INTO h.t VALUES (4)")
    source.execute("FLUSH BINARY LOGS")
    log = Path(shutil.copy(file, tmp_path))
    assert log.read_bytes().count(b"TEMPORARY") == 2
    server = servers.empty(version)
    assert replay_sql(server, [log]).error is None
    assert server.query("SELECT a FROM h.t ORDER BY a") == ((2,), (3,), (4,))


def log_as(session: Any, log_format: str, *statements: str) -> None:
    with session.cursor() as cursor:
        for sql in (f"SET SESSION binlog_format = {log_format}", *statements):
            cursor.execute(sql)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_row_that_differs_is_changed_by_its_key_and_told(
    version: str, servers: Servers, sources: Servers, tmp_path: Path
) -> None:
    create = (
        "CREATE DATABASE keyed",
        "CREATE TABLE keyed.t (a VARCHAR(9) PRIMARY KEY, b INT, c DOUBLE, d INT) ENGINE=InnoDB",
    )
    setup = (
        *create,
        "INSERT INTO keyed.t VALUES ('a', 1, 0.1, 1), ('b', 2, 0.2, 2), ('c', 3, NULL, 3)",
    )
    changes = ("UPDATE keyed.t SET d = d + 10", "DELETE FROM keyed.t WHERE a = 'c'")
    file = written(sources.empty(version), tmp_path, setup, *changes)
    server = servers.empty(version)
    server.execute(
        *create, "INSERT INTO keyed.t VALUES ('a', 1, 0.1, 1), ('b', 9, 0.2, 2), ('c', 3, 0.3, 13)"
    )
    outcome = replay_sql(server, [file], f"keyed-{version}")
    assert outcome.error is None
    assert server.query("SELECT a, b, d FROM keyed.t ORDER BY a") == (("a", 1, 11), ("b", 2, 12))
    assert (
        outcome.notes.get(
            "rows of keyed.t differed from their before images and were changed by their key"
        )
        == 2
    )
    assert any("row 2 of the event: a='b', b='2'" in note for note in outcome.notes)


@pytest.mark.parametrize("version", VERSIONS)
def test_errors_name_the_place_and_the_row(
    version: str, servers: Servers, sources: Servers, tmp_path: Path
) -> None:
    create = (
        "CREATE DATABASE wrong",
        "CREATE TABLE wrong.t (a INT PRIMARY KEY, b INT) ENGINE=InnoDB",
    )
    inserts = ("INSERT INTO wrong.t VALUES (1, 1)", "INSERT INTO wrong.t VALUES (2, 2), (3, 3)")
    file = written(
        sources.empty(version), tmp_path, create, *inserts, "DELETE FROM wrong.t WHERE a = 2"
    )
    server = servers.empty(version)
    server.execute(*create, "INSERT INTO wrong.t VALUES (3, 9)")
    error: Any = replay_sql(server, [file], f"wrong-{version}").error
    assert (error.number, error.table, error.file) == (1062, "wrong.t", file.name)
    assert "row 2 of the event: a='3', b='3'" in error.message
    assert server.query("SELECT a, b FROM wrong.t ORDER BY a") == ((1, 1), (3, 9))
    server.execute("DELETE FROM wrong.t WHERE a = 3")
    assert replay_sql(server, [file], f"wrong-{version}").error is None
    assert server.query("SELECT a, b FROM wrong.t ORDER BY a") == ((1, 1), (3, 3))
    server.execute("DELETE FROM wrong.t")
    error = replay_sql(server, [file], f"gone-{version}", start_position=starts(file)[2]).error
    assert (error.number, error.table) == (1032, "wrong.t")
    assert "row 1 of the event: a='2', b='2'" in error.message


@pytest.mark.parametrize("capture", [NO_KEY, TAGGED], ids=lambda capture: capture.name)
@pytest.mark.parametrize(
    "options", [{"exec_mode": "idempotent"}, {"skip_errors": "1032,1062"}, {}], ids=str
)
def test_after_a_gap_the_server_ends_where_the_replay_in_memory_does(
    capture: Path, options: dict[str, str], servers: Servers
) -> None:
    """Some transactions in the middle of the log are left out on both sides, so that rows are
    missing and there already."""
    server = servers.empty("9.7")
    load_before(server, capture)
    tables = applier.load_schema(capture / "before.sql", server="9.7")
    files = logs(capture)
    transactions = list(group(LogReader([str(file) for file in files])))
    half = transactions[len(transactions) // 2].start
    behind = transactions[len(transactions) // 2 + 6].start
    applier.replay(files, into=tables, stop_position=half)
    assert replay_sql(server, files, "first", stop_position=half).error is None
    memory = applier.replay(files, into=tables, start_position=behind, **options)
    outcome: Any = replay_sql(server, files, "second", start_position=behind, **options)
    assert (memory.error is None) == (outcome.error is None)
    if memory.error is not None:
        assert (memory.error.number, memory.error.position) == (
            outcome.error.number,
            outcome.error.position,
        )
    assert differences(server, tables) == []


def test_idempotent_and_skipped_errors_are_counted(
    servers: Servers, sources: Servers, tmp_path: Path
) -> None:
    create = (
        "CREATE DATABASE counted",
        "CREATE TABLE counted.t (a INT PRIMARY KEY, b INT, c INT DEFAULT 7) ENGINE=InnoDB",
    )
    filled = (*create, "INSERT INTO counted.t VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)")
    changes = (
        "UPDATE counted.t SET b = b + 10",
        "INSERT INTO counted.t VALUES (4, 4, 4), (5, 5, 5), (6, 6, 6)",
        "DELETE FROM counted.t",
    )
    file = written(sources.empty("9.7"), tmp_path, filled, *changes)
    stop = starts(file)[2]
    setup = (*create, "INSERT INTO counted.t VALUES (1, 1, 1), (3, 3, 3), (5, 0, 0)")
    server = servers.empty("9.7")
    server.execute(*setup)
    outcome = replay_sql(server, [file], "i", exec_mode="idempotent", stop_position=stop)
    assert outcome.error is None
    assert server.query("SELECT a, b FROM counted.t ORDER BY a") == (
        (1, 11),
        (3, 13),
        (4, 4),
        (5, 5),
        (6, 6),
    )
    assert outcome.notes == {
        "let pass by --exec-mode idempotent: error 1032 on table counted.t": 1,
        "let pass by --exec-mode idempotent: error 1062 on table counted.t": 1,
    }
    server = servers.empty("9.7")
    server.execute(*setup)
    outcome = replay_sql(server, [file], "s", skip_errors="1032,1062", stop_position=stop)
    assert outcome.error is None
    assert server.query("SELECT a, b FROM counted.t ORDER BY a") == (
        (1, 11),
        (3, 3),
        (4, 4),
        (5, 0),
    )
    assert outcome.notes == {
        "let pass by --skip-errors: error 1032 on table counted.t": 1,
        "let pass by --skip-errors: error 1062 on table counted.t": 1,
    }


@pytest.mark.parametrize("mode", ["native", "sql"])
def test_guards_against_careless_statements_do_not_stop_a_replay(
    mode: str, servers: Servers
) -> None:
    server = servers.empty("9.7")
    server.execute(
        "SET GLOBAL sql_safe_updates = 1",
        "SET GLOBAL sql_big_selects = 0",
        "SET GLOBAL max_join_size = 1",
    )
    try:
        outcome = replay_into(
            [str(file) for file in logs(NO_KEY)],
            endpoint(server),
            parse_options(),
            IntoOptions(apply=mode, schema=str(NO_KEY / "before.sql"), replay_id=f"guarded-{mode}"),
        )
        assert outcome.error is None
    finally:
        server.execute(
            "SET GLOBAL sql_safe_updates = 0",
            "SET GLOBAL sql_big_selects = 1",
            "SET GLOBAL max_join_size = DEFAULT",
        )
    tables = applier.load_schema(NO_KEY / "before.sql", server="9.7")
    applier.replay(logs(NO_KEY), into=tables)
    assert differences(server, tables) == []


@pytest.mark.parametrize("version", ["5.7", "9.7", "mariadb"])
def test_a_session_whose_texts_are_ucs2(
    version: str, servers: Servers, sources: Servers, tmp_path: Path
) -> None:
    """Its `collation_connection` stays in the target's session when the rows come."""
    statements = (
        "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci",
        "SET collation_connection = 'ucs2_general_ci'",
        "CREATE TABLE counted.t (a INT PRIMARY KEY, b VARCHAR(9)) CHARACTER SET ucs2",
        "INSERT INTO counted.t VALUES (1, 'é'), (2, NULL)",
        "UPDATE counted.t SET b = 'ü' WHERE a = 1",
    )
    file = written(sources.empty(version), tmp_path, ("CREATE DATABASE counted",), *statements)
    server = servers.empty(version)
    server.execute("CREATE DATABASE counted")
    outcome = replay_sql(server, [file])
    assert outcome.error is None
    assert server.query("SELECT a, b FROM counted.t ORDER BY a") == ((1, "ü"), (2, None))


@pytest.mark.parametrize("version", ["5.7", "9.7"])
def test_settings_in_a_session_whose_texts_are_utf16(
    version: str, server_factory: ServerFactory, tmp_path: Path
) -> None:
    """The servers take the bytes of a GTID and of a time zone as they come, in
    `collation_connection`."""
    with (
        closing(server_factory(version, gtids=True)) as source,
        closing(server_factory(version, gtids=True)) as server,
    ):
        source.execute("CREATE DATABASE counted")
        with (
            closing(source.connect(database="counted", autocommit=True)) as session,
            session.cursor() as cursor,
        ):
            for sql in (
                "SET collation_connection = 'utf16_general_ci', time_zone = '+02:00'",
                (
                    "CREATE TABLE t (a INT PRIMARY KEY, b TIMESTAMP NOT NULL DEFAULT '2020-01-01 "
                    "00:00:00')"
                ),
                "INSERT INTO t (a) VALUES (1)",
                "SET time_zone = _latin1'SYSTEM'",
                "ALTER TABLE t ADD c TIMESTAMP NOT NULL DEFAULT '2020-01-01 00:00:00'",
            ):
                cursor.execute(sql)
        for mode in ("native", "sql"):
            options = IntoOptions(apply=mode, gtid=True, force=True, replay_id=mode)
            outcome = replay_into(
                [str(file) for file in source.binlog_files()],
                endpoint(server),
                parse_options(),
                options,
            )
            assert outcome.error is None
            rows = "SELECT a, UNIX_TIMESTAMP(b), UNIX_TIMESTAMP(c) FROM counted.t"
            assert server.query(rows) == source.query(rows)
            reset = "RESET MASTER" if version == "5.7" else "RESET BINARY LOGS AND GTIDS"
            server.execute("DROP DATABASE counted", "DROP DATABASE binlag", reset)


@pytest.mark.parametrize("version", ["5.7", "9.7"])
def test_documents_with_text_that_is_not_utf8(
    version: str, servers: Servers, sources: Servers, tmp_path: Path
) -> None:
    """Servers take them with warning 1300 from a text, and from no other literal."""
    source, target = sources.empty(version), servers.empty(version)
    source.execute("FLUSH BINARY LOGS")
    file = source.binlog_files()[-1]
    with source.connect(charset="utf8mb4", autocommit=True) as session, session.cursor() as cursor:
        for sql in (
            b"CREATE DATABASE d",
            b"CREATE TABLE d.t (a INT PRIMARY KEY, j JSON)",
            b'INSERT INTO d.t VALUES (1, \'"\xff\xc3x"\'), (2, \'{"a\xff": 1, "b": 2}\')',
            b"INSERT IGNORE INTO d.t VALUES (3, '[\"\xff\"]'), (4, '{\"\xc3\": {}}')",
            b"CREATE TABLE d.u (j JSON)",
            b"INSERT INTO d.u SELECT j FROM d.t",
            b"UPDATE d.t SET j = JSON_SET(j, '$.b', 3, '$.c', 4) WHERE a = 2",
            b"DELETE FROM d.t WHERE a = 3",
            b"DELETE FROM d.u WHERE JSON_TYPE(j) = 'ARRAY'",
            b"UPDATE d.u SET j = '{}' WHERE JSON_TYPE(j) = 'STRING'",
        ):
            cursor.execute(sql)
    source.execute("FLUSH BINARY LOGS")
    log = Path(shutil.copy(file, tmp_path))
    query = "SELECT HEX(j) FROM d.t UNION ALL SELECT HEX(j) FROM d.u ORDER BY 1"
    wanted = [value for (value,) in source.query(query)]
    tables = Tables()
    assert applier.replay([log], into=tables).error is None
    found = [row[-1] for name in ("d.t", "d.u") for row in tables[name].rows()]
    assert sorted(text.encode("utf-8", "surrogateescape").hex().upper() for text in found) == wanted
    assert replay_sql(target, [log]).error is None
    assert [value for (value,) in target.query(query)] == wanted
    assert differences(target, tables) == []
