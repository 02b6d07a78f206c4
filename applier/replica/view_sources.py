"""Where a view of a replica comes from: the files it left behind, an emulated replica at work, a moment of a simulation."""

from __future__ import annotations

import fcntl
from bisect import bisect_right
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from applier.error_codes import Code
from applier.errors import InputError, ReplicationError, UsageError
from applier.replica.receive_resume import find
from applier.replica.simulation import Simulation
from applier.replica.status import stopped
from applier.replica.timed import TimedTransaction
from applier.replica.view import ANONYMOUS, NO_FAILURE, NOTHING, OFF, ON, Failure, Monitored, ReplicaView, Thread
from applier.server_versions import asked_rules, remark
from checkpoints.disk import plain
from checkpoints.errors import CheckpointError
from checkpoints.info import Record, RelayLogInfo, SourceInfo, WorkerInfo
from checkpoints.info_files import parse, versions_of

if TYPE_CHECKING:
    from applier.replica.replica import Replica

R = TypeVar("R", bound=Record)
VERSION = "8.0"
"""Whose status is shown when the files do not tell: the last version with info files."""
CAUGHT_UP = {
    "5.6": "Slave has read all relay log; waiting for the slave I/O thread to update it",
    "5.7": "Slave has read all relay log; waiting for more updates",
    "mariadb": "Slave has read all relay log; waiting for more updates",
}
CAUGHT_UP_NOW = "Replica has read all relay log; waiting for more updates"
DELAYED = {"5.6": "Waiting until MASTER_DELAY seconds after master executed event"}
DELAYED |= {"5.7": DELAYED["5.6"], "mariadb": DELAYED["5.6"]}
DELAYED_NOW = "Waiting until SOURCE_DELAY seconds after source executed event"
CONNECTED = {"5.6": "Waiting for master to send event", "5.7": "Waiting for master to send event"}
CONNECTED |= {"mariadb": CONNECTED["5.6"]}
CONNECTED_NOW = "Waiting for source to send event"


# files


def view_of_folder(folder: Path, version: str | None = None) -> tuple[ReplicaView, list[str]]:
    """What info files and relay logs in a folder say, and notes on what could not be read. Nothing is written.

    `version` is the server's that wrote them; None: as the files' form tells. Raises InputError where there is no replica's file.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder", code=Code.NO_REPLICA)
    names = {record: folder / record.fields.file_name for record in (RelayLogInfo, SourceInfo)}
    notes: list[str] = []
    if version is not None:
        version = asked_rules(version).name
    else:
        version = _version_of(names)
        said = remark(version, "the info files")
        notes += [said] if said is not None else []
    relay = _record(RelayLogInfo, names[RelayLogInfo], version, notes)
    source = _record(SourceInfo, names[SourceInfo], version, notes)
    logs = _relay_logs(folder, relay)
    if relay is None and source is None and not logs and not notes:
        raise InputError(
            f"{folder} holds no replica: neither relay-log.info nor master.info nor relay logs",
            code=Code.NO_REPLICA,
            hint="name the folder of `binlag receive --dir`, or a server's data directory",
        )
    workers = [
        _record(WorkerInfo, folder / f"{WorkerInfo.fields.file_name}.{number}", version, notes)
        for number in range(1, (relay.number_of_workers if relay is not None else 0) + 1)
    ]
    retrieved, position, server_id = _received(logs, notes)
    receiver = Thread(ON) if _locked(folder / "auto.cnf") else stopped()
    view = ReplicaView(
        version=version,
        source=source,
        relay=relay,
        worker_infos=tuple(worker for worker in workers if worker is not None),
        receiver=receiver,
        applier=stopped() if relay is not None else Thread(),
        workers=tuple(stopped() for _ in workers),
        source_file=None if position is None else position[0],
        read_position=None if position is None else position[1],
        relay_log_bytes=sum(log.stat().st_size for log in logs if log.exists()) if logs else None,
        source_server_id=server_id,
        info_repository=str(names[SourceInfo]) if source is not None else None,
        retrieved=retrieved,
    )
    return view, notes


def _version_of(names: dict[type[RelayLogInfo] | type[SourceInfo], Path]) -> str:
    """The newest version that may have written all the files there are."""
    possible: list[set[str]] = []
    for record, path in names.items():
        if path.is_file():
            try:
                found = versions_of(record, path.read_bytes(), file=path.name)
            except CheckpointError:
                continue
            possible.append(set(found))
    common = set.intersection(*possible) if possible else set()
    return max(common, default=VERSION)


def _record(record: type[R], path: Path, version: str, notes: list[str]) -> R | None:
    """None where there is no such file; one that cannot be read is noted."""
    try:
        data = path.read_bytes()
        return parse(record, data, version, file=path.name).record if data else None
    except FileNotFoundError:
        return None
    except OSError as error:
        notes.append(f"{path.name}: {error.strerror}")
    except CheckpointError as error:
        notes.append(str(error))
    return None


def _relay_logs(folder: Path, relay: RelayLogInfo | None) -> list[Path]:
    """The relay logs that the index with the applier's log, or else any index of relay logs names."""
    for index in sorted(folder.glob("*.index")):
        listed = [plain(line) for line in index.read_text("utf-8", "surrogateescape").splitlines() if line]
        known = relay is not None and plain(relay.relay_log_name or ".") in listed
        if known or (relay is None and "relay" in index.name):
            return [folder / name for name in listed]
    return []


