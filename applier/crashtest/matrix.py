"""The matrix: one run for every configuration, one cell for every configuration and kind of crash.

What a server promises is data, too (`Setup.promise`): a configuration that promises nothing cannot
break a promise, whatever happens to it.

| transactional tables, relay_log_recovery=1 and | promised |
|---|---|
| GTID auto-position | consistent after every crash |
| info in TABLE, one thread | consistent after every crash |
| info in TABLE, workers | consistent after a kill; with sync_relay_log=1 after a machine crash |
| TABLE or GTID auto-position, workers of 5.6 | nothing: it does not start with gaps (1872) |

MariaDB promises of MASTER_USE_GTID=slave_pos that nothing is lost and nothing executed twice: what
is applied is in gtid_slave_pos, in the transaction, and START SLAVE fetches the relay logs again.
It does not promise that it starts: it deletes them one by one while its index and relay-log.info
name them, and a crash between is error 1201 (seen of 10.11.18).

All of it asks for innodb_flush_log_at_trx_commit=1, and for sync_binlog=1 where the replica writes
a binary log; everything else promises nothing. (The manual, "Handling an Unexpected Halt of a
Replica"; workers need the relay logs behind the low-water mark to find their gaps:
mts_recovery_groups.)
"""

from __future__ import annotations

import itertools
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from applier.crashtest.checkers import Verdict
from applier.crashtest.contract import RecoveryMistake
from applier.crashtest.crash_runs import Kind
from applier.crashtest.explorer import Exploration, Recovered, Trial, explore, reproduce
from applier.crashtest.log_maker import INNODB, MYISAM
from applier.crashtest.replica_system import ReplicaSystem, Shared, expected_state, set_up
from applier.crashtest.trace import trace
from applier.crashtest.workload import Workload, generated, with_engine
from applier.error_codes import Code
from applier.errors import UsageError
from applier.replica.configuration import FILE, TABLE, ReplicaConfiguration
from applier.replica.scheduling import rules_for
from applier.replica.versions import ReplicaRules, replica_rules
from applier.workers import Workers
from checkpoints.fields import FILES_IN
from checkpoints.outcomes import Medium
from checkpoints.simulated_disk import Coverage, SimulatedDisk

MAX_RELAY_LOG_SIZE = 4096
"""The least there is, so that a short run has several relay logs and deletes some."""
SEVERITY = (Verdict.CONSISTENT, Verdict.CANNOT_START, Verdict.REEXECUTES, Verdict.LOSES)
"""From good to bad: what stops says so, what is executed twice may, what is lost never does."""


@dataclass(frozen=True, slots=True)
class Setup:
    """One configuration of a replica, in the words of the command line."""

    server: str = "8.0"
    repository: str = TABLE
    sync: int = 10000
    """sync_relay_log, sync_relay_log_info and sync_master_info alike."""
    recovery: bool = True
    auto_position: bool = True
    workers: int = 0
    engine: str = INNODB
    commit_order: bool | None = None
    """replica_preserve_commit_order; None: the default of the version."""
    flush_log: int = 1
    """innodb_flush_log_at_trx_commit."""
    sync_binlog: int = 1
    log_bin: bool = True

    @property
    def configuration(self) -> ReplicaConfiguration:
        """`auto_position` of MariaDB is MASTER_USE_GTID=slave_pos. Raises UsageError for what the
        version does not have."""
        return ReplicaConfiguration(
            self.server,
            relay_log_info_repository=self.repository,
            master_info_repository=self.repository,
            sync_relay_log=self.sync,
            sync_relay_log_info=self.sync,
            sync_master_info=self.sync,
            relay_log_recovery=self.recovery,
            gtid_mode=self.auto_position and not replica_rules(self.server).by_domains,
            auto_position=self.auto_position,
            workers=self.workers,
            preserve_commit_order=self.commit_order,
            max_relay_log_size=MAX_RELAY_LOG_SIZE,
            innodb_flush_log_at_trx_commit=self.flush_log,
            sync_binlog=self.sync_binlog,
            log_bin=self.log_bin,
            log_replica_updates=self.log_bin,
        )

    def promise(self, kind: Kind) -> str | None:
        """Why it should be safe; None where no documentation promises it."""
        rules = self.configuration.rules
        durable = self.flush_log == 1 and (self.sync_binlog == 1 or not self.log_bin)
        if self.engine != INNODB or not durable:
            return None
        if rules.by_domains:
            return "MASTER_USE_GTID=slave_pos" if self.auto_position else None
        if not self.recovery or (self.workers and rules.gaps_forbid_recovery):
            return None
        if self.auto_position:
            return "GTID auto-position, relay_log_recovery=1"
        if self.repository != TABLE or (
            self.workers and self.sync != 1 and kind in (Kind.OS, Kind.IO_ERROR)
        ):
            return None
        return "TABLE, relay_log_recovery=1" + (
            ", sync_relay_log=1" if self.workers and self.sync == 1 else ""
        )

    @property
    def at_worst(self) -> Verdict:
        """The worst outcome that keeps a promise."""
        by_domains = self.configuration.rules.by_domains
        return Verdict.CANNOT_START if by_domains else Verdict.CONSISTENT

    def arguments(self) -> list[str]:
        """The options of `binlag crashtest` that make it."""
        words = ["--server", self.server, "--repository", self.repository, "--sync", str(self.sync)]
        words += [
            "--recovery",
            "1" if self.recovery else "0",
            "--position",
            "auto" if self.auto_position else "file",
        ]
        words += ["--workers", str(self.workers), "--engine", self.engine]
        if self.commit_order is not None:
            words += ["--commit-order" if self.commit_order else "--no-commit-order"]
        for option, value, usual in (
            ("--flush-log", self.flush_log, 1),
            ("--sync-binlog", self.sync_binlog, 1),
        ):
            words += [option, str(value)] if value != usual else []
        return words + ([] if self.log_bin else ["--skip-log-bin"])


