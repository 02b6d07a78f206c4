"""The parallel replay against a simulated server: schedules by the thousand, with what can go
wrong, and a checker behind every commit.

At each commit the checkpoint must be true: what the position row and the rows beyond it say is
done, and nothing else, and each once. Rows must be found as they were on the source, so the order
is one that the dependencies allow. A replay that was ended goes on with the same command until it
is through; then the tables are the source's. `BINLAG_SCHEDULES=20000` runs so many.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from applier.errors import BinlagError, ReplicationError
from applier.mysql import batches, into
from applier.mysql.client import connection
from applier.mysql.client.connection import TRANSIENT, NotReached, ServerLost
from applier.mysql.client.url import Endpoint
from applier.mysql.into import ReplayWatch, replay_into
from applier.mysql.into_options import IntoOptions
from applier.mysql.positions import checkpoint
from applier.mysql.positions.reconnect import Patience
from applier.options import parse_options
from tests.mysql.simulated_log import UNIQUE, SimulatedLog, create, make_log
from tests.mysql.simulated_server import Fault, Killed, SimulatedServer

ALL = os.environ.get("BINLAG_ALL_CASES") == "1"
SCHEDULES = int(os.environ.get("BINLAG_SCHEDULES") or (1500 if ALL else 120))
PARTS = 10
FAULTS = ("wait", "wait", "deadlock", "lost", "lost after", "crash", "crash after", "kill")
MOST_RUNS = 40


@dataclass(frozen=True)
class Way:
    """How a schedule goes."""

    into: IntoOptions
    options: Any
    faults: tuple[str, ...]
    interrupts: bool
    asks_often: bool

    @classmethod
    def at_random(cls, chance: Random, log: SimulatedLog) -> Way:
        left_out = ",".join(one.gtid for one in log.transactions if one.left_out)
        into = IntoOptions(
            apply=chance.choice(("native", "native", "sql")),
            workers=chance.choice((1, 2, 3, 4)),
            batch=chance.choice((1, 2, 3, 7)),
            any_commit_order=chance.random() < 0.5,
            gtid=chance.random() < 0.1,
            force=True,
            reconnect_seconds=chance.choice((0, 60)),
        )
        options = parse_options(
            exec_mode=chance.choice(("strict", "strict", "idempotent")),
            skip_errors=chance.choice(("", "", "all")),
            exclude_gtids=left_out or None,
        )
        faults = tuple(chance.choice(FAULTS) for _ in range(chance.choice((0, 1, 2, 3, 5))))
        return cls(into, options, faults, chance.random() < 0.2, chance.random() < 0.2)


class Checker:
    """Compares what was carried out with what the checkpoint says, behind each commit."""

    def __init__(self, server: SimulatedServer, log: SimulatedLog) -> None:
        self.server = server
        self.log = log
        self.ends = {(one.file, one.end): at + 1 for at, one in enumerate(log.transactions)}
        self.wanted = {one.applies for one in log.transactions if one.applies is not None}
        self.commits = 0
        server.on_commit = self.check

    def check(self) -> None:
        self.commits += 1
        server = self.server
        twice = [number for number, count in server.applied.items() if count > 1]
        assert not twice, f"carried out twice: {twice}"
        said = self.said()
        done = set(server.applied)
        assert not said - done, f"the checkpoint says more than was done: {sorted(said - done)}"
        under_way = done - said
        if under_way:
            place = self.log.transactions[min(under_way) - 1]
            assert place.is_ddl and len(under_way) == 1, (
                f"the checkpoint does not say that {under_way} were done"
            )
            assert server.position is not None
            assert f'"ddl":["{place.file}",{place.start},' in server.position[4]

    def said(self) -> set[int]:
        """Numbers of the transactions that the checkpoint says are done."""
        position = self.server.position
        count = (
            0 if position is None or not position[0] else self.ends[position[0], int(position[1])]
        )
        said = {one.applies for one in self.log.transactions[:count]}
        for file, start, end in self.server.done.values():
            said |= {
                one.applies
                for one in self.log.transactions
                if one.file == file and int(start) <= one.start < int(end)
            }
        return {number for number in said if number is not None}

    def check_end(self) -> None:
        server, log = self.server, self.log
        rows = {name: sorted(table.rows) for name, table in server.tables.items()}
        assert rows == {name: sorted(rows) for name, rows in log.after.items()}
        assert server.position is not None
        assert server.done == {}
        assert set(server.applied) == self.wanted
        assert (server.position[0], int(server.position[1])) == (
            log.transactions[-1].file,
            log.transactions[-1].end,
        )
        assert int(server.position[3]) == sum(not one.left_out for one in log.transactions)
        last = len(log.transactions)
        assert server.position[2] == log.transactions[0].gtid + (f"-{last}" if last > 1 else "")


def play(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """One schedule. What was met in it."""
    chance = Random(seed)
    log = make_log(chance, folder, chance.randrange(1, 24), leave_out=chance.random() < 0.3)
    server, way = SimulatedServer(chance), Way.at_random(chance, log)
    for name, rows in log.before.items():
        server.add_table(name, create(name), UNIQUE[name], rows)
    server.packet_bytes = chance.choice((1_000_000, 4000))  # long transactions go in parts
    stand_in(server, monkeypatch)
    refuse_wrong_orders(monkeypatch)
    checker = Checker(server, log)
    faults = list(way.faults)
    for _ in range(MOST_RUNS):
        server.faults = [
            Fault(faults.pop(0), chance.randrange(60))
            for _ in range(min(len(faults), chance.choice((1, 1, 2))))
        ]
        if run(server, log, way, chance, bool(faults or server.faults)):
            break
    checker.check()
    checker.check_end()
    return server.met + Counter(commits=checker.commits)


def stand_in(server: SimulatedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated server in the place of a real one, and no time that passes."""
    monkeypatch.setattr(connection, "DriverConnection", server.driver)
    monkeypatch.setattr(connection, "select", SimpleNamespace(select=server.select))
    monkeypatch.setattr(batches, "time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setattr(
        checkpoint, "time", SimpleNamespace(sleep=lambda seconds: server.pass_time())
    )
    monkeypatch.setattr(into, "Patience", patience)


