"""MERGE tables on real servers and in memory: the same rows in all tables, and the same handler
calls for each rows event."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from struct import unpack_from

import pymysql
import pytest
from servers.server import Server

import applier
from applier.mysql.into import replay_into
from applier.mysql.into_options import IntoOptions
from applier.options import parse_options
from lookup.handler import COUNTER_NAMES
from tests.mysql.beside_server import Beside
from tests.mysql.server_shapes import log_of
from tests.mysql.server_support import endpoint
from tests.servers.fixtures import ServerFactory

SERVERS = ("5.6", "5.7", "9.7", "mariadb")
BELOW = (
    "CREATE TABLE t1 (a INT, b VARCHAR(20){keys}) ENGINE=MyISAM",
    "CREATE TABLE t2 LIKE t1",
    "CREATE TABLE t3 LIKE t1",
)
MERGE = (
    "CREATE TABLE m (a INT, b VARCHAR(20){keys}) ENGINE=MERGE UNION=(t1,t2,t3) "
    "INSERT_METHOD={method}"
)
ROWS = (
    "INSERT INTO t1 VALUES (1,'one'), (2,'two'), (3,'three'), (4,'four')",
    "INSERT INTO t2 VALUES (2,'zwei'), (5,'five'), (1,'one'), (6,'six')",
    "INSERT INTO t3 VALUES (7,'seven'), (2,'two'), (8,'eight')",
    "DELETE FROM t1 WHERE a = 3", "DELETE FROM t2 WHERE a = 5",
)  # fmt: skip
CHANGES = (
    "UPDATE m SET b = 'x' WHERE a = 8",
    "UPDATE m SET b = 'y' WHERE a = 6",
    "DELETE FROM m WHERE a = 7",
    "INSERT INTO m VALUES (9,'nine'), (10,'ten')",
    "UPDATE m SET a = a + 20 WHERE a > 3",
    "UPDATE m SET b = CONCAT(b, '!') WHERE a IN (1, 4, 24)",
    "DELETE FROM m WHERE a = 24",
    "UPDATE m SET b = 'all'",
    "DELETE FROM m WHERE a IN (1, 2) LIMIT 3",
    "DELETE FROM m",
)
KEYS = ("", ", KEY (a)", ", PRIMARY KEY (a)", ", UNIQUE (a)", ", KEY (b)", ", KEY (b(2), a)")
DDL = (
    "CREATE DATABASE other",
    "CREATE TABLE t1 (a INT NOT NULL AUTO_INCREMENT PRIMARY KEY, b VARCHAR(20)) ENGINE=MyISAM",
    "CREATE TABLE t2 LIKE t1",
    "CREATE TABLE other.t1 LIKE t1",
    "CREATE TABLE other.t2 LIKE t1",
    "INSERT INTO t1 VALUES (1,'a'), (2,'b')",
    "INSERT INTO t2 VALUES (1,'c'), (5,'d')",
    "INSERT INTO other.t1 VALUES (9, 'z')",
    (
        "CREATE TABLE m (a INT NOT NULL AUTO_INCREMENT PRIMARY KEY, b VARCHAR(20)) "
        "ENGINE=MERGE UNION=(t1,t2) INSERT_METHOD=LAST"
    ),
    "INSERT INTO m (b) VALUES ('last'), ('again')",
    "ALTER TABLE m INSERT_METHOD=FIRST",
    "INSERT INTO m (b) VALUES ('first')",
    "ALTER TABLE m COMMENT 'kept'",
    "INSERT INTO m (b) VALUES ('still first')",
    "CREATE TABLE other.like_m LIKE m",
    "INSERT INTO other.like_m (b) VALUES ('through another')",
    (
        "CREATE TABLE other.qualified (a INT NOT NULL AUTO_INCREMENT PRIMARY KEY, b VARCHAR(20)) "
        "ENGINE=MRG_MyISAM UNION=(t1, other.t1)"
    ),
    "ALTER TABLE m UNION=(t2)",
    "INSERT INTO m VALUES (90, 'second alone')",
    "RENAME TABLE m TO other.moved",
    "UPDATE other.moved SET b = 'below the new one'",
    "INSERT INTO other.moved VALUES (3, 'moved')",
    "CREATE TABLE copy (a INT, b VARCHAR(20)) ENGINE=MERGE",
    "ALTER TABLE other.like_m ENGINE=MyISAM, DROP PRIMARY KEY, MODIFY a INT NOT NULL",
    "INSERT INTO other.like_m VALUES (77, 'own')",
    "ALTER TABLE t1 ADD c INT",
    "ALTER TABLE t1 DROP c",
    "INSERT INTO t1 VALUES (70, 'back')",
    "CREATE TABLE mine LIKE t1",
    "INSERT INTO mine VALUES (1, 'lost')",
    "ALTER TABLE mine ENGINE=MERGE UNION=(t1)",
    "CREATE TABLE emptied LIKE t1",
    "INSERT INTO emptied VALUES (1, 'x')",
    (
        "CREATE TABLE through (a INT NOT NULL AUTO_INCREMENT PRIMARY KEY, b VARCHAR(20)) "
        "ENGINE=MERGE UNION=(emptied) INSERT_METHOD=LAST"
    ),
    "TRUNCATE TABLE through",
    "INSERT INTO emptied VALUES (3, 'y')",
    "INSERT INTO through VALUES (4, 'z')",
    "TRUNCATE TABLE emptied",
    "INSERT INTO through VALUES (5, 'q')",
    "UPDATE through SET b = 'p'",
)


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Server:
    """Of the module's own: BINLOG of a log without GTIDs is refused where gtid_mode is ON."""
    return server_factory(
        request.param, options={"gtid_mode": "OFF"} if request.param == "9.7" else {}
    )


