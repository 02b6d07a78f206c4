"""The data before the log: a dump, loaded by the replay itself so that it is known to be its own.

A dump cannot be loaded in one transaction. Until it is in, the position row says so, and a run that
finds that begins with it again: a mysqldump drops what it is about to make.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from applier.dumps.source import DumpReader, DumpStatement, Selection
from applier.dumps.statement import PROGRAMS
from applier.error_codes import Code
from applier.errors import InputError, ReplicationError
from applier.mysql.client.connection import Server, connect
from applier.mysql.client.dialect import TargetDialect, without_generated_keys
from applier.mysql.client.pipeline import Pipeline, PipelineStatement
from applier.mysql.client.safety import SYSTEM_SCHEMAS, foreign_data, holds_data
from applier.mysql.contents.live_schema import SchemaPlace
from applier.mysql.positions.checkpoint import Checkpoint
from applier.sources import STANDARD_INPUT
from applier.tables.sql.quoting import quoted
from applier.tables.sql.sql_text import tokenize

TEXT_BYTES = 1 << 20
_GTID_PURGED = re.compile(rb"\bGTID_PURGED\b", re.IGNORECASE)
_STARTS = re.compile(rb"START\s+(?:ALL\s+)?(?:SLAVE|REPLICA|GROUP_REPLICATION)", re.IGNORECASE)
_GTID_ERRORS = frozenset({1840, 3546})
"""GTID_PURGED of a server that has executed transactions; one that adds what the server has."""
_VIEW_ERRORS = frozenset({1146, 1305, 1356, 1449})
"""A view of what is not there: a table that was left out, a function that is not installed, its
definer."""
LEFT_OUT_VERBS = {
    "CHANGE": "replication statements", "STOP": "replication statements",
    "RESET": "replication statements",
    "PURGE": "replication statements", "KILL": "administrative statements",
    "SHUTDOWN": "administrative statements",
}  # fmt: skip
"""What a dump has no business to do to a test DB (mysqldump --source-data writes CHANGE REPLICATION
SOURCE)."""


@dataclass(frozen=True)
class DumpOptions:
    """What of a dump goes into the server. `with_routines`: its triggers, events and routines,
    too."""

    selection: Selection = field(default_factory=Selection)
    with_routines: bool = False
    force: bool = False


def load_dump(
    server: Server,
    place: SchemaPlace,
    start: Checkpoint,
    options: DumpOptions,
    note: Callable[[str], None],
) -> Checkpoint:
    """Loads the dump over a connection of its own; `note` is told what was left out.

    Raises UsageError when a database of the dump holds other data.
    """
    claims = _Claims(server, start, force=options.force)
    if place.source != STANDARD_INPUT:
        reader = place.reader(options.selection, rows=False)
        for _ in reader:
            pass
        for database in sorted(reader.databases):
            claims.claim(database)
    loader = connect(server.endpoint)
    try:
        without_generated_keys(loader, TargetDialect.of(loader))
        _Load(Pipeline(loader), place.reader(options.selection), claims, options).run(note)
    finally:
        loader.close()
    start = replace(claims.checkpoint, loaded=True)
    server.execute(start.update())
    return start


class _Claims:
    """The databases that the dump may fill, in the position row before anything is in them."""

    def __init__(self, server: Server, checkpoint: Checkpoint, *, force: bool) -> None:
        self.server = server
        self.checkpoint = checkpoint
        self._force = force

    def claim(self, database: str) -> None:
        """Raises UsageError when the database holds data that is not this replay's."""
        if database in self.checkpoint.databases:
            return
        if database not in SYSTEM_SCHEMAS and not self._force and holds_data(self.server, database):
            raise foreign_data(self.server, database)
        self.checkpoint = replace(self.checkpoint, databases=self.checkpoint.databases | {database})
        self.server.execute(self.checkpoint.update())


