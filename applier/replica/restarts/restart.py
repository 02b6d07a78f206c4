"""What a replica does at its next start with the files that a crash left: the emulated one is
started on them, in memory.

Without tables the groups are followed and not executed: positions, GTIDs and errors of logs and
records are exact, errors of rows are not looked for. With tables, as they were when the server
died, these are found, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from applier.binlog.transactions import TransactionKind
from applier.binlog.xa import plain_xid
from applier.errors import BinlagError, ReplicationError
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.execute import Executor
from applier.replica.interleaving import Eager, InOrder, Interleaving
from applier.replica.relay.relay_reader import FIRST_EVENT
from applier.replica.replica import Replica
from applier.replica.replica_status import ReplicaPositions
from applier.replica.restarts.applied_domains import AppliedDomains, applied_domains
from applier.replica.restarts.boundaries import ExecutedGroup, Followed
from applier.replica.restarts.executed import (
    LoggedGroup,
    executed_gtids,
    gtids_of,
    logged_groups,
    prepared_by,
)
from applier.replica.restarts.info_dump import RECORDS
from applier.replica.restarts.remains import Remains
from applier.replica.source import BinlogFiles
from applier.replica.storage import MemoryStorage, Prepared
from applier.tables.catalog import Tables
from checkpoints.gtid import AnyGtidSet, GtidSet, MariadbGtidSet
from checkpoints.gtid_slave_pos import KEY, TABLE
from checkpoints.info import RelayLogInfo, SourceInfo
from checkpoints.info_rows import key_columns
from checkpoints.position import Position
from checkpoints.simulated_disk import SimulatedDisk

NO_REPLICA = 1200
"""ER_BAD_REPLICA: START REPLICA without a record of the receiver."""
NOT_CONFIGURED = (
    "The server is not configured as replica; fix in config file or with CHANGE REPLICATION SOURCE"
    " TO"
)
NAME_THE_SOURCE = "name the source and the position with CHANGE REPLICATION SOURCE TO"


class RestartOutcome(StrEnum):
    """In one word. Values are those of the crash matrix, and `stops`."""

    CONSISTENT = "consistent"
    REEXECUTES = "re-executes"
    LOSES = "loses"
    STOPS = "stops"
    CANNOT_START = "cannot start"


class Moment(StrEnum):
    """When an error comes."""

    START = "start"
    RECEIVER = "receiver"
    APPLIER = "applier"


@dataclass(frozen=True, slots=True)
class LogStretch:
    """A part of one of the source's logs; `gtid` of the group, where it is one and has one."""

    source_log: str
    start: int
    end: int
    gtid: str | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """Where the replica stands at a moment, and the GTIDs that it shows."""

    positions: ReplicaPositions
    retrieved: AnyGtidSet
    executed: AnyGtidSet


@dataclass(frozen=True)
class Restart:
    """What the next start does. `at_start` is before a thread runs, `at_end` when both have stopped
    or there is nothing more.

    `at_most` is how far workers may be when a relay log that cannot be read stops them; None where
    only one end is possible.
    """

    configuration: ReplicaConfiguration
    at_start: Seen
    at_end: Seen
    at_most: RelayLogInfo | None
    errors: dict[Moment, BinlagError]
    gaps: tuple[bool, ...]
    prepared: tuple[str, ...]
    """XA transactions that are prepared before the start."""
    doubtful: LoggedGroup | None
    """The XA PREPARE that is taken as lost, since it was the last thing executed."""
    again: tuple[LogStretch, ...]
    lost: tuple[LogStretch, ...]
    is_on_record: bool = True
    """Whether the applier's record names a place in the source's log."""

    @property
    def outcome(self) -> RestartOutcome:
        """The worst of what this start does."""
        if Moment.START in self.errors:
            return RestartOutcome.CANNOT_START
        if self.lost:
            return RestartOutcome.LOSES
        if self.again:
            return RestartOutcome.REEXECUTES
        return RestartOutcome.STOPS if self.errors else RestartOutcome.CONSISTENT

    @property
    def error(self) -> BinlagError | None:
        """The one that comes first in the order of the moments; the applier's before the
        receiver's."""
        return next(
            (
                self.errors[moment]
                for moment in (Moment.START, Moment.APPLIER, Moment.RECEIVER)
                if moment in self.errors
            ),
            None,
        )


@dataclass(frozen=True)
class Data:
    """What was in the server's tables when it died. None: worked out from the logs, or not
    known."""

    executed: AnyGtidSet | None = None
    prepared: tuple[str, ...] | None = None
    tables: Tables | None = None


