"""Real dumps by the servers' own clients: the same rows with every option, and what goes into a
server."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from servers.installed import installed
from servers.server import Server

import applier
from applier.cli.main import cli
from applier.forecast.inventory.server_facts import facts_of_server
from applier.mysql.client.url import Endpoint
from tests.mysql.server_support import OPTIONS, bodies
from tests.servers.fixtures import ServerFactory

SQL = (
    "CREATE DATABASE shop",
    (
        "CREATE TABLE shop.parent (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20), "
        "b VARBINARY(10), t TIMESTAMP NULL, bits BIT(9),"
        " e ENUM('a','b'), f DOUBLE, g INT AS (LENGTH(name) + 1), l VARCHAR(10) CHARACTER SET "
        "latin1, bl BLOB, d DATETIME(3), m DOUBLE(15,8))"
    ),
    (
        "CREATE TABLE shop.child (id INT PRIMARY KEY, p INT, k INT, KEY k (k), FOREIGN KEY (p) "
        "REFERENCES shop.parent (id))"
    ),
    (
        "INSERT INTO shop.parent (name, b, t, bits, e, f, l, bl, d, m) VALUES "
        "('a\\'b\\\\c\\n\\t;\"', 0x00ff27, '2024-01-01 10:00:00', 5, 'a',"
        " 1.5e300, 'é', 0x00010203ff5c27, '2024-01-01 10:00:00.125', 10/7), (NULL, NULL, "
        "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    ),
    "INSERT INTO shop.child VALUES (1, 1, 7), (2, 1, 7)",
    "CREATE VIEW shop.v AS SELECT id FROM shop.parent",
    "CREATE FUNCTION shop.fn() RETURNS INT DETERMINISTIC RETURN 1",
    "CREATE VIEW shop.w AS SELECT shop.fn() AS x FROM shop.v",
    "CREATE TRIGGER shop.tr BEFORE INSERT ON shop.child FOR EACH ROW SET NEW.k = 1; ",
    "CREATE EVENT shop.ev ON SCHEDULE EVERY 1 DAY DO SELECT 1",
)
DUMPS = (
    ("shop",), ("--databases", "shop"), ("--all-databases",),
    ("--routines", "--events", "--databases", "shop"),
    ("--hex-blob", "--complete-insert", "--skip-extended-insert", "shop"),
    ("--skip-quote-names", "shop"), ("--skip-opt", "--databases", "shop"),
    ("--default-character-set=latin1", "shop"), ("--insert-ignore", "shop"), ("--replace", "shop"),
    ("--no-create-db", "--databases", "shop"),
    ("--compatible=ansi", "--default-character-set=utf8mb4", "shop"),
    ("--skip-comments", "--databases", "shop"), ("--default-character-set=binary", "shop"),
    ("--single-transaction", "shop"),
    ("--no-autocommit", "--skip-add-locks", "--skip-disable-keys", "--skip-tz-utc", "shop"),
)  # fmt: skip
"""What mysqldump and mariadb-dump are asked for."""


@pytest.fixture(scope="module", params=["9.7", "mariadb"])
def server(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Iterator[Server]:
    server = server_factory(request.param, options=OPTIONS, gtids=request.param == "9.7")
    server.execute(*SQL)
    yield server
    server.close()


def dump(server: Server, path: Path, *options: str) -> Path:
    name = server.installed.recipe.name
    program = "mysqldump" if name == "9.7" else "mariadb-dump"
    done = subprocess.run(
        server.client(program, *options, of=installed(name)), capture_output=True, check=True
    )
    path.write_bytes(done.stdout)
    return path


def rows(source: Path | str, server: Server, **options: object) -> dict[str, object]:
    tables = applier.load_schema(source, server=server.installed.recipe.name, **options)  # type: ignore[arg-type]
    return {table.definition.full_name: table.rows() for table in tables}


def url(server: Server) -> str:
    return f"mysql://{server.user}@localhost?socket={server.socket}"


def test_every_dump_holds_the_same_rows(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYSQL_PWD", server.password)
    live = rows(url(server), server)
    assert list(live) == ["shop.child", "shop.parent"]
    assert str(live["shop.parent"]).startswith("[(1, 'a\\'b\\\\c\\n\\t;\"', b\"\\x00\\xff'\"")
    for number, options in enumerate(DUMPS):
        assert (options, rows(dump(server, tmp_path / f"{number}.sql", *options), server)) == (
            options,
            live,
        )


def test_explain_asks_a_live_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYSQL_PWD", server.password)
    shown = CliRunner().invoke(
        cli, ["explain", url(server), "--server", "9.7", "--table", "shop.ch%", "--details"]
    )
    assert shown.output.startswith("shop.child  InnoDB, primary key\n")
    assert "shop.parent" not in shown.output


def test_explain_counts_by_the_servers_statistics(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order is by rows read; the rules are the server's own; what it has no statistics for
    comes from the definition."""
    monkeypatch.setenv("MYSQL_PWD", server.password)
    numbers = ", ".join(f"({at}, {at % 4})" for at in range(400))
    server.execute(
        "CREATE DATABASE counted", "CREATE TABLE counted.few (a INT, b INT)",
        "CREATE TABLE counted.many LIKE counted.few", "ALTER TABLE counted.many ADD KEY b (b)",
        "INSERT INTO counted.few VALUES (1, 1), (2, 2), (3, 3)",
        f"INSERT INTO counted.many VALUES {numbers}",
    )  # fmt: skip
    try:
        server.query("ANALYZE TABLE counted.few, counted.many")
        shown = CliRunner().invoke(cli, ["explain", url(server), "--database", "counted"])
    finally:
        server.execute("DROP DATABASE counted")
    many, few = [line.split() for line in shown.output.splitlines() if line.startswith("counted.")]
    assert (many[:3], few) == (["counted.many", "400", "b"], ["counted.few", "3", "-", "2"])
    assert 20 <= int(many[3]) <= 100, (
        "a value stands in 100 rows; MariaDB's estimate is half of that (seen on 10.11.18)"
    )
    assert f"Rules of {server.installed.recipe.name}." in shown.output


