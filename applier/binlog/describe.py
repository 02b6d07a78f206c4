"""One line about an event, in the words of the Info column of SHOW BINLOG EVENTS.

`pack_info` of each event class in sql/log_event.cc (MySQL 9.7, MariaDB 10.11). Where a server says
nothing, what identifies the event is said.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from applier.binlog import events as log
from applier.binlog.charsets import charset_of_collation, collation_name
from applier.binlog.gtid_events import Gtid, MariadbGtidEvent
from applier.binlog.header import ROWS_TYPES, Event, EventFlag, EventType, FormatDescription
from applier.binlog.payload import UNCOMPRESSED
from applier.binlog.rows import read_rows
from applier.binlog.table_map import TableMap, read_table_map

ROWS_FLAGS = {
    0x01: "STMT_END_F",
    0x02: "NO_FOREIGN_KEY_CHECKS_F",
    0x04: "RELAXED_UNIQUE_CHECKS_F",
    0x08: "COMPLETE_ROWS_F",
    0x10: "USE_SQL_FOREIGN_KEY_F",
}
INTVAR_NAMES = {1: "LAST_INSERT_ID", 2: "INSERT_ID"}
STRING, REAL, INTEGER, DECIMAL = 0, 1, 2, 4
"""Item_result: the type of a user variable."""


def describe(event: Event, fde: FormatDescription) -> str:
    """The Info of one event. Raises InputError, with the event's place, when the event cannot be
    read."""
    if event.type == EventType.TABLE_MAP:
        return describe_map(read_table_map(event, fde))
    if event.type in ROWS_TYPES:
        rows = read_rows(event, fde)
        flags = " ".join(name for bit, name in ROWS_FLAGS.items() if rows.flags & bit)
        return f"table_id: {rows.table_id}" + (f" flags: {flags}" if flags else "")
    return describe_parsed(event, log.parse(event, fde))


def describe_map(table_map: TableMap) -> str:
    """A table map as SHOW BINLOG EVENTS shows it."""
    return (
        f"table_id: {table_map.table_id} ({_shown(table_map.database)}.{_shown(table_map.table)})"
    )


def describe_parsed(event: Event, parsed: Any) -> str:
    """The Info of an event that was parsed already (not for table maps and rows)."""
    describer = DESCRIBERS.get(type(parsed))
    return describer(event, parsed) if describer is not None else ""


def one_line(info: str) -> str:
    """An Info without characters that a terminal cannot show."""
    return (
        info
        if info.isprintable()
        else "".join(char if char.isprintable() else _escaped(char) for char in info)
    )


def _escaped(char: str) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char) or char.encode(
        "unicode_escape", "surrogatepass"
    ).decode()


def text(raw: bytes) -> str:
    """Bytes of the log as UTF-8; what is not UTF-8 is shown as \\xNN."""
    return raw.decode("utf-8", "backslashreplace")


def _shown(name: str) -> str:
    return text(name.encode("utf-8", "surrogateescape"))


def _name(raw: bytes) -> str:
    return "`" + text(raw).replace("`", "``") + "`"


def _format(_event: Event, fde: FormatDescription) -> str:
    return f"Server ver: {fde.server_version}, Binlog ver: {fde.binlog_version}"


def _query(event: Event, query: log.Query) -> str:
    use = (
        f"use {_name(query.database)}; "
        if query.database and not event.flags & EventFlag.SUPPRESS_USE
        else ""
    )
    xid = f" /* xid={query.variables.ddl_xid} */" if query.variables.ddl_xid is not None else ""
    return f"{use}{text(query.sql)}{xid}"


def _execute_load(event: Event, load: log.ExecuteLoadQuery) -> str:
    return f"{_query(event, load.query)} ;file_id={load.file_id}"


def _gtid(_event: Event, gtid: Gtid) -> str:
    return f"SET @@SESSION.GTID_NEXT= '{gtid.text or 'ANONYMOUS'}'"


def _mariadb_gtid(_event: Event, gtid: MariadbGtidEvent) -> str:
    if gtid.flags & MariadbGtidEvent.PREPARED_XA:
        start = f"XA START {gtid.xid} "
    else:
        start = "" if gtid.is_standalone else "BEGIN "
    return f"{start}GTID {gtid.text}" + (
        f" cid={gtid.commit_id}" if gtid.commit_id is not None else ""
    )


def _xa_prepare(_event: Event, prepare: log.XaPrepare) -> str:
    return (
        f"XA COMMIT {prepare.text} ONE PHASE" if prepare.one_phase else f"XA PREPARE {prepare.text}"
    )


def _user_var(_event: Event, variable: log.UserVar) -> str:
    return f"@{_name(variable.name)}={user_value(variable)}"


def user_value(variable: log.UserVar) -> str:
    """The value of a user variable as SQL."""
    value = variable.value
    if value is None:
        return "NULL"
    if variable.type == REAL and len(value) == 8:
        from applier.binlog.types.numbers import double_text

        return double_text(struct.unpack("<d", value)[0])
    if variable.type == INTEGER and len(value) == 8:
        return str(int.from_bytes(value, "little", signed=not variable.unsigned))
    if (
        variable.type == DECIMAL
        and len(value) > 2
        and 0 < value[0] <= 65
        and value[1] <= min(value[0], 30)
    ):
        from applier.binlog.types.numbers import decimal_to_text
        from applier.binlog.wire import decimal_bytes

        if len(value) >= 2 + decimal_bytes(value[0], value[1]):
            return decimal_to_text(value[0], value[1])(value[2:])
    digits = value.hex().upper()
    literal = f"X'{digits}'" if variable.is_mariadb else f"0x{digits}"
    if not digits:
        literal = '""'
    data_type = f"/*{variable.data_type}*/" if variable.data_type else ""
    return (
        f"{data_type}_{charset_of_collation(variable.collation).name} {literal} COLLATE"
        f" {collation_name(variable.collation)}"
    )


def _block(_event: Event, block: log.LoadBlock) -> str:
    return f";file_id={block.file_id};block_len={len(block.data)}"


def _incident(_event: Event, incident: log.Incident) -> str:
    message = f": {incident.message}" if incident.message else ""
    return f"#{incident.number} ({incident.name}){message}"


def _payload(_event: Event, payload: log.Payload) -> str:
    name = "NONE" if payload.compression == UNCOMPRESSED else "ZSTD"
    return f"compression='{name}', decompressed_size={payload.uncompressed_size} bytes"


def _rows_query(event: Event, query: log.RowsQuery) -> str:
    return text(query.sql) if event.type == EventType.ANNOTATE_ROWS else f"# {text(query.sql)}"


def _gtid_list(_event: Event, gtids: log.GtidList) -> str:
    ordered = sorted(gtids.gtids, key=lambda gtid: (gtid.domain, gtid.sequence))
    return f"[{','.join(map(str, ordered))}]"


def _opaque(event: Event, _opaque: log.OpaqueEvent) -> str:
    return "# Unrecognized ignorable event" if event.flags & EventFlag.IGNORABLE else ""


DESCRIBERS: dict[type, Callable[[Event, Any], str]] = {
    FormatDescription: _format,
    log.Query: _query,
    log.ExecuteLoadQuery: _execute_load,
    Gtid: _gtid,
    MariadbGtidEvent: _mariadb_gtid,
    log.XaPrepare: _xa_prepare,
    log.UserVar: _user_var,
    log.LoadBlock: _block,
    log.Incident: _incident,
    log.Payload: _payload,
    log.RowsQuery: _rows_query,
    log.GtidList: _gtid_list,
    log.OpaqueEvent: _opaque,
    log.Xid: lambda _event, xid: f"COMMIT /* xid={xid.xid} */",
    log.Intvar: lambda _event, intvar: (
        f"{INTVAR_NAMES.get(intvar.type, 'INVALID_INT')}={intvar.value}"
    ),
    log.Rand: lambda _event, rand: f"rand_seed1={rand.seed1},rand_seed2={rand.seed2}",
    log.Rotate: lambda _event, rotate: f"{_shown(rotate.file)};pos={rotate.position}",
    log.PreviousGtids: lambda _event, previous: str(previous.gtids),
    log.DeleteFile: lambda _event, file: f";file_id={file.file_id}",
    log.Heartbeat: lambda _event, heartbeat: f"{_shown(heartbeat.file)};pos={heartbeat.position}",
    log.BinlogCheckpoint: lambda _event, checkpoint: _shown(checkpoint.file),
    log.ViewChange: lambda _event, change: f"view_id={change.view_id}",
    log.TransactionContext: lambda _event, context: (
        f"server_uuid={context.server_uuid}\tthread_id={context.thread_id}"
    ),
}
