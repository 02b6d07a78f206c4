"""Does a server hold what a log leaves behind? Table by table: the definition, and the multiset of
rows, against tables in memory.

No key is needed: rows are compared as wholes and counted, so that a table with twins and no key is
checked too. The server's rows are streamed inside one consistent snapshot; of each row expected,
sixteen bytes are kept.
"""

from __future__ import annotations

import hashlib
import marshal
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from applier.binlog.selection.table_filter import TYPES_WITH_ROWS
from applier.errors import BinlagError, ReplicationError
from applier.mysql.client.shown_definition import shown_definition
from applier.mysql.contents.definitions import differences
from applier.mysql.statements.column_bytes import (
    DIALECTS,
    SETTINGS,
    Cell,
    DisplayRules,
    cell,
    expression,
)
from applier.tables.catalog import Tables
from applier.tables.dump import current_rows
from applier.tables.engine import MemoryTable
from applier.tables.expressions.operands import dialect_of
from applier.tables.sql.quoting import quoted
from lookup.handler import traits_of
from lookup.table import TableDefinition

Cells = tuple[bytes | None, ...]

KEPT = 20
"""Differing rows of a table that are kept for the report; all are counted."""
OWN_DATABASE = "binlag"
"""Where a replay keeps its position; never compared."""
SNAPSHOT = "START TRANSACTION WITH CONSISTENT SNAPSHOT"


