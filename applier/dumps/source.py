"""A dump as one stream of statements, whatever it comes in: a file, a pipe, a folder, SQL text;
chosen from and renamed on the way.

Each statement comes with the database that it works in. What an option leaves out is counted, and
said when the dump is read.
"""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from applier.binlog.selection.table_filter import EVERYTHING, SYSTEM_SCHEMAS, TableFilter
from applier.dumps.folders import parts_of
from applier.dumps.session import DumpSession
from applier.dumps.split import RawStatement, Readable, split_statements
from applier.dumps.statement import INSERT_HEAD, PROGRAMS, About, DumpName, about, renamed, unquoted
from applier.error_codes import Code
from applier.errors import BinlagError, InputError, cannot_read
from applier.options import ReplayOptions
from applier.sources import STANDARD_INPUT, open_source, source_name
from applier.tables.sql.quoting import quoted
from applier.tables.sql.sql_text import UNREADABLE, reason
from lookup.handler import NoReferencedRow, RowError

DEFAULT_DATABASE = "--default-database"
_HEAD_BYTES = 4096
_HEAD_DATABASE = re.compile(rb"^-- (?:Host: .*?)?Database: +`?([^`\r\n]+?)`? *\r?$", re.MULTILINE)
"""mysqldump names the database that it was asked for in the head of the dump; so does
phpMyAdmin."""
_HEAD = re.compile(rb"^(?:/\*M!999999[^\n]*\n)?-- (MySQL|MariaDB) dump ", re.IGNORECASE)
_SHOWN = re.compile(
    rb"^-- (?:MySQL|MariaDB) dump |^-- phpMyAdmin|@OLD_SQL_MODE=@@SQL_MODE",
    re.IGNORECASE | re.MULTILINE,
)
"""Written by a program that asks SHOW CREATE TABLE; without comments mysqldump still saves its
variables."""
_FOOT = b"-- Dump completed"
_FOOT_BYTES = 200
_INSTEAD = (
    "give a dump of mysqldump, mariadb-dump, mydumper or MySQL Shell, or mysql://USER@HOST:PORT"
)
_ORPHAN = "put SET FOREIGN_KEY_CHECKS=0 before the first table, as mysqldump does without --compact"
_BEGINS = re.compile(rb"\s*[A-Za-z(/]")
"""How a statement begins; what begins otherwise is no statement that was cut off."""
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Its byte order marks."""
_OTHERS: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (
        re.compile(rb"^PGDMP|^--\r?\n-- PostgreSQL database (?:cluster )?dump", re.MULTILINE),
        "a dump of PostgreSQL",
    ),
    (
        re.compile(rb"^PRAGMA foreign_keys=|^SQLite format 3\0", re.MULTILINE),
        "a database or a dump of SQLite",
    ),
    (re.compile(rb"^SET ANSI_NULLS|^USE \[|^GO\r?$", re.MULTILINE), "a script of SQL Server"),
    (re.compile(rb"^\xfebin"), "a binary log, not a schema"),
    (re.compile(rb"^\s*<\?xml"), "XML, as mysqldump --xml writes it"),
    (re.compile(rb"^PK\x03\x04"), "a zip archive"),
)


@dataclass(frozen=True)
class Selection:
    """What of a dump is wanted, and under which names.

    `default_database`: of tables to which the dump gives none; else the one of the dump's head
    holds, or the only one that is wanted. `needs_database`: without any of these it is an error,
    not the empty name.
    """

    only: TableFilter = EVERYTHING
    rewrite: Mapping[str, str] = field(default_factory=dict)
    default_database: str | None = None
    needs_database: bool = True

    @classmethod
    def of(
        cls,
        options: ReplayOptions,
        default_database: str | None = None,
        *,
        needs_database: bool = True,
    ) -> Selection:
        """The part of a dump that goes with what the options choose of a log."""
        return cls(options.only, options.rewrite, default_database, needs_database)

    @property
    def sole_database(self) -> str | None:
        """The only database that can be meant: --database names one, and no other option names
        any."""
        named = {one.database for one in (*self.only.databases, *self.only.tables)}
        return (
            next(iter(named))
            if len(named) == 1 and not any("%" in name for name in named)
            else None
        )


@dataclass(frozen=True, slots=True)
class DumpStatement:
    """A statement with its new names. `database`: the one it works in, "" for none.

    `head`: of an INSERT, the match of INSERT_HEAD. `complete`: its delimiter followed.
    """

    sql: bytes
    kind: str
    verb: str
    database: str
    line: int
    head: re.Match[bytes] | None = None
    complete: bool = True


class DumpReader:
    """Iterate once. `name` is how messages call it; `notes` are complete behind the last statement.

    `statements` gives the SQL of a source that is neither a file nor a folder.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        selection: Selection | None = None,
        statements: Callable[[], Iterator[RawStatement]] | None = None,
    ) -> None:
        self.selection = selection or Selection()
        self.name = source_name(source)
        self.session = DumpSession()
        self.notes: list[str] = []
        self.is_shown = statements is not None
        """Its CREATE TABLE statements are what SHOW CREATE TABLE says, not what somebody wrote:
        they leave nothing to defaults."""
        self.databases: set[str] = set()
        """New names of the databases that the statements so far worked in."""
        self._source = source
        self._given = statements
        self._place = self.name
        self._line = 0
        self._database = ""
        self._default: str | None = None
        self._left_out: Counter[str] = Counter()
        self._pending: dict[str, list[DumpStatement]] = {}

    def __iter__(self) -> Iterator[DumpStatement]:
        """Raises InputError with file and line, and where a table has no database."""
        try:
            yield from self._all()
        except BinlagError as error:
            error.locate(file=self._place)
            raise

    def _all(self) -> Iterator[DumpStatement]:
        for raw in self._raw():
            self._line = raw.line
            try:
                yield from self._statements(raw)
            except (BinlagError, RowError, *UNREADABLE) as error:
                raise self.located(
                    error, complete=raw.complete or not _BEGINS.match(raw.sql)
                ) from None
        yield from self._rest()
        self._say()

    def located(self, error: Exception, *, complete: bool = True) -> BinlagError:
        """The error with the place of the statement at hand."""
        if isinstance(error, BinlagError) and error.file is not None:
            return error
        known = error if isinstance(error, InputError) else None
        if not complete:
            return InputError(
                f"line {self._line}: the dump ends in the middle of a statement: {reason(error)}",
                code=Code.DUMP_CUT_OFF,
                file=self._place,
            )
        text = reason(error)
        hint = (
            known.hint
            if known is not None
            else _ORPHAN
            if isinstance(error, NoReferencedRow)
            else None
        )
        return InputError(
            text if text.startswith("line ") else f"line {self._line}: {text}",
            code=known.code if known is not None else Code.SCHEMA_SQL,
            file=self._place,
            hint=hint,
        )

    # where the statements come from

    def _raw(self) -> Iterator[RawStatement]:
        source = self._source
        if self._given is not None:
            yield from self._given()
        elif is_sql(source):
            self.name = self._place = "the given SQL"
            yield from split_statements(io.BytesIO(str(source).encode("utf-8", "surrogateescape")))
        elif os.fspath(source) != STANDARD_INPUT and Path(source).is_dir():
            self.is_shown = True
            for part in parts_of(Path(source)):
                self._place = part.name
                self._database = ""
                self._default = part.database
                yield from part.statements()
        else:
            yield from self._file(source)

    def _file(self, source: str | os.PathLike[str]) -> Iterator[RawStatement]:
        try:
            with open_source(source) as raw:
                file = _Watched(raw)
                self._look(file.head)
                last = None
                for last in split_statements(file):
                    yield last
                if last is None and (not file.head or _HEAD.match(file.head)):
                    raise InputError(
                        "the dump is empty: it holds no table", code=Code.NO_TABLES, file=self.name
                    )
                if last is not None and _HEAD.match(file.head) and _FOOT not in file.tail:
                    self._cut_off(last)
        except OSError as error:
            raise cannot_read(error, self.name, "schema") from None

    def _look(self, head: bytes) -> None:
        """What the first bytes tell. Raises InputError for what is no dump of MySQL or MariaDB."""
        other = next((other for pattern, other in _OTHERS if pattern.search(head)), None)
        if other is not None:
            raise InputError(
                f"this is {other}", code=Code.SCHEMA_SQL, file=self.name, hint=_INSTEAD
            )
        if head.startswith(_UTF_16):
            raise InputError(
                "this is text in UTF-16, which > of PowerShell writes",
                code=Code.SCHEMA_SQL,
                file=self.name,
                hint="take the dump with mysqldump --result-file=FILE, or convert it: "
                "iconv -f UTF-16 -t UTF-8",
            )
        if _BINARY.search(head[:512]):
            raise InputError(
                "this is not text", code=Code.SCHEMA_SQL, file=self.name, hint=_INSTEAD
            )
        self.is_shown = _SHOWN.search(head) is not None
        found = _HEAD_DATABASE.search(head)
        if found is not None:
            self._default = found[1].decode("utf-8", "surrogateescape")

    def _cut_off(self, last: RawStatement) -> None:
        if not last.complete:
            raise InputError(
                f"line {last.line}: the dump ends in the middle of a statement",
                code=Code.DUMP_CUT_OFF,
                file=self.name,
            )
        self.notes.append(
            f"{self.name} does not end with `{_FOOT.decode()}`, as its head promises: it may be"
            " cut off"
        )

    # what a statement is about

    def _statements(self, raw: RawStatement) -> Iterator[DumpStatement]:
        self.session.check_client(raw.sql)
        head = INSERT_HEAD.match(raw.sql)
        if head is not None:
            yield from self._insert(raw, head)
            return
        text = raw.sql.decode("utf-8", "surrogateescape")
        said = about(text, self.session.lexis)
        if said.kind == "set":
            self.session.apply(text)
        elif said.kind == "use":
            self._database = said.names[0].name
            return
        if said.kind in PROGRAMS:
            yield from self._program(raw, said, text)
        elif said.kind == "database":
            self._about_database(raw, said, text)
        elif said.kind in ("table", "view", "rows"):
            yield from self._tables(raw, said, text)
        elif said.kind != "lock" and said.verb:
            yield self._made(raw, said, text, self._database)

    def _insert(self, raw: RawStatement, head: re.Match[bytes]) -> Iterator[DumpStatement]:
        said = head["database"]
        database = self._resolved(None if said is None else unquoted(said))
        table = unquoted(head["table"])
        if not self.selection.only.wants_table(database, table):
            return
        sql = raw.sql
        if said is not None and database in self.selection.rewrite:
            sql = (
                sql[: head.start("database")]
                + self._new(database).encode()
                + sql[head.end("database") :]
            )
            head = INSERT_HEAD.match(sql) or head
        yield from self._ready(database)
        verb = head["verb"].decode().upper()
        yield DumpStatement(sql, "rows", verb, self._new(database), raw.line, head, raw.complete)

    def _tables(self, raw: RawStatement, said: About, text: str) -> Iterator[DumpStatement]:
        needed = said.kind != "view"
        names = [(self._resolved(one.database, needed=needed), one.name) for one in said.names]
        wanted = [self.selection.only.wants_table(*name) for name in names]
        if names and not any(wanted):
            if said.kind == "table" and said.verb == "CREATE" and names[0][0] in SYSTEM_SCHEMAS:
                self._left_out[names[0][0]] += 1
            return
        database = names[0][0] if names else self._database
        for name, _ in names:
            yield from self._ready(name)
        if names and not all(wanted):
            text, said = self._only(text, said, wanted)
        yield self._made(raw, said, text, database)

    def _only(self, text: str, said: About, wanted: list[bool]) -> tuple[str, About]:
        """A DROP of several tables, for those that are wanted. Raises InputError for another
        statement that has wanted and other tables."""
        if said.verb != "DROP":
            raise InputError(
                f"a {said.verb} of tables of which only some are wanted", code=Code.SCHEMA_SQL
            )
        kept = [one for one, want in zip(said.names, wanted, strict=True) if want]
        listed = ", ".join(
            quoted(self._resolved(one.database)) + "." + quoted(one.name) for one in kept
        )
        text = f"DROP {said.kind.upper()} IF EXISTS {listed}"
        return text, about(text)

    def _program(self, raw: RawStatement, said: About, text: str) -> Iterator[DumpStatement]:
        """A trigger goes with its table, an event or a routine with its database."""
        database = self._resolved(said.names[0].database if said.names else None, needed=False)
        only = self.selection.only
        if said.on_table is not None:
            on = said.on_table
            wanted = only.wants_table(
                self._resolved(on.database) if on.database else database, on.name
            )
        else:
            wanted = only.wants_database(database)
        if wanted:
            yield from self._ready(database)
            yield self._made(raw, said, text, database)

    def _about_database(self, raw: RawStatement, said: About, text: str) -> None:
        """Held back until something of the database is wanted."""
        name = said.names[0].name
        if said.verb == "DROP" and self.selection.only:
            said_so = f"a filter is given: DROP DATABASE {name} of {self.name} was left out"
            self.notes += [said_so] * (said_so not in self.notes)
            return
        self._pending.setdefault(name, []).append(self._made(raw, said, text, ""))

    def _ready(self, database: str) -> Iterator[DumpStatement]:
        if not database:
            return
        self.databases.add(self._new(database))
        yield from self._pending.pop(database, ())

    def _rest(self) -> Iterator[DumpStatement]:
        """Databases that are wanted though the dump has nothing in them."""
        for name in list(self._pending):
            if self.selection.only.wants_database(name):
                yield from self._ready(name)

    def _made(self, raw: RawStatement, said: About, text: str, database: str) -> DumpStatement:
        sql = raw.sql if text is None else text.encode("utf-8", "surrogateescape")
        if self.selection.rewrite:
            text = renamed(text, said, self.selection.rewrite)
            sql = text.encode("utf-8", "surrogateescape")
        return DumpStatement(
            sql, said.kind, said.verb, self._new(database), raw.line, None, raw.complete
        )

    # names

    def _new(self, database: str) -> str:
        return self.selection.rewrite.get(database, database)

    def _resolved(self, database: str | None, *, needed: bool = True) -> str:
        """The database of a name. Raises InputError when the dump does not say it, and nobody else
        does."""
        found = database or self._database
        if found:
            return found
        chosen = self.selection.default_database or self._default or self.selection.sole_database
        if chosen is None and not (needed and self.selection.needs_database):
            return ""
        if chosen is None:
            raise InputError(
                "the dump does not say which database its tables are in",
                code=Code.OPTION_MISSING,
                file=self.name,
                hint=(
                    f"name it with {DEFAULT_DATABASE} NAME, or take the dump with mysqldump"
                    " --databases NAME"
                ),
            )
        return chosen

    def _say(self) -> None:
        """System schemas that were left out although no option says so."""
        for database, count in sorted(self._left_out.items()):
            if not self.selection.only.chooses:
                said = f"{database} ({count:,} table{'s' * (count != 1)})"
                self.notes.append(
                    f"left out of {self.name}: {said}; name it with --database to load it"
                )


class _Watched:
    """A file whose first and last bytes are remembered as it is read."""

    def __init__(self, file: Readable) -> None:
        self._read = file.read
        self.head = self._read(_HEAD_BYTES)
        self._waiting = self.head
        self.tail = b""

    def read(self, size: int) -> bytes:
        """As a file has it."""
        data = self._waiting or self._read(size)
        self._waiting = b""
        if data:
            self.tail = (self.tail + data)[-_FOOT_BYTES:]
        return data


def is_sql(source: str | os.PathLike[str]) -> bool:
    """Whether it is SQL itself, not the name of a file."""
    return isinstance(source, str) and (
        ";" in source or "\n" in source or source.lstrip()[:7].upper() == "CREATE "
    )


__all__ = ["DEFAULT_DATABASE", "DumpName", "DumpReader", "DumpStatement", "Selection", "is_sql"]
