"""What is killed: configurations of a replica, the traffic it has, and what happens to its files;
all drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from applier.replica.scheduling import DATABASE, LOGICAL_CLOCK, MODES
from tests.replica.kills.damage import DAMAGES, IN_RECORDS
from tests.replica.kills.traffic import LOADS

KILLS_PER_SETUP = 3
"""A pair of servers is started for as many."""
SMALL_RELAY_LOG = 4096
OLD = frozenset({"5.6", "5.7"})
MARIADB = "mariadb"
NOT_IN_MARIADB = frozenset({"empty"})
"""gtid_next is MySQL's."""
ONLY_IN_MARIADB = frozenset({"domains"})
WITH_GTIDS_ONLY = frozenset({"empty"})
WITHOUT_GTIDS_ONLY = frozenset({"ctas"})
"""CREATE TABLE … SELECT is refused with GTIDs up to 8.0.20."""
SINCE_57 = frozenset({"xa", "held xa"})
"""Of 5.6, XA transactions stand in the log as plain ones, written when they are committed."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A replica's configuration. `sessions` write to the source at the same time."""

    version: str
    repository: str = "TABLE"
    """relay_log_info_repository."""
    source_repository: str = "TABLE"
    """master_info_repository."""
    recovery: bool = True
    gtids: bool = False
    auto_position: bool = False
    workers: int = 0
    parallel_type: str = LOGICAL_CLOCK
    commit_order: bool = False
    relay_log_bytes: int = 0
    """max_relay_log_size; 0: the default."""
    sync_every: int | None = None
    """sync_relay_log, sync_relay_log_info and sync_master_info; None: the defaults."""
    checkpoint_group: int = 512
    purges: bool = True
    logs_updates: bool = True
    """log_replica_updates."""
    using_gtid: str = "no"
    """MASTER_USE_GTID of MariaDB; `auto_position` where it is not no."""
    source: tuple[tuple[str, str], ...] = ()
    """Options of the source over its defaults."""
    space_limit: int = 0
    """relay_log_space_limit; 0: none."""
    delay_seconds: int = 0
    """SOURCE_DELAY: the applier is so far behind."""

    @property
    def label(self) -> str:
        """The configuration as a row of the table that is printed."""
        recovery = f"recovery={int(self.recovery)}"
        place = "auto-position" if self.auto_position else "GTID" if self.gtids else "position"
        if self.version == MARIADB:
            place = self.using_gtid if self.auto_position else "position"
            return (
                f"{self.version} {recovery} {place} "
                f"{f'{self.workers} {self.parallel_type}' if self.workers else 'no workers'}"
            )
        return f"{self.version} {self.repository} {recovery} {place} {self.workers} workers"

    @property
    def gtid_options(self) -> dict[str, Any]:
        """Of both servers, where they are not switched on."""
        if self.version == MARIADB:
            return {}
        return (
            {"gtid-mode": "OFF", "enforce-gtid-consistency": "OFF"}
            if self.version not in OLD and not self.gtids
            else {}
        )

    @property
    def options(self) -> dict[str, Any]:
        """Of the server."""
        found: dict[str, Any] = {
            "relay-log-purge": int(self.purges),
            "relay-log-recovery": int(self.recovery),
            "sync-binlog": 0,
        }
        has_old_names = self.version in OLD or self.version == MARIADB
        found["log-slave-updates" if has_old_names else "log-replica-updates"] = int(
            self.logs_updates
        )
        found |= self.gtid_options
        if self.relay_log_bytes:
            found["max-relay-log-size"] = self.relay_log_bytes
        if self.space_limit:
            found["relay-log-space-limit"] = self.space_limit
        if self.sync_every is not None:
            synced = (
                "relay-log",
                "relay-log-info",
                "master-info" if has_old_names else "source-info",
            )
            found |= {f"sync-{name}": self.sync_every for name in synced}
        if self.version == MARIADB:
            return found | {
                "slave-parallel-threads": self.workers,
                "slave-parallel-mode": self.parallel_type,
            }
        word = "slave" if self.version in OLD else "replica"
        found |= {
            f"{word}-parallel-workers": self.workers,
            f"{word}-checkpoint-group": self.checkpoint_group,
        }
        if self.version in OLD:
            found |= {
                "relay-log-info-repository": self.repository,
                "master-info-repository": self.source_repository,
            }
        if self.version == "5.7":
            found["slave-parallel-type"] = self.parallel_type
        if self.version != "5.6":
            found[f"{word}-preserve-commit-order"] = int(self.commit_order)
        return found


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill: the traffic, how long it goes on, and what comes behind."""

    loads: tuple[str, ...]
    sessions: int
    seconds: float
    flushes: bool
    """FLUSH RELAY LOGS, or FLUSH LOGS of 5.6, while it runs."""
    halted: str | None = None
    """The thread that is stopped while it runs: the applier's falls behind the receiver."""
    workers: int | None = None
    """Of the server when it starts again; None: as many as before."""
    recovery: bool | None = None
    """So relay_log_recovery."""
    second: float | None = None
    """It is started again and killed again as long after that."""
    damage: str | None = None
    """A row of DAMAGES."""

    def next_setup(self, setup: Setup) -> Setup:
        """As the server starts again."""
        workers = setup.workers if self.workers is None else self.workers
        return replace(
            setup,
            workers=workers,
            recovery=setup.recovery if self.recovery is None else self.recovery,
        )


