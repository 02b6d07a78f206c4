"""Small logs made by hand for the tests of the replay."""

from __future__ import annotations

import struct
from pathlib import Path

import applier
from applier.result import ReplayResult
from tests.binlog.build import event, gtid, log, query, rows, table_map, write, xid

BEGIN = query(b"BEGIN")
INT_TABLE = "CREATE TABLE d.t (a INT NOT NULL PRIMARY KEY);"


def ints(*values: int) -> bytes:
    return b"".join(b"\0" + struct.pack("<i", value) for value in values)


def transaction(number: int, *events: tuple[int, bytes]) -> tuple[tuple[int, bytes], ...]:
    return (gtid(number), BEGIN, *events, xid(number))


def insert(number: int, *values: int) -> tuple[tuple[int, bytes], ...]:
    """A transaction that inserts rows into d.t."""
    return transaction(number, table_map(), rows(30, ints(*values)))


def inner(*events: tuple[int, bytes]) -> bytes:
    """Events as they stand in a compressed transaction: no checksums."""
    return b"".join(event(kind, body, checksum=False) for kind, body in events)


def replay_log(
    folder: Path, content: bytes, schema: str | applier.Tables = INT_TABLE, **options: object
) -> tuple[applier.Tables, ReplayResult]:
    """The tables and the outcome of a replay of one file."""
    tables = applier.load_schema(schema) if isinstance(schema, str) else schema
    return tables, applier.replay([write(folder, content)], into=tables, **options)


__all__ = ["BEGIN", "INT_TABLE", "inner", "insert", "ints", "log", "replay_log", "transaction"]
