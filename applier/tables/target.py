"""Tables in memory as the target of a replay.

For each shape of rows event (table map, column bitmaps, the table as it stands) a plan is made
once: how to decode, which key and algorithm, how an after image becomes a row. Events that share
the shape reuse it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from applier.binlog.header import Event
from applier.binlog.images.row_decoder import Image, ImageReader
from applier.binlog.rows import NO_FOREIGN_KEY_CHECKS, RowsHead
from applier.binlog.table_map import TableMap
from applier.binlog.types.json import JsonDiff
from applier.errors import ReplicationError
from applier.result import Cost, ReplayResult, RowsRecord
from applier.tables.bulk_inserts import BulkInserts
from applier.tables.catalog import Tables
from applier.tables.engine import MemoryTable
from applier.tables.expressions.defaults import missing_row, row_generator
from applier.tables.expressions.operands import Dialect, Session
from applier.tables.images import RowImages
from lookup.batch import ApplyOptions, CorruptRow, RowFailure, RowsOutcome, RowsShape
from lookup.handler import Counters, Row
from lookup.rows import RowsPlan

MOST_PLANS = 5_000
"""Each time that a table is opened again its id is another, and with it the head of its events:
there is no end to them in a long run."""

EVENT_TEXT = {"write": "Write_rows", "update": "Update_rows", "delete": "Delete_rows"}
IDEMPOTENT_ERRORS = frozenset({1032, 1062, 1451, 1452})
"""What exec mode IDEMPOTENT lets pass (`idempotent_error_code`, sql/log_event.cc)."""
HINTS = {
    1032: (
        "the tables differ from the source's: start from a dump of the log's first position, or let"
        " it pass with --exec-mode idempotent"
    ),
    1062: (
        "the row is there already: start from a dump of the log's first position, or let it pass"
        " with --exec-mode idempotent"
    ),
    1180: "two rows have the same value of a unique key that the source's table does not have",
    1610: (
        "a row was misread after a missing one, as this server version does; replay with --server"
        " 8.0 or fix the data"
    ),
}


class Named(Protocol):
    """The transaction that an event belongs to; its GTID costs something to read."""

    @property
    def gtid(self) -> str | None:
        """Its GTID as text; None without one."""


def passed_note(number: int, table: str, *, idempotent: bool) -> str:
    """What is said, and counted, of an error that cost a row or the rest of its event, and did not
    stop the replay."""
    reason = (
        "--exec-mode idempotent" if idempotent and number in IDEMPOTENT_ERRORS else "--skip-errors"
    )
    return f"let pass by {reason}: error {number} on table {table}"


@dataclass(slots=True)
class TablePlan:
    """How rows events of one shape are applied to one table."""

    table_map: TableMap
    table: MemoryTable
    images: RowImages
    rows: RowsPlan
    cost: Cost
    may_misread: bool


@dataclass
class RowsApplier:
    """Applies rows events to `tables`. `conversions` is replica_type_conversions."""

    tables: Tables
    options: ApplyOptions
    result: ReplayResult
    conversions: frozenset[str] = frozenset()
    rename: dict[str, str] = field(default_factory=dict)
    """--rewrite-db: database in the log -> database here."""
    source_version: int = 0
    """Who wrote the log, as 80030; 0 for MariaDB."""
    _plans: dict[RowsHead, TablePlan] = field(default_factory=dict)
    _bulk: BulkInserts | None = field(init=False)
    """None for servers that have none."""

    def __post_init__(self) -> None:
        options = self.options
        self._bulk = (
            BulkInserts() if options.rules.bulk_inserts and not options.idempotent else None
        )

    def apply(self, event: Event, rows: RowsHead, table_map: TableMap, transaction: Named) -> None:
        """One event. Raises ReplicationError where the applier stops; what the event cost is in the
        result then, too."""
        plan = self._plans.get(rows)
        if plan is None or plan.table_map is not table_map or plan.table.replaced:
            plan = self._kept_plan(rows, table_map)
        table = plan.table
        if self._bulk is not None and (seen := self._bulk.seen(table, rows)) is not table:
            plan = self._plan(rows, table_map, seen)
            table = seen
        images = plan.images.rows(event, rows)
        misread = _Misreader(event, rows, plan).rows_behind if plan.may_misread else None
        if table.foreign_keys is not None:
            table.foreign_keys.enabled = not rows.flags & NO_FOREIGN_KEY_CHECKS
            self.tables.foreign_keys.times.begin(event.timestamp)
        cost, keep = plan.cost, self.result.keep
        counters = cost.counters if keep is None else Counters()
        outcome = RowsOutcome(counters)
        plan.rows.run(images, outcome, misread)
        if self._bulk is not None:
            self._bulk.settle(table, rows, outcome, self.options)
        cost.events += 1
        cost.rows += len(images)
        cost.rows_changed += outcome.rows_changed
        if keep is not None:
            cost.counters.add(counters)
            error = None if outcome.error is None else outcome.error.number
            changed = outcome.rows_changed
            keep(
                RowsRecord(
                    event.file,
                    event.position,
                    event.log_pos,
                    transaction.gtid,
                    cost,
                    len(images),
                    counters,
                    error,
                    changed,
                )
            )
        for failure in outcome.forgiven:
            place = {
                "file": event.file,
                "position": event.position,
                "gtid": transaction.gtid,
                "table": cost.table,
            }
            self.result.note(
                passed_note(failure.number, cost.table, idempotent=self.options.idempotent), **place
            )
        if outcome.error is not None:
            raise self._failure(event, rows, cost.table, outcome.error)

    def _failure(
        self, event: Event, rows: RowsHead, table: str, failure: RowFailure
    ) -> ReplicationError:
        """The error as the server words it."""
        word = self.options.rules.source_word
        handler = f" handler error {failure.handler_error};" if failure.handler_error else ""
        message = (
            f"Could not execute {EVENT_TEXT[rows.kind]} event on table {table};"
            f" {failure.condition}, Error_code: {failure.number};{handler} the event's {word} log"
            f" {event.file}, end_log_pos {event.log_pos}"
        )
        return ReplicationError(
            failure.number,
            message + f"; row {failure.row + 1} of the event",
            file=event.file,
            position=event.position,
            table=table,
            hint=HINTS.get(failure.number),
        )

    # plans

    def table_of(self, table_map: TableMap) -> MemoryTable | None:
        """The table that a table map stands for."""
        return self.tables.get(*self._name(table_map))

    def _name(self, table_map: TableMap) -> tuple[str, str]:
        """Database and table of a table map, by their names here."""
        database, table = map(self.tables.name_here, (table_map.database, table_map.table))
        return self.rename.get(database, database), table

    def _kept_plan(self, rows: RowsHead, table_map: TableMap) -> TablePlan:
        table = self.table_of(table_map)
        if table is None:
            raise self.tables.missing(*self._name(table_map))
        plan = self._plan(rows, table_map, table)
        if len(self._plans) >= MOST_PLANS:
            self._plans.clear()
        self._plans[rows] = plan
        return plan

    def _plan(self, rows: RowsHead, table_map: TableMap, table: MemoryTable) -> TablePlan:
        definition = table.definition
        table.open()
        images = RowImages(
            rows,
            table_map,
            definition,
            self.conversions,
            canonical_json=self._compares(table),
            source_version=self.source_version,
        )
        before_columns, after_columns = images.before_columns, images.after_columns
        stored = before_columns if rows.kind == "write" else after_columns
        rules_look_beyond = self.options.rules.find_row or self.options.rules.collisions_apply
        shape = RowsShape(
            kind=rows.kind,
            before_columns=before_columns,
            after_columns=after_columns,
            new_row=_row_maker(table, stored, self.tables.dialect, partial=rows.partial),
            complete=len(stored) == len(definition.columns),
            bitmap_full=images.bitmap_full,
            defaults=(
                missing_row(definition, self.tables.dialect)
                if rules_look_beyond and len(before_columns) < len(definition.columns)
                else None
            ),
        )
        rows_plan = RowsPlan(table, shape, self.options)
        key = rows_plan.decision.key
        return TablePlan(
            table_map,
            table,
            images,
            rows_plan,
            self.result.cost(
                definition.full_name,
                rows.kind,
                rows_plan.decision.algorithm,
                None if key is None else key.name,
            ),
            rows.kind == "update" and self.options.idempotent and before_columns != after_columns,
        )

    def _compares(self, table: MemoryTable) -> bool:
        """Whether rows of the table may be looked up by comparing them as a whole.

        The server compares JSON columns by value (`Field_json::cmp_binary`); a document that was
        updated in place has gaps, so its bytes say nothing until it is serialized anew.
        """
        row_search = self.options.row_search
        return table.definition.primary is None or (
            row_search is not None and "INDEX_SCAN" not in row_search
        )


def _row_maker(
    table: MemoryTable, stored: tuple[int, ...], dialect: Dialect, *, partial: bool
) -> Callable[[Row | None, Image], Row] | None:
    """How an image of `stored` columns becomes a row; None when the image is the row."""
    definition = table.definition
    missing = set(range(len(definition.columns))) - set(stored)
    if not missing and not partial:
        return None
    generate = (
        row_generator(definition, Session.at_utc(dialect))
        if any(definition.columns[at].generated for at in missing)
        else None
    )
    auto = next((at for at in missing if definition.columns[at].auto_increment), None)
    json_columns = (
        [at for at, column in enumerate(definition.columns) if column.type == "json"]
        if partial
        else []
    )
    defaults: list[Row] = []

    def make(old: Row | None, image: Image) -> Row:
        if old is None and not defaults:
            defaults.append(missing_row(definition, dialect))
        row = list(defaults[0] if old is None else old)
        if old is None and auto is not None:
            row[auto] = table.auto_increment
        for column, value in zip(stored, image, strict=True):
            row[column] = value
        for column in json_columns:
            if isinstance(row[column], JsonDiff):
                row[column] = row[column].apply((old[column] if old is not None else None) or b"")
        return tuple(row) if generate is None else generate(tuple(row))

    return make


@dataclass(slots=True)
class _Misreader:
    """Reads an update event on from where a server stands that took an after image for a before
    image (5.6, 5.7)."""

    event: Event
    rows: RowsHead
    plan: TablePlan
    _after_at: dict[int, int] = field(default_factory=dict)
    """Row index -> where its after image starts, as read last."""

    def rows_behind(self, index: int) -> list[Any]:
        if not self._after_at:
            self._read(self.event.body + self.rows.length, 0)
        try:
            _, at = self._image(self.plan.images.before_reader, self._after_at[index])
        except CorruptRow as corrupt:
            return [corrupt]
        return self._read(at, index + 1)

    def _image(self, reader: ImageReader, at: int) -> tuple[Image, int]:
        try:
            image, end = reader(self.event.buffer, at, self.event.end)
        except Exception:
            raise CorruptRow from None
        return image, end

    def _read(self, at: int, index: int) -> list[Any]:
        found: list[Any] = []
        while at < self.event.end:
            try:
                before, at = self._image(self.plan.images.before_reader, at)
            except CorruptRow as corrupt:
                return [*found, corrupt]
            self._after_at[index + len(found)] = at
            try:
                after, at = self._image(self.plan.images.after_reader, at)
            except CorruptRow as corrupt:
                return [*found, (before, corrupt)]
            found.append((before, after))
        return found