def drawn(seed: int, count: int, versions: tuple[str, ...]) -> Iterator[tuple[Setup, list[Kill]]]:
    """As many kills, by configuration."""
    rnd = random.Random(seed)
    left = count
    turn = 0
    while left > 0:
        setup = replace(_setup(rnd, versions[turn % len(versions)]), **_waiting(rnd))
        turn += 1
        kills = [_kill(rnd, setup) for _ in range(min(left, KILLS_PER_SETUP))]
        left -= len(kills)
        yield setup, kills


def _setup(rnd: random.Random, version: str) -> Setup:
    if version == MARIADB:
        return _setup_of_mariadb(rnd)
    old = version in OLD
    workers = rnd.choice((0, 0, 2, 4) if old else (1, 2, 4))
    parallel_type = (
        DATABASE if version == "5.6" or (version == "5.7" and rnd.random() < 0.3) else LOGICAL_CLOCK
    )
    commit_order = (
        bool(workers) and version != "5.6" and parallel_type == LOGICAL_CLOCK and rnd.random() < 0.5
    )
    repository = rnd.choice(("FILE", "TABLE")) if old else "TABLE"
    gtids = rnd.random() < 0.6
    return Setup(
        version,
        repository,
        source_repository=rnd.choice(("FILE", "TABLE"))
        if old and rnd.random() < 0.2
        else repository,
        recovery=rnd.random() < 0.5,
        gtids=gtids,
        auto_position=gtids and rnd.random() < 0.8,
        workers=workers,
        parallel_type=parallel_type,
        commit_order=commit_order,
        relay_log_bytes=SMALL_RELAY_LOG if rnd.random() < 0.3 else 0,
        sync_every=rnd.choice((0, 1, 10)) if rnd.random() < 0.3 else None,
        checkpoint_group=32 if rnd.random() < 0.2 else 512,
        purges=rnd.random() < 0.8,
        logs_updates=(gtids and version == "5.6") or commit_order or rnd.random() < 0.8,
        source=tuple(_source(rnd, version)),
    )


def _setup_of_mariadb(rnd: random.Random) -> Setup:
    using_gtid = rnd.choice(("no", "no", "slave_pos", "current_pos"))
    workers = rnd.choice((0, 1, 2, 4))
    return Setup(
        MARIADB,
        "FILE",
        "FILE",
        recovery=rnd.random() < 0.5,
        auto_position=using_gtid != "no",
        using_gtid=using_gtid,
        workers=workers,
        parallel_type=rnd.choice(MODES[1:]),
        relay_log_bytes=SMALL_RELAY_LOG if rnd.random() < 0.3 else 0,
        sync_every=rnd.choice((0, 1, 10)) if rnd.random() < 0.3 else None,
        purges=rnd.random() < 0.7,
        logs_updates=rnd.random() < 0.7,
        source=tuple(_source(rnd, MARIADB)),
    )


def _waiting(rnd: random.Random) -> dict[str, int]:
    """What holds one of the two threads back."""
    found = {}
    if rnd.random() < 0.12:
        found["space_limit"] = rnd.choice((8_000, 40_000))
    if rnd.random() < 0.12:
        found["delay_seconds"] = 1
    return found


def _source(rnd: random.Random, version: str) -> Iterator[tuple[str, str]]:
    if rnd.random() < 0.2:
        yield "binlog-row-image", rnd.choice(("MINIMAL", "NOBLOB"))
    if rnd.random() < 0.15:
        yield "binlog-checksum", "NONE"
    if rnd.random() < 0.15:
        yield "binlog-row-event-max-size", "256"
    if version not in (*OLD, MARIADB) and rnd.random() < 0.25:
        yield "binlog-transaction-compression", "ON"


def _kill(rnd: random.Random, setup: Setup) -> Kill:
    allowed = [name for name in LOADS if _fits(name, setup)]
    loads = tuple(sorted(rnd.sample(allowed, rnd.randint(1, min(3, len(allowed))))))
    second = rnd.uniform(0.05, 0.6) if rnd.random() < 0.2 else None
    damage = (
        rnd.choice(
            [name for name in DAMAGES if setup.repository == "FILE" or name not in IN_RECORDS]
        )
        if rnd.random() < 0.2
        else None
    )
    sessions = rnd.choice((1, 3)) if setup.workers < 2 else 4
    fewest = 0 if setup.version in OLD or setup.version == MARIADB else 1
    return Kill(
        loads,
        sessions,
        rnd.uniform(0.1, 1.2),
        rnd.random() < 0.25,
        halted=rnd.choice(("SQL_THREAD", "SQL_THREAD", "IO_THREAD"))
        if rnd.random() < 0.2
        else None,
        workers=rnd.choice((fewest, 2, 8))
        if rnd.random() < 0.15 and not setup.commit_order
        else None,
        recovery=not setup.recovery if rnd.random() < 0.1 else None,
        second=second,
        damage=damage,
    )


def _fits(load: str, setup: Setup) -> bool:
    if setup.version == MARIADB:
        return load not in NOT_IN_MARIADB
    if load in ONLY_IN_MARIADB:
        return False
    if load in WITH_GTIDS_ONLY:
        return setup.gtids
    return not (load in WITHOUT_GTIDS_ONLY and setup.gtids and setup.version in OLD) and not (
        load in SINCE_57 and setup.version == "5.6"
    )
