"""Signals to binlag and SIGKILL of the server at random moments, and the same command again:
nothing is lost, nothing is there twice.

The log counts: a transaction that is carried out twice, or not at all, leaves other rows behind.
Its DDL statements are recognised when they were carried out before the kill.
`BINLAG_KILLS=100 python -m pytest tests/mysql/test_kills.py -s` says how many met what.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from servers.server import Server

from tests.mysql.server_support import OPTIONS
from tests.mysql.workload import Workload, make, rows
from tests.servers.fixtures import ServerFactory

FEW = 3
KILLS = int(
    os.environ.get("BINLAG_KILLS") or (4 if os.environ.get("BINLAG_ALL_CASES") == "1" else FEW)
)
WAYS = (
    ["--workers", "1"],
    ["--workers", "4"],
    ["--workers", "4", "--any-commit-order"],
    ["--workers", "2", "--apply", "sql"],
)
SECONDS = 600
"""A run that takes longer hangs."""
GO_ON = "to go on: binlag replay"
DURABLE: dict[str, str | int | bool | None] = {
    **OPTIONS,
    "innodb_flush_log_at_trx_commit": 1,
    "sync_binlog": 1,
}


@pytest.fixture(scope="module", params=["9.7", "mariadb"] if KILLS > FEW else ["9.7"])
def made(
    request: pytest.FixtureRequest,
    server_factory: ServerFactory,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Server, Workload]]:
    server = server_factory(request.param, options=DURABLE)
    yield server, make(server, tmp_path_factory.mktemp("log"), 400)
    server.close()


def hears(process: subprocess.Popen[str]) -> bool:
    """Whether it catches SIGTERM, as binlag does from its first line on; a signal before that is
    Python's own to answer."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


