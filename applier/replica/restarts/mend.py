"""The statements that bring a crashed replica back, in the words of its version."""

from __future__ import annotations

import re
from collections.abc import Iterator

from applier.replica.configuration import FILE, ReplicaConfiguration
from applier.replica.records import TWO_RECORDS
from applier.replica.recovery import FORBIDDEN_BY_GAPS
from applier.replica.restarts.restart import NO_REPLICA, Moment, Restart, RestartOutcome
from checkpoints.info import RelayLogInfo
from checkpoints.position import Position

_OLD = {"5.6", "5.7", "mariadb"}
_WORDS = (
    (r"\bREPLICATION SOURCE TO\b", "MASTER TO"),
    (r"\bSOURCE_", "MASTER_"),
    (r"\bREPLICA\b", "SLAVE"),
    (r"_Source_", "_Master_"),
    (r"\breplica_", "slave_"),
)
"""What is said in another way up to 5.7 and in MariaDB."""
_OF_A_CHANNEL = re.compile(r"^((?:# )?(?:START|STOP|RESET|CHANGE)\b.*);$")
NOT_PREPARED, PREPARED_ALREADY, PURGED = 1397, 1440, 1236
NOT_ON_RECORD = (
    "# where the applier stood is not on record: find the last transaction that it executed in the"
    " source's log"
)


def statements(found: Restart) -> list[str]:
    """What a DBA types, one line each; a line that begins with # says what is done elsewhere."""
    lines = list(_lines(found))
    if found.configuration.rules.name in _OLD:
        for today, before in _WORDS:
            lines = [re.sub(today, before, line) for line in lines]
    if channel := found.configuration.channel:
        lines = [_OF_A_CHANNEL.sub(rf"\1 FOR CHANNEL '{channel}';", line) for line in lines]
    return lines


def _lines(found: Restart) -> Iterator[str]:
    error = found.error
    number = getattr(error.__cause__ or error if error is not None else None, "number", None)
    if found.outcome is RestartOutcome.CONSISTENT:
        yield "START REPLICA;"
    elif error is not None and FORBIDDEN_BY_GAPS in error.message:
        yield "# restart the server with relay_log_recovery=0"
        yield "START REPLICA UNTIL SQL_AFTER_MTS_GAPS;"
        yield "# restart the server with relay_log_recovery=1"
        yield "START REPLICA;"
    elif number == NO_REPLICA:
        yield from _name_the_source(found)
    elif number == TWO_RECORDS:
        yield (
            "# stop the server, remove of each record that is there twice the one that the options"
            " do not ask for, and start it again"
        )
        yield "START REPLICA;"
    elif number == NOT_PREPARED:
        yield from _prepare_again(found)
    elif number == PREPARED_ALREADY:
        yield (
            "# XA RECOVER lists what is prepared: roll that transaction back, it is executed again"
        )
        yield from _start_again(found)
    elif found.again and found.configuration.rules.by_domains:
        yield "STOP REPLICA;"
        yield "CHANGE REPLICATION SOURCE TO SOURCE_USE_GTID=slave_pos;"
        yield "START REPLICA;"
    elif number == PURGED and Moment.RECEIVER in found.errors:
        yield "# the source has not got what is missing: set the replica up again from a backup"
    else:
        yield from _fetch_again(found)


def _prepare_again(found: Restart) -> Iterator[str]:
    group = found.doubtful
    if group is None or group.gtid is None:
        yield (
            "# execute the XA START to XA PREPARE of the transaction again: binlag events shows"
            " them in the source's log"
        )
    else:
        yield (
            f"# mysqlbinlog --skip-gtids --include-gtids='{group.gtid.text}' {group.end.file} |"
            " mysql --init-command='SET sql_log_bin=0'"
        )
    yield from _start_again(found)


def _start_again(found: Restart) -> Iterator[str]:
    if Moment.START in found.errors:
        yield "# restart the server: it fills the gaps first"
    yield "START REPLICA;"


def _name_the_source(found: Restart) -> Iterator[str]:
    """RESET REPLICA is refused as long as there is no source."""
    stand = found.at_start.positions.applied
    place = "SOURCE_AUTO_POSITION=1"
    if not found.configuration.auto_position:
        place = "SOURCE_LOG_FILE='…', SOURCE_LOG_POS=…"
        if stand is not None and stand.source_log_name:
            place = (
                f"SOURCE_LOG_FILE='{stand.source_log_name}', SOURCE_LOG_POS={stand.source_log_pos}"
            )
        else:
            yield NOT_ON_RECORD
    yield (
        "# CHANGE REPLICATION SOURCE TO SOURCE_HOST='…', SOURCE_PORT=…, SOURCE_USER='…',"
        f" SOURCE_PASSWORD='…', {place};"
    )
    yield "START REPLICA;"


def _fetch_again(found: Restart) -> Iterator[str]:
    """The relay logs are given up; what is not executed is asked for again, from where the start
    finds the applier: its thread does not run before that."""
    configuration = found.configuration
    applied = found.at_start.positions.applied
    place = None if applied is None else applied.source_position
    if not found.is_on_record and Moment.APPLIER in found.errors:
        place = None
    change = _change(configuration, place)
    if any(found.gaps) and not configuration.auto_position:
        yield "START REPLICA UNTIL SQL_AFTER_MTS_GAPS;"
        yield (
            "# when the applier has stopped, SHOW REPLICA STATUS: Relay_Source_Log_File and"
            " Exec_Source_Log_Pos are FILE and POSITION below"
        )
        change = "CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='FILE', SOURCE_LOG_POS=POSITION;"
    if Moment.START in found.errors and configuration.rules.reset_needs_records:
        yield from _remove(configuration)
    else:
        yield "STOP REPLICA;"
        yield "RESET REPLICA;"
    if change is None:
        yield NOT_ON_RECORD
        yield "# CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='…', SOURCE_LOG_POS=…;"
    else:
        yield change
    yield "START REPLICA;"


def _remove(configuration: ReplicaConfiguration) -> Iterator[str]:
    in_file = configuration.relay_log_info_repository == FILE
    if not in_file:
        yield f"DELETE FROM mysql.{RelayLogInfo.fields.table};"
    there = f", their index and {RelayLogInfo.fields.file_name}" if in_file else " and their index"
    yield f"# stop the server, remove the relay logs{there}, and start it again"


def _change(configuration: ReplicaConfiguration, applied: Position | None) -> str | None:
    if configuration.rules.by_domains and configuration.auto_position:
        return "CHANGE REPLICATION SOURCE TO SOURCE_USE_GTID=slave_pos;"
    if configuration.auto_position:
        return "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION=1;"
    if applied is None or not applied.file:
        return None
    return (
        f"CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='{applied.file}',"
        f" SOURCE_LOG_POS={applied.offset};"
    )


__all__ = ["statements"]
