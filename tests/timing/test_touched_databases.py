"""Which databases DATABASE scheduling sees in a statement: BEGIN, COMMIT and XA START touch none,
and more than can be listed (MAX_DBS_IN_EVENT_MTS) are all of them: its group runs alone
(Query_log_event::get_mts_dbs)."""

from __future__ import annotations

from applier.timing.timed import ALL_DATABASES, MAX_DATABASES, timed_transactions
from tests.servers.fixtures import ServerFactory


def test_more_databases_than_can_be_listed(server_factory: ServerFactory) -> None:
    server = server_factory("5.7")
    names = [f"many_{number}" for number in range(MAX_DATABASES + 1)]
    tables = [f"{name}.{table}" for name in names for table in "tu"]
    server.execute(*(f"CREATE DATABASE {name}" for name in names))
    server.execute(
        *(f"CREATE TABLE {table} (id INT) ENGINE=MyISAM" for table in tables), "FLUSH BINARY LOGS"
    )
    server.execute(
        f"DROP TABLE {', '.join(tables[2::2])}",
        "USE many_0",
        f"DROP TABLE {', '.join(tables[1::2])}",
    )
    server.execute("FLUSH BINARY LOGS")
    found = [
        one.databases for one in timed_transactions(server.binlog_files()[-2:-1], lambda event: 0.0)
    ]
    assert [sorted(databases) for databases in found] == [sorted(names[1:]), list(ALL_DATABASES)]
