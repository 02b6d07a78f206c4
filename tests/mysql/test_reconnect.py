"""A replay into a server outlives lost connections, restarts and failovers without being started
again: nothing is lost or there twice.

`BINLAG_CUTS=20 python -m pytest tests/mysql/test_reconnect.py -s` says how often it connected
again.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from servers.server import Server

from applier.mysql.client.url import Endpoint
from applier.mysql.into import ReplayWatch, replay_into
from applier.mysql.into_options import IntoOptions
from applier.mysql.outcome import TargetOutcome
from applier.mysql.positions.reconnect import Patience
from applier.options import parse_options
from tests.mysql.server_support import OPTIONS
from tests.mysql.test_kills import DURABLE, SECONDS, Rounds, hears
from tests.mysql.workload import Workload, make, rows
from tests.servers.fixtures import ServerFactory

CUTS = int(os.environ.get("BINLAG_CUTS") or (8 if os.environ.get("BINLAG_ALL_CASES") == "1" else 5))


class Cuts(Rounds):
    """Replays that are not started again, however often their connections end."""

    options = ()
    cuts = 0

    def run(self, cuts: int, end: str) -> None:
        """Until so many cuts have met a replay at work: a server that is not there when it begins
        is an error at once."""
        self.forget()
        while self.cuts < cuts:
            process = self.start()
            at = sorted(
                self.chance.sample(range(1, self.workload.transactions), min(4, cuts - self.cuts))
            )
            met = sum(self._cut_at(process, number, end) for number in at)
            out, said = process.communicate(timeout=SECONDS)
            reconnects = self._reconnects(out)
            self.ended(process, out, said)
            assert "Traceback" not in said
            assert said.count(" again at attempt ") == reconnects
            # once for all that end before anything goes on
            assert not reconnects or "; trying again for 60 s" in said
            self.met["cuts"] += met
            self.met["connected again"] += reconnects
            self.cuts += min(met, reconnects)

    def _reconnects(self, out: str) -> int:
        return int(json.loads(out)["reconnects"]) if out else 0

    def _cut_at(self, process: subprocess.Popen[str], transactions: int, end: str) -> bool:
        if not self.is_underway(process, transactions, self.chance.uniform(0, 0.1)):
            return False
        if end == "KILL":
            return self._kill_sessions()
        self.server.kill()
        self.server.start()
        return True

    def _kill_sessions(self) -> bool:
        """Some of the replay's connections, or all."""
        with closing(self.server.connect()) as own, own.cursor() as cursor:
            cursor.execute(
                "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'root' AND ID <> "
                "CONNECTION_ID()"
            )
            numbers = [row[0] for row in cursor.fetchall()]
            for number in self.chance.sample(
                numbers, self.chance.randint(min(1, len(numbers)), len(numbers))
            ):
                with suppress(Exception):  # it ended meanwhile
                    cursor.execute(f"KILL {number}")
        return bool(numbers)

    def done(self) -> int:
        """The server may be away."""
        with suppress(Exception):
            return super().done()
        return 0


@pytest.fixture(scope="module")
def made(
    server_factory: ServerFactory, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Workload]]:
    server = server_factory("9.7", options=DURABLE)
    yield server, make(server, tmp_path_factory.mktemp("log"), 320)
    server.close()


@pytest.mark.in_ci
@pytest.mark.parametrize("end", ["KILL", "restart"])
def test_a_replay_outlives_its_connections(end: str, made: tuple[Server, Workload]) -> None:
    cuts = Cuts(*made, seed=CUTS)
    cuts.run(CUTS, end)
    print(f"{CUTS} cuts by {end}: {dict(cuts.met)}")
    assert cuts.met["connected again"] >= CUTS


def test_a_signal_ends_the_trying_again(made: tuple[Server, Workload]) -> None:
    """SIGHUP, while there is no server: the command that goes on is said, and does."""
    cuts = Cuts(*made, seed=1)
    cuts.forget()
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it would be ignored
    process = cuts.start()
    signal.signal(signal.SIGHUP, before)
    assert cuts.is_underway(process, 50, 0)
    assert hears(process)
    cuts.server.kill()
    assert process.stderr is not None
    assert "trying again" in process.stderr.readline()
    process.send_signal(signal.SIGHUP)
    _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert "to go on: binlag replay" in said
    cuts.server.start()
    process = cuts.start()
    cuts.ended(process, *process.communicate(timeout=SECONDS))