def event_counters(server: Server, file: Path) -> list[dict[str, int]]:
    """The server's handler calls for each rows event of a log that it applies by BINLOG, from an
    empty database on."""
    found = []
    with server.connect(database="d", autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        data = file.read_bytes()
        head, maps = b"", b""
        for kind, event in _events(data):
            if kind == 15:
                head = event
            elif kind == 2:
                sql = _sql(event)
                if sql not in ("BEGIN", "COMMIT") and not sql.startswith("CREATE DATABASE"):
                    cursor.execute(sql)
            elif kind == 19:
                maps += event
            elif kind in (23, 24, 25, 30, 31, 32):
                # what a first open reads of the dictionary is not the event's
                cursor.execute("SELECT * FROM t1, t2, t3, m LIMIT 0")
                cursor.execute("FLUSH STATUS")
                cursor.execute(b"BINLOG '" + b64encode(head + maps + event) + b"'")
                cursor.execute("SHOW SESSION STATUS LIKE 'Handler_%'")
                said = {
                    name.removeprefix("Handler_"): int(value) for name, value in cursor.fetchall()
                }
                found.append({name: said[name] for name in COUNTER_NAMES})
                maps = b""
    return found


def _events(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 4
    while at < len(data):
        (length,) = unpack_from("<I", data, at + 9)
        yield data[at + 4], data[at : at + length]
        at += length


def _sql(event: bytes) -> str:
    """Of a query event with a checksum."""
    (variables,) = unpack_from("<H", event, 30)
    return event[32 + variables + event[27] + 1 : -4].decode()


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    ("keys", "method"), list(zip(KEYS, cycle(["FIRST", "LAST"]), strict=False))
)
def test_rows_and_handler_calls(server: Server, keys: str, method: str) -> None:
    statements = [one.format(keys=keys, method=method) for one in (*BELOW, MERGE, *ROWS, *CHANGES)]
    if "PRIMARY" in keys or "UNIQUE" in keys:
        statements.remove("UPDATE m SET a = a + 20 WHERE a > 3")
    beside = Beside(server, statements)
    assert (beside.errors, beside.difference) == ([], "")
    files = server.binlog_files()
    events = [event for event in beside.result.events if event.table == "d.m"]
    assert len(events) >= 8
    server.execute("DROP DATABASE d", "CREATE DATABASE d")
    ours = [event.counters.as_dict() for event in beside.result.events]
    assert ours == event_counters(server, files[0])


def test_definitions(server: Server) -> None:
    beside = Beside(server, DDL)
    assert (beside.errors, beside.difference) == ([], "")


def test_statements(server: Server) -> None:
    """In statement format; a REPLACE, and a row in the way."""
    statements = [
        one.format(keys=", PRIMARY KEY (a)", method="FIRST") for one in (*BELOW, MERGE, *ROWS)
    ]
    more = (
        "REPLACE INTO m VALUES (1, 'replaced'), (11, 'new')",
        "INSERT INTO m VALUES (1, 'no') ON DUPLICATE KEY UPDATE b = 'updated'",
        "INSERT IGNORE INTO m VALUES (2, 'ignored'), (7, 'beside t3')",
        "UPDATE m SET b = 'u' WHERE a < 3", "DELETE FROM m WHERE a = 6",
    )  # fmt: skip
    beside = Beside(server, [*statements, *more], log_format="STATEMENT")
    assert (beside.errors, beside.difference) == ([], "")


def test_a_table_that_the_server_cannot_read(server: Server, tmp_path: Path) -> None:
    """In the dump it has its columns alone."""
    statements = [one.format(keys="", method="LAST") for one in (*BELOW, MERGE, *ROWS)]
    with pytest.raises(pymysql.err.MySQLError) as caught:
        Beside(server, [*statements, "DROP TABLE t2"])
    assert caught.value.args[0] == 1168
    server.execute("FLUSH BINARY LOGS")
    tables = applier.Tables()
    assert applier.replay(server.binlog_files()[:-1], into=tables).error is None
    lines = {path.name: len(path.read_bytes().splitlines()) for path in tables.dump(tmp_path)}
    assert lines.pop("d.m.tsv") == 1
    assert all(count > 1 for count in lines.values())
    assert lines.keys() == {"d.t1.tsv", "d.t3.tsv"}
    assert not tables["d.m"].is_readable
    with pytest.raises(
        applier.ReplicationError, match=r"Unable to open underlying table `d`\.`t2`"
    ):
        tables["d.m"].rows()


@pytest.mark.parametrize("server_name", ["5.7", "9.7", "mariadb"])
def test_rows_that_a_replica_passes_over(
    server_name: str, server_factory: ServerFactory, tmp_path: Path
) -> None:
    """A table that comes before a MERGE table in its statement: refused, and with --skip-errors
    what a server makes of the events."""
    statements = (
        *(
            f"CREATE TABLE {name} (a INT PRIMARY KEY, b VARCHAR(20)) ENGINE=MyISAM"
            for name in ("x", "m1", "m2", "n1")
        ),
        (
            "CREATE TABLE m (a INT PRIMARY KEY, b VARCHAR(20)) ENGINE=MERGE UNION=(m1, m2) "
            "INSERT_METHOD=FIRST"
        ),
        (
            "CREATE TABLE n (a INT PRIMARY KEY, b VARCHAR(20)) ENGINE=MERGE UNION=(n1) "
            "INSERT_METHOD=LAST"
        ),
        *(f"INSERT INTO {name} VALUES (1, 'one'), (2, 'two'), (3, 'three')" for name in "xmn"),
        "UPDATE m, x SET x.b = 'mx', m.b = 'mx' WHERE x.a = m.a AND x.a = 1",
        "UPDATE x, m SET x.b = 'xm', m.b = 'xm' WHERE x.a = m.a AND x.a = 2",
        "DELETE m, n FROM m, n WHERE m.a = n.a AND m.a = 3",
        "INSERT INTO x VALUES (9, 'behind')",
    )
    server = server_factory.shared(server_name)
    file, errors = log_of(server, tmp_path, statements, "d")
    assert errors == []
    result = applier.replay([file], server=server_name)
    assert result.error is not None
    assert (result.error.number, "MERGE" in result.error.message) == (1235, True)
    tables = applier.Tables()
    assert applier.replay([file], into=tables, server=server_name, skip_errors="1235").error is None
    server.execute("DROP DATABASE d")
    assert (
        replay_into(
            [str(file)],
            endpoint(server),
            parse_options(),
            IntoOptions(force=True, replay_id=server_name),
        ).error
        is None
    )
    for name in ("x", "m1", "m2", "n1"):
        assert sorted(tables[f"d.{name}"].rows()) == sorted(
            server.query(f"SELECT a, b FROM d.{name}")
        ), name
    assert dict(tables["d.x"].rows()) == {1: "mx", 2: "two", 3: "three", 9: "behind"}
