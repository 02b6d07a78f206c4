"""One rows event as statements, each with what must be true of its answer; and in words what was
found instead.

A row that is found by a unique key is looked for by its whole image first: where only the key leads
to it, the replica goes on as a server's would, and the report says that the row differs. Twins are
counted: many images are changed in one scan only where the table holds each as often as the event
names it, else one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from applier.binlog.header import Event
from applier.binlog.rows import RowsHead
from applier.binlog.types import to_text
from applier.binlog.types.json import JsonDiff
from applier.errors import ReplicationError
from applier.mysql.client.connection import TRANSIENT
from applier.mysql.client.pipeline import PipelineStatement
from applier.mysql.outcome import Place, Remark, place_of
from applier.mysql.statements.row_sql import Image, RowSql
from applier.options import ReplayOptions
from applier.tables.target import EVENT_TEXT, HINTS, IDEMPOTENT_ERRORS, passed_note

MOST_SKIPPED = frozenset(range(1000, 14000)) - TRANSIENT
MOST_IN_ONE_SCAN = 256
MOST_STATEMENT_BYTES = 1 << 18
"""Rows of an INSERT are cut into statements of about this many bytes of event."""
DUPLICATE = 1062
TOO_MANY_ROWS = 1242
"""What a subquery of two rows says: the one error that a statement can be made to have."""
NOT_FOUND_GUARD = b"SET @binlag_found = IF(ROW_COUNT() = 0, (SELECT 1 UNION ALL SELECT 2), 1)"
VALUE_WIDTH = 40
NOTHING = b"DO 0"
NOTHING_MATCHED = "ROW_COUNT() = 0"
"""Said of the statement before."""
MOST_DIVERGENCES = 100
"""Rows that are named in the report; the others are counted."""

Where = partial[str]
"""The rows of a statement in words, made when somebody asks. Its first argument is the number of
the first row."""


class Notes:
    """What the exec mode and the skip list let pass, and which rows were found to differ."""

    def __init__(self, options: ReplayOptions, note: Remark) -> None:
        self.options = options
        self.note = note
        self.divergences = 0
        self.allowed = (
            MOST_SKIPPED if options.skip_errors is None else options.skip_errors - TRANSIENT
        )
        if options.idempotent:
            self.allowed |= IDEMPOTENT_ERRORS

    def forgive(self, number: int, table: str, place: Place, count: int = 1) -> None:
        """`count` rows from `place` on were let pass."""
        file, position, inner, row = place
        for at in range(row, row + count):
            self.note(
                passed_note(number, table, idempotent=self.options.idempotent),
                (file, position, inner, at),
            )

    def differs(self, table: str, place: Place, words: str) -> None:
        """A row that was changed by its key although it differs from its before image."""
        self.note(
            f"rows of {table} differed from their before images and were changed by their key",
            place,
        )
        self.divergences += 1
        if self.divergences <= MOST_DIVERGENCES:
            self.note(f"differed: {table}, {words}", place)


class EventRows:
    """The statements of one event. `one_by_one`: a row has a statement of its own, so that a
    failure names it."""

    def __init__(
        self,
        event: Event,
        rows: RowsHead,
        sql: RowSql,
        notes: Notes,
        source_word: str,
        *,
        one_by_one: bool = False,
    ) -> None:
        self.event = event
        self.kind = rows.kind
        self.sql = sql
        self.notes = notes
        self.source_word = source_word
        self.one_by_one = one_by_one
        self.table = sql.definition.full_name
        self.skips = notes.options.skips
        self._statements: list[PipelineStatement] = []

    def statements(self, rows: Sequence[Any]) -> list[PipelineStatement]:
        """Images of a write or delete, (before, after) pairs of an update."""
        if self.kind == "write":
            self._write(rows)
        elif self._leaves(1032) and not self.sql.by_hash:
            for index, row in enumerate(rows):
                self._guarded(index, row)
        elif self.sql.by_unique_key:
            for start, chunk in self._chunks(rows, MOST_IN_ONE_SCAN):
                self._by_keys(start, chunk)
        elif self.sql.one_pass and len(rows) > 1:
            for start, chunk in self._chunks(rows, MOST_IN_ONE_SCAN):
                self._in_one_scan(start, chunk)
        else:
            self._by_image(0, rows)
        return self._statements

    # the ways to apply an event

    def _write(self, rows: Sequence[Image]) -> None:
        idempotent = self.notes.options.idempotent
        single = (
            self.one_by_one
            or idempotent
            or self._leaves(1062)
            or self.sql.definition.engine.lower() != "innodb"
        )
        for start, chunk in self._chunks(rows, 1 if single else len(rows)):
            where = (
                partial(self._row_text, start, chunk[0])
                if len(chunk) == 1
                else partial(self._rows_text, start, len(chunk))
            )
            statement = self._add(self.sql.insert(chunk), where)
            if idempotent:
                self._overwrite(statement, self._add(NOTHING, where), chunk)

    def _overwrite(
        self, refused: PipelineStatement, behind: PipelineStatement, row: Sequence[Image]
    ) -> None:
        """A row that is refused overwrites what stands in its way, by the statement that has its
        place behind it."""
        tell = refused.on_error

        def overwrite(error: ReplicationError) -> None:
            if tell is not None:
                tell(error)
            if error.number == DUPLICATE:
                behind.sql = self.sql.insert(row, replace=True)

        refused.on_error = overwrite

    def _chunks(self, rows: Sequence[Any], most: int) -> Iterator[tuple[int, Sequence[Any]]]:
        """The rows in statements of not too many, and not too many bytes; with the place of the
        first."""
        size = (self.event.end - self.event.body) // max(1, len(rows)) + 1
        step = max(1, min(most, MOST_STATEMENT_BYTES // size))
        for start in range(0, len(rows), step):
            yield start, rows[start : start + step]

    def _by_keys(self, first: int, rows: Sequence[Any]) -> None:
        """Many rows in one statement, if their order does not matter and a failure can be taken
        back and looked into row by row."""
        together = (
            len(rows) > 1
            and not self.one_by_one
            and not self.notes.options.idempotent
            and self.sql.can_be_undone
        )
        befores = {row[0] if self.kind == "update" else row for row in rows}
        if not (
            together and len(befores) == len(rows) and all(map(self.sql.keeps_unique_keys, rows))
        ):
            for index, row in enumerate(rows):
                self._by_key(first + index, row)
            return
        where = partial(self._rows_text, first, len(rows))
        self._add(self.sql.change_all(rows, "TRUE"), where).check = self._exactly(len(rows), where)

    def _by_key(self, index: int, row: Any) -> None:
        """By the whole image; and if that matched nothing by the key, as a server does from the
        start."""
        found = _Found()
        where = partial(self._row_text, index, row)
        whole = self._add(self.sql.change(row), where)
        whole.check = found.first
        tell = whole.on_error

        def passed_over(error: ReplicationError) -> None:
            found.count = 1
            if tell is not None:
                tell(error)

        whole.on_error = passed_over

        def check(count: int) -> None:
            if found.count + count == 0:
                self._missing(where)
            elif count:
                self.notes.differs(self.table, self._place(where), self._words(where))

        self._add(self.sql.change(row, key_only=True, only_if=NOTHING_MATCHED), where).check = check

    def _by_image(self, first: int, rows: Sequence[Any]) -> None:
        """A statement for each image, equal ones behind each other in one."""
        for start, count in _runs(rows):
            where = partial(self._row_text, first + start, rows[start])
            statement = self._add(self.sql.change(rows[start], count), where)
            statement.check = self._exactly(count, where)

    def _in_one_scan(self, first: int, rows: Sequence[Any]) -> None:
        """Counts, then changes all images at once where each is there as often as it is named; else
        one after the other."""
        needed: dict[Any, int] = {}
        for row in rows:
            needed[row] = needed.get(row, 0) + 1
        befores = {row[0] if self.kind == "update" else row for row in needed}
        if len(befores) != len(needed) or len(needed) == 1:
            self._by_image(first, rows)
            return
        counts = list(needed.items())
        found = _Found()
        many = partial(self._rows_text, first, len(rows))
        self._add(self.sql.count_images(counts), many)
        self._add(
            self.sql.change_all([row for row, _ in counts], f"@binlag_found = {len(counts)}"), many
        ).check = found.first

        def was_done() -> bool:
            return found.count == len(rows)

        for start, count in _runs(rows):
            where = partial(self._row_text, first + start, rows[start])
            statement = self._add(
                self.sql.change(rows[start], count, only_if=f"@binlag_found <> {len(counts)}"),
                where,
            )
            statement.check = self._exactly(count, where, was_done)

    def _guarded(self, index: int, row: Any) -> None:
        """A row that is not found ends the event, as the skip list has it: the statement behind it
        then fails.

        A hash scan has changed all rows that are there before it misses one: nothing is left to end
        then.
        """
        where = partial(self._row_text, index, row)
        self._add(self.sql.change(row, key_only=self.sql.by_unique_key), where)
        guard = self._add(NOT_FOUND_GUARD, where, number=1032)
        guard.allowed = frozenset({TOO_MANY_ROWS})

    # statements and their answers

    def _add(self, sql: bytes, where: Where, number: int | None = None) -> PipelineStatement:
        place = len(self._statements) + 1

        def passed_over(error: ReplicationError) -> None:
            self.notes.forgive(number or error.number, self.table, self._place(where))
            if self._leaves(number or error.number):
                for behind in self._statements[place:]:
                    behind.sql, behind.check = NOTHING, None

        def explain(error: ReplicationError) -> None:
            error.message = self._message(error.number, error.message, where)
            error.hint = error.hint or HINTS.get(error.number)

        statement = PipelineStatement(
            sql, self.event, self.table, self.notes.allowed, on_error=passed_over, explain=explain
        )
        self._statements.append(statement)
        return statement

    def _leaves(self, number: int) -> bool:
        """Whether this error ends the event as if it were done: it is in the skip list, and the
        exec mode does not let it pass."""
        return self.skips(number) and not (
            self.notes.options.idempotent and number in IDEMPOTENT_ERRORS
        )

    def _exactly(
        self, wanted: int, where: Where, was_done: Callable[[], bool] | None = None
    ) -> Callable[[int], None]:
        def check(count: int) -> None:
            if count != wanted and not (was_done is not None and was_done()):
                self._missing(where, wanted - count)

        return check

    def _missing(self, where: Where, count: int = 1) -> None:
        if self.notes.options.idempotent or self.skips(1032):
            self.notes.forgive(1032, self.table, self._place(where), count)
            return
        condition = f"Can't find record in '{self.sql.definition.name}'"
        raise ReplicationError(1032, self._message(1032, condition, where), hint=HINTS[1032])

    # words

    def _message(self, number: int, condition: str, where: Where) -> str:
        """As the server words it, and the image."""
        return (
            f"Could not execute {EVENT_TEXT[self.kind]} event on table {self.table}; {condition},"
            f" Error_code: {number}; the event's {self.source_word} log {self._words(where)}"
        )

    def _place(self, where: Where) -> Place:
        return place_of(self.event, where.args[0])

    def _words(self, where: Where) -> str:
        return f"{self.event.file}, end_log_pos {self.event.log_pos}; {where()}"

    def _rows_text(self, start: int, count: int) -> str:
        return f"rows {start + 1} to {start + count} of the event"

    def _row_text(self, index: int, row: Any) -> str:
        image = row[0] if self.kind == "update" else row
        columns = self.sql.before_columns
        definition = self.sql.definition
        cells = (
            f"{definition.columns[at].name}={_cell(definition.columns[at], value)}"
            for at, value in zip(columns, image, strict=True)
        )
        return f"row {index + 1} of the event: {', '.join(cells)}"


class _Found:
    """What an earlier statement matched."""

    def __init__(self) -> None:
        self.count = 0

    def first(self, count: int) -> None:
        self.count = count


def _cell(column: Any, value: Any) -> str:
    if value is None or isinstance(value, JsonDiff):
        return "NULL" if value is None else "(changes)"
    text = str(to_text(column)(value))
    return repr(text if len(text) <= VALUE_WIDTH else text[: VALUE_WIDTH - 1] + "…")


def _runs(rows: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """(place, length) of each run of equal rows."""
    start = 0
    for at in range(1, len(rows) + 1):
        if at == len(rows) or rows[at] != rows[start]:
            yield start, at - start
            start = at