class Rounds:
    """Replays into the server, again and again from nothing, until so many runs were killed."""

    options: tuple[str, ...] = ("--reconnect-seconds", "0")

    def __init__(self, server: Server, workload: Workload, seed: int) -> None:
        self.server = server
        self.workload = workload
        self.chance = random.Random(seed)
        self.met: Counter[str] = Counter()
        """Where the killed runs were: before the first commit, behind a low-water mark, ..., and
        how many rounds came to their end."""

    def start(self) -> subprocess.Popen[str]:
        url = f"mysql://root@localhost?socket={self.server.socket}"
        how = [*self.chance.choice(WAYS), "--batch", str(self.chance.choice((1, 3))), *self.options]
        command = [
            sys.executable,
            "-m",
            "applier",
            "replay",
            str(self.workload.log),
            "--into",
            url,
            "--json",
            *how,
        ]
        environment = {**os.environ, "BINLAG_PASSWORD": self.server.password}
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, kills: int, end: str) -> None:
        self.forget()
        while kills:
            before = self.done()
            # beyond the last: it comes to its end
            at = self.chance.randint(before + bool(before), self.workload.transactions + 1)
            process = self.start()
            if self.is_underway(process, at, self.chance.uniform(0, 0.3)):
                kills -= 1
                self.ends[end](process)
                self.met["had gone on"] += self.done() > before
                self.look()
            else:
                self.ended(process, *process.communicate())
        process = self.start()
        self.ended(process, *process.communicate(timeout=SECONDS))

    def is_underway(
        self, process: subprocess.Popen[str], transactions: int, seconds: float
    ) -> bool:
        """Waits until a run has carried out so many transactions, and a moment longer, however fast
        it is. False: it came to its end."""
        while self.done() < transactions:
            if process.poll() is not None:
                return False
            time.sleep(0.005)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    @property
    def ends(self) -> dict[str, Callable[[subprocess.Popen[str]], None]]:
        """How a run is ended -> what does it."""
        return {"SIGKILL": self.kill, "the server": self.kill_server, "a signal": self.interrupt}

    def kill(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.communicate()

    def interrupt(self, process: subprocess.Popen[str]) -> None:
        """Ctrl-C or SIGTERM, and in one of three cases another one at once: one line, and where it
        stands is known.

        The second one may come late, when all is said but the process has not ended: that is a
        second line.
        """
        numbers = [
            self.chance.choice((signal.SIGINT, signal.SIGTERM))
            for _ in range(self.chance.choice((1, 1, 2)))
        ]
        while process.poll() is None and not hears(process):
            time.sleep(0.001)
        for number in numbers:
            process.send_signal(number)
        _, said = process.communicate(timeout=SECONDS)
        assert process.returncode in (0, 130), said
        assert "Traceback" not in said
        if process.returncode:
            *before, last = said.splitlines()
            assert last == "binlag: interrupted" or (GO_ON in last and not before), said
            assert not before or (len(numbers) == 2 and len(before) == 1 and GO_ON in before[0]), (
                said
            )

    def kill_server(self, process: subprocess.Popen[str]) -> None:
        """What the replay says then is one line and what to do."""
        self.server.kill()
        _, said = process.communicate(timeout=SECONDS)
        self.server.start()
        assert process.returncode in (0, 2)
        assert (
            process.returncode == 0
            or "then the same command again" in said
            or "check that the server runs" in said
        )
        assert "Traceback" not in said

    def ended(self, process: subprocess.Popen[str], out: str, said: str) -> None:
        """A round is over: the rows are the source's, and the transactions were counted once."""
        assert process.returncode == 0, said
        summary = json.loads(out)
        assert rows(self.server) == self.workload.rows
        assert summary["total_transactions"] == self.workload.transactions
        assert self.server.query("SELECT COUNT(*) FROM binlag.done") == ((0,),)
        self.met["rounds"] += 1
        self.met["DDL recognised"] += sum(
            "had been carried out" in note for note in summary["notes"]
        )
        self.forget()

    def tables_are_there(self) -> bool:
        return {"done", "slave_relay_log_info"} <= self.tables()

    def tables(self) -> set[str]:
        schema = "information_schema.TABLES WHERE TABLE_SCHEMA = 'binlag'"
        return {str(name) for (name,) in self.server.query(f"SELECT TABLE_NAME FROM {schema}")}

    def done(self) -> int:
        """Transactions up to the low-water mark."""
        positions = (
            self.server.query("SELECT binlag_transactions FROM binlag.slave_relay_log_info")
            if self.tables_are_there()
            else ()
        )
        return int(positions[0][0]) if positions else 0

    def look(self) -> None:
        self.met["in the middle" if self.done() else "before the first commit"] += 1
        if self.tables_are_there():
            self.met["commits beyond the mark"] += bool(
                self.server.query("SELECT 1 FROM binlag.done LIMIT 1")
            )
        if "slave_worker_info" in self.tables():
            self.met["rows of workers"] += self.workers()

    def workers(self) -> int:
        """Each worker's row says what is committed with it: up to the position, or a part beyond
        it.

        One snapshot: the server may still carry out what a killed run had sent.
        """
        with closing(self.server.connect()) as own, own.cursor() as cursor:
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            cursor.execute("SELECT `end` FROM binlag.done")
            ends = {end for (end,) in cursor.fetchall()}
            cursor.execute("SELECT Relay_log_pos FROM binlag.slave_relay_log_info")
            ((position,),) = cursor.fetchall()
            cursor.execute(
                "SELECT Relay_log_pos, Checkpoint_relay_log_pos FROM binlag.slave_worker_info "
                "WHERE Relay_log_pos > 0"
            )
            found = cursor.fetchall()
        for end, checkpoint in found:
            assert end <= position or end in ends
            assert checkpoint < end
            assert checkpoint <= position or checkpoint in ends
        return len(found)

    def forget(self) -> None:
        self.server.execute("DROP DATABASE IF EXISTS w", "DROP DATABASE IF EXISTS binlag")


@pytest.mark.in_ci
@pytest.mark.parametrize("end", ["SIGKILL", "the server", "a signal"])
def test_an_end_loses_and_doubles_nothing(end: str, made: tuple[Server, Workload]) -> None:
    rounds = Rounds(*made, seed=KILLS)
    rounds.run(KILLS, end)
    print(f"{KILLS} ends by {end}: {dict(rounds.met)}")
    assert rounds.met["rounds"] >= 1
    # a run that is killed while it starts shows nothing
    assert rounds.met["had gone on"] >= KILLS // 2
