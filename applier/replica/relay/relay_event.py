"""One event of a relay log, and what replicas that read the same relay logs again and again
remember of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from applier.binlog.boundaries import is_restart
from applier.binlog.header import Event, EventFlag, FormatDescription
from checkpoints.gtid import GtidSet
from checkpoints.position import Position


@dataclass(frozen=True, slots=True)
class RelayEvent:
    """One event and where it stands in the relay logs. `format` governs it; `format_data` is the
    event that said so."""

    event: Event
    data: bytes
    start: Position
    end: Position
    format: FormatDescription
    format_data: bytes

    @property
    def own(self) -> bool:
        """Written by the replica for the relay log's own sake."""
        return bool(self.event.flags & EventFlag.RELAY_LOG)

    @property
    def begins_run(self) -> bool:
        """The format description of a source that was started anew."""
        return is_restart(self.event, self.format)


@dataclass(frozen=True, slots=True)
class KnownRelayLogs:
    """What was read before, for replicas that read the same relay logs again and again."""

    events: dict[tuple[str, int, bytes, bytes], RelayEvent] = field(default_factory=dict)
    """File, offset, the event's bytes and those of the format description before it -> what was
    read there."""
    received: dict[tuple[bytes | None, ...], tuple[GtidSet, str]] = field(default_factory=dict)
    """The digests of all files -> the GTIDs that were received, and the last of them."""