def test_a_dump_into_a_server(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs stay out unless they are asked for; filters and new names hold; a second run goes
    on."""
    monkeypatch.setenv("MYSQL_PWD", server.password)
    path = dump(
        server, tmp_path / "dump.sql", "--routines", "--events", "--triggers", "--databases", "shop"
    )
    server.execute(
        "FLUSH LOGS",
        "INSERT INTO shop.parent (name) VALUES ('late')",
        "DELETE FROM shop.parent WHERE name = 'late'",
    )
    log = str(shutil.copy(server.binlog_files()[-1], tmp_path))  # what is replayed is logged, too

    def replay(name: str, *options: str) -> tuple[str, dict[str, int]]:
        command = [
            "replay",
            log,
            "--into",
            url(server),
            "--schema",
            str(path),
            "--force",
            "--replay-id",
            name,
        ]
        done = CliRunner().invoke(cli, [*command, *options], standalone_mode=False)
        assert done.exception is None, done.exception
        what = {"routines": "ROUTINE", "triggers": "TRIGGER", "events": "EVENT", "views": "TABLE"}
        return done.output, {
            kind: server.query(
                "SELECT COUNT(*) FROM "
                f"information_schema.{'VIEWS' if kind == 'views' else word + 'S'} "
                f"WHERE {'TABLE' if kind == 'views' else word}_SCHEMA = '{name}'"
            )[0][0]
            for kind, word in what.items()
        }

    said, found = replay("plain", "--rewrite-db", "shop:plain")
    assert found == {"routines": 0, "triggers": 0, "events": 0, "views": 1}
    assert (
        f"not installed from {path}: 1 events, 1 routines, 1 triggers; "
        "--with-routines installs them"
    ) in said
    assert "a view of " in said
    _, found = replay("full", "--rewrite-db", "shop:full", "--with-routines")
    assert found == {"routines": 1, "triggers": 1, "events": 1, "views": 2}
    assert bodies(server, "full") == bodies(server, "shop")
    replay("part", "--rewrite-db", "shop:part", "--exclude-table", "shop.child")
    assert [
        row[0] for row in server.query("SHOW FULL TABLES FROM part WHERE Table_type = 'BASE TABLE'")
    ] == ["parent"]


def test_gtids_of_a_dump(
    server_factory: ServerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dump that the server has the GTIDs of is loaded again; other GTIDs name the option that
    leaves them out."""
    source = server_factory("9.7", options=OPTIONS, gtids=True)
    target = server_factory("9.7", options=OPTIONS, gtids=True)
    source.execute(
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (a INT PRIMARY KEY)",
        "INSERT INTO shop.t VALUES (1)",
    )
    path = dump(source, tmp_path / "dump.sql", "--databases", "shop", "--set-gtid-purged=ON")
    source.execute("FLUSH LOGS")
    monkeypatch.setenv("MYSQL_PWD", target.password)

    def replay(server: Server, name: str) -> tuple[Exception | None, str]:
        command = [
            "replay",
            str(source.binlog_files()[-1]),
            "--into",
            url(server),
            "--schema",
            str(path),
            "--force",
            "--replay-id",
            name,
        ]
        done = CliRunner().invoke(cli, command, standalone_mode=False)
        return done.exception if isinstance(done.exception, Exception) else None, done.output

    assert replay(target, "first")[0] is None
    error, said = replay(target, "second")
    assert error is None
    assert "SET GTID_PURGED, whose transactions the server has" in said
    path.write_text(path.read_text().replace(":1-3", ":1-9"))
    error, _ = replay(target, "third")
    assert "--set-gtid-purged=OFF" in str(error)
    source.close()
    target.close()


def test_statistics_of_a_live_server(server: Server) -> None:
    """A unique key and an AUTO_INCREMENT column have a value a row, whatever the statistics say."""
    endpoint = Endpoint(user=server.user, socket=str(server.socket), password=server.password)
    facts, _ = facts_of_server(endpoint, ["shop"])
    parent = facts["shop.parent"]
    assert parent.duplicates == {"PRIMARY": 1.0}
    assert parent.doubts == ()