AXES: dict[str, tuple[Any, ...]] = {
    "auto_position": (False, True),
    "recovery": (False, True),
    "repository": (FILE, TABLE),
    "sync": (0, 1, 10, 10000),
    "engine": (INNODB, MYISAM),
    "workers": (0, 4),
}
"""What the full matrix varies. Of sync_*: never, always, every 10 events or transactions, and the
default. Ten comes up in a log of 50 transactions, for the relay log, the receiver's record, the
applier's and a worker's alike, within transactions as well; 10,000 events are more than such a log
has, so that the default does there what 0 does (`try_family`)."""


def axes_of(base: Setup, chosen: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """What is varied: `chosen` values where there are some, else all that the version has. Raises
    UsageError for a version that is not known."""
    rules = replica_rules(base.server)
    name = rules.name
    usual = {
        **AXES,
        "repository": _repositories(rules),
        "workers": (rules_for(name).fewest_workers, 4),
    }
    return {
        name: tuple(dict.fromkeys(chosen.get(name) or values)) for name, values in usual.items()
    }


def _repositories(rules: ReplicaRules) -> tuple[str, ...]:
    if rules.by_domains:
        return (FILE,)
    return AXES["repository"] if rules.name in FILES_IN else (TABLE,)


def setups(base: Setup, axes: Mapping[str, Sequence[Any]]) -> list[Setup]:
    """All configurations with one value of each axis. Raises UsageError when the version has none
    of them."""
    found = [
        replace(base, **dict(zip(axes, values, strict=True)))
        for values in itertools.product(*axes.values())
    ]
    for setup in found:
        setup.configuration  # noqa: B018  refuses what the version does not have
    return found


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """How to make the workload of a setup, in whichever process."""

    transactions: int = 50
    seed: int = 1
    captured: Workload | None = None
    arguments: tuple[str, ...] = ()
    """What names it on the command line."""

    def make(self, setup: Setup) -> Workload:
        """The workload, with tables of the setup's engine."""
        if self.captured is not None:
            return replace(self.captured, schema=with_engine(self.captured.schema, setup.engine))
        return generated(
            self.transactions,
            version=setup.server,
            gtids=setup.auto_position,
            seed=self.seed,
            engine=setup.engine,
        )


@dataclass(frozen=True)
class MatrixCell:
    """The result of one configuration under one kind of crash."""

    setup: Setup
    kind: Kind
    points: int
    disks: int
    counts: Counter[Verdict]
    first: dict[Verdict, Trial] = field(repr=False)
    """The first counter-example of each verdict."""
    same_as: Setup | None = None
    """Another configuration whose run writes and syncs exactly the same, and whose exploration this
    is; None: it has its own."""

    @property
    def worst(self) -> Verdict:
        """The worst outcome of a crash."""
        return max(self.counts, key=SEVERITY.index, default=Verdict.CONSISTENT)

    @property
    def safe(self) -> bool:
        """Whether all crashes left a consistent replica."""
        return self.worst is Verdict.CONSISTENT

    @property
    def promised(self) -> str | None:
        """The settings for which the manual promises that these crashes do no harm (MariaDB: to
        the data); None without a promise."""
        return self.setup.promise(self.kind)

    @property
    def broken(self) -> bool:
        """A promise was not kept."""
        is_worse = SEVERITY.index(self.worst) > SEVERITY.index(self.setup.at_worst)
        return is_worse and self.promised is not None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        names = (
            "server",
            "repository",
            "sync",
            "recovery",
            "auto_position",
            "workers",
            "engine",
            "flush_log",
            "sync_binlog",
            "log_bin",
        )
        return {
            **{name: getattr(self.setup, name) for name in names},
            "kind": str(self.kind),
            "promised": self.promised,
            "verdict": str(self.worst),
            "same_writes_as": None if self.same_as is None else {"sync": self.same_as.sync},
            "points": self.points,
            "disks": self.disks,
            "counts": {
                str(verdict): self.counts[verdict] for verdict in SEVERITY if self.counts[verdict]
            },
            "counter_examples": {
                str(verdict): {"crash": trial.place, "detail": trial.judgement.detail}
                for verdict, trial in self.first.items()
                if verdict is not Verdict.CONSISTENT
            },
        }


def reproducer(setup: Setup, spec: WorkloadSpec, place: str) -> str:
    """The command that shows one crash again."""
    return shlex.join(
        ["binlag", "crashtest", *spec.arguments, *setup.arguments(), "--crash", place]
    )


def families(all_setups: Iterable[Setup]) -> list[list[Setup]]:
    """The setups that differ in nothing but sync_*, together; those first that take longest, so
    that no processor waits for the last."""
    found: dict[Setup, list[Setup]] = {}
    for setup in all_setups:
        found.setdefault(replace(setup, sync=0), []).append(setup)
    return sorted(found.values(), key=lambda family: _weight(family[0]), reverse=True)


def _weight(setup: Setup) -> int:
    """How long it takes beside others: without recovery relay logs are read, workers and tables
    without transactions write more."""
    return 4 * (not setup.recovery) + 2 * bool(setup.workers) + (setup.engine != INNODB)


def try_family(
    family: Sequence[Setup],
    spec: WorkloadSpec,
    kinds: Sequence[Kind],
    medium: Medium,
    coverage: Coverage,
) -> dict[Setup, list[MatrixCell]]:
    """Configurations that differ in nothing but sync_*: for each a run, all its crashes.

    These options say when a record is written and synced. A start has read all records before it
    writes the first, and no crash follows it here: what becomes of a disk is the same with each of
    them, so they share what is known. And where a run is recorded to do the very same to its disk
    as another one did, write for write and sync for sync (a log may be too short for N), it is that
    one's exploration.
    """
    workload, shared, known = spec.make(family[0]), Shared(), Recovered()
    found: dict[bytes, tuple[Setup, Exploration]] = {}
    cells = {}
    for setup in family:
        configuration = setup.configuration
        make = partial(ReplicaSystem, workload, configuration, seed=spec.seed, shared=shared)
        files = set_up(workload, configuration)
        run = trace(make(), SimulatedDisk(files))
        if run not in found:
            expected = expected_state(workload, configuration)
            try:
                result = explore(
                    make,
                    kinds=kinds,
                    coverage=coverage,
                    medium=medium,
                    files=files,
                    expected=expected,
                    recovered=known,
                )
            except RecoveryMistake as mistake:
                raise RecoveryMistake(
                    mistake.what, mistake.place, reproducer(setup, spec, mistake.place)
                ) from mistake.__cause__
            found[run] = setup, result
        cells[setup] = [_cell(setup, kind, *found[run]) for kind in kinds]
    return cells


def _cell(setup: Setup, kind: Kind, explored: Setup, result: Exploration) -> MatrixCell:
    counts = result.counts(kind)
    first = {
        verdict: trial for verdict in counts if (trial := result.first(kind, verdict)) is not None
    }
    return MatrixCell(
        setup=setup,
        kind=kind,
        points=result.points[kind],
        disks=result.disks(kind),
        counts=counts,
        first=first,
        same_as=None if explored is setup else explored,
    )


def try_one(setup: Setup, spec: WorkloadSpec, place: tuple[Any, ...], medium: Medium) -> Trial:
    """One crash again."""
    workload = spec.make(setup)
    make = lambda: ReplicaSystem(workload, setup.configuration, seed=spec.seed)  # noqa: E731
    files, expected = (
        set_up(workload, setup.configuration),
        expected_state(workload, setup.configuration),
    )
    return reproduce(make, *place, medium=medium, files=files, expected=expected)


def try_all(
    all_setups: Iterable[Setup],
    spec: WorkloadSpec,
    kinds: Sequence[Kind],
    *,
    medium: Medium,
    coverage: Coverage,
    jobs: int,
    done: Callable[[int], None] = lambda setups: None,
) -> list[MatrixCell]:
    """The whole matrix, in the order of the setups whatever finishes first. `done` gets the number
    of setups that have just been finished.

    Raises UsageError for less than one process.
    """
    todo = list(all_setups)
    if jobs < 1:
        raise UsageError(f"{jobs} processes", code=Code.OPTION_VALUE, hint="give at least one")
    found = dict(_run(families(todo), spec, kinds, medium, coverage, jobs, done))
    return [cell for setup in todo for cell in found[setup]]


def _run(
    todo: list[list[Setup]],
    spec: WorkloadSpec,
    kinds: Sequence[Kind],
    medium: Medium,
    coverage: Coverage,
    jobs: int,
    done: Callable[[int], None],
) -> Iterator[tuple[Setup, list[MatrixCell]]]:
    if jobs == 1 or len(todo) == 1:
        for family in todo:
            yield from try_family(family, spec, kinds, medium, coverage).items()
            done(len(family))
        return
    with Workers(jobs) as pool:
        waiting = {
            pool.submit(try_family, family, spec, kinds, medium, coverage): family
            for family in todo
        }
        while waiting:
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                yield from future.result().items()
                done(len(waiting.pop(future)))
