"""What a replica of MariaDB had applied when it died: gtid_slave_pos, from the rows of its table,
from what the user says, or from the replica's own binary logs.

Without MASTER_USE_GTID a connecting receiver records the GTIDs at its own place there, so that rows
alone may be ahead of the applier. They are not where their GTID is one that was received since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from applier.binlog.events import parse
from applier.binlog.gtid_events import MariadbGtidEvent
from applier.binlog.header import MAGIC, EventFlag, EventType, FormatDescription
from applier.error_codes import Code
from applier.errors import BinlagError, UsageError
from applier.replica.domain_dump import BinlogState, Log, events, state_at
from applier.replica.restarts.boundaries import ExecutedGroup
from applier.replica.source import format_of
from checkpoints.gtid import MariadbGtid, MariadbGtidSet
from checkpoints.gtid_slave_pos import TABLE, position


@dataclass(frozen=True)
class AppliedDomains:
    """`position` is None where nothing tells it. Of the domains in `certain`, everything up to it
    was executed."""

    position: MariadbGtidSet | None
    certain: frozenset[int] = frozenset()

    def has(self, group: ExecutedGroup) -> bool:
        """Whether a group that the start executes was executed before, for sure."""
        if self.position is None or group.gtid is None:
            return False
        gtid = MariadbGtid.parse(group.gtid)
        return gtid.domain in self.certain and gtid in self.position

    def rows(self) -> list[dict[str, int]]:
        """Rows of mysql.gtid_slave_pos that say it."""
        return [
            {
                "domain_id": gtid.domain,
                "sub_id": number,
                "server_id": gtid.server_id,
                "seq_no": gtid.sequence,
            }
            for number, gtid in enumerate(self.position or (), 1)
        ]


def applied_domains(
    *,
    said: MariadbGtidSet | None,
    rows: Sequence[Mapping[str, Any]] | None,
    own_logs: Mapping[str, bytes],
    relay_logs: Mapping[str, bytes],
    needed: bool,
) -> AppliedDomains:
    """`said` is what the user says, `rows` those of the table. Raises UsageError where it is
    `needed`, as with MASTER_USE_GTID, and nothing tells it."""
    if said is not None:
        return AppliedDomains(said, frozenset(gtid.domain for gtid in said))
    if rows is not None:
        found = position(rows)
        received = _received_since_connect(relay_logs)
        return AppliedDomains(found, frozenset(gtid.domain for gtid in found if gtid in received))
    own = _of_own_logs(own_logs)
    if own is not None:
        return AppliedDomains(own, frozenset(gtid.domain for gtid in own))
    if needed:
        raise UsageError(
            f"what is applied stands in mysql.{TABLE}, and none of the files tells it",
            code=Code.OPTION_MISSING,
            hint=f"give --info FILE.sql (mysqldump mysql {TABLE}), or --executed-gtids",
        )
    return AppliedDomains(None)


def _received_since_connect(relay_logs: Mapping[str, bytes]) -> set[MariadbGtid]:
    """The GTIDs behind the last rotate event with which a dump begins."""
    found: set[MariadbGtid] = set()
    for name, content in relay_logs.items():
        try:
            log = _whole(content, name)
            for event in events(log, name) if log is not None else ():
                is_first = event.flags & EventFlag.ARTIFICIAL and not event.timestamp
                if event.type == EventType.ROTATE and is_first:
                    found.clear()
                elif event.type == EventType.MARIADB_GTID and log is not None:
                    found.add(_gtid(event, log[1]))
        except BinlagError:
            continue
    return found


def _of_own_logs(own_logs: Mapping[str, bytes]) -> MariadbGtidSet | None:
    """The last transaction of each domain that another server wrote first; None without one, as
    where log_slave_updates is off."""
    if not own_logs:
        return None
    name, content = list(own_logs.items())[-1]
    try:
        log = _whole(content, name)
        state = state_at(log, name, len(content)) if log is not None else BinlogState()
    except BinlagError:
        return None
    own_id = int.from_bytes(content[len(MAGIC) + 5 : len(MAGIC) + 9], "little")
    others = [gtid for gtid in state.entries() if gtid.server_id != own_id]
    return MariadbGtidSet(others) if others else None


def _whole(content: bytes, name: str) -> Log | None:
    """None where the head of the log is not there."""
    if not content.startswith(MAGIC):
        return None
    return content, format_of(content, name)


def _gtid(event: Any, description: FormatDescription) -> MariadbGtid:
    found = parse(event, description)
    assert isinstance(found, MariadbGtidEvent)
    return found.gtid