def _received(logs: list[Path], notes: list[str]) -> tuple[str | None, tuple[str, int] | None, int | None]:
    """Retrieved_Gtid_Set, the place in the source's log behind the last event, the source's server id. None: not known."""
    try:
        found = find([log for log in logs if log.exists()], by_domains=False)
    except (InputError, ReplicationError) as error:
        notes.append(str(error))
        return None, None, None
    if found is None:
        return ("" if logs else None), None, None
    progress = found.progress
    gtids = str(progress.gtids or progress.domains)
    position = (progress.file, progress.offset) if progress.file else None
    return gtids, position, progress.source_server_id or None


def _locked(path: Path) -> bool:
    """Whether a receiver of ours is at work in the folder."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


# an emulated replica


def view_of_replica(replica: Replica, *, persisted: bool = False) -> ReplicaView:
    """An emulated replica as it is in memory, or as a restart would find it.

    It is executed step by step: whether its threads run is nobody's to say (NULL) unless one has stopped with an error.
    """
    status = replica.status
    stand = status.persisted if persisted else status.memory
    configuration = replica.configuration
    applier = Thread() if status.applier_error is None else Thread(OFF, "", _failure(status.applier_error))
    source_kept = configuration.master_info_repository == "FILE"
    return ReplicaView(
        version=configuration.version,
        channel=configuration.channel,
        source=stand.received,
        relay=stand.applied,
        worker_infos=stand.workers,
        receiver=Thread() if status.receiver_error is None else Thread(OFF, "", _failure(status.receiver_error)),
        applier=applier,
        workers=tuple(Thread() for _ in range(configuration.workers or 0)),
        relay_log_bytes=replica.relay_log.total_size(),
        info_repository=SourceInfo.fields.file_name if source_kept else f"mysql.{SourceInfo.fields.table}",
        retrieved=str(status.retrieved_gtids),
        executed=str(status.executed_gtids),
    )


def _failure(error: Exception) -> Failure:
    return Failure(getattr(error, "number", 0), str(getattr(error, "message", error)))


# a simulation


def view_at(simulation: Simulation, transactions: Sequence[TimedTransaction], moment: float) -> ReplicaView:
    """A simulated replica at a moment of true time. `transactions` are those that were simulated. Times shown are the replica's.

    Raises UsageError when they are not as many.
    """
    if len(transactions) != len(simulation):
        raise UsageError(f"{len(simulation)} transactions were simulated, {len(transactions)} are given", code=Code.OPTION_VALUE)
    return _Moment(simulation, transactions, moment).view()


class _Moment:
    """One look at a simulation."""

    def __init__(self, simulation: Simulation, transactions: Sequence[TimedTransaction], moment: float) -> None:
        self.simulation = simulation
        self.transactions = transactions
        self.moment = moment
        self.configuration = simulation.configuration
        self.name = self.configuration.rules.name
        self.running = simulation.start <= moment and (simulation.stopped_at is None or moment < simulation.stopped_at)

    def view(self) -> ReplicaView:
        simulation, configuration = self.simulation, self.configuration
        connected = self.moment >= simulation.start and (configuration.receiver_stop is None or self.moment < configuration.receiver_stop)
        arrived = bisect_right(simulation.received, self.moment)
        shown = self._shown()
        source_end, executed_end = self._end_of(arrived), self._end_of(shown)
        remaining = simulation.naps.remaining(self.moment, self._replica_time(self.moment)) if self.running else None
        return ReplicaView(
            version=configuration.server,
            receiver=self._receiver(arrived, connected),
            applier=self._applier(remaining),
            workers=tuple(self._worker(number) for number in range(1, configuration.worker_count + 1)),
            source_file=source_end[0],
            read_position=source_end[1],
            executed_file=executed_end[0],
            executed_position=executed_end[1],
            source_server_id=self.transactions[arrived - 1].server_id if arrived else None,
            seconds_behind=simulation.seconds_behind(self.moment),
            delay=configuration.delay_seconds,
            remaining_delay=remaining,
        )

    def _replica_time(self, moment: float) -> float:
        return moment + self.configuration.replica_offset.at(moment)

    def _shown(self) -> int:
        positions = self.simulation.positions
        return self.simulation.low_water_mark(self.moment) if positions is None else positions.at(self.moment)

    def _end_of(self, count: int) -> tuple[str | None, int | None]:
        """Where the first `count` transactions end in the source's log."""
        if not count:
            return None, None
        last = self.transactions[count - 1]
        return (last.file, last.end) if last.file else (None, None)

    def _receiver(self, arrived: int, connected: bool) -> Thread:
        simulation = self.simulation
        begun = arrived < len(simulation) and simulation.arrivals[arrived] <= self.moment
        last = self._monitored(arrived - 1, simulation.arrivals, simulation.received) if arrived else NOTHING
        current = self._monitored(arrived, simulation.arrivals, None) if begun else NOTHING
        stage = CONNECTED.get(self.name, CONNECTED_NOW) if connected else ""
        return Thread(ON if connected else OFF, stage, NO_FAILURE, last, current)

    def _applier(self, remaining: int | None) -> Thread:
        """The coordinator, or the single applier, which is also its own worker."""
        simulation = self.simulation
        state = ON if self.running else OFF
        error = simulation.error
        failure = NO_FAILURE if error is None or self.running else Failure(error.number, error.message, simulation.stopped_at)
        stage: str | None = ""
        if remaining is not None:
            stage = DELAYED.get(self.name, DELAYED_NOW)
        elif self.running:
            stage = CAUGHT_UP.get(self.name, CAUGHT_UP_NOW) if simulation.same_position(self.moment) else None
        if not self.configuration.worker_count:
            return Thread(state, stage, failure, *self._applied(0))
        begun = bisect_right(simulation.buffered_from, self.moment)
        last = current = NOTHING
        if begun:
            ended = simulation.buffered_to[begun - 1] <= self.moment
            if not ended:
                current = self._monitored(begun - 1, simulation.buffered_from, None)
            before = begun - 1 if ended else begun - 2
            last = self._monitored(before, simulation.buffered_from, simulation.buffered_to) if before >= 0 else NOTHING
        return Thread(state, stage, failure, last, current)

    def _worker(self, number: int) -> Thread:
        return Thread(ON if self.running else OFF, None, NO_FAILURE, *self._applied(number))

    def _applied(self, worker: int) -> tuple[Monitored, Monitored]:
        """What a worker did last and what it is at. One that was executed before never is LAST_APPLIED."""
        simulation = self.simulation
        last = current = None
        for number, who in enumerate(simulation.workers):
            if who != worker or simulation.starts[number] > self.moment:
                continue
            if simulation.ends[number] > self.moment:
                current = number
            elif number not in simulation.skipped:
                last = number
        return (
            NOTHING if last is None else self._monitored(last, simulation.starts, simulation.ends),
            NOTHING if current is None else self._monitored(current, simulation.starts, None),
        )

    def _monitored(self, number: int, starts: Sequence[float], ends: Sequence[float] | None) -> Monitored:
        transaction = self.transactions[number]
        original = transaction.original_commit
        end = None if ends is None or ends[number] == inf else self._replica_time(ends[number])
        return Monitored(
            transaction.gtid or ANONYMOUS,
            (transaction.commit if original is None else original) if transaction.timed else None,
            transaction.commit if transaction.timed else None,
            self._replica_time(starts[number]),
            end,
            min(transaction.errors, self.configuration.retries) if ends is not None and starts is self.simulation.starts else 0,
        )
