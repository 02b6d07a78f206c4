"""The emulated replica on what a kill left, and whether it does what the real one did."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from applier.binlog.xa import plain_xid, xid_text
from applier.errors import BinlagError
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.interleaving import Eager, InOrder, Interleaving, Shuffled
from applier.replica.replica import Replica
from applier.replica.source import BinlogFiles
from applier.replica.storage import MemoryStorage, Prepared, row_changes
from applier.tables.catalog import Tables
from applier.tables.definitions.schema import parse_create_table
from applier.tables.definitions.table_draft import SchemaRules
from checkpoints.gtid import GtidSet, MariadbGtidSet
from checkpoints.gtid_slave_pos import KEY, TABLE
from checkpoints.info_rows import key_columns
from checkpoints.simulated_disk import SimulatedDisk
from tests.checkpoints.recovery_captures import TABLES
from tests.replica.kills.pair import Left, Rows, Stopped
from tests.replica.kills.setups import MARIADB, Setup
from tests.replica.real_pairs import shown


class Youngest(Eager):
    """The youngest group that may run goes first. Implements `Interleaving`."""

    reads_ahead = True

    def next(self, runnable: int) -> int:
        return runnable - 1


ORDERS: tuple[Interleaving, ...] = (
    InOrder(),
    Eager(),
    Youngest(),
    *(Shuffled(seed) for seed in range(8)),
)
"""Of the workers' groups; the first where nothing is a matter of time."""


@dataclass
class Emulated:
    """The emulated replica's run: `start` is what it shows before a thread runs, None where it
    cannot start."""

    replica: Replica
    start: tuple[Any, ...] | None = None
    number: int = 0
    message: str = ""

    @property
    def end(self) -> tuple[str, int]:
        """Where the applier is in the source's log."""
        applied = self.replica.status.memory.applied
        return ("", 0) if applied is None else (applied.source_log_name, applied.source_log_pos)

    @property
    def contents(self) -> dict[str, Rows]:
        """Table -> its rows, without what prepared transactions have changed: nobody sees that
        yet."""
        found = {
            table.definition.full_name: Counter(tuple(row) for row in table.rows())
            for table in self.replica.tables
        }
        for changes in self.replica.storage.prepared.values():
            for change in changes:
                found[change.table][_shown(change.after or ())] -= 1
        return {name: sorted(rows.elements(), key=repr) for name, rows in found.items()}


@dataclass(frozen=True)
class Agreement:
    """What differs, by name; nothing when the two agree."""

    differences: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return not self.differences


def emulate(
    left: Left,
    setup: Setup,
    source: BinlogFiles,
    server_version: str,
    interleaving: Interleaving | None = None,
) -> Emulated:
    """Starts it, receives and applies all that there is."""
    run = Emulated(_replica(left, setup, source, server_version, interleaving or InOrder()))
    try:
        run.replica.start()
        run.start = shown(run.replica)
        _catch_up(run.replica)
    except BinlagError as error:
        run.number, run.message = getattr(error, "number", -1), str(error)
    return run


def _catch_up(replica: Replica) -> None:
    """Under relay_log_space_limit the receiver waits until the applier has purged, or can do no
    more."""
    idle = 0
    while idle < 2:
        try:
            came = replica.receive()
        finally:
            applied = replica.apply()
        idle = 0 if came or applied else idle + 1


