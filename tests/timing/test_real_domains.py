"""The clock's order of groups beside a real MariaDB with workers.

A trigger on the replica lets each row take as long as its column says, and notes when it began. The
first group takes long enough that all others are there before it is done.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from applier.binlog.reader import LogReader
from applier.binlog.transactions import Transaction, group
from applier.timing.clock import ClockConfiguration
from applier.timing.simulate import simulate
from applier.timing.simulation import Simulation
from applier.timing.timed import TimedTransaction, timed_transactions
from tests.replica.mariadb_pairs import MariadbPair
from tests.servers.fixtures import ServerFactory

UNIT = 0.6
"""Seconds; what is compared are waits of a unit and more."""
TRIGGER = (
    "CREATE TRIGGER d.g{n} BEFORE INSERT ON d.{n} FOR EACH ROW BEGIN SET NEW.began = SYSDATE(6); "
    "SET @slept = SLEEP(NEW.s); END"
)
TABLES = {"t": "InnoDB", "m0": "MyISAM", "m5": "MyISAM"}


@dataclass(frozen=True)
class Ran:
    """What the replica did: when a row's group was committed on the source and began on the
    replica, and the log."""

    committed: dict[int, float]
    began: dict[int, float]
    seconds: dict[int, float]
    log: list[tuple[int, TimedTransaction]]
    """Each with the number of its row, or of its table."""


class Traffic:
    """Rows with numbers of their own, in group commits and alone."""

    def __init__(self, pair: MariadbPair, seed: int) -> None:
        self.pair, self.rnd, self.number = pair, random.Random(seed), 0
        self.committed: dict[int, float] = {}

    def insert(
        self, number: int, seconds: float, domain: int, *before: str, table: str = "t"
    ) -> None:
        statement = f"INSERT INTO d.{table} VALUES ({number}, {seconds}, NULL)"
        self.pair.source.execute(f"SET gtid_domain_id = {domain}", *before, statement)
        self.committed[number] = time.time()

    def step(self) -> None:
        kind, domain = (
            self.rnd.choice(("one", "together", "together", "ddl", "MyISAM", "alone")),
            self.rnd.choice((0, 0, 0, 5)),
        )
        count = self.rnd.randint(2, 3) if kind == "together" else 1
        numbers = range(self.number + 1, self.number + count + 1)
        self.number += count
        seconds = [UNIT * self.rnd.choice((1, 2, 3)) for _ in numbers]
        if kind == "together":
            source = self.pair.source
            source.execute(
                f"SET GLOBAL binlog_commit_wait_count = {count}",
                "SET GLOBAL binlog_commit_wait_usec = 5000000",
            )
            threads = [
                threading.Thread(target=self.insert, args=(*one, domain))
                for one in zip(numbers, seconds, strict=True)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            source.execute(
                "SET GLOBAL binlog_commit_wait_count = 0", "SET GLOBAL binlog_commit_wait_usec = 0"
            )
        elif kind == "ddl":
            self.pair.source.execute(
                f"SET gtid_domain_id = {domain}", f"CREATE TABLE d.x{self.number} (a INT)"
            )
            self.committed[self.number] = time.time()
        elif kind == "MyISAM":
            self.insert(self.number, seconds[0], domain, table=f"m{domain}")
        else:
            self.insert(
                self.number,
                seconds[0],
                domain,
                *(["SET skip_parallel_replication = 1"] if kind == "alone" else []),
            )


def ran(pair: MariadbPair, seed: int, folder: Path) -> Ran:
    """Some fifteen groups."""
    traffic = Traffic(pair, seed)
    source, replica = pair.source, pair.replica
    columns = "id INT PRIMARY KEY, s FLOAT, began DATETIME(6)"
    source.execute(
        "CREATE DATABASE d",
        *(f"CREATE TABLE d.{name} ({columns}) ENGINE={engine}" for name, engine in TABLES.items()),
    )
    pair.change_source()
    pair.run("START SLAVE")
    pair.settle()
    replica.execute("SET sql_log_bin = 0", *(TRIGGER.format(n=name) for name in TABLES))
    traffic.number = 1
    traffic.insert(1, 6 * UNIT, 0)
    while traffic.number < 14:
        traffic.step()
    pair.settle()
    union = " UNION ALL ".join(
        f"SELECT id, UNIX_TIMESTAMP(began), s FROM d.{name}" for name in TABLES
    )
    deadline = time.monotonic() + 60
    while (
        len(rows := replica.query(union)) < len(source.query(union)) and time.monotonic() < deadline
    ):
        time.sleep(0.1)
    paths = []
    for name, content in pair.source_files().items():
        (folder / name).write_bytes(content)
        paths.append(str(folder / name))
    log = list(
        zip(
            map(_number, group(LogReader(paths), keep_events=True)),
            timed_transactions(paths, lambda event: 0.0),
            strict=True,
        )
    )
    first = next(at for at, (number, _) in enumerate(log) if number == 1)
    return Ran(
        traffic.committed,
        {int(row[0]): float(row[1]) for row in rows},
        {int(row[0]): float(row[2]) for row in rows},
        log[first:],
    )


def _number(transaction: Transaction) -> int:
    text = b"".join(bytes(event.buffer[event.body : event.end]) for event in transaction.events)
    for mark, end in ((b"VALUES (", b","), (b"CREATE TABLE d.x", b" ")):
        if mark in text:
            return int(text.partition(mark)[2].partition(end)[0])
    return 0


def simulated(run: Ran, configuration: ClockConfiguration) -> Simulation:
    log = [
        replace(each, commit=run.committed[number], seconds=run.seconds.get(number, 0.0), steps=())
        for number, each in run.log
    ]
    return simulate(log, configuration)


def waits(begins: dict[int, float], ends: dict[int, float]) -> Iterator[tuple[int, int, bool]]:
    """For each two groups, whether the second waits until the first is over; those that begin about
    when it ends are left out."""
    for first, end in ends.items():
        for second, begin in begins.items():
            if (
                first != second
                and not -UNIT / 2 < begin - end < -UNIT / 6
                and begins[first] <= begin
            ):
                yield first, second, begin > end - UNIT / 2


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    ("mode", "workers", "domain_workers", "using_gtid"),
    [
        ("conservative", 3, 0, "slave_pos"),
        ("optimistic", 4, 2, "slave_pos"),
        ("aggressive", 3, 0, "no"),
    ],
)
def test_groups_wait_for_those_that_the_clock_lets_them_wait_for(
    server_factory: ServerFactory,
    tmp_path: Path,
    mode: str,
    workers: int,
    domain_workers: int,
    using_gtid: str,
) -> None:
    options = {
        "slave_parallel_threads": workers,
        "slave_parallel_mode": mode,
        "slave_domain_parallel_threads": domain_workers,
    }
    with MariadbPair(
        server_factory,
        using_gtid=using_gtid,
        source_options={"binlog-format": "STATEMENT"},
        **options,
    ) as pair:
        run = ran(pair, workers + domain_workers + len(using_gtid), tmp_path)
    configuration = ClockConfiguration(
        server="mariadb",
        workers=workers,
        parallel_type=mode,
        domain_workers=domain_workers,
        by_position=using_gtid == "no",
    )
    simulation = simulated(run, configuration)
    numbers = [number for number, _ in run.log]
    begins = {
        number: begin
        for number, begin in zip(numbers, simulation.starts, strict=True)
        if number in run.began
    }
    said = list(waits(begins, {number: begins[number] + run.seconds[number] for number in begins}))
    real = {(a, b): run.began[b] > run.began[a] + run.seconds[a] - UNIT / 2 for a, b, _ in said}
    assert len(begins) >= 8
    assert {(a, b) for a, b, wait in said if wait} == {pair for pair, wait in real.items() if wait}
    assert any(not wait for _, _, wait in said)
