"""The tables of info records on a MySQL server, in a database of our own, never in the server's
`mysql`.

They have the names and columns of the server's (slave_relay_log_info and so on,
`checkpoints.fields`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import sqlalchemy as sql
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateTable

from checkpoints.fields import Field, Fields
from checkpoints.info_rows import COUNT_COLUMN, columns, key_columns
from checkpoints.kinds import (
    BITMAP,
    BOOLEAN,
    NULLABLE_TEXT,
    SECONDS,
    SIGNED,
    UNSIGNED,
    UNSIGNED_LONG,
    FieldKind,
)

SCHEMA = "binlag"
_KEY_TYPES: dict[str, Callable[[], Any]] = {
    "Channel_name": lambda: mysql.VARCHAR(64, charset="utf8", collation="utf8_bin"),
    "Host": lambda: mysql.VARCHAR(255, charset="ascii"),
}
_TYPES: dict[FieldKind, Callable[[], Any]] = {
    UNSIGNED: lambda: mysql.INTEGER(unsigned=True),
    UNSIGNED_LONG: lambda: mysql.BIGINT(unsigned=True),
    SIGNED: mysql.INTEGER,
    BOOLEAN: lambda: mysql.TINYINT(1),
    SECONDS: lambda: mysql.DOUBLE(asdecimal=False),
    BITMAP: mysql.LONGBLOB,
}
"""Kind of a field -> type of its column; all others are texts."""
_OWN_TYPES: dict[str, Callable[[], Any]] = {
    "binlag_gtids": lambda: mysql.LONGTEXT(charset="ascii"),
    "binlag_transactions": lambda: mysql.BIGINT(unsigned=True),
    "binlag_state": lambda: mysql.LONGTEXT(charset="utf8"),
}
"""What a replay keeps behind the server's columns, because a server keeps it elsewhere
(gtid_executed) or not at all."""


def definition(record: type, version: str, own: Iterable[str] = ()) -> str:
    """The statement that makes a record's table in InnoDB when it is not there, with columns of our
    own behind the server's."""
    fields: Fields = record.fields  # type: ignore[attr-defined]
    by_column = {field.column: field for field in fields.fields}
    keys = key_columns(record, version)
    made = [
        _column(name, by_column.get(name), is_key=name in keys) for name in columns(record, version)
    ]
    made += [sql.Column(name, _OWN_TYPES[name](), nullable=False) for name in own]
    table = sql.Table(
        fields.table,
        sql.MetaData(schema=SCHEMA),
        *made,
        mysql_engine="InnoDB",
        mysql_charset="utf8",
    )
    return str(CreateTable(table, if_not_exists=True).compile(dialect=mysql.dialect())).strip()


def _column(name: str, field: Field | None, *, is_key: bool) -> sql.Column[Any]:
    if field is None:
        assert name == COUNT_COLUMN
        return sql.Column(name, mysql.INTEGER(unsigned=True), nullable=False)
    kind = _KEY_TYPES.get(name) if is_key else None
    made = (kind or _TYPES.get(field.kind, mysql.TEXT))()
    return sql.Column(
        name,
        made,
        primary_key=is_key,
        nullable=not is_key and field.kind is NULLABLE_TEXT,
        autoincrement=False,
    )