def _replica(
    left: Left, setup: Setup, source: BinlogFiles, server_version: str, interleaving: Interleaving
) -> Replica:
    tables, prepared = _tables(left)
    executed = GtidSet() if setup.version == MARIADB else GtidSet(left.gtids)
    storage = MemoryStorage(tables, executed_gtids=executed, prepared=prepared)
    for name, rows in left.infos.items():
        for row in rows:
            key = KEY if name == TABLE else key_columns(TABLES[name], setup.version)
            storage.info.write(name, {column: row[column] for column in key}, row)
    configuration = ReplicaConfiguration(
        setup.version,
        server_version=server_version,
        relay_log_info_repository=setup.repository,
        master_info_repository=setup.source_repository,
        **dict.fromkeys(
            ("sync_relay_log", "sync_relay_log_info", "sync_master_info"), setup.sync_every
        ),
        relay_log_recovery=setup.recovery,
        relay_log_purge=setup.purges,
        relay_log_space_limit=setup.space_limit,
        gtid_mode=setup.gtids,
        auto_position=setup.auto_position,
        checkpoint_group=setup.checkpoint_group,
        log_replica_updates=setup.logs_updates,
        workers=setup.workers,
        parallel_type=setup.parallel_type if setup.version != "9.7" else None,
        preserve_commit_order=setup.commit_order,
        max_relay_log_size=setup.relay_log_bytes or 1 << 30,
    )
    return Replica(
        SimulatedDisk(left.files),
        configuration,
        source,
        storage,
        clock=int,
        interleaving=interleaving,
    )


def _tables(left: Left) -> tuple[Tables, Prepared]:
    """The tables with the rows of prepared transactions in them, and whose rows these are."""
    tables = Tables()
    for name, (statement, rows) in left.tables.items():
        table = tables.create(parse_create_table(statement, name.partition(".")[0], SchemaRules()))
        for row in rows:
            table.insert(_stored(row))
    tables.commit()
    prepared: Prepared = {}
    for xid, rows_of in left.prepared.items():
        for name, rows in rows_of.items():
            for row in rows:
                tables[name].insert(_stored(row))
        prepared[plain_xid(xid_text(1, xid.encode(), b""))] = row_changes(tables.detach())
    return tables, prepared


def _stored(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(value.encode() if isinstance(value, str) else value for value in row)


def _shown(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(value.decode() if isinstance(value, bytes) else value for value in row)


def compare(
    left: Left,
    setup: Setup,
    source: BinlogFiles,
    server_version: str,
    real_start: tuple[Any, ...],
    real: Stopped,
) -> Agreement:
    """Positions at the start, the error's number, positions, GTIDs and rows at the end.

    Which groups the other workers had executed when an error stopped one, and whether a worker or
    the thread that reads meets its error first, is a matter of time: any order will do.
    """
    differences: dict[str, Any] = {}
    for interleaving in ORDERS:
        own = emulate(left, setup, source, server_version, interleaving)
        found = _differences(
            own,
            real_start,
            real,
            lambda: emulate(left, setup, source, server_version, Eager()),
            setup,
        )
        differences = differences or found
        if not found or not (setup.workers and own.number):
            return Agreement(found)
    return Agreement(differences)


def _differences(
    own: Emulated, real_start: tuple[Any, ...], real: Stopped, most: Any, setup: Setup
) -> dict[str, Any]:
    differences: dict[str, Any] = {}
    if own.start is not None and own.start != real_start:
        differences["start"] = [
            (mine, theirs) for mine, theirs in zip_longest(own.start, real_start) if mine != theirs
        ]
    if own.number != real.number:
        differences["error"] = (own.number, own.message[:300], real.number, real.message[:300])
    if own.start is not None and not differences:
        differences |= _ends(own, real, most, setup)
    return differences


def _ends(own: Emulated, real: Stopped, most: Any, setup: Setup) -> dict[str, Any]:
    """Where workers are stopped by a relay log that cannot be read, any place between the least and
    the most is right."""
    place = real.status["Relay_Master_Log_File"], real.status["Exec_Master_Log_Pos"]
    if own.end != place and own.number and setup.workers and own.end <= place <= most().end:
        return {}
    found: dict[str, Any] = {}
    if own.end != place:
        found["end"] = own.end, place
    executed = str(own.replica.status.executed_gtids)
    if setup.version == MARIADB and executed != str(MariadbGtidSet(real.gtids)):
        found["gtids"] = executed, real.gtids
    if setup.gtids and executed != str(GtidSet(real.gtids)):
        found["gtids"] = executed, real.gtids
    mine = own.contents
    rows = {name: (len(mine.get(name, ())),
                   len(real.contents.get(name, ()))) for name in sorted(mine | real.contents)
            if mine.get(name) != real.contents.get(name)}  # fmt: skip
    return found | ({"rows": rows} if rows else {})
