"""Logs of real servers, replayed into the version that wrote them: to the end, in pieces, and
through kills and bad input."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from servers.server import Server

from applier.errors import InputError, ReplicationError, UsageError
from applier.mysql.client.url import Endpoint
from applier.mysql.into import ReplayWatch, replay_into
from applier.mysql.into_options import IntoOptions
from applier.mysql.outcome import TargetOutcome
from applier.mysql.statements.target_tables import ABSENT, TargetTable, TargetTables
from applier.options import parse_options
from tests.binlog import build
from tests.captures_support import CAPTURES, logs
from tests.hardening.runner import ROOT
from tests.mysql.after import differences
from tests.mysql.server_support import Servers, connection, endpoint
from tests.servers.fixtures import ServerFactory

NO_KEY, DDL, OLTP, XA, MIXED = (
    CAPTURES / "open" / name
    for name in (
        "my_nokey_duplicates",
        "my_ddl",
        "my_oltp_compressed_rotated",
        "my_xa",
        "my_statement_mixed",
    )
)


@pytest.fixture(scope="module")
def servers(server_factory: ServerFactory) -> Iterator[Servers]:
    servers = Servers(server_factory)
    yield servers
    servers.close()


def schema_of(capture: Path) -> str | None:
    dump = capture / "before.sql"
    return str(dump) if dump.read_bytes().strip() != b"-- empty" else None


def go(
    server: Server,
    capture: Path,
    *,
    files: list[Path] | None = None,
    watch: ReplayWatch | None = None,
    into: Any = None,
    **options: Any,
) -> TargetOutcome:
    chosen = IntoOptions(**{"schema": schema_of(capture), **(into or {})})
    return replay_into(
        [str(file) for file in files or logs(capture)],
        endpoint(server),
        parse_options(**options),
        chosen,
        watch,
    )


def stopping_after(transactions: int) -> ReplayWatch:
    seen = 0

    def stopped() -> bool:
        nonlocal seen
        seen += 1
        return seen >= transactions

    return ReplayWatch(stopped=stopped)


@pytest.mark.parametrize("capture", [NO_KEY, DDL, XA, MIXED], ids=lambda capture: capture.name)
def test_in_pieces_it_is_the_same(capture: Path, servers: Servers) -> None:
    server = servers.empty("9.7")
    total = 0
    while True:
        outcome = go(server, capture, watch=stopping_after(7), into={"batch": 3})
        assert outcome.error is None
        total += outcome.transactions
        if not outcome.interrupted:
            break
    assert differences(server, capture / "after") == []
    assert total == outcome.total_transactions


def test_rows_are_counted_by_the_server(servers: Servers) -> None:
    import applier

    server = servers.empty("9.7")
    expected = applier.replay(logs(NO_KEY), into=applier.load_schema(NO_KEY / "before.sql"))
    outcome = go(server, NO_KEY)
    assert (outcome.rows, outcome.transactions) == (expected.rows, expected.transactions)


def test_gtids_are_the_sources_own(server_factory: ServerFactory) -> None:
    server = server_factory("9.7", gtids=True, options={"server_id": 7})
    outcome = go(server, OLTP, into={"gtid": True})
    assert outcome.error is None
    assert outcome.gtids in server.query("SELECT @@GLOBAL.gtid_executed")[0][0].replace("\n", "")
    server.execute("DROP DATABASE binlag")
    again = go(server, OLTP, into={"gtid": True, "schema": None, "force": True})
    assert (again.error, again.transactions) == (None, 0)
    assert differences(server, OLTP / "after") == []
    server.close()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("capture", [MIXED, OLTP], ids=lambda capture: capture.name)
def test_nothing_of_it_in_the_binary_log(capture: Path, workers: int, servers: Servers) -> None:
    """Dump, DDL, statements, rows and the position; and without the option they are all there."""
    server = servers.empty("9.7")
    logged = binlog_bytes(server)
    outcome = go(server, capture, into={"workers": workers, "disable_log_bin": True})
    assert (outcome.error, outcome.transactions) == (None, outcome.total_transactions)
    assert binlog_bytes(server) == logged
    assert differences(server, capture / "after") == []
    servers.empty("9.7")
    logged = binlog_bytes(server)
    assert go(server, capture, into={"workers": workers}).error is None
    assert binlog_bytes(server) > logged + sum(log.stat().st_size for log in logs(capture)) // 2


def test_a_binary_log_cannot_be_left_out_with_gtids_in_it() -> None:
    with pytest.raises(UsageError, match="--gtid and --disable-log-bin"):
        replay_into(
            ["no.such"], Endpoint(), parse_options(), IntoOptions(gtid=True, disable_log_bin=True)
        )


def test_who_may_not_leave_it_out_is_told(servers: Servers) -> None:
    server = servers.empty("9.7")
    server.execute("CREATE USER plain IDENTIFIED BY 'secret'", "GRANT ALL ON binlag.* TO plain")
    account = replace(endpoint(server), user="plain", password="secret")
    with pytest.raises(ReplicationError, match="SYSTEM_VARIABLES_ADMIN") as caught:
        replay_into(
            [str(log) for log in logs(OLTP)],
            account,
            parse_options(),
            IntoOptions(disable_log_bin=True),
        )
    server.execute("DROP USER plain")
    assert caught.value.number == 1227
    assert "SESSION_VARIABLES_ADMIN" in str(caught.value.hint)


def binlog_bytes(server: Server) -> int:
    return sum(file.stat().st_size for file in server.binlog_files())


def test_until_a_gtid(servers: Servers) -> None:
    server = servers.empty("9.7")
    first = go(server, NO_KEY, watch=stopping_after(5))
    assert first.gtid is not None
    uuid, number = first.gtid.rsplit(":", 1)
    outcome = go(server, NO_KEY, into={"until_gtid": f"{uuid}:{int(number) + 5}"})
    assert (outcome.transactions, outcome.total_transactions) == (5, 10)


def test_a_dry_run_changes_nothing(servers: Servers) -> None:
    server = servers.empty("9.7")
    outcome = go(server, NO_KEY, into={"dry_run": True})
    assert outcome.transactions > 0
    assert ("binlag",) not in server.query("SHOW DATABASES")


# what goes wrong


def test_a_missing_row_stops_with_its_place_and_all_before_it_is_committed(
    servers: Servers,
) -> None:
    server = servers.empty("9.7")
    first = go(server, NO_KEY, watch=stopping_after(10))
    for file in (NO_KEY / "after").glob("*.tsv"):
        database, table = file.stem.split(".")
        server.execute(f"DELETE FROM `{database}`.`{table}`")
    outcome = go(server, NO_KEY)
    error = outcome.error
    assert error is not None
    assert (error.exit_code, error.file) == (1, "binlog.000001")
    assert error.table is not None
    assert outcome.file is not None
    assert error.position is not None
    assert first.position <= outcome.position < error.position
    assert "1032" in str(error)
    again = go(server, NO_KEY)
    assert (again.transactions, again.position, str(again.error)) == (
        0,
        outcome.position,
        str(error),
    )


def test_a_dump_that_comes_with_the_second_run_is_loaded(servers: Servers) -> None:
    """The first one, without it, finds no table and is told to give it."""
    server, log = servers.empty("5.7"), ROOT / "demo/binlog.000001"
    first = replay_into([str(log)], endpoint(server), parse_options(), IntoOptions())
    assert isinstance(first.error, ReplicationError)
    assert first.error.number in (1049, 1146)
    assert first.error.hint is not None
    assert "--schema" in first.error.hint
    with_dump = IntoOptions(schema=str(ROOT / "demo/before.sql"))
    second = replay_into([str(log)], endpoint(server), parse_options(), with_dump)
    assert (second.error, second.resumed_from) == (None, None)
    assert second.transactions > 0
    third = replay_into([str(log)], endpoint(server), parse_options(), with_dump)
    assert (third.error, third.transactions) == (None, 0), "and it is loaded once"


def test_a_damaged_log_stops_there_and_the_good_one_goes_on(
    servers: Servers, tmp_path: Path
) -> None:
    server = servers.empty("9.7")
    data = bytearray(logs(NO_KEY)[0].read_bytes())
    data[len(data) // 2] ^= 0x40
    damaged = tmp_path / logs(NO_KEY)[0].name
    damaged.write_bytes(data)
    outcome = go(server, NO_KEY, files=[damaged])
    assert outcome.error is not None
    assert (outcome.error.exit_code, outcome.error.file) == (2, damaged.name)
    assert outcome.transactions > 0
    rest = go(server, NO_KEY)
    assert rest.error is None
    assert rest.total_transactions == outcome.transactions + rest.transactions
    assert differences(server, NO_KEY / "after") == []


def test_a_file_of_the_same_name_from_elsewhere_is_refused(
    servers: Servers, tmp_path: Path
) -> None:
    server = servers.empty("9.7")
    go(server, NO_KEY, watch=stopping_after(10))
    other = tmp_path / logs(NO_KEY)[0].name
    other.write_bytes(logs(DDL)[0].read_bytes())
    with pytest.raises(InputError, match="not the file that this replay read before"):
        go(server, NO_KEY, files=[other])


def test_a_gap_between_files_stops_before_it(servers: Servers) -> None:
    server = servers.empty("9.7")
    outcome = go(server, XA, files=[logs(XA)[0], logs(XA)[2]])
    assert outcome.error is not None
    assert "is followed by binlog.000002" in str(outcome.error)
    assert go(server, XA).error is None
    assert differences(server, XA / "after") == []


def test_a_ddl_that_fails_is_not_taken_for_done(servers: Servers) -> None:
    server = servers.empty("9.7")
    go(server, DDL, watch=stopping_after(3))
    server.execute("CREATE DATABASE shortlived")
    first, second = go(server, DDL), go(server, DDL)
    assert "1007" in str(first.error)
    assert str(second.error) == str(first.error)
    skipped = go(server, DDL, skip_errors="1007")
    assert (skipped.error, sum(skipped.notes.values())) == (None, 1)
    assert differences(server, DDL / "after") == []


def test_data_of_others_is_refused(servers: Servers) -> None:
    server = servers.empty("9.7")
    go(server, NO_KEY, watch=stopping_after(5))
    with pytest.raises(UsageError, match="already holds tables"):
        go(server, NO_KEY, into={"replay_id": "other"})
    outcome = go(server, NO_KEY, into={"replay_id": "third", "schema": None})
    assert isinstance(outcome.error, UsageError)


def test_a_read_only_server_is_refused(servers: Servers) -> None:
    server = servers.empty("9.7")
    server.execute("SET GLOBAL super_read_only=1")
    try:
        with pytest.raises(UsageError, match="read-only"):
            go(server, NO_KEY)
    finally:
        server.execute("SET GLOBAL super_read_only=0", "SET GLOBAL read_only=0")


def test_one_replay_does_not_run_twice_at_a_time(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    from applier.mysql.client.connection import connect
    from applier.mysql.positions import checkpoint

    server = servers.empty("9.7")
    go(server, NO_KEY, watch=stopping_after(5))
    holder = connect(endpoint(server))
    checkpoint.lock_replay(holder, go(server, NO_KEY, into={"dry_run": True}).replay)
    monkeypatch.setattr(checkpoint.lock_replay, "__defaults__", (0,))
    with pytest.raises(InputError, match="is running already"):
        go(server, NO_KEY)
    holder.close()


def test_only_some_tables_under_another_name(servers: Servers) -> None:
    server = servers.empty("9.7")
    database, table = min((NO_KEY / "after").glob("*.tsv")).stem.split(".")
    before = (NO_KEY / "before.sql").read_text()
    server.execute("CREATE DATABASE elsewhere")
    subprocess_input = before.replace(f"`{database}`", "`elsewhere`")
    from tests.mysql.server_support import client

    subprocess.run(client(server), input=subprocess_input.encode(), capture_output=True, check=True)
    outcome = go(
        server,
        NO_KEY,
        into={"schema": None, "force": True},
        table=f"{database}.{table}",
        rewrite_db=f"{database}:elsewhere",
    )
    assert outcome.error is None
    server.execute(
        f"CREATE DATABASE `{database}`",
        f"RENAME TABLE elsewhere.`{table}` TO `{database}`.`{table}`",
    )
    found = [
        line
        for line in differences(server, NO_KEY / "after")
        if line.startswith(f"{database}.{table}")
    ]
    assert found == []


def test_a_table_without_a_key_is_read_once_for_many_transactions(
    servers: Servers, tmp_path: Path
) -> None:
    """300 transactions change a row each; a replica of 9.7 would read the table 300 times."""
    server = servers.empty("9.7")
    server.execute("CREATE DATABASE d", "CREATE TABLE d.t (a INT, b INT) ENGINE=InnoDB")
    server.execute("INSERT INTO d.t VALUES " + ",".join(f"({number}, 0)" for number in range(1000)))
    images = [struct.pack("<xiixii", number * 3, 0, number * 3, 1) for number in range(200)]
    changes = [build.rows(31, image, width=2) for image in images]
    changes += [
        build.rows(32, struct.pack("<xii", number * 3, 1), width=2) for number in range(100)
    ]
    events = [
        one
        for number, change in enumerate(changes)
        for one in (
            build.gtid(number + 1),
            build.query(b"BEGIN"),
            build.table_map(types=b"\3\3"),
            change,
            build.xid(),
        )
    ]
    log = build.write(tmp_path, build.log(*events))
    before = _scanned(server)
    outcome = replay_into([str(log)], endpoint(server), parse_options(), IntoOptions(force=True))
    assert (outcome.error, outcome.transactions, outcome.commits) == (None, 300, 2)
    assert _scanned(server) - before < 4000
    assert server.query("SELECT COUNT(*), SUM(b), SUM(b = 1 AND a < 300) FROM d.t") == (
        (900, 100, 0),
    )


@pytest.mark.parametrize("version", ["5.7", "9.7", "mariadb"])
@pytest.mark.parametrize(
    ("columns", "scanned"),
    [
        ("a INT, b INT", True),
        ("a INT, b INT, KEY (a), UNIQUE KEY (b)", True),
        ("a INT NOT NULL, b INT, UNIQUE KEY (a, b)", True),
        ("a INT NOT NULL, b INT, UNIQUE KEY (a)", False),
        ("a INT, b INT PRIMARY KEY", False),
        ("a INT, b INT, KEY (a) /* others refer to it */", False),
    ],
)
def test_which_tables_are_scanned(
    servers: Servers, version: str, columns: str, scanned: bool
) -> None:
    server = servers.empty(version)
    server.execute(
        "CREATE DATABASE d",
        f"CREATE TABLE d.t ({columns}) ENGINE=InnoDB",
    )
    if "refer" in columns:
        server.execute(
            "/*!80400 SET SESSION restrict_fk_on_non_standard_key = OFF */",
            "CREATE TABLE d.u (a INT, FOREIGN KEY (a) REFERENCES d.t (a)) ENGINE=InnoDB",
        )
    with closing(connection(server)) as side:
        assert TargetTables(side).of("d", "t") == TargetTable(transactional=True, scanned=scanned)
        assert TargetTables(side).of("d", "none") == ABSENT


def _scanned(server: Server) -> int:
    return int(server.query("SHOW GLOBAL STATUS LIKE 'Handler_read_rnd_next'")[0][1])
