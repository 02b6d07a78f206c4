"""Who does the work, beside the position: rows of slave_worker_info and slave_master_info in
`binlag`.

A worker's row is written in the transaction that it speaks of, as a server's worker does; the group
of a worker is a batch, so there is no bitmap. The source's row is what master.info beside the relay
logs said when the run began, without a password. Neither says where to go on: the position does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from applier.binlog.header import EventFlag
from applier.binlog.reader import open_log
from applier.errors import BinlagError, ReplicationError
from applier.mysql.client.connection import TRANSIENT, Server
from applier.mysql.positions.checkpoint import (
    INFO_VERSION,
    NO_SUCH_TABLE,
    SCHEMA,
    TABLE,
    Checkpoint,
    literal,
    text_literal,
)
from checkpoints.errors import CheckpointError
from checkpoints.info import R, SourceInfo, WorkerInfo
from checkpoints.info_files import parse, versions_of
from checkpoints.info_rows import columns, from_row, to_row
from checkpoints.kinds import BITMAP, BOOLEAN, SECONDS, SIGNED, UNSIGNED, UNSIGNED_LONG, FieldKind

_FLAGS = 4 + 17
"""Where the flags of a file's first event stand."""
_READ: dict[FieldKind, Callable[[bytes], Any]] = {
    **dict.fromkeys((UNSIGNED, UNSIGNED_LONG, SIGNED, BOOLEAN), int), SECONDS: float, BITMAP: bytes,
}  # fmt: skip
"""Kind of a field -> what makes its value of the server's text; all others are texts."""


def table_of(record: type[R]) -> str:
    """The table's name in SQL."""
    return f"`{SCHEMA}`.`{record.fields.table}`"


def source_of(files: Sequence[str]) -> SourceInfo | None:
    """The source of relay logs, from master.info beside them; None where that does not tell."""
    try:
        if not files or not open_log(Path(files[0]))[_FLAGS] & EventFlag.RELAY_LOG:
            return None
        data = Path(files[0]).with_name(SourceInfo.fields.file_name).read_bytes()
        known = versions_of(SourceInfo, data, file=SourceInfo.fields.file_name)
        found = parse(SourceInfo, data, max(known)).record
    except (OSError, ValueError, IndexError, BinlagError, CheckpointError):
        return None
    return replace(found, user_password="")


def worker_update(replay: str, worker: int, end: Checkpoint, low: Checkpoint) -> bytes:
    """The statement for a worker that commits up to `end`; `low` is behind what all have
    committed."""
    place: dict[str, str | int] = {
        "Relay_log_name": end.file, "Relay_log_pos": end.offset,
        "Master_log_name": end.source.file, "Master_log_pos": end.source.offset,
        "Checkpoint_relay_log_name": low.file, "Checkpoint_relay_log_pos": low.offset,
        "Checkpoint_master_log_name": low.source.file,
        "Checkpoint_master_log_pos": low.source.offset,
    }  # fmt: skip
    assignments = ",".join(f"`{name}`={literal(value)}" for name, value in place.items())
    where = f"`Channel_name`={text_literal(replay)} AND `Id`={worker}"
    return f"UPDATE {table_of(WorkerInfo)} SET {assignments} WHERE {where}".encode()


def keep(server: Server, replay: str, workers: int, source: SourceInfo | None) -> None:
    """Makes the rows of a run: one for each worker, and the source's; those of the run before go.

    Nothing is written where all is as it was.
    """
    wanted = [WorkerInfo(id=number, channel_name=replay) for number in range(1, workers + 1)]
    there = {info.id for info in infos(server, WorkerInfo, replay)}
    sources = [] if source is None else [replace(source, channel_name=replay)]
    if there == {info.id for info in wanted} and infos(server, SourceInfo, replay) == sources:
        return
    _create_tables(server)
    where = f"WHERE `Channel_name`={text_literal(replay)}"
    deletes = [f"DELETE FROM {table_of(record)} {where}" for record in (WorkerInfo, SourceInfo)]
    inserts = [*map(_insert, wanted), *map(_insert, sources)]
    count = f"UPDATE {TABLE} SET `Number_of_workers`={workers} {where}"
    _commit(server, ["START TRANSACTION", *deletes, *inserts, count, "COMMIT"])


def _commit(server: Server, statements: list[str], tries: int = 10) -> None:
    """Once more where another session was in the way."""
    try:
        for statement in statements:
            server.execute(statement)
    except ReplicationError as error:
        server.execute("ROLLBACK")
        if error.number not in TRANSIENT or not tries:
            raise
        _commit(server, statements, tries - 1)


def infos(server: Server, record: type[R], replay: str) -> list[R]:
    """The rows of a replay, workers by their numbers. Raises CheckpointError for one that cannot be
    read."""
    return [from_row(record, row, INFO_VERSION) for row in _rows(server, record, replay)]


def _rows(server: Server, record: type[R], replay: str) -> Iterator[dict[str, Any]]:
    names = columns(record, INFO_VERSION)
    kinds = {field.column: field.kind for field in record.fields.fields}
    listed = ", ".join(f"`{name}`" for name in names)
    order = " ORDER BY `Id`" if record is WorkerInfo else ""
    where = f"`Channel_name`={text_literal(replay)}{order}"
    try:
        rows = server.query(f"SELECT {listed} FROM {table_of(record)} WHERE {where}")
    except ReplicationError as error:
        if error.number not in NO_SUCH_TABLE:
            raise
        return
    for row in rows:
        read = [_READ.get(kinds[name], bytes.decode) if name in kinds else int for name in names]
        values = (
            None if value is None else make(value) for make, value in zip(read, row, strict=True)
        )
        yield dict(zip(names, values, strict=True))


def _insert(info: R) -> str:
    row = to_row(info, INFO_VERSION)
    names = ",".join(f"`{name}`" for name in row)
    values = ",".join(literal(value) for value in row.values())
    return f"INSERT INTO {table_of(type(info))} ({names}) VALUES ({values})"


def _create_tables(server: Server) -> None:
    from applier.mysql.positions.info_tables import definition  # as for the position

    for record in (WorkerInfo, SourceInfo):
        server.execute(definition(record, INFO_VERSION))
