"""Gaps that parallel workers left behind: which of the groups after the low-water mark were
executed.

mts_recovery_groups of sql/rpl_slave.cc (5.6, 5.7) and rpl_replica.cc (8.0 to 9.7). The applier's
record is the low-water mark. Each worker whose last group lies behind it is looked up in the relay
logs: its place there tells how many groups after the mark it is, and its bitmap, which counts from
a checkpoint of its own, how these fared. Behind an event that cannot be read the search goes on in
the next file: the applier will meet the damage (9.7.4). The server compares the source's positions
with the file name of the mark only, so that a worker that was already in the next of the source's
logs is not found, and the start fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from applier.binlog.boundaries import ends_group, starts_group
from applier.binlog.header import GTID_TYPES, EventType
from applier.errors import InputError, ReplicationError
from applier.replica.relay.relay_event import RelayEvent
from applier.replica.relay.relay_index import RelayLogIndex
from applier.replica.relay.relay_reader import START_AGAIN, RelayLogReader
from checkpoints import bitmap
from checkpoints.disk import Disk
from checkpoints.info import RelayLogInfo, WorkerInfo

_NOT_COUNTED = frozenset({EventType.ROTATE, EventType.FORMAT_DESCRIPTION, EventType.PREVIOUS_GTIDS})
NOT_HELD = 1201
"""ER_CONNECTION_METADATA: START REPLICA says this of relay logs that do not hold the gaps (5.7.29,
9.7.4)."""


def find_gaps(
    disk: Disk, index: RelayLogIndex, info: RelayLogInfo, workers: Sequence[WorkerInfo]
) -> list[bool]:
    """For each group after `info`, up to the last one any worker executed, whether it was. Empty:
    there are no gaps.

    Raises ReplicationError 1201 when the relay logs do not hold them, and where a worker has no
    record (Slave_worker::rli_init_info; 5.7.29).
    """
    if len(workers) < info.number_of_workers:
        raise ReplicationError(
            NOT_HELD,
            f"Error reading replica worker configuration: {len(workers)} of"
            f" {info.number_of_workers} workers have a record",
            hint=START_AGAIN,
        )
    mark = (info.source_log_name, info.source_log_pos)
    executed: dict[int, bool] = {}
    count = 0
    for worker in workers:
        if (worker.source_log_name, worker.source_log_pos) <= mark:
            continue
        distance = _distance(disk, index, info, worker)
        count = max(count, distance)
        first = worker.checkpoint_seqno + 1 - distance
        for group in range(distance if first >= 0 else 0):
            if bitmap.executed(worker.checkpoint_group_bitmap, first + group):
                executed[group] = True
    return [executed.get(group, False) for group in range(count)]


def _distance(disk: Disk, index: RelayLogIndex, info: RelayLogInfo, worker: WorkerInfo) -> int:
    """How many groups after the mark the worker's last one is, itself included."""
    wanted = (worker.source_log_name, worker.source_log_pos)
    try:
        for number, end in enumerate(_group_ends(disk, index, info), start=1):
            if (info.source_log_name, end) == wanted:
                return number
        problem = (
            "Error looking for file after"
            f" {index.names[-1] if index.names else info.relay_log_name}"
        )
    except (InputError, ReplicationError) as error:
        problem = error.message
    raise ReplicationError(
        NOT_HELD,
        f"Failed during replica worker recovery: {problem}; worker {worker.id} executed up to"
        f" {worker.source_position}",
        file=info.relay_log_name.removeprefix("./"),
        position=info.relay_log_pos,
        hint=START_AGAIN,
    )


def _group_ends(disk: Disk, index: RelayLogIndex, info: RelayLogInfo) -> Iterable[int]:
    """The positions in the source's log where the groups after the mark end."""
    reader = RelayLogReader(disk, index)
    reader.seek(info.relay_position)
    begun = False
    for relay in _readable(reader):
        if relay.event.type in _NOT_COUNTED:
            continue
        if starts_group(relay.event):
            begun = True
        elif (ends_group(relay.event) or not begun) and relay.event.type not in GTID_TYPES:
            begun = False
            yield relay.event.log_pos


def _readable(reader: RelayLogReader) -> Iterable[RelayEvent]:
    """Of each file what comes before an event that cannot be read."""
    while True:
        with suppress(ReplicationError):
            while (relay := reader.read()) is not None:
                yield relay
        if not reader.move_on():
            return
