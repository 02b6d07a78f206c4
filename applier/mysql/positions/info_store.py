"""Info records in tables of a MySQL server: in a database of our own, never in the server's
`mysql`.

The tables have the names and columns of the server's (slave_relay_log_info and so on,
`checkpoints.fields`), in InnoDB or, to see what that does, in MyISAM. A write belongs to the open
transaction, so that whoever applies through the same connection commits rows and position together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

import sqlalchemy as sql
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateTable

from applier.error_codes import Code
from applier.errors import InputError, UsageError
from checkpoints.fields import Field, Fields
from checkpoints.info import RelayLogInfo, SourceInfo, WorkerInfo
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
from checkpoints.table_store import Key, Row

SCHEMA = "binlag"
ENGINES = ("InnoDB", "MyISAM")
RECORDS = (RelayLogInfo, SourceInfo, WorkerInfo)
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


class ServerTableStore:
    """Implements checkpoints.table_store.TableStore. `version` names the columns; it need not be
    that of the server that keeps them.

    Raises UsageError for an engine or schema that cannot be, InputError when the server refuses.
    """

    def __init__(
        self,
        engine: sql.Engine,
        version: str,
        *,
        schema: str = SCHEMA,
        storage_engine: str = "InnoDB",
    ) -> None:
        if storage_engine not in ENGINES:
            raise UsageError(
                f"info tables in {storage_engine!r}",
                code=Code.OPTION_VALUE,
                hint=f"give {' or '.join(ENGINES)}",
            )
        if schema.lower() in ("mysql", "sys", "information_schema", "performance_schema"):
            raise UsageError(
                f"info tables in the server's own database {schema}",
                code=Code.OPTION_VALUE,
                hint="give a database of your own",
            )
        self._transactional = storage_engine == "InnoDB"
        metadata = sql.MetaData(schema=schema)
        self._tables = {
            record.fields.table: _table(record, version, metadata, storage_engine)
            for record in RECORDS
        }
        self._keys = {record.fields.table: key_columns(record, version) for record in RECORDS}
        try:
            with engine.begin() as connection:
                connection.execute(sql.schema.CreateSchema(schema, if_not_exists=True))
                metadata.create_all(connection)
            self._connection = engine.connect()
        except sql.exc.SQLAlchemyError as error:
            reason = f"the tables for the positions cannot be made: {error}"
            raise InputError(
                reason, code=Code.NO_PRIVILEGE, table=schema, hint="grant ALL on that database"
            ) from None

    @property
    def transactional(self) -> bool:
        return self._transactional

    def rows(self, table: str) -> list[Row]:
        own = self._tables[table]
        with self._step():
            found = (
                self._connection.execute(
                    own.select().order_by(*(own.c[name] for name in self._keys[table]))
                )
                .mappings()
                .all()
            )
        return [dict(row) for row in found]

    def write(self, table: str, key: Key, row: Row) -> None:
        with self._step():
            self._delete(table, key)
            self._connection.execute(self._tables[table].insert().values(**row))

    def delete(self, table: str, key: Key) -> None:
        with self._step():
            self._delete(table, key)

    def begin(self) -> None:
        """Opens a transaction on the connection."""
        self._connection.begin()

    def commit(self) -> None:
        """What was written since `begin` stays."""
        self._connection.commit()

    def rollback(self) -> None:
        """What was written since `begin` is taken back, in tables that can."""
        self._connection.rollback()

    def close(self) -> None:
        """Ends the connection; what was not committed is lost."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _step(self) -> Any:
        """A part of the open transaction; without one, a transaction of its own."""
        return (
            self._connection.begin_nested()
            if self._connection.in_transaction()
            else self._connection.begin()
        )

    def _delete(self, table: str, key: Key) -> None:
        own = self._tables[table]
        self._connection.execute(
            own.delete().where(*(own.c[name] == value for name, value in key.items()))
        )


def definition(record: type, version: str, own: Iterable[str] = (), *, schema: str = SCHEMA) -> str:
    """The statement that makes a record's table in InnoDB when it is not there, with columns of our
    own behind the server's."""
    table = _table(record, version, sql.MetaData(schema=schema), "InnoDB")
    for name in own:
        table.append_column(sql.Column(name, _OWN_TYPES[name](), nullable=False))
    return str(CreateTable(table, if_not_exists=True).compile(dialect=mysql.dialect())).strip()


def _table(record: type, version: str, metadata: sql.MetaData, storage_engine: str) -> sql.Table:
    fields: Fields = record.fields  # type: ignore[attr-defined]
    by_column = {field.column: field for field in fields.fields}
    keys = key_columns(record, version)
    made = [
        _column(name, by_column.get(name), is_key=name in keys) for name in columns(record, version)
    ]
    return sql.Table(
        fields.table, metadata, *made, mysql_engine=storage_engine, mysql_charset="utf8"
    )


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