def restart(
    remains: Remains, configuration: ReplicaConfiguration, source: BinlogFiles | None, data: Data
) -> Restart:
    """Starts the emulated replica on the files and lets it run as far as it goes. Nothing is
    written outside of memory."""
    history = _History(remains, configuration, source, data)
    trial = _Trial(remains, configuration, source, history)
    followed = Followed()
    found = trial.run(InOrder(), followed)
    least = found.at_end.positions.applied
    most = None
    if (configuration.workers or 0) and Moment.APPLIER in found.errors:
        most = trial.run(Eager(), Followed()).at_end.positions.applied
    if data.tables is not None and Moment.START not in found.errors:
        rows = trial.run(InOrder(), None)
        found = replace(found, errors=rows.errors, at_end=rows.at_end)
    by_gtid = configuration.gtid_mode or configuration.using_gtid != "No"
    began = found.at_start.positions.applied
    if not by_gtid and not any(found.gaps) and began is not None and began.source_log_name:
        found = replace(
            found,
            again=tuple(_again(followed.groups, began, history.domains)),
            lost=tuple(
                _lost(followed.groups, began, found.at_end.positions.applied, history.source_groups)
            ),
        )
    return replace(found, at_most=most if most != least else None)


class _History:
    """What was executed before the crash."""

    def __init__(
        self,
        remains: Remains,
        configuration: ReplicaConfiguration,
        source: BinlogFiles | None,
        data: Data,
    ) -> None:
        self.data = data
        relay = {
            name: content
            for name, content in remains.files.items()
            if name.startswith(f"{remains.relay_log}.") and name[-1].isdigit()
        }
        self.domains = _applied_domains(remains, configuration, data, relay)
        files = source.files if source is not None else relay
        info = remains.record(RelayLogInfo, configuration.version)
        self.is_on_record = info is not None and bool(info.source_log_name)
        self.mark = (
            Position("", 0)
            if info is None
            else info.source_position
            if source is not None
            else info.relay_position
        )
        self.mark = Position(self.mark.file.removeprefix("./"), self.mark.offset)
        self._names = list(files)
        groups = list(logged_groups(files))
        self.source_groups = groups if source is not None else None
        applied = [group for group in groups if not self._is_behind_mark(group)]
        is_mysql = not configuration.rules.by_domains
        own = executed_gtids(remains.own_logs) if remains.own_logs and is_mysql else None
        known = data.executed if isinstance(data.executed, GtidSet) else own
        self.executed = (
            known
            if known is not None
            else gtids_of(applied)
            if configuration.gtid_mode
            else GtidSet()
        )
        executed = (
            [group for group in groups if group.is_in(self.executed)]
            if configuration.gtid_mode
            else applied
        )
        self.doubtful = (
            None if data.prepared is not None else self._doubtful(executed, configuration)
        )
        self.prepared: Prepared = prepared_by(
            [group for group in executed if group is not self.doubtful]
        )
        if data.prepared is not None:
            self.prepared = {plain_xid(xid): () for xid in data.prepared}

    def _is_behind_mark(self, group: LoggedGroup) -> bool:
        """Whether it ends behind the applier's position."""
        if self.mark.file not in self._names:
            return True
        return (self._names.index(group.end.file), group.end.offset) > (
            self._names.index(self.mark.file),
            self.mark.offset,
        )

    def _doubtful(
        self, executed: list[LoggedGroup], configuration: ReplicaConfiguration
    ) -> LoggedGroup | None:
        """5.7: a PREPARE that nothing followed may not be in the redo log. A position in a table
        would have followed it."""
        last = executed[-1] if executed else None
        if (
            last is None
            or last.kind is not TransactionKind.XA_PREPARE
            or configuration.rules.xa_prepare_is_durable
        ):
            return None
        in_table = configuration.relay_log_info_repository == "TABLE"
        return last if not in_table or self._is_behind_mark(last) else None


def _applied_domains(
    remains: Remains,
    configuration: ReplicaConfiguration,
    data: Data,
    relay_logs: Mapping[str, bytes],
) -> AppliedDomains:
    if not configuration.rules.by_domains:
        return AppliedDomains(None)
    return applied_domains(
        said=data.executed if isinstance(data.executed, MariadbGtidSet) else None,
        rows=remains.rows.get(TABLE),
        own_logs=remains.own_logs,
        relay_logs=relay_logs,
        needed=configuration.using_gtid != "No",
    )