# a network between


class Network:
    """Hands on what comes to `port` to a server, until it is cut."""

    def __init__(self, target: Server, refused: int | None = None) -> None:
        """`refused` counts from 1: that connection ends as soon as it is made."""
        self.target = target
        self._refused, self._number = refused, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._clients: list[socket.socket] = []
        self._all: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """The clients' side ends. The server hears nothing of it: as far as it knows its sessions
        go on."""
        clients, self._clients = self._clients, []
        for client in clients:
            with suppress(OSError):  # it ended already
                client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """The server hears of it now."""
        for one in self._all:
            # closed by the other side's thread; a thread that waits for data keeps it open else
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._all.append(client)
                self._number += 1
                if self._number == self._refused:
                    client.close()
                    continue
                try:
                    server = socket.create_connection(("127.0.0.1", self.target.port))
                except OSError:
                    client.close()
                    continue
                self._clients.append(client)
                self._all.append(server)
                threading.Thread(
                    target=self._pass_on, args=(client, server, False), daemon=True
                ).start()
                threading.Thread(
                    target=self._pass_on, args=(server, client, True), daemon=True
                ).start()

    def _pass_on(self, one: socket.socket, other: socket.socket, ends: bool) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
            if ends:
                other.close()


def replay(
    log: Path, network: Network, password: str, on: dict[int, Callable[[], None]], **how: object
) -> tuple[TargetOutcome, list[str]]:
    """A replay over the network; `on` says what happens when so many transactions were sent. What
    it said comes with it."""
    seen, said = [0], list[str]()

    def tell(_: object) -> None:
        seen[0] += 1
        on.pop(seen[0], lambda: None)()

    endpoint = Endpoint("127.0.0.1", network.port, "root", password=password)
    into = IntoOptions(force=True, batch=3, **how)  # type: ignore[arg-type]
    outcome = replay_into(
        [str(log)],
        endpoint,
        parse_options(),
        into,
        ReplayWatch(on_transaction=tell, say=said.append),
    )
    return outcome, said


def test_the_servers_half_of_a_cut_network_is_ended(made: tuple[Server, Workload]) -> None:
    """It would hold its locks for hours."""
    server, workload = made
    Cuts(server, workload, seed=1).forget()
    with closing(Network(server)) as network:
        outcome, said = replay(
            workload.log, network, server.password, {100: network.cut, 250: network.cut}, workers=3
        )
    assert outcome.error is None
    assert outcome.reconnects == len(said) // 2 == 2
    assert outcome.total_transactions == outcome.transactions == workload.transactions
    assert rows(server) == workload.rows


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("refused", [2, 3, 4])
def test_a_connection_beside_the_first_is_tried_again(
    refused: int, made: tuple[Server, Workload]
) -> None:
    """A restart may fall between the first connection and those that belong to it."""
    server, workload = made
    Cuts(server, workload, seed=1).forget()
    with closing(Network(server, refused)) as network:
        outcome, said = replay(workload.log, network, server.password, {}, workers=3)
    assert outcome.error is None
    assert outcome.reconnects == 1
    assert "trying again" in said[0]
    assert outcome.total_transactions == workload.transactions
    assert rows(server) == workload.rows


def test_a_dump_is_loaded_again_when_its_connection_is_lost(
    made: tuple[Server, Workload], tmp_path: Path
) -> None:
    """The second connection is the one that loads it. Until it is in, there is no position to go
    back to."""
    server, workload = made
    server.execute("DROP DATABASE IF EXISTS earlier")
    Cuts(server, workload, seed=1).forget()
    dump = tmp_path / "dump.sql"
    dump.write_text(
        "CREATE DATABASE IF NOT EXISTS earlier; USE earlier; DROP TABLE IF EXISTS t; "
        "CREATE TABLE t (id INT PRIMARY KEY);"
    )
    with closing(Network(server, refused=2)) as network:
        outcome, said = replay(
            workload.log, network, server.password, {}, workers=1, schema=str(dump)
        )
    assert outcome.error is None
    assert "continuing from the beginning" in said[-1]
    assert server.query("SELECT COUNT(*) FROM earlier.t") == ((0,),)
    assert outcome.total_transactions == workload.transactions
    assert rows(server) == workload.rows


