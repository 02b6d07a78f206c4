"""Rows of mysql.slave_relay_log_info, slave_master_info and slave_worker_info from a dump, and what
it says of executed GTIDs; of MariaDB, the rows of mysql.gtid_slave_pos.

A dump of these tables is what a DBA can take of a server that does not replicate any more:
mysqldump mysql slave_relay_log_info … The tables' definitions may be left out of it (mysqldump -t).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from applier.error_codes import Code
from applier.errors import InputError, UsageError, cannot_read
from applier.schema_source import load_schema
from checkpoints.fields import column_of
from checkpoints.gtid import GtidError, GtidSet
from checkpoints.gtid_slave_pos import COLUMNS
from checkpoints.gtid_slave_pos import TABLE as SLAVE_POS
from checkpoints.info import RelayLogInfo, SourceInfo, WorkerInfo
from checkpoints.info_rows import columns
from checkpoints.kinds import BITMAP, BOOLEAN, SECONDS, SIGNED, UNSIGNED, UNSIGNED_LONG, FieldKind
from lookup.versions import MARIADB

RECORDS = {record.fields.table: record for record in (RelayLogInfo, SourceInfo, WorkerInfo)}
EXECUTED = "gtid_executed"
CHANNEL_COLUMN = "Channel_name"
BITMAP_COLUMN = "Checkpoint_group_bitmap"
_DATABASE = "info"
_PLACE = re.compile(
    r"^\s*(?:/\*!\d*\s*)?(?:USE|CREATE\s+DATABASE|DROP\s+DATABASE)\b[^;]*;",
    re.IGNORECASE | re.MULTILINE,
)
_QUALIFIED = re.compile(
    r"`?mysql`?\s*\.\s*(`?(?:slave_(?:relay_log|master|worker)_info|gtid_(?:executed|slave_pos))\b)",
    re.IGNORECASE,
)
_DEFINED = r"CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?`?{}`?"
_PURGED = re.compile(r"GTID_PURGED\s*=\s*(?:/\*.*?\*/)?\s*'([^']*)'", re.IGNORECASE | re.DOTALL)
_TYPES: dict[FieldKind, str] = dict.fromkeys(
    (UNSIGNED, UNSIGNED_LONG, SIGNED, BOOLEAN), "BIGINT"
) | {SECONDS: "DOUBLE", BITMAP: "LONGBLOB"}
"""Kind of a field -> the type of a column that takes it; all others are texts."""


@dataclass(frozen=True)
class InfoDump:
    """Table -> its rows, column -> value as a client sees it; and GTID_PURGED of the dump, or what
    mysql.gtid_executed holds."""

    rows: dict[str, list[dict[str, Any]]]
    executed: GtidSet | None

    @property
    def channels(self) -> list[str]:
        """Those that have a record; "" is the default one, as before 5.7."""
        return sorted(
            {
                str(row.get(CHANNEL_COLUMN, ""))
                for table in (SourceInfo.fields.table, RelayLogInfo.fields.table)
                for row in self.rows.get(table, ())
            }
        )

    def of_channel(self, channel: str) -> InfoDump:
        """Without the records of other channels."""
        return InfoDump(
            {
                table: [row for row in found if row.get(CHANNEL_COLUMN, channel) == channel]
                for table, found in self.rows.items()
            },
            self.executed,
        )


def chosen_channel(dump: InfoDump | None, asked: str | None) -> str:
    """The one that is asked for, or the only one. Raises UsageError where there are several and
    none is chosen, or not that one."""
    there = dump.channels if dump is not None else []
    if asked is None and len(there) < 2:
        return there[0] if there else ""
    names = ", ".join(name or '"" (the default channel)' for name in there) or "none"
    if asked is None:
        raise UsageError(
            f"the records are those of several channels: {names}",
            code=Code.OPTION_MISSING,
            hint="choose one with --channel",
        )
    found = next((name for name in there if name.lower() == asked.lower()), None)
    if found is None and asked:
        raise UsageError(
            f"--channel {asked}: there is no record of this channel",
            code=Code.OPTION_VALUE,
            hint=f"channels with a record in --info: {names}",
        )
    return found or ""


def read_info_dump(path: str, version: str) -> InfoDump:
    """Raises InputError for what is no dump, and where none of the tables is in it."""
    try:
        text = Path(path).read_text("utf-8", "surrogateescape")
    except OSError as error:
        raise cannot_read(error, path) from None
    sql = _QUALIFIED.sub(r"\1", _PLACE.sub("", text))
    possible = (SLAVE_POS,) if column_of(version) == MARIADB else (*RECORDS, EXECUTED)
    named = [table for table in possible if re.search(rf"\b{table}\b", sql)]
    if not named:
        raise _without_rows(path, possible)
    undefined = [
        table for table in named if not re.search(_DEFINED.format(table), sql, re.IGNORECASE)
    ]
    sql = "".join(_definition(table, version) for table in undefined) + sql
    try:
        tables = load_schema(sql, server=version, default_database=_DATABASE)
    except InputError as error:
        error.file = path
        raise
    found = {table.definition.name.lower(): table for table in tables}
    rows = {
        name: [
            _row([column.name for column in found[name].definition.columns], row)
            for row in found[name].rows()
        ]
        for name in named
        if name in found
    }
    if not rows:
        raise _without_rows(path, possible)
    purged = ",".join(_PURGED.findall(text)) or _spans(rows.pop(EXECUTED, ()))
    try:
        return InfoDump(rows, GtidSet(purged.replace("\n", "")) if purged else None)
    except GtidError as error:
        raise InputError(f"GTID_PURGED: {error}", code=Code.GTID_SET, file=path) from None


def _without_rows(path: str, possible: tuple[str, ...]) -> InputError:
    tables = [table for table in possible if table != EXECUTED]
    return InputError(
        f"no row of mysql.{', '.join(tables)} is in it",
        code=Code.NO_REPLICA,
        file=path,
        hint=f"dump: mysqldump mysql {' '.join(tables)}",
    )


def _definition(table: str, version: str) -> str:
    """A table that takes the rows of a dump without definitions, column by column."""
    if table == EXECUTED:
        return (
            f"CREATE TABLE `{EXECUTED}` (source_uuid CHAR(36), interval_start BIGINT, interval_end"
            " BIGINT);\n"
        )
    if table == SLAVE_POS:
        return f"CREATE TABLE `{table}` ({', '.join(f'{name} BIGINT' for name in COLUMNS)});\n"
    record = RECORDS[table]
    types = {
        field.column: _TYPES.get(field.kind, "LONGTEXT")
        for field in record.fields.of(column_of(version))
    }
    parts = ", ".join(
        f"`{name}` {types.get(name, 'BIGINT')} NULL" for name in columns(record, version)
    )
    return f"CREATE TABLE `{table}` ({parts});\n"


def _row(names: Iterable[str], values: Iterable[Any]) -> dict[str, Any]:
    """Texts as texts; the workers' bitmap stays bytes."""
    row = dict(zip(names, values, strict=True))
    return {
        name: (
            value.decode("utf-8", "surrogateescape")
            if isinstance(value, bytes) and name != BITMAP_COLUMN
            else value
        )
        for name, value in row.items()
    }


def _spans(rows: Iterable[dict[str, Any]]) -> str:
    return ",".join(
        f"{row['source_uuid']}:{row['interval_start']}-{row['interval_end']}" for row in rows
    )
