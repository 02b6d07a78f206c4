"""How a receiver is to receive, what came so far, and whom it tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from applier.receive.protocol import SourceServer
from applier.status.failure import NO_FAILURE, ThreadFailure
from checkpoints.position import Position


@dataclass(frozen=True, slots=True)
class ReceiveOptions:
    """How to receive. Times in seconds. The receiver gives up after `retries` connections that
    failed.

    `auto_position`: by GTIDs (SOURCE_AUTO_POSITION). `heartbeat_seconds`: SOURCE_HEARTBEAT_PERIOD;
    the connection counts as lost after two. `pause_seconds_max`: the longest pause between two
    tries; pauses grow.
    """

    auto_position: bool = False
    to_end: bool = False
    """End where the source's log ends, instead of waiting for more."""
    heartbeat_seconds: float = 30.0
    pause_seconds_max: float = 60.0
    retries: int = 86400


@dataclass
class Received:
    """What came so far. `bytes` are those of the events as they stand in the source's log."""

    position: Position
    """Behind the last event, in the source's log."""
    events: int = 0
    bytes: int = 0
    heartbeats: int = 0
    connections: int = 0
    source: SourceServer | None = None
    waiting: bool = False
    """There is nothing more for now."""
    connected: bool = False
    failure: ThreadFailure = NO_FAILURE
    """Why the last connection ended that was not asked to."""


@dataclass
class ReceiveWatch:
    """Callbacks: `on_events` about ten times a second while events come, `on_note` when something
    happens to the connection."""

    on_events: Callable[[Received], None] = lambda received: None
    on_note: Callable[[str], None] = lambda text: None
