"""Apply one rows event to one table: the event loop, exec mode, and which errors stop it.

`apply_rows` is the whole of what happens between a decoded rows event and changed rows
(`Rows_log_event::do_apply_event`, `handle_idempotent_and_ignored_errors`, `Write_rows_log_event::write_row`,
sql/log_event.cc 5.6 to 9.7; the same loop in MariaDB's log_event_server.cc).
"""

from __future__ import annotations

from lookup.batch import ApplyOptions, CorruptRow, Failure, Outcome, RowsBatch
from lookup.decision import (
    BY_INDEX,
    HASH_OVER_INDEX,
    HASH_OVER_TABLE,
    NOT_NEEDED,
    Decision,
    any_column_local,
    decide,
)
from lookup.handler import DuplicateKey, Handler, Image, Ref, Row, RowError, traits_of
from lookup.hash_scan import HashScan
from lookup.search import END_OF_FILE, KEY_NOT_FOUND, read_costs, row_search
from lookup.table import Key, TableDefinition

FAIL, NEXT_ROW, LEAVE = "fail", "next row", "leave"
"""What an error does: it stops the applier, costs one row, or ends the event as if it were done."""

MISSING_ERRORS = {KEY_NOT_FOUND: 1032, END_OF_FILE: 1032}


def apply_rows(handler: Handler, batch: RowsBatch, options: ApplyOptions, decision: Decision | None = None) -> Outcome:
    """Applies the batch. Rows changed before an error stay changed: the transaction is the caller's.

    `decision` saves deciding again where the caller keeps it per table map and image.
    """
    if batch.kind == "write":
        outcome = Outcome(Decision(NOT_NEEDED))
        if traits_of(handler.definition).stores_rows:
            _Writer(handler, batch, options, outcome).run()
        return outcome
    width = len(handler.definition.columns)
    if batch.kind == "update" and not any_column_local(batch.after_columns, width):
        return Outcome(Decision(NOT_NEEDED))
    if decision is None:
        decision = decide(handler.definition, batch.before_columns, options.rules, options.row_search, handler.rows_per_value)
    outcome = Outcome(decision)
    if not traits_of(handler.definition).stores_rows:
        return outcome
    if not any_column_local(batch.before_columns, width):
        _Changer(handler, batch, options, outcome).judge_missing(END_OF_FILE, 0)
    elif decision.algorithm in (HASH_OVER_INDEX, HASH_OVER_TABLE):
        _by_hash(_Changer(handler, batch, options, outcome), decision)
    else:
        _one_by_one(_Changer(handler, batch, options, outcome), decision)
    return outcome


class _Changer:
    """Carries out the UPDATE or DELETE of single rows and judges what goes wrong."""

    def __init__(self, handler: Handler, batch: RowsBatch, options: ApplyOptions, outcome: Outcome) -> None:
        self.handler = handler
        self.batch = batch
        self.options = options
        self.outcome = outcome
        self.rows = batch.rows
        self.is_update = batch.kind == "update"

    def change(self, ref: Ref, index: int) -> Ref | None:
        """Updates or deletes the row found for entry `index`; returns its ref after an update. Raises RowError."""
        if not self.is_update:
            self.outcome.counters.delete += 1
            self.handler.delete(ref)
            self.outcome.rows_changed += 1
            return None
        old = self.handler.get(ref)
        new = self.batch.new_row(old, self.rows[index][1])
        self.outcome.counters.update += 1
        moved = self.handler.update(ref, new)
        self.outcome.rows_changed += 1
        return moved

    def before(self, index: int) -> Image:
        row = self.rows[index]
        image: Image = row[0] if self.is_update else row
        return image

    def judge(self, failure: Failure, *, may_be_idempotent: bool = True) -> str:
        """`handle_idempotent_and_ignored_errors`."""
        if may_be_idempotent and self.options.idempotent:
            self.outcome.forgiven.append(failure)
            return NEXT_ROW
        if self.options.skips(failure.number):
            self.outcome.forgiven.append(failure)
            return LEAVE
        self.outcome.error = failure
        return FAIL

    def judge_missing(self, handler_error: str, index: int) -> str:
        condition = f"Can't find record in '{self.handler.definition.name}'"
        return self.judge(Failure(MISSING_ERRORS[handler_error], condition, handler_error, index))

    def judge_error(self, error: RowError, index: int) -> str:
        return self.judge(Failure(error.number, str(error), error.handler_error, index))

    def judge_corrupt(self, index: int) -> str:
        failure = Failure(1610, "Corrupted replication event was detected", "No Error!", index)
        return self.judge(failure, may_be_idempotent=False)


def _one_by_one(changer: _Changer, decision: Decision) -> None:
    """Index scan and table scan: find, change, next."""
    batch, options = changer.batch, changer.options
    columns = batch.before_columns
    compared = compared_columns(changer.handler.definition, columns)
    search = row_search(decision, changer.handler, changer.outcome.counters, columns, compared, options.rules)
    by_index = decision.algorithm == BY_INDEX
    misreads = options.rules.misread_after_index_miss if by_index else options.rules.misread_after_scan_miss
    misreads = misreads and changer.is_update and batch.before_columns != batch.after_columns
    index = 0
    while index < len(changer.rows):
        if misreads and isinstance(changer.rows[index], CorruptRow):
            changer.judge_corrupt(index)
            return
        ref = search.find(changer.before(index))
        if ref is None:
            verdict = changer.judge_missing(search.missing, index)
            if verdict == NEXT_ROW and misreads and batch.misread_from is not None:
                changer.rows = [*changer.rows[: index + 1], *batch.misread_from(index)]
        elif misreads and isinstance(changer.rows[index][1], CorruptRow):
            verdict = changer.judge_corrupt(index)
        else:
            verdict = _changed(changer, ref, index)
        if verdict != NEXT_ROW:
            return
        index += 1


