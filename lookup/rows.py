"""Apply rows events to one table: the event loop, exec mode, and which errors stop it.

A `RowsPlan` is made once for events of one shape: decision, search, what may go wrong. `apply` is
then all that happens between decoded rows and changed rows (`Rows_log_event::do_apply_event`,
`handle_idempotent_and_ignored_errors`, `Write_rows_log_event::write_row`, sql/log_event.cc 5.6 to
9.7; the same loop in MariaDB's log_event_server.cc).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lookup.batch import ApplyOptions, CorruptRow, Misread, RowFailure, RowsOutcome, RowsShape
from lookup.decision import any_column_local, decide
from lookup.handler import Counters, DuplicateKey, Handler, Image, Ref, Row, RowError
from lookup.hash_scan import HashPlan, HashScan
from lookup.scan_cursors import CursorRequest, ScanCursor
from lookup.search import (
    END_OF_FILE,
    KEY_NOT_FOUND,
    RowSearch,
    SearchRequest,
    WholeRow,
    read_costs,
)
from lookup.strategies import Decision
from lookup.table import Key, TableDefinition

FAIL, NEXT_ROW, LEAVE = "fail", "next row", "leave"
"""What an error does: it stops the applier, costs one row, or ends the event as if it were done."""

MISSING_ERRORS = {KEY_NOT_FOUND: 1032, END_OF_FILE: 1032}


class RowsPlan:
    """Rows events of one shape on one table, under one set of options. `decision` holds for every
    event.

    Rows changed before an error stay changed: the transaction is the caller's.
    """

    __slots__ = (
        "_hash",
        "_misreads",
        "_search",
        "decision",
        "handler",
        "is_update",
        "options",
        "run",
        "shape",
    )

    def __init__(self, handler: Handler, shape: RowsShape, options: ApplyOptions) -> None:
        self.handler = handler
        self.shape = shape
        self.options = options
        self.is_update = shape.kind == "update"
        self.decision = Decision()
        self._misreads = False
        self._search: RowSearch | None = None
        self._hash: HashPlan | None = None
        self.run: Callable[[Sequence[Any], RowsOutcome, Misread | None], None] = self._choose()
        """Applies the rows of one event, images or (before, after) pairs for an update, and fills
        in the outcome."""

    def apply(
        self, rows: Sequence[Any], counters: Counters, misread: Misread | None = None
    ) -> RowsOutcome:
        """`run` with an outcome of its own. Adds to `counters` what the event cost."""
        outcome = RowsOutcome(counters)
        self.run(rows, outcome, misread)
        return outcome

    def _choose(self) -> Callable[[Sequence[Any], RowsOutcome, Misread | None], None]:
        """Decides once; returns the method that applies an event."""
        shape, handler = self.shape, self.handler
        if shape.kind == "write":
            return self._write if handler.traits.stores_rows else self._nothing
        width = len(handler.definition.columns)
        if self.is_update and not any_column_local(shape.after_columns, width):
            return self._nothing
        rules = self.options.rules
        self.decision = decide(
            handler.definition,
            shape.before_columns,
            rules,
            self.options.row_search,
            handler.rows_per_value,
        )
        if not handler.traits.stores_rows:
            return self._nothing
        if not any_column_local(shape.before_columns, width):
            return self._no_column
        strategy = self.decision.strategy
        assert strategy is not None
        if strategy.cursor is not None:
            self._hash = self._hash_plan(strategy.cursor)
            return self._by_hash
        assert strategy.search is not None
        by_index = self.decision.key is not None
        misreads = rules.misread_after_index_miss if by_index else rules.misread_after_scan_miss
        self._misreads = misreads and self.is_update and shape.before_columns != shape.after_columns
        everything = tuple(range(width))
        columns = everything if rules.find_row else shape.before_columns
        compared = compared_columns(handler.definition, columns)
        chosen = self.decision.key, self.decision.key_class
        search = strategy.search(SearchRequest(handler, columns, compared, chosen, rules))
        if columns != shape.before_columns:
            search = WholeRow(search, shape.before_columns, shape.defaults or (None,) * width)
        self._search = search
        return self._one_by_one

    # the ways to apply an event

    def _nothing(self, rows: Sequence[Any], outcome: RowsOutcome, misread: Misread | None) -> None:
        """An engine that stores no rows, or an update of columns that the table does not have."""

    def _no_column(
        self, rows: Sequence[Any], outcome: RowsOutcome, misread: Misread | None
    ) -> None:
        self._judge_missing(END_OF_FILE, 0, outcome)

    def _one_by_one(
        self, rows: Sequence[Any], outcome: RowsOutcome, misread: Misread | None
    ) -> None:
        """Index scan and table scan: find, change, next."""
        search, counters, is_update = self._search, outcome.counters, self.is_update
        assert search is not None
        find, change, index = search.find, self._change, 0
        while index < len(rows):
            row = rows[index]
            if self._misreads and isinstance(row, CorruptRow):
                self._judge_corrupt(index, outcome)
                return
            ref = find(row[0] if is_update else row, counters)
            if ref is None:
                verdict = self._judge_missing(search.missing, index, outcome)
                if verdict == NEXT_ROW and self._misreads and misread is not None:
                    rows = [*rows[: index + 1], *misread(index)]
            elif self._misreads and isinstance(row[1], CorruptRow):
                verdict = self._judge_corrupt(index, outcome)
            else:
                try:
                    change(ref, row, outcome)
                    index += 1
                    continue
                except RowError as error:
                    verdict = self._judge_error(error, index, outcome)
            if verdict != NEXT_ROW:
                return
            index += 1

    def _by_hash(self, rows: Sequence[Any], outcome: RowsOutcome, misread: Misread | None) -> None:
        """Hash scan: all rows from the read position on are hashed, then scanned for; a scan may
        leave the position behind."""
        assert self._hash is not None
        scan = HashScan(self._hash, outcome.counters)
        found: set[int] = set()

        def apply(
            entry: int, ref: Ref, buffer: Row | None
        ) -> tuple[Ref | None, Row | None, str | None]:
            row = rows[entry]
            found.add(entry)
            try:
                if buffer is None:
                    return self._change(ref, row, outcome), None, None
                return *self._change_beside(ref, row, buffer, outcome), None
            except RowError as error:
                verdict = self._judge_error(error, entry, outcome)
            if verdict != NEXT_ROW:
                return None, None, {LEAVE: "leave", FAIL: "stop"}[verdict]
            return (
                ref,
                self._new_row(row, self.handler.get(ref) if buffer is None else buffer),
                None,
            )

        index = 0
        while index < len(rows):
            for entry in range(index, len(rows)):
                scan.hash_row(entry, rows[entry][0] if self.is_update else rows[entry])
            error, position = scan.scan(apply)
            if error == "stop" or (
                error is not None and self._judge_missing(error, len(rows) - 1, outcome) != NEXT_ROW
            ):
                break
            index = len(rows) if position is None else position + 1
        if len(found) < len(rows) and outcome.error is None and scan.read_all:
            self._count_missing(len(rows), found, outcome)

    def _count_missing(self, count: int, found: set[int], outcome: RowsOutcome) -> None:
        """Each image that no row was found for is let pass once, however often, or seldom, the scan
        said so."""
        missing = MISSING_ERRORS[KEY_NOT_FOUND]
        condition = f"Can't find record in '{self.handler.definition.name}'"
        others = [failure for failure in outcome.forgiven if failure.number != missing]
        passed = [
            RowFailure(missing, condition, KEY_NOT_FOUND, index)
            for index in range(count)
            if index not in found
        ]
        outcome.forgiven = (*others, *passed)

    def _hash_plan(self, cursor: Callable[[CursorRequest], ScanCursor]) -> HashPlan:
        handler = self.handler
        shape = self.shape
        rules = self.options.rules
        decision = self.decision
        columns = handler.definition.columns
        lacks_columns = not rules.hash_looks_again and shape.bitmap_full
        extra = range(len(shape.before_columns), len(columns)) if lacks_columns else ()
        return HashPlan(
            handler=handler,
            rules=rules,
            cursor=cursor,
            columns=shape.before_columns,
            compared=compared_columns(handler.definition, shape.before_columns),
            key=decision.key,
            costs=read_costs(handler, rules),
            idempotent=self.options.idempotent,
            looks_again=rules.hash_looks_again
            and self.is_update
            and decision.key_class != "primary",
            ignores_missing=self.options.skips(1032),
            hashes_nulls=shape.bitmap_full,
            null_filter=tuple(
                (at, columns[at].default is None) for at in extra if columns[at].nullable
            ),
            defaults=shape.defaults,
        )

    def _write(self, rows: Sequence[Any], outcome: RowsOutcome, misread: Misread | None) -> None:
        """INSERT: STRICT refuses a duplicate, IDEMPOTENT replaces what stands in the way."""
        insert, new_row, counters = self.handler.insert, self.shape.new_row, outcome.counters
        for index, image in enumerate(rows):
            row = image if new_row is None else new_row(None, image)
            counters.write += 1
            try:
                insert(row)
            except RowError as error:
                if isinstance(error, DuplicateKey) and self.options.idempotent:
                    verdict = self._replace(row, image, error, index, outcome)
                else:
                    verdict = self._judge_error(error, index, outcome)
                if verdict != NEXT_ROW:
                    return
                continue
            outcome.rows_changed += 1

    # one row

    def _change(self, ref: Ref, row: Any, outcome: RowsOutcome) -> Ref | None:
        """Updates or deletes the row found; returns its ref after an update. Raises RowError."""
        if not self.is_update:
            outcome.counters.delete += 1
            self.handler.delete(ref)
            outcome.rows_changed += 1
            return None
        new = row[1] if self.shape.new_row is None else self._new_row(row, self.handler.get(ref))
        outcome.counters.update += 1
        moved = self.handler.update(ref, new)
        outcome.rows_changed += 1
        return moved

    def _change_beside(
        self, ref: Ref, row: Any, buffer: Row, outcome: RowsOutcome
    ) -> tuple[Ref, Row]:
        """An update of a row that does not stand as the record buffer has it: the columns that
        differ from the buffer change."""
        new = self._new_row(row, buffer)
        stands = self.handler.get(ref)
        assert stands is not None
        outcome.counters.update += 1
        moved = self.handler.update(
            ref, tuple(n if n != b else s for s, b, n in zip(stands, buffer, new, strict=True))
        )
        outcome.rows_changed += 1
        return moved, new

    def _new_row(self, row: Any, old: Row | None) -> Row:
        """The row that an update makes of `old`; a row that is deleted stays what it was."""
        if not self.is_update:
            assert old is not None
            return old
        new: Row = row[1] if self.shape.new_row is None else self.shape.new_row(old, row[1])
        return new

    def _replace(
        self, row: Row, image: Image, duplicate: DuplicateKey, index: int, outcome: RowsOutcome
    ) -> str:
        """`write_row` with overwrite: the row in the way is updated when its key is the table's
        last unique key, else deleted.

        A refused update is an error like any other; only a refused insert is tried again. The
        refusal that it began with counts as let pass.
        """
        outcome.forgiven += (
            RowFailure(duplicate.number, str(duplicate), duplicate.handler_error, index),
        )
        handler, counters, new_row = self.handler, outcome.counters, self.shape.new_row
        while True:
            if handler.traits.duplicate_position:
                counters.read_rnd += 1
            else:
                counters.read_key += 1
            if not self.shape.complete and new_row is not None:
                row = new_row(handler.get(duplicate.ref), image)
            try:
                if is_last_unique(handler.definition, duplicate.key) and not handler.is_referenced:
                    counters.update += 1
                    handler.update(duplicate.ref, row)
                    break
                counters.delete += 1
                handler.delete(duplicate.ref)
            except RowError as error:
                return self._judge_error(error, index, outcome)
            counters.write += 1
            try:
                handler.insert(row)
                break
            except DuplicateKey as again:
                duplicate = again
            except RowError as error:
                return self._judge_error(error, index, outcome)
        outcome.rows_changed += 1
        return NEXT_ROW

    # verdicts

    def _judge(
        self, failure: RowFailure, outcome: RowsOutcome, *, may_be_idempotent: bool = True
    ) -> str:
        """`handle_idempotent_and_ignored_errors`."""
        if may_be_idempotent and self.options.idempotent:
            outcome.forgiven += (failure,)
            return NEXT_ROW
        if self.options.skips(failure.number):
            outcome.forgiven += (failure,)
            return LEAVE
        outcome.error = failure
        return FAIL

    def _judge_missing(self, handler_error: str, index: int, outcome: RowsOutcome) -> str:
        condition = f"Can't find record in '{self.handler.definition.name}'"
        return self._judge(
            RowFailure(MISSING_ERRORS[handler_error], condition, handler_error, index), outcome
        )

    def _judge_error(self, error: RowError, index: int, outcome: RowsOutcome) -> str:
        return self._judge(
            RowFailure(error.number, str(error), error.handler_error, index), outcome
        )

    def _judge_corrupt(self, index: int, outcome: RowsOutcome) -> str:
        failure = RowFailure(1610, "Corrupted replication event was detected", "No Error!", index)
        return self._judge(failure, outcome, may_be_idempotent=False)


def is_last_unique(definition: TableDefinition, key: Key) -> bool:
    """`last_uniq_key`: no unique key behind this one in the table's key order."""
    keys = definition.sorted_keys
    return not any(later.unique for later in keys[keys.index(key) + 1 :])


def compared_columns(definition: TableDefinition, columns: tuple[int, ...]) -> tuple[int, ...]:
    """The image columns that record_compare looks at: virtual generated ones are left out."""
    if not any(definition.columns[column].is_virtual for column in columns):
        return columns
    return tuple(column for column in columns if not definition.columns[column].is_virtual)
