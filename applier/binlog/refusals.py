"""What every way of applying a log refuses in the same words: into memory, into a server, as events
or as statements."""

from __future__ import annotations

from applier.binlog.events import Incident, parse
from applier.binlog.header import Event, EventType, FormatDescription, an_event
from applier.error_codes import Code
from applier.errors import InputError, ReplicationError

OLD_LOAD_TYPES = frozenset(
    {EventType.LOAD, EventType.NEW_LOAD, EventType.CREATE_FILE, EventType.EXEC_LOAD}
)
"""LOAD DATA as MySQL before 5.0.3 logged it; since then it is BEGIN_LOAD_QUERY, APPEND_BLOCK and
EXECUTE_LOAD_QUERY."""


def unknown_table(event: Event, table_id: int) -> InputError:
    """Rows without a table map before them: whose they are cannot be known."""
    return InputError(
        f"{an_event(event.name)} speaks of table id {table_id}, which no table map before it names",
        code=Code.NO_TABLE_MAP,
        file=event.file,
        position=event.position,
        hint="start at the beginning of a transaction (binlag events lists them), not inside one",
    )


def no_loaded_file(event: Event, file_id: int) -> InputError:
    """A LOAD DATA whose file, which comes in pieces before it, is not there."""
    return InputError(
        f"the file {file_id} of a LOAD DATA is not in the log",
        code=Code.NO_LOADED_FILE,
        file=event.file,
        position=event.position,
    )


def lost_events(event: Event, fde: FormatDescription) -> ReplicationError:
    """An INCIDENT event: ER_REPLICA_INCIDENT (1590), as `Incident_log_event::do_apply_event` stops
    (sql/log_event.cc 5.6 to 9.7)."""
    incident: Incident = parse(event, fde)
    return ReplicationError(
        1590,
        f"The incident {incident.name} occurred on the source. Message:"
        f" {incident.message or '<none>'}",
        file=event.file,
        position=event.position,
        hint="the source lost events here: start again from a fresh dump",
    )


def old_load(event: Event) -> ReplicationError:
    """One of OLD_LOAD_TYPES: ER_NOT_SUPPORTED_YET (1235)."""
    return ReplicationError(
        1235,
        f"{an_event(event.name)} (LOAD DATA of MySQL 4.x and 5.0) is not supported",
        file=event.file,
        position=event.position,
        hint=(
            "bring a server of that age up to here, and start behind this event with"
            " --start-position"
        ),
    )