class Reader(Protocol):
    """What is asked of a connection; values are raw bytes."""

    rules_version: str

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query. Raises ReplicationError."""

    def stream(self, sql: str) -> Iterable[Sequence[bytes | None]]:
        """The rows of a result as they arrive, never all of them at once."""


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that should be there and is not, one that is there and should not, or both where they
    share the primary key."""

    columns: tuple[str, ...]
    expected: Cells | None
    found: Cells | None

    @property
    def differing(self) -> tuple[str, ...]:
        """The columns that differ where both rows are known."""
        if self.expected is None or self.found is None:
            return ()
        pairs = zip(self.columns, self.expected, self.found, strict=True)
        return tuple(name for name, ours, theirs in pairs if ours != theirs)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; values as text."""
        return {
            "expected": _shown_row(self.columns, self.expected),
            "found": _shown_row(self.columns, self.found),
            "differing": list(self.differing),
        }


@dataclass(slots=True)
class TableReport:
    """One table compared. `missing` rows are expected and not there, `extra` ones are there and not
    expected."""

    table: str
    expected_rows: int = 0
    found_rows: int = 0
    missing: int = 0
    extra: int = 0
    problem: str | None = None
    """Why rows could not be compared at all."""
    definition: list[str] = field(default_factory=list)
    """What differs in columns and keys."""
    not_comparable: str | None = None
    """Why the table in memory says nothing of the server's: who compares would blame the wrong
    side."""
    differences: list[RowDifference] = field(default_factory=list)

    @property
    def differs(self) -> bool:
        """Whether a difference was found."""
        return self.problem is not None or bool(self.missing or self.extra or self.definition)

    @property
    def equal(self) -> bool:
        """Whether nothing differs and all of the table could be compared."""
        return not self.differs and self.not_comparable is None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "table": self.table,
            "equal": self.equal,
            "expected_rows": self.expected_rows,
            "found_rows": self.found_rows,
            "missing": self.missing,
            "extra": self.extra,
            "problem": self.problem,
            "definition": self.definition,
            "not_comparable": self.not_comparable,
            "differences": [difference.as_dict() for difference in self.differences],
        }


NOT_SHOWN = frozenset({1690, 3144, 6561})
"""What no server shows of rows that it stored: a FLOAT of infinity, after an overflow in 5.7, in
any expression; a JSON document in a CSV table of 5.7 (seen on 5.7.29); a column under a masking
policy of 9.7 without its component (9.7.4)."""


@dataclass(slots=True)
class Verification:
    """All tables compared."""

    tables: list[TableReport] = field(default_factory=list)

    @property
    def differs(self) -> bool:
        """Whether a difference was found in any table."""
        return any(table.differs for table in self.tables)

    @property
    def equal(self) -> bool:
        """Whether no table differs, and all could be compared."""
        return all(table.equal for table in self.tables)

    @property
    def rows(self) -> int:
        """Rows that were found on the server."""
        return sum(table.found_rows for table in self.tables)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "equal": self.equal,
            "rows": self.rows,
            "tables": [table.as_dict() for table in self.tables],
        }


def verify(
    server: Reader,
    tables: Tables,
    wants: Callable[[str, str], bool] = lambda database, table: True,
    on_table: Callable[[TableReport], None] | None = None,
    databases: Collection[str] = (),
    inexact: Callable[[str, str], str | None] = lambda database, table: None,
    log_rules: str | None = None,
) -> Verification:
    """Compares the server's tables with those in memory, in the order of their names.

    `wants` picks tables by database and name. A table that only one side has is a difference; the
    databases looked at are those in memory and `databases`, which the log may have dropped again.
    `on_table` gets each report as soon as it is there. `inexact` says of a table why memory does
    not hold what a server would; it is not compared then. `log_rules`: whose defaults the
    definitions of the log were made by, where they are not the server's.
    """
    dialect = DIALECTS[server.rules_version]
    server.query(SETTINGS)
    server.query(SNAPSHOT)
    try:
        expected = {
            table.definition.full_name: table
            for table in tables
            if _compares(table.definition, wants)
        }
        known = {(table.definition.database, table.definition.name) for table in tables}
        there = _server_tables(
            server, {database for database, _ in known} | set(tables.databases) | set(databases)
        )
        only_there = {
            f"{database}.{name}"
            for database, name in there
            if (database, name) not in known and wants(database, name)
        }
        result = Verification()
        for name in sorted(expected.keys() | only_there):
            report = _inexact(name, inexact) or (
                _Comparison(
                    server, expected[name], dialect, there, log_rules or server.rules_version
                ).run()
                if name in expected
                else _not_expected(server, name, there)
            )
            result.tables.append(report)
            if on_table is not None:
                on_table(report)
        return result
    finally:
        server.query("ROLLBACK")


def _compares(definition: TableDefinition, wants: Callable[[str, str], bool]) -> bool:
    """Temporary tables ended with their session, MariaDB's sequences are no tables, and some
    engines keep no rows."""
    if (
        definition.temporary
        or "SEQUENCE" in definition.options
        or not traits_of(definition).stores_rows
    ):
        return False
    return wants(definition.database, definition.name)


def _server_tables(
    server: Reader, databases: Collection[str]
) -> dict[tuple[str, str], frozenset[str]]:
    """(database, table) -> the names of its columns in lower case, without the server's
    own tables."""
    if not databases:
        return {}
    listed = ", ".join(_string(name) for name in sorted(databases))
    tables = {
        (_text(database), _text(name))  # the server finds Shop where shop is asked for
        for database, name in server.query(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES "
            f"WHERE TABLE_SCHEMA IN ({listed}) AND TABLE_TYPE IN {TYPES_WITH_ROWS}"
        )
    }
    columns: dict[tuple[str, str], set[str]] = {
        table: set() for table in tables if table[0] in databases and table[0] != OWN_DATABASE
    }
    for database, name, column in server.query(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE"
        f" TABLE_SCHEMA IN ({listed})"
    ):
        if (_text(database), _text(name)) in columns:
            columns[_text(database), _text(name)].add(_text(column).lower())
    return {table: frozenset(names) for table, names in columns.items()}


def _not_expected(
    server: Reader, full_name: str, there: Collection[tuple[str, str]]
) -> TableReport:
    """A table that only the server has."""
    place = next(place for place in there if f"{place[0]}.{place[1]}" == full_name)
    ((count,),) = server.query(f"SELECT COUNT(*) FROM {quoted(place[0])}.{quoted(place[1])}")
    rows = int(count)
    return TableReport(full_name, found_rows=rows, extra=rows, problem="it is on the server only")


def _inexact(full_name: str, inexact: Callable[[str, str], str | None]) -> TableReport | None:
    reason = inexact(*full_name.split(".", 1))
    return None if reason is None else TableReport(full_name, not_comparable=reason)


class _Comparison:
    """One table of both sides."""

    def __init__(
        self,
        server: Reader,
        table: MemoryTable,
        dialect: DisplayRules,
        there: dict[tuple[str, str], frozenset[str]],
        log_rules: str,
    ) -> None:
        definition = table.definition
        self.server = server
        self.table = table
        self.log_rules = log_rules
        self.reads_as = dialect_of(server.rules_version)
        self.there = there.get((definition.database, definition.name))
        places = [at for at, column in enumerate(definition.columns) if not column.hidden]
        self.names = tuple(definition.columns[at].name for at in places)
        self.cells: list[tuple[int, Cell]] = [
            (at, cell(definition.columns[at], dialect)) for at in places
        ]
        self.selected = ", ".join(expression(definition.columns[at], dialect) for at in places)
        key = () if definition.primary is None else definition.primary.columns
        self.key = tuple(places.index(at) for at in key) if set(key) <= set(places) else ()

    def run(self) -> TableReport:
        definition = self.table.definition
        report = TableReport(definition.full_name, 0)
        if (why := self.table.why_unreadable) is not None:
            report.not_comparable = f"it cannot be read in memory: {why}"
            return report
        report.expected_rows = len(current_rows(self.table, self.reads_as))
        if self.there is None:
            report.problem, report.missing = "it is not on the server", report.expected_rows
            return report
        self._compare_definition(report)
        try:
            left = Counter(map(_digest, self._expected()))
        except ReplicationError as error:  # a generated column that is not computed in memory
            report.not_comparable = f"it cannot be read in memory: {error.message}"
            return report
        extra: list[Cells] = []
        try:
            for row in self._found():
                report.found_rows += 1
                digest = _digest(row)
                count = left.get(digest, 0)
                if count > 1:
                    left[digest] = count - 1
                elif count:
                    del left[digest]
                else:
                    report.extra += 1
                    if len(extra) < KEPT:
                        extra.append(row)
        except ReplicationError as error:
            if error.number in NOT_SHOWN:
                report.not_comparable = f"the server cannot show all of its rows: {error.message}"
                report.extra = 0
                return report
            report.problem = error.message
        report.missing = sum(left.values())
        report.differences = self._pair(self._missing(left, extra), extra)
        return report

    def _compare_definition(self, report: TableReport) -> None:
        expected, version = self.table.definition, self.server.rules_version
        shown = self.server.query(
            f"SHOW CREATE TABLE {quoted(expected.database)}.{quoted(expected.name)}"
        )
        try:
            found = shown_definition(_text(shown[0][1]), expected.database, version)
        except BinlagError as error:
            report.not_comparable = f"the server's definition cannot be read: {error.message}"
            return
        told = differences(expected, found, version)
        if told and self.log_rules != version:
            report.not_comparable = (
                f"defaults of {self.log_rules} hold in the log, those of {version} on the server:"
                f" {'; '.join(told)}"
            )
        else:
            report.definition = told

    def _expected(self) -> Iterator[Cells]:
        for row in current_rows(self.table, self.reads_as):
            yield tuple([read(row[at]) for at, read in self.cells])

    def _found(self) -> Iterator[Cells]:
        definition = self.table.definition
        sql = f"SELECT {self.selected} FROM {quoted(definition.database)}.{quoted(definition.name)}"
        for row in self.server.stream(sql):
            yield tuple(row)

    def _missing(self, left: dict[bytes, int], extra: list[Cells]) -> list[Cells]:
        """Some of the rows that were not found: first those whose key an extra row has."""
        if not left:
            return []
        keys = {self._key_of(row) for row in extra} if self.key else set()
        paired: list[Cells] = []
        others: list[Cells] = []
        counts = dict(left)
        for row in self._expected():
            digest = _digest(row)
            if counts.get(digest, 0):
                counts[digest] -= 1
                chosen = paired if self._key_of(row) in keys else others
                if len(chosen) < KEPT:
                    chosen.append(row)
        return [*paired, *others]

    def _pair(self, missing: list[Cells], extra: list[Cells]) -> list[RowDifference]:
        by_key = {self._key_of(row): row for row in extra} if self.key else {}
        pairs = [
            RowDifference(self.names, row, by_key.pop(self._key_of(row), None)) for row in missing
        ]
        used = {pair.found for pair in pairs}
        pairs += [RowDifference(self.names, None, row) for row in extra if row not in used]
        return pairs[:KEPT]

    def _key_of(self, row: Cells) -> Cells:
        return tuple(row[at] for at in self.key)


def _digest(row: Cells) -> bytes:
    """Version 2 of marshal writes equal values as equal bytes: it shares no references."""
    return hashlib.blake2b(marshal.dumps(row, 2), digest_size=16).digest()


def _text(value: Any) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _string(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def shown(value: bytes | None) -> str | None:
    """A cell for people: text where it is some, else hexadecimal digits."""
    if value is None:
        return None
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return "0x" + value.hex()
    return text if text.isprintable() or text.strip().isprintable() else "0x" + value.hex()


def _shown_row(columns: tuple[str, ...], row: Cells | None) -> dict[str, str | None] | None:
    return (
        None
        if row is None
        else {name: shown(value) for name, value in zip(columns, row, strict=True)}
    )
