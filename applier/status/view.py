"""What is known about a replica at one moment: the input of SHOW REPLICA STATUS and of the
performance_schema tables.

None is unknown, and shown as NULL; what the server shows for "nothing yet" is a value of its own
("" or 0000-00-00).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from applier.status.failure import NO_FAILURE, ThreadFailure
from checkpoints.info import RelayLogInfo, SourceInfo, WorkerInfo

ON, OFF, CONNECTING = "ON", "OFF", "CONNECTING"
ANONYMOUS = "ANONYMOUS"


@dataclass(frozen=True, slots=True)
class Monitored:
    """One transaction as Gtid_monitoring_info (sql/rpl_gtid_misc.cc) has it. Times in seconds since
    1970, None: not set."""

    gtid: str = ""
    original_commit: float | None = None
    immediate_commit: float | None = None
    start: float | None = None
    end: float | None = None
    retries: int = 0
    transient: ThreadFailure = NO_FAILURE


NOTHING = Monitored()


@dataclass(frozen=True, slots=True)
class Thread:
    """Receiver, coordinator (or the single applier) or a worker. `last` and `current` are None
    where they are not recorded."""

    state: str | None = None
    stage: str | None = None
    """What the process list says it does."""
    failure: ThreadFailure | None = None
    last: Monitored | None = None
    current: Monitored | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaView:
    """One channel. `version` is a server version as on the command line."""

    version: str
    channel: str = ""
    source: SourceInfo | None = None
    relay: RelayLogInfo | None = None
    worker_infos: tuple[WorkerInfo, ...] = ()
    receiver: Thread = field(default_factory=Thread)
    applier: Thread = field(default_factory=Thread)
    workers: tuple[Thread, ...] = ()
    """Empty without workers."""
    source_file: str | None = None
    """Where these are not in a record."""
    read_position: int | None = None
    executed_file: str | None = None
    executed_position: int | None = None
    relay_log_bytes: int | None = None
    source_server_id: int | None = None
    info_repository: str | None = None
    """The text of Source_Info_File."""
    retrieved: str | None = None
    executed: str | None = None
    seconds_behind: int | None = None
    delay: int | None = None
    remaining_delay: int | None = None