@pytest.mark.in_ci
def test_a_failover_to_a_replica(server_factory: ServerFactory, tmp_path: Path) -> None:
    """The position came to it with the data, so it goes on from what the replica has."""
    source = server_factory("9.7", gtids=True, options=OPTIONS)
    workload = make(source, tmp_path, 120)
    source.execute("DROP DATABASE w", "RESET BINARY LOGS AND GTIDS")
    replica = server_factory("9.7", gtids=True, options={**OPTIONS, "server_id": 2})
    replica.execute("RESET BINARY LOGS AND GTIDS")
    replica.execute(
        f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={source.port}, "
        "SOURCE_USER='root', "
        f"SOURCE_PASSWORD='{source.password}', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1",
        "START REPLICA",
    )

    def promote() -> None:
        """As soon as the replica has anything of it, wherever that ends."""
        while not replica.query(
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'binlag'"
        ):
            time.sleep(0.01)
        source.kill()
        while "waiting for more updates" not in str(replica.query("SHOW REPLICA STATUS")):
            time.sleep(0.01)
        replica.execute("STOP REPLICA", "RESET REPLICA ALL")
        network.target = replica

    network = Network(source)
    with closing(network):
        outcome, said = replay(workload.log, network, replica.password, {80: promote}, workers=1)
    assert outcome.error is None, outcome.error
    assert outcome.reconnects >= 1
    assert "again at attempt" in said[-1]
    assert outcome.total_transactions == workload.transactions
    assert rows(replica) == workload.rows
    replica.close()


def test_a_server_without_the_position_is_refused(
    server_factory: ServerFactory, made: tuple[Server, Workload]
) -> None:
    server, workload = made
    other = server_factory("9.7", options=OPTIONS)
    Cuts(server, workload, seed=1).forget()
    network = Network(server)

    def swap() -> None:
        network.target = other
        network.cut()

    with closing(network):
        outcome, _ = replay(workload.log, network, server.password, {100: swap})
    assert outcome.error is not None
    assert "has no position of" in str(outcome.error)
    other.close()


def test_tables_without_transactions_are_looked_at_by_somebody(
    made: tuple[Server, Workload], tmp_path: Path
) -> None:
    """Whether what was under way is in them is not known: it is not tried again."""
    server, _ = made
    server.execute("DROP DATABASE IF EXISTS w", "DROP DATABASE IF EXISTS binlag", "FLUSH LOGS")
    server.execute(
        "CREATE DATABASE w",
        "CREATE TABLE w.m (id INT) ENGINE=MyISAM",
        *(f"INSERT INTO w.m VALUES ({n})" for n in range(30)),
    )
    log = tmp_path / "myisam.000001"
    log.write_bytes(server.binlog_files()[-1].read_bytes())
    server.execute("DROP DATABASE w")
    blocker = server.connect()

    def block() -> None:
        with blocker.cursor() as cursor:
            cursor.execute("LOCK TABLES w.m READ")
        threading.Timer(0.5, network.cut).start()

    with closing(Network(server)) as network:
        outcome, said = replay(log, network, server.password, {20: block})
    blocker.close()
    assert said == []
    assert outcome.error is not None
    assert (
        "see whether the tables without transactions have what the log has at"
        in outcome.error.next_step
    )


# how long


def test_pauses_grow_up_to_the_end_of_the_time() -> None:
    now, pauses = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        now[0] += max(seconds, 1e-6)  # what is left of a pause may be too little to change a float

    patience = Patience(12, lambda: False, clock=lambda: now[0], sleep=sleep)
    while True:
        before = now[0]
        if not patience.wait():
            break
        pauses.append(round(now[0] - before, 3))
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 0.7]
    assert patience.is_over()
    patience.renew()
    assert not patience.is_over()
    assert Patience(0, lambda: False).is_over()