def _changed(changer: _Changer, ref: Ref, index: int) -> str:
    try:
        changer.change(ref, index)
    except RowError as error:
        return changer.judge_error(error, index)
    return NEXT_ROW


def _by_hash(changer: _Changer, decision: Decision) -> None:
    """Hash scan: all rows from the read position on are hashed, then scanned for; a scan may leave the position behind."""
    scan = _hash_scan(changer, decision)

    def apply(entry: int, ref: Ref) -> tuple[Ref | None, str | None]:
        try:
            return changer.change(ref, entry), None
        except RowError as error:
            verdict = changer.judge_error(error, entry)
        return None, {NEXT_ROW: None, LEAVE: "leave", FAIL: "stop"}[verdict]

    index = 0
    while index < len(changer.rows):
        for entry in range(index, len(changer.rows)):
            scan.hash_row(entry, changer.before(entry))
        error, position = scan.scan(apply)
        if error == "stop":
            return
        if error is not None and changer.judge_missing(error, len(changer.rows) - 1) != NEXT_ROW:
            return
        index = len(changer.rows) if position is None else position + 1


def _hash_scan(changer: _Changer, decision: Decision) -> HashScan:
    handler, batch, rules = changer.handler, changer.batch, changer.options.rules
    definition = handler.definition
    looks_again = rules.hash_looks_again and changer.is_update and decision.key_class != "primary"
    extra = range(len(batch.before_columns), len(definition.columns)) if not rules.hash_looks_again and batch.bitmap_full else ()
    return HashScan(
        handler,
        changer.outcome.counters,
        rules,
        batch.before_columns,
        compared_columns(definition, batch.before_columns),
        decision.key,
        read_costs(handler, rules),
        changer.options.idempotent,
        looks_again,
        changer.options.skips(1032),
        tuple((column, definition.columns[column].default is None) for column in extra if definition.columns[column].nullable),
    )


class _Writer:
    """INSERT: STRICT refuses a duplicate, IDEMPOTENT replaces what stands in the way."""

    def __init__(self, handler: Handler, batch: RowsBatch, options: ApplyOptions, outcome: Outcome) -> None:
        self.handler = handler
        self.batch = batch
        self.options = options
        self.outcome = outcome

    def run(self) -> None:
        handler, counters, new_row = self.handler, self.outcome.counters, self.batch.new_row
        for index, image in enumerate(self.batch.rows):
            row = new_row(None, image)
            counters.write += 1
            try:
                handler.insert(row)
            except DuplicateKey as duplicate:
                if not self.options.idempotent:
                    if self._judge(duplicate, index) != NEXT_ROW:
                        return
                    continue
                if self._replace(row, image, duplicate, index) != NEXT_ROW:
                    return
                continue
            except RowError as error:
                if self._judge(error, index) != NEXT_ROW:
                    return
                continue
            self.outcome.rows_changed += 1

    def _judge(self, error: RowError, index: int) -> str:
        return _Changer(self.handler, self.batch, self.options, self.outcome).judge_error(error, index)

    def _replace(self, row: Row, image: Image, duplicate: DuplicateKey, index: int) -> str:
        """`write_row` with overwrite: the row in the way is updated when its key is the table's last unique key, else deleted."""
        counters = self.outcome.counters
        by_position = traits_of(self.handler.definition).duplicate_position
        while True:
            if by_position:
                counters.read_rnd += 1
            else:
                counters.read_key += 1
            if not self.batch.complete:
                row = self.batch.new_row(self.handler.get(duplicate.ref), image)
            try:
                if is_last_unique(self.handler.definition, duplicate.key) and not self._referenced():
                    counters.update += 1
                    self.handler.update(duplicate.ref, row)
                else:
                    counters.delete += 1
                    self.handler.delete(duplicate.ref)
                    counters.write += 1
                    self.handler.insert(row)
            except DuplicateKey as again:
                duplicate = again
                continue
            except RowError as error:
                return self._judge(error, index)
            self.outcome.rows_changed += 1
            return NEXT_ROW

    def _referenced(self) -> bool:
        return bool(getattr(self.handler, "is_referenced", False))


def is_last_unique(definition: TableDefinition, key: Key) -> bool:
    """`last_uniq_key`: no unique key behind this one in the table's key order."""
    keys = definition.sorted_keys
    return not any(later.unique for later in keys[keys.index(key) + 1 :])


def compared_columns(definition: TableDefinition, columns: tuple[int, ...]) -> tuple[int, ...]:
    """The image columns that record_compare looks at: virtual generated ones are left out."""
    if not any(definition.columns[column].is_virtual for column in columns):
        return columns
    return tuple(column for column in columns if not definition.columns[column].is_virtual)
