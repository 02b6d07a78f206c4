"""The data before the log: a mysqldump, loaded by the replay itself so that it is known to be its own.

A dump cannot be loaded in one transaction. Until it is in, the position row says so, and a run that finds that begins with it again:
a mysqldump drops what it is about to make.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from applier.error_codes import Code
from applier.errors import InputError, ReplicationError
from applier.mysql.checkpoint import Checkpoint
from applier.mysql.connection import Server, connect
from applier.mysql.pipeline import Pipeline, Statement
from applier.mysql.safety import SYSTEM_SCHEMAS, foreign_data, holds_data
from applier.tables.load import split_statements

_DATABASE = re.compile(
    rb"\s*(?:USE|CREATE\s+DATABASE(?:\s+IF\s+NOT\s+EXISTS|\s*/\*!\d+\s+IF\s+NOT\s+EXISTS\s*\*/)?)\s+(?:`((?:[^`]|``)+)`|(\w+))", re.I
)
TEXT_BYTES = 1 << 20


def load_dump(server: Server, path: str, start: Checkpoint, *, force: bool) -> Checkpoint:
    """Loads the file over a connection of its own. Raises UsageError when a database of the dump holds other data."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"--schema: cannot read {path}: {error.strerror}", code=Code.CANNOT_READ) from None
    databases = set(databases_of(data))
    for database in sorted(databases - start.databases - SYSTEM_SCHEMAS):
        if not force and holds_data(server, database):
            raise foreign_data(server, database)
    start = replace(start, databases=start.databases | databases)
    server.execute(start.update())
    loader = connect(server.endpoint)
    try:
        _load(Pipeline(loader), data, path)
    finally:
        loader.close()
    start = replace(start, loaded=True)
    server.execute(start.update())
    return start


def databases_of(data: bytes) -> Iterator[str]:
    """The databases that a dump fills."""
    for _, statement in split_statements(data):
        found = _DATABASE.match(statement)
        if found is not None:
            yield (found[1].replace(b"``", b"`") if found[1] else found[2]).decode("utf-8", "surrogateescape")


def _load(pipeline: Pipeline, data: bytes, path: str) -> None:
    waiting: list[Statement] = []
    size = 0
    try:
        for _, statement in split_statements(data):
            waiting.append(Statement(statement))
            size += len(statement)
            if size > TEXT_BYTES:
                pipeline.send(waiting)
                waiting, size = [], 0
        pipeline.send(waiting)
        pipeline.settle()
    except ReplicationError as error:
        raise InputError(
            f"--schema: the server refuses {path}: error {error.number}: {error.message}", code=Code.SCHEMA_REFUSED, hint=error.hint
        ) from None
