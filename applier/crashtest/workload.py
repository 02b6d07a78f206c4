"""What a replica is crash-tested with: the binary logs of a source, the tables before them, and the
tables after them.

Captured logs are taken as they are. Generated ones hold the mix that showed the differences on real
servers (INSERT with a key, INSERT into a table without one, UPDATE, DELETE): a transaction that is
executed twice stops with 1062 or 1032, or leaves a row too many.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from applier.binlog.event_bytes import raw_events
from applier.binlog.header import EventType
from applier.binlog.reader import LogReader
from applier.binlog.transactions import group
from applier.crashtest.log_maker import (
    INNODB,
    SOURCE_UUID,
    LogMaker,
    MariadbLogMaker,
)
from applier.error_codes import Code
from applier.errors import InputError, UsageError
from applier.replay_loop import replay
from applier.replica.source import BinlogFiles
from applier.replica.versions import replica_rules
from applier.schema_source import load_schema
from applier.tables.catalog import Tables
from applier.tables.dump import dump_lines


@dataclass(frozen=True)
class Workload:
    """The logs of a source (name -> content, in order) and what they begin with."""

    files: dict[str, bytes]
    schema: Tables = field(repr=False)
    version: str
    gtids: bool
    """Its transactions have GTIDs."""
    name: str = "generated"

    def source(self) -> BinlogFiles:
        """The source that has these logs."""
        return BinlogFiles(self.files, uuid=SOURCE_UUID)

    @cached_property
    def expected(self) -> dict[str, list[bytes]]:
        """The rows of each table behind the last event, as `binlag replay` leaves them: no replica
        has a hand in it.

        Raises InputError for a log that cannot be replayed even so.
        """
        with self._on_disk() as paths:
            return content_of(_replayed(paths, self.schema, self.version))

    @cached_property
    def names(self) -> dict[bytes, str]:
        """The bytes of an event -> where its transaction stands in the source's log. Not of the
        first event only: behind a crash, one that comes twice may begin a group."""
        with self._on_disk() as paths:
            found = list(group(LogReader(paths)))
        names: dict[bytes, str] = {}
        for transaction in found:
            content, at = self.files[transaction.file], transaction.start
            name = f"{transaction.file}:{at}"
            end = (
                transaction.end if transaction.end_file in ("", transaction.file) else len(content)
            )
            for _, event in raw_events(content[:end], at):
                names[event] = name if event not in names else f"{names[event]} or {name}"
        return names

    @contextmanager
    def _on_disk(self) -> Iterator[list[Path]]:
        with TemporaryDirectory() as folder:
            paths = [Path(folder) / name for name in self.files]
            for path, content in zip(paths, self.files.values(), strict=True):
                path.write_bytes(content)
            yield paths


def _replayed(paths: Sequence[str | os.PathLike[str]], schema: Tables, version: str) -> Tables:
    tables = schema.copy()
    error = replay(paths, tables, keep_events=False, server=version).error
    if error is not None:
        raise InputError(
            f"the log cannot be replayed even without a crash: error {error.number}:"
            f" {error.message}",
            code=Code.FAILS_WITHOUT_CRASH,
            file=error.file,
            position=error.position,
            table=error.table,
            hint=error.next_step,
        )
    return tables


def content_of(tables: Tables) -> dict[str, list[bytes]]:
    """Table -> its rows as text, sorted."""
    return {table.definition.full_name: dump_lines(table) for table in tables}


def captured(
    paths: Sequence[str],
    schema: str | None,
    version: str,
    default_database: str | None = None,
    note: Callable[[str], None] | None = None,
) -> Workload:
    """Logs of a real source; `schema` and what follows it as `load_schema` takes them.

    Raises InputError for what cannot be read or replayed, with its place in these logs: a replica
    names its relay logs.
    """
    files = BinlogFiles.read(paths).files
    if not files:
        raise InputError(
            "there is no log",
            code=Code.NOTHING_TO_READ,
            file=str(paths[0]),
            hint="give the logs themselves, or a folder whose index names them",
        )
    tables = Tables()
    if schema:
        tables = load_schema(schema, server=version, default_database=default_database, note=note)
    name, first = next(iter(files.items()))
    by_domains = replica_rules(version).by_domains
    wanted = EventType.MARIADB_GTID if by_domains else EventType.GTID
    gtids = any(event[4] == wanted for _, event in raw_events(first))
    workload = Workload(files, tables, version, gtids, name)
    _ = workload.expected  # raises where it cannot be replayed even without a crash
    return workload


def with_engine(schema: Tables, engine: str) -> Tables:
    """The same empty or filled tables in another storage engine."""
    import dataclasses

    changed = schema.copy()
    for table in list(changed):
        twin = dataclasses.replace(table.definition, engine=engine)
        fresh = changed.create(twin)
        fresh.load(table.stored_rows())
    return changed


def generated(
    transactions: int,
    *,
    version: str = "8.0",
    gtids: bool = True,
    seed: int = 1,
    engine: str = INNODB,
    databases: int = 2,
    files: int = 2,
) -> Workload:
    """A source of `databases` databases with one table with a primary key and one without any key
    in each. Raises UsageError for none."""
    if transactions < 1 or databases < 1:
        raise UsageError(
            f"{transactions} transactions in {databases} databases",
            code=Code.OPTION_VALUE,
            hint="give at least one of each",
        )
    of_version = MariadbLogMaker if replica_rules(version).by_domains else LogMaker
    maker = of_version(version, gtids, random.Random(seed), databases, engine)
    each = -(-transactions // max(1, min(files, transactions)))
    while maker.done < transactions:
        maker.begin_file()
        for _ in range(min(each, transactions - maker.done)):
            maker.transaction()
        if maker.done < transactions:
            maker.rotate()
    return Workload(maker.files, maker.schema(), version, gtids, f"generated:{seed}")
