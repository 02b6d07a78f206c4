"""Every room is asked the same questions about the same servers, and all give the same answers."""

from __future__ import annotations

import pytest

from applier.errors import UsageError
from applier.forecast.inventory.pool_rules import POOL_RULES
from applier.mysql.client import dialect
from applier.mysql.statements import column_bytes
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.scheduling import DATABASE, LOGICAL_CLOCK, rules_for
from applier.replica.scheduling import RULES as CLOCK_RULES
from applier.replica.versions import VERSIONS as REPLICA_RULES
from applier.status import performance_schema, status
from applier.timing.clock import ClockConfiguration
from applier.timing.worker_rules import WORKER_RULES
from checkpoints.fields import FILES_IN, column_of
from checkpoints.fields import VERSIONS as INFO_COLUMNS
from checkpoints.repositories import FILE
from checkpoints.sync_rules import DEFAULT_REPOSITORY
from lookup.versions import MARIADB, RULES, ServerVersion, outside, row_name
from lookup.versions import rules_for as lookup_rules_for

ROOMS = {
    "lookup": RULES,
    "clock": CLOCK_RULES,
    "status": status.COLUMNS,
    "performance_schema": performance_schema.TABLES,
    "target": dialect.ACCEPTED,
    "values": column_bytes.DIALECTS,
    "info records": dict.fromkeys(INFO_COLUMNS),
    "replica": REPLICA_RULES,
    "pool": POOL_RULES,
    "workers": WORKER_RULES,
}
SERVERS = {
    "5.6.24-log": "5.6",
    "5.7.29-log": "5.7",
    "8.0.46": "8.0",
    "8.3.0": "8.4",
    "8.4.9": "8.4",
    "9.7.4": "9.7",
    "10.0.1": "9.7",
    "10.11.18-MariaDB-log": MARIADB,
    "10.0.38-MariaDB": MARIADB,
}
"""What a server says of itself -> the row that speaks for it. No MySQL 10.0 is there yet."""
MYSQL = [server for server, row in SERVERS.items() if row != MARIADB]


@pytest.mark.parametrize("server", SERVERS)
def test_all_rooms_find_the_same_row(server: str) -> None:
    version = ServerVersion.parse(server)
    assert version.is_mariadb is (SERVERS[server] == MARIADB)
    assert {room: row_name(table, version) for room, table in ROOMS.items()} == dict.fromkeys(
        ROOMS, SERVERS[server]
    )
    assert (lookup_rules_for(server).name, rules_for(server).name) == (SERVERS[server],) * 2
    assert outside(server) == ("newer" if server == "10.0.1" else None)


@pytest.mark.parametrize("server", MYSQL)
def test_the_replica_and_its_clock_agree_on_workers(server: str) -> None:
    replica, clock = ReplicaConfiguration(server), ClockConfiguration(server=server)
    assert (replica.workers, replica.parallel_type, replica.preserve_commit_order) == (
        clock.worker_count,
        clock.scheduling,
        clock.commit_order,
    )


def _accepts(
    make: type[ReplicaConfiguration] | type[ClockConfiguration], *args: str, **options: object
) -> bool:
    try:
        make(*args, **options)  # type: ignore[arg-type]
    except UsageError:
        return False
    return True


@pytest.mark.parametrize(
    ("server", "zero_workers", "database", "logical_clock"),
    [
        ("5.6.24", True, True, False),
        ("5.7.29", True, True, True),
        ("8.0.46", True, True, True),
        ("8.4.9", True, True, True),
        ("9.7.4", False, False, True),
        ("10.0.1", False, False, True),
    ],
)
def test_what_a_version_accepts(
    server: str, zero_workers: bool, database: bool, logical_clock: bool
) -> None:
    """8.4 has both, deprecated (sys_vars.cc 8.4.4); 9.7.4 refuses both."""
    asked: list[dict[str, object]] = [
        {"workers": 0},
        {"workers": 2, "parallel_type": DATABASE, "preserve_commit_order": False},
        {"workers": 2, "parallel_type": LOGICAL_CLOCK, "preserve_commit_order": False},
    ]
    expected = [zero_workers, database, logical_clock]
    assert [_accepts(ReplicaConfiguration, server, **options) for options in asked] == expected
    assert [_accepts(ClockConfiguration, server=server, **options) for options in asked] == expected


@pytest.mark.parametrize("server", MYSQL)
def test_commit_order_needs_logical_clock_in_both(server: str) -> None:
    options: dict[str, object] = {
        "workers": 2,
        "parallel_type": DATABASE,
        "preserve_commit_order": True,
    }
    assert not _accepts(ReplicaConfiguration, server, **options)
    assert not _accepts(ClockConfiguration, server=server, **options)


@pytest.mark.parametrize("server", SERVERS)
def test_the_replica_and_its_records_agree(server: str) -> None:
    replica, column = ReplicaConfiguration(server), column_of(server)
    assert replica.relay_log_info_repository == DEFAULT_REPOSITORY[column].name
    files = _accepts(ReplicaConfiguration, server, relay_log_info_repository=FILE)
    assert files is (column in FILES_IN)


@pytest.mark.parametrize("row", REPLICA_RULES)
def test_an_emulated_replica_is_of_the_version_that_it_was_asked_for(row: str) -> None:
    assert lookup_rules_for(ReplicaConfiguration(row).server_version or "").name == row


@pytest.mark.parametrize("text", ["", "mariadb-", "8", "x.y", "8.²", "maria"])
def test_what_is_not_a_version(text: str) -> None:
    with pytest.raises(ValueError, match="is not a server version"):
        ServerVersion.parse(text)