def patience(seconds: float, stopped: Callable[[], bool]) -> Patience:
    """Pauses that take no time, by a clock that knows them all the same."""
    passed = [0.0]
    return Patience(
        seconds,
        stopped,
        clock=lambda: passed[0],
        sleep=lambda pause: passed.append(passed.pop() + pause),
    )


def refuse_wrong_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is right: a row that is not found was looked for too early, even if it is there the
    second time."""
    recover = batches.Batches._recover

    def watched(self: batches.Batches, error: ReplicationError, *added: Any) -> None:
        assert error.number in TRANSIENT, f"out of order: {error}"
        recover(self, error, *added)

    monkeypatch.setattr(batches.Batches, "_recover", watched)


def run(
    server: SimulatedServer, log: SimulatedLog, way: Way, chance: Random, may_fail: bool
) -> bool:
    """One run to its end; whether it came to that of the log. What ends it before must be what was
    made to go wrong."""
    stop_after = chance.randrange(1, 30) if way.interrupts and may_fail else 1000
    seen = 0

    def stopped() -> bool:
        nonlocal seen
        seen += 1
        return seen >= stop_after

    is_first = not server.sessions
    watch = ReplayWatch(stopped=stopped, every_seconds=0 if way.asks_often else 1000)
    before = sum(server.met[what] for what in FAULTS)
    try:
        outcome = replay_into(
            [str(file) for file in log.files], Endpoint(user="root"), way.options, way.into, watch
        )
    except Killed:
        server.bury_client()
        return False
    except BinlagError as error:
        assert isinstance(error, NotReached | ServerLost), error
        return False
    if outcome.error is not None:
        assert sum(server.met[what] for what in FAULTS) > before or server.down, outcome.error
        assert isinstance(outcome.error, ServerLost | NotReached) or getattr(
            outcome.error, "number", 0
        ) in (1205, 1213), outcome.error
        assert not way.into.reconnect_seconds or not isinstance(
            outcome.error, ServerLost | NotReached
        ), outcome.error
        server.met["ended by an error"] += 1
        return False
    server.met["connected again"] += outcome.reconnects
    if is_first and not outcome.interrupted:
        assert outcome.transactions == outcome.total_transactions
        assert server.position is not None
        assert outcome.bytes == json.loads(server.position[4])["bytes"]
    return not outcome.interrupted


@pytest.mark.parametrize("part", range(PARTS))
def test_every_schedule_carries_out_each_transaction_once(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: Counter[str] = Counter()
    for seed in range(part, SCHEDULES, PARTS):
        with monkeypatch.context() as patch:
            try:
                met += play(seed, tmp_path, patch)
            except BaseException as error:
                error.add_note(f"schedule {seed}")
                raise
    print(f"{len(range(part, SCHEDULES, PARTS))} schedules: {dict(met)}")
    assert met["commits"]
