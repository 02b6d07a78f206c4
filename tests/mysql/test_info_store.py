"""Positions in tables of real servers: what was written is read again, and goes with the transaction that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import sqlalchemy as sql
from servers.server import Server

from applier.errors import InputError, UsageError
from applier.mysql.positions.info_store import ServerTableStore
from checkpoints import bitmap
from checkpoints.info import RelayLogInfo, SourceInfo, WorkerInfo
from checkpoints.info_rows import columns
from checkpoints.position import Position
from checkpoints.repositories import TABLE, Repositories
from checkpoints.simulated_disk import SimulatedDisk
from checkpoints.sync_rules import Occasion, SyncOptions
from tests.servers.fixtures import ServerFactory


@pytest.fixture(scope="module", params=["5.7", "9.7"])
def server(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Server:
    return server_factory.shared(request.param)


@pytest.fixture
def engine(server: Server) -> Iterator[sql.Engine]:
    server.execute("DROP DATABASE IF EXISTS binlag")
    url = sql.URL.create("mysql+pymysql", server.user, server.password, query={"unix_socket": str(server.socket)})
    made = sql.create_engine(url)
    yield made
    made.dispose()
    server.execute("DROP DATABASE IF EXISTS binlag")


def repositories(store: ServerTableStore, version: str) -> Repositories:
    return Repositories(version, SimulatedDisk(), store, TABLE, TABLE, SyncOptions(1, 1, 1))


@pytest.mark.parametrize("version", ["5.6", "5.7", "8.0", "9.7"])
def test_what_is_written_is_read(version: str, engine: sql.Engine) -> None:
    relay, source = Position("./relay.000009", 1 << 63), Position("binlog.000007", (1 << 64) - 1)
    applied = RelayLogInfo(sql_delay=-3, number_of_workers=2).at(relay, source)
    received = replace(SourceInfo(host="db.example", heartbeat_period=3.25, ignored_server_ids=(3, 9)), source_log_name="binlog.000008")
    worker = WorkerInfo(id=2, relay_log_name="./relay.000009", checkpoint_group_bitmap=bitmap.of([0, 7, 511]))
    for _ in range(2):
        with ServerTableStore(engine, version) as store:
            kept = repositories(store, version)
            for repository, record in ((kept.relay_log_info(), applied), (kept.source_info(), received), (kept.worker_info(2), worker)):
                repository.read()
                repository.flush(record, Occasion.CHANGE)  # type: ignore[arg-type]
    with ServerTableStore(engine, version) as store:
        kept = repositories(store, version)
        assert (kept.relay_log_info().read(), kept.source_info().read(), kept.worker_info(2).read()) == (applied, received, worker)
        assert tuple(store.rows("slave_relay_log_info")[0]) == columns(RelayLogInfo, version)
        kept.source_info().remove()
        assert store.rows("slave_master_info") == []


@pytest.mark.parametrize(("storage_engine", "left"), [("InnoDB", 4), ("MyISAM", 500)])
def test_it_goes_with_its_transaction(storage_engine: str, left: int, engine: sql.Engine) -> None:
    with ServerTableStore(engine, "9.7", storage_engine=storage_engine) as store:
        assert store.transactional == (storage_engine == "InnoDB")
        kept = repositories(store, "9.7").relay_log_info()
        kept.read()
        kept.flush(RelayLogInfo(), Occasion.CHANGE)
        store.begin()
        kept.flush(RelayLogInfo(relay_log_pos=500), Occasion.COMMIT)
        store.rollback()
        found = kept.read()
        assert found is not None
        assert found.relay_log_pos == left
        store.begin()
        kept.flush(RelayLogInfo(relay_log_pos=600), Occasion.COMMIT)
        store.commit()
    with ServerTableStore(engine, "9.7", storage_engine=storage_engine) as store:
        assert [row["Relay_log_pos"] for row in store.rows("slave_relay_log_info")] == [600]


def test_refused(engine: sql.Engine) -> None:
    with pytest.raises(UsageError, match="InnoDB or MyISAM"):
        ServerTableStore(engine, "9.7", storage_engine="MEMORY")
    with pytest.raises(UsageError, match="own database mysql"):
        ServerTableStore(engine, "9.7", schema="mysql")
    with pytest.raises(InputError, match="cannot be made"):
        ServerTableStore(sql.create_engine("mysql+pymysql://nobody@127.0.0.1:1"), "9.7")