class _Trial:
    """Runs on copies of the same files."""

    def __init__(
        self,
        remains: Remains,
        configuration: ReplicaConfiguration,
        source: BinlogFiles | None,
        history: _History,
    ) -> None:
        self.remains = remains
        self.configuration = configuration
        self.source = source
        self.history = history

    def run(self, interleaving: Interleaving, followed: Followed | None) -> Restart:
        """`followed` None: the rows are executed."""
        history = self.history
        tables = (
            history.data.tables.copy()
            if followed is None and history.data.tables is not None
            else Tables()
        )
        storage = MemoryStorage(tables, executed_gtids=history.executed, prepared=history.prepared)
        for row in history.domains.rows():
            storage.info.write(TABLE, {column: row[column] for column in KEY}, row)
        for table in self.remains.rows.keys() & RECORDS.keys():
            for row in self.remains.rows[table]:
                storage.info.write(
                    table,
                    {
                        column: row[column]
                        for column in key_columns(RECORDS[table], self.configuration.version)
                    },
                    row,
                )
        replica = Replica(
            SimulatedDisk(self.remains.files),
            self.configuration,
            self.source or BinlogFiles({}),
            storage,
            interleaving=interleaving,
            clock=int,
            executor_of=Executor if followed is None else followed.executor,
        )
        errors: dict[Moment, BinlagError] = {}
        gaps: tuple[bool, ...] = ()
        try:
            if not self.remains.has(SourceInfo):
                raise ReplicationError(NO_REPLICA, NOT_CONFIGURED, hint=NAME_THE_SOURCE)
            replica.start()
        except BinlagError as error:
            errors[Moment.START] = error
        at_start = self._with_records(_seen(replica))
        if not errors:
            gaps = replica.status.gaps
            if followed is not None:
                followed.source_log = lambda: (
                    replica.memory.applied.source_log_name
                    if replica.memory.applied is not None
                    else ""
                )
            self._go_on(replica, errors)
        return Restart(
            configuration=self.configuration,
            at_start=at_start,
            at_end=_seen(replica),
            at_most=None,
            errors=errors,
            gaps=gaps,
            prepared=tuple(history.prepared),
            doubtful=history.doubtful,
            again=(),
            lost=(),
            is_on_record=history.is_on_record,
        )

    def _with_records(self, seen: Seen) -> Seen:
        """What a start that failed has not taken up is what the records say, where they can be
        read. Without a record of the applier, a place is chosen when its thread begins."""
        remains, version = self.remains, self.configuration.version
        applied = (
            seen.positions.applied or remains.record(RelayLogInfo, version)
            if remains.has(RelayLogInfo)
            else None
        )
        return replace(
            seen,
            positions=ReplicaPositions(
                applied,
                seen.positions.received or remains.record(SourceInfo, version),
                seen.positions.workers,
            ),
        )

    def _go_on(self, replica: Replica, errors: dict[Moment, BinlagError]) -> None:
        if self.source is not None:
            try:
                replica.receive()
            except BinlagError as error:
                errors[Moment.RECEIVER] = error
        try:
            replica.apply()
        except BinlagError as error:
            errors[Moment.APPLIER] = error


def _seen(replica: Replica) -> Seen:
    status = replica.status
    return Seen(status.memory, status.retrieved_gtids, status.executed_gtids)


def _again(
    groups: Iterable[ExecutedGroup], began: RelayLogInfo | None, domains: AppliedDomains
) -> Iterable[LogStretch]:
    """Groups that end before the position that the start takes up, those that come twice, and those
    that gtid_slave_pos of MariaDB has."""
    seen: set[tuple[str, int, bytes]] = set()
    for group in groups:
        key = group.source_log, group.end, group.first
        is_old = (
            began is not None
            and group.source_log == began.source_log_name
            and group.end <= began.source_log_pos
        )
        if group.end and (key in seen or is_old or domains.has(group)):
            yield LogStretch(group.source_log, group.start, group.end, group.gtid)
        seen.add(key)


def _lost(
    groups: Iterable[ExecutedGroup],
    began: RelayLogInfo | None,
    ended: RelayLogInfo | None,
    known: Sequence[LoggedGroup] | None,
) -> Iterable[LogStretch]:
    """Places of the source's logs that no group filled, up to the last one of a file or where the
    applier ends: those in which the source has one.

    Where its logs are not at hand, a place at the head of a file is taken as the head.
    """
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for group in groups:
        if group.end:
            spans[group.source_log].append((group.start, group.end))
    for name, end in _passed(began, ended, known or ()):
        spans[name].append((end, end))
    for name, found in spans.items():
        ends = (
            None
            if known is None
            else [group.end.offset for group in known if group.end.file == name]
        )
        at = (
            began.source_log_pos
            if began is not None and began.source_log_name == name
            else FIRST_EVENT
        )
        for start, end in sorted(found):
            if start > at and (
                at > FIRST_EVENT if ends is None else any(at < other <= start for other in ends)
            ):
                yield LogStretch(name, at, start)
            at = max(at, end)


def _passed(
    began: RelayLogInfo | None, ended: RelayLogInfo | None, known: Sequence[LoggedGroup]
) -> Iterable[tuple[str, int]]:
    """Each of the source's logs that the applier went through, and how far."""
    last = {group.end.file: group.end.offset for group in known}
    names = list(last)
    if ended is None or not names:
        return
    if began is not None and began.source_log_name in names:
        here = names.index(began.source_log_name)
        there = names.index(ended.source_log_name) if ended.source_log_name in names else len(names)
        yield from ((name, last[name]) for name in names[here:there])
    yield ended.source_log_name, ended.source_log_pos