class _Load:
    def __init__(
        self, pipeline: Pipeline, reader: DumpReader, claims: _Claims, options: DumpOptions
    ) -> None:
        self._pipeline = pipeline
        self._reader = reader
        self._claims = claims
        self._options = options
        self._database = ""
        self._left_out: Counter[str] = Counter()
        self._views: list[str] = []

    def run(self, note: Callable[[str], None]) -> None:
        """Sends it all. Raises InputError for what the server refuses."""
        waiting: list[PipelineStatement] = []
        size = 0
        try:
            for statement in self._reader:
                new = list(self._statements(statement))
                waiting += new
                size += sum(len(one.sql) for one in new)
                if size > TEXT_BYTES:
                    self._pipeline.send(waiting)
                    waiting, size = [], 0
            self._pipeline.send(waiting)
            self._pipeline.settle()
        except ReplicationError as error:
            raise self._refused(error) from None
        self._say(note)

    def _refused(self, error: ReplicationError) -> InputError:
        hint = error.hint
        if error.number in _GTID_ERRORS:
            hint = "take the dump with --set-gtid-purged=OFF: the server has GTIDs of its own"
        return InputError(
            f"--schema: the server refuses {self._reader.name}: error {error.number}:"
            f" {error.message}",
            code=Code.SCHEMA_REFUSED,
            hint=hint,
        )

    def _statements(self, statement: DumpStatement) -> Iterator[PipelineStatement]:
        """What is sent for a statement of the dump."""
        if self._is_left_out(statement):
            return
        database = statement.database
        if database and database != self._database:
            if database not in self._claims.checkpoint.databases:
                self._claims.claim(database)
            if database not in SYSTEM_SCHEMAS:
                yield PipelineStatement(
                    f"CREATE DATABASE IF NOT EXISTS {quoted(database)}".encode(
                        "utf-8", "surrogateescape"
                    )
                )
            yield PipelineStatement(f"USE {quoted(database)}".encode("utf-8", "surrogateescape"))
            self._database = database
        if statement.kind == "view":
            yield PipelineStatement(statement.sql, allowed=_VIEW_ERRORS, on_error=self._lost_view)
        else:
            yield PipelineStatement(statement.sql, ends_text=statement.kind in PROGRAMS)

    def _is_left_out(self, statement: DumpStatement) -> bool:
        if statement.kind in PROGRAMS and not self._options.with_routines:
            if statement.verb == "CREATE":
                self._left_out[f"{statement.kind}s"] += 1
            return True
        if statement.kind == "account":
            self._left_out["statements about accounts and plugins"] += 1
            return True
        if statement.verb in LEFT_OUT_VERBS or _STARTS.match(statement.sql):
            self._left_out[LEFT_OUT_VERBS.get(statement.verb, "replication statements")] += 1
            return True
        return (
            statement.kind == "set"
            and _GTID_PURGED.search(statement.sql) is not None
            and self._has(statement.sql)
        )

    def _has(self, sql: bytes) -> bool:
        """Whether the server has all transactions of a SET GTID_PURGED: a dump that is loaded
        again."""
        texts = [
            token.value
            for token in tokenize(sql.decode("utf-8", "replace"))
            if token.kind == "string"
        ]
        gtids = texts[-1].replace("\n", "") if texts else ""
        if not gtids or not re.fullmatch(r"[0-9A-Za-z_:,\-\s]+", gtids):
            return False
        found = self._claims.server.value(f"SELECT GTID_SUBSET('{gtids}', @@GLOBAL.gtid_executed)")
        if str(found) != "1":
            return False
        self._left_out["SET GTID_PURGED, whose transactions the server has"] += 1
        return True

    def _lost_view(self, error: ReplicationError) -> None:
        self._views.append(error.message)

    def _say(self, note: Callable[[str], None]) -> None:
        for said in self._reader.notes:
            note(said)
        programs = [
            f"{count:,} {what}"
            for what, count in sorted(self._left_out.items())
            if what in _PROGRAM_NAMES
        ]
        others = [
            f"{count:,} {what}"
            for what, count in sorted(self._left_out.items())
            if what not in _PROGRAM_NAMES
        ]
        if programs:
            note(
                f"not installed from {self._reader.name}: {', '.join(programs)}; --with-routines"
                " installs them"
            )
        if others:
            note(f"left out of {self._reader.name}: {', '.join(others)}")
        for message in self._views:
            note(f"a view of {self._reader.name} could not be made: {message}")


_PROGRAM_NAMES = frozenset(f"{kind}s" for kind in PROGRAMS)
