"""What a replica of MariaDB does at START REPLICA and where it connects: with MASTER_USE_GTID the
relay logs go, and the source is asked for what is behind gtid_slave_pos."""

from __future__ import annotations

from collections.abc import Iterator

from applier.replica.applier import Applier
from applier.replica.relay.receiver import Receiver
from applier.replica.relay.relay_log import RelayLogWriter
from applier.replica.relay.relay_reader import FIRST_EVENT
from applier.replica.source import Source
from checkpoints.gtid_slave_pos import GtidSlavePos
from checkpoints.position import Position


def begin_anew(
    receiver: Receiver, applier: Applier, relay_log: RelayLogWriter, slave_pos: GtidSlavePos
) -> None:
    """START REPLICA of both threads. Nothing of it is written into the records
    (start_slave_threads)."""
    source = applier.info.source_position
    source = Position(source.file, max(FIRST_EVENT, source.offset))
    relay_log.begin_anew()
    receiver.info = receiver.info.at(source)
    receiver.domains = slave_pos.position
    applier.info = applier.info.at(Position(relay_log.name, FIRST_EVENT), source)
    applier.start()


def dump_of(source: Source, receiver: Receiver, slave_pos: GtidSlavePos) -> Iterator[bytes]:
    """The dump that the receiver asks for.

    Without MASTER_USE_GTID it asks for the GTIDs at its place, too, and records them at once,
    wherever the applier is (get_master_version_and_clock).
    """
    info = receiver.info
    if info.asks_by_gtid:
        return iter(source.dump_domains(receiver.domains))
    for gtid in source.domains_at(info.source_log_name, info.source_log_pos):
        slave_pos.record(gtid)
    return iter(source.dump(info.source_log_name, info.source_log_pos))
