"""All rows of an event at once: hash the before images, then run over an index or the table and
look each row up.

`do_hash_scan_and_update`, `do_hash_row` and `do_scan_and_update` (sql/log_event.cc, 5.6 to 9.7). A
hash over the table reads until the row that empties the hash; a hash over an index visits the
distinct key values of the event in key order and reads the entries of each. Rows that match nothing
are counted and never visited: the engine tells how far the next match is. The order of the matches
is kept in a heap, since an update may move a row ahead of the scan, where it is met again.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lookup.handler import Checksums, Counters, Handler, Image, Ref, Row
from lookup.scan_cursors import CursorRequest, ScanCursor
from lookup.search import END_OF_FILE, KEY_NOT_FOUND, ReadCosts, pick
from lookup.server_hash import EntryOrder, entry_order, row_checksum
from lookup.table import Key
from lookup.versions import ServerRules

LOOK_ALIKE = -1
"""In the place of a content's number: a row that is to be met for its checksum alone."""


class RowVerdict(Protocol):
    """Carries one match out. `buffer` is the row as the server's record buffer has it, None when
    that is the row as it stands."""

    def __call__(
        self, entry: int, ref: Ref, buffer: Row | None
    ) -> tuple[Ref | None, Row | None, str | None]:
        """(the row's ref after the change, None when it is gone; the buffer; what ends the scan,
        None to go on).

        The end is "stop" (an error) or "leave" (an error that is ignored).
        """


@dataclass(frozen=True, slots=True)
class HashPlan:
    """What the hash scans of events of one shape have in common.

    `columns` are those of the before images, `compared` those that are compared (no virtual
    columns). `ignores_missing` says that error 1032 is in the skip list. `hashes_nulls` says that
    NULL flags are part of the hash. `null_filter` holds (column, must be NULL) for replica columns
    that the source lacks: 5.6 and 5.7 hash their default NULL bits into the event's side and the
    row's own into the table's side, so rows that differ there are not found. `defaults` is the row
    that a before image is laid over to be compared; None: NULL in every column.
    """

    handler: Handler
    rules: ServerRules
    cursor: Callable[[CursorRequest], ScanCursor]
    columns: tuple[int, ...]
    compared: tuple[int, ...]
    key: Key | None
    costs: ReadCosts
    idempotent: bool
    looks_again: bool
    ignores_missing: bool
    hashes_nulls: bool
    null_filter: tuple[tuple[int, bool], ...]
    defaults: Row | None

    def entry_order(self) -> EntryOrder:
        """An empty hash."""
        nulls = frozenset(column for column, is_null in self.null_filter if is_null)
        hashed = nulls if self.hashes_nulls else None
        return entry_order(self.rules.hash_order, self.handler.definition, self.compared, hashed)

    def checksums(self) -> Checksums | None:
        """What images and rows are hashed by; only where a collision matters
        (`ServerRules.collisions_apply`)."""
        if not (self.rules.collisions_apply and self.looks_again):
            return None
        definition = self.handler.definition
        whole = self.hashes_nulls and len(self.columns) == len(definition.columns)
        flags: frozenset[int] | None = frozenset() if whole else None
        return self.handler.checksums(
            self.compared, lambda: row_checksum(definition, self.compared, flags), flags=whole
        )


class _Ahead:
    """What a scan is still to meet: rows, each with the number of a content or LOOK_ALIKE, in the
    scan's order."""

    __slots__ = ("_known", "heap")

    def __init__(self, heap: list[tuple[Ref, int]]) -> None:
        heapq.heapify(heap)
        self.heap, self._known = heap, set(heap)

    def add(self, item: tuple[Ref, int]) -> None:
        if item not in self._known:
            self._known.add(item)
            heapq.heappush(self.heap, item)

    def pop(self) -> tuple[Ref, int]:
        item = heapq.heappop(self.heap)
        self._known.discard(item)
        return item


class HashScan:
    """One event's hash, kept over the repeated scans that exec mode IDEMPOTENT can cause."""

    def __init__(self, plan: HashPlan, counters: Counters) -> None:
        self.plan = plan
        self.counters = counters
        self.handler, self.key, self.compared = plan.handler, plan.key, plan.compared
        self.read_all = True
        """False once a verdict ended a scan: what it did not come to is not missing."""
        self.entries = plan.entry_order()
        self._checksums = plan.checksums()
        self._met: int | None = None
        """`Checksums.met` when it was asked last which checksums are shared."""
        self._values: Sequence[int] = ()
        """The checksums of the contents, in their order."""
        self._doubtful: Mapping[int, Iterable[Image]] | None = None
        """Those that several contents have, with these contents. As a rule it is empty, and no row
        can be taken for another."""
        self._alike: dict[int, list[Image]] | None = None
        """Checksum -> the contents that have it; made when one is doubtful."""
        self._row_of: list[int] = []
        """Entry -> the row of the event. A repeated scan puts rows in again, as entries of their
        own."""
        self._value_of: dict[Image, tuple[Any, ...]] = {}
        self._orders_of: dict[tuple[Any, ...], list[int]] = {}
        """Distinct key value -> the numbers of the contents that have it."""
        self._last = -1
        self._errors = 0

    def hash_row(self, index: int, image: Image) -> None:
        """`do_hash_row`: one before image goes into the hash, its key value into the set of
        distinct values."""
        content = pick(image, self.plan.columns, self.compared)
        self.entries.add(content, len(self._row_of))
        self._row_of.append(index)
        self._last = index
        if self.key is None or content in self._value_of:
            return
        spatial = self.key.kind == "spatial"
        value = (
            (image,)
            if spatial
            else self.handler.ordered(self.key).value_of(image, self.plan.columns)
        )
        self._value_of[content] = value
        self._orders_of.setdefault(value, []).append(self.entries.order_of(content))

    def scan(self, apply: RowVerdict) -> tuple[str | None, int | None]:
        """`do_scan_and_update`. Returns (error, the entry that the event's read position is left
        at).

        The error is KEY_NOT_FOUND, END_OF_FILE, "stop" (the verdict's own) or None. The position is
        None when the server sets it back to the end of the event, else the index of the last entry
        that matched.
        """
        self._errors = 0
        self._met = None
        plan = self.plan
        request = CursorRequest(
            self.handler, self.counters, plan.costs, self.key, self._orders_of, self._missed
        )
        error = self._run(plan.cursor(request), apply)
        if (not len(self.entries) and error is None) or self._errors >= len(self.entries):
            return error, None
        return error, self._last

    def _run(self, cursor: ScanCursor, apply: RowVerdict) -> str | None:
        groups = cursor.groups()
        for group in groups:
            verdict = self._run_group(cursor, group, apply)
            if verdict is not None:
                self.read_all = self.read_all and verdict == "done"
                return None if verdict in ("leave", "done") else verdict
        return self._exhausted(cursor.end_error)

    def _run_group(self, cursor: ScanCursor, group: Any, apply: RowVerdict) -> str | None:
        """Meets the rows of one key value (or of the table) that match, in order. None when the
        group is read to its end."""
        ahead = self._candidates(group)
        while ahead.heap:
            ref, order = ahead.pop()
            at = cursor.position()
            if order == LOOK_ALIKE:
                taken, buffer = (
                    self._taken_for(ref, None) if at is None or at < ref else (None, None)
                )
                if taken is not None:
                    cursor.move(ref)
                    verdict = self._match(ahead, ref, taken, group, apply, buffer)
                    if verdict is not None:
                        return verdict
                continue
            content = self._contents[order]
            if at is not None and not at < ref:
                self._requeue(ahead, order, at)
                continue
            if not self.entries.has(content) or not self._holds(ref, content):
                self._requeue(ahead, order, ref)
                continue
            cursor.move(ref)
            verdict = self._match(ahead, ref, content, group, apply)
            if verdict is not None:
                return verdict
            self._requeue(ahead, order, ref)
        return None

    @property
    def _contents(self) -> list[Image]:
        return self.entries.contents

    def _candidates(self, group: Any) -> _Ahead:
        """The first row of each content that belongs to the group: what the scan can meet."""
        heap: list[tuple[Ref, int]] = []
        for order in self.entries.live() if group is None else self._orders_of[group]:
            content = self._contents[order]
            if not self.entries.has(content):
                continue
            ref = self.handler.first_match(self.compared, content)
            if ref is not None:
                heap.append((ref, order))
        checksums = self._checksums
        if checksums is not None:
            if checksums.met != self._met:
                self._values = checksums.learn(self._contents)
                self._doubtful = checksums.shared(self._values)
                self._alike = None
                self._met = checksums.met
            if self._doubtful:
                heap += self._look_alikes(self._doubtful, group)
        return _Ahead(heap)

    def _look_alikes(
        self, doubtful: Mapping[int, Iterable[Image]], group: Any
    ) -> Iterator[tuple[Ref, int]]:
        """The rows that have the checksum of a before image that they are not."""
        for value, contents in doubtful.items():
            live = set(self._live(value))
            for content in contents:
                if live - {content}:
                    for ref in self.handler.matches(self.compared, content):
                        row = self.handler.get(ref)
                        if group is None or (
                            row is not None
                            and self.key is not None
                            and self._key_value(row) == group
                        ):
                            yield ref, LOOK_ALIKE

    def _live(self, value: int) -> list[Image]:
        """The contents with this checksum that have entries left."""
        if self._alike is None:
            self._alike = {}
            for content, its in zip(self._contents, self._values, strict=True):
                self._alike.setdefault(its, []).append(content)
        return [content for content in self._alike.get(value, ()) if self.entries.has(content)]

    def _key_value(self, row: Row) -> tuple[Any, ...]:
        assert self.key is not None
        return self.handler.ordered(self.key).value_of(row, tuple(range(len(row))))

    def _taken_for(self, ref: Ref, buffer: Row | None) -> tuple[Image | None, Row | None]:
        """The before image that a row without one is taken for, and the record buffer that the
        change starts from; None: it is passed over.

        `do_scan_and_update` unpacks each entry of the row's checksum into record[0] to compare it,
        does not restore the row when none is equal, and asks the hash again with what is in
        record[0]: the last entry's own before image. That one is equal to itself.
        """
        row = self.handler.get(ref) if buffer is None else buffer
        if row is None or self._checksums is None:
            return None, buffer
        content = self._content(row)
        if self.entries.has(content):
            return None, buffer
        live = self._live(self._checksums.of(content))
        if not live:
            return None, buffer
        taken = min(live, key=self.entries.oldest)
        unpacked = list(self.plan.defaults or (None,) * len(row))
        for column, value in zip(self.compared, taken, strict=True):
            unpacked[column] = value
        return taken, tuple(unpacked)

    def _content(self, row: Row) -> Image:
        return (
            row
            if len(self.compared) == len(row)
            else tuple(row[column] for column in self.compared)
        )

    def _requeue(self, ahead: _Ahead, order: int, after: Ref) -> None:
        content = self._contents[order]
        if not self.entries.has(content):
            return
        ref = self.handler.next_match(self.compared, content, after)
        if ref is not None:
            ahead.add((ref, order))

    def _holds(self, ref: Ref, content: Image) -> bool:
        row = self.handler.get(ref)
        if row is None or self._content(row) != content:
            return False
        return all((row[column] is None) == is_null for column, is_null in self.plan.null_filter)

    def _match(
        self,
        ahead: _Ahead,
        ref: Ref,
        content: Image,
        group: Any,
        apply: RowVerdict,
        buffer: Row | None = None,
    ) -> str | None:
        """Applies the match, and from 8.0.17 on what the changed row matches in turn. None when the
        scan goes on.

        An update that was refused and forgiven leaves its after image in the record buffer, and it
        is that which is looked up again; what matches it is then applied to the row that never
        changed.
        """
        standing: Ref | None = ref
        found: Image | None = content
        checksums, doubtful = self._checksums, False
        while standing is not None and found is not None:
            self._last = self._row_of[self.entries.take(found)]
            met = 0 if checksums is None else checksums.met
            standing, buffer, verdict = apply(self._last, standing, buffer)
            if verdict is not None:
                return verdict
            found = self._content_at(standing, buffer)
            doubtful = checksums is not None and (buffer is not None or checksums.met != met)
            if doubtful and found is None and standing is not None:
                found, buffer = self._taken_for(standing, buffer)
            if not self.plan.looks_again:
                if standing is not None and found is not None and buffer is None:
                    self._queue_moved(ahead, standing, found, group)
                break
        if doubtful and standing is not None:
            self._queue_again(ahead, standing, group)
        return "done" if self._finished() else None

    def _queue_again(self, ahead: _Ahead, ref: Ref, group: Any) -> None:
        """A row that moved ahead of the scan is met again, as it stands: that need not be what the
        record buffer held."""
        row = self.handler.get(ref)
        if row is None or (group is not None and self._key_value(row) != group):
            return
        content = self._content(row)
        ahead.add((ref, LOOK_ALIKE))
        if self.entries.has(content):
            ahead.add((ref, self.entries.order_of(content)))

    def _content_at(self, ref: Ref | None, buffer: Row | None) -> Image | None:
        """The content of a changed row when the hash holds it."""
        row = self.handler.get(ref) if buffer is None and ref is not None else buffer
        if row is None:
            return None
        content = self._content(row)
        return content if self.entries.has(content) else None

    def _queue_moved(self, ahead: _Ahead, ref: Ref, content: Image, group: Any) -> None:
        if group is None or self._value_of[content] == group:
            ahead.add((ref, self.entries.order_of(content)))

    def _finished(self) -> bool:
        return len(self.entries) == 0 or self._errors >= len(self.entries)

    def _missed(self) -> bool:
        """A key value without a row: the end in STRICT mode, one more idempotent error
        otherwise."""
        if not self.plan.idempotent:
            return False
        self._errors += 1
        return not self._finished()

    def _exhausted(self, end_error: str) -> str | None:
        """The scan ran out of rows with entries left in the hash.

        Over the table that is END_OF_FILE whatever the mode. Over an index each further call reads
        once more and fails, which exec mode IDEMPOTENT counts until there are as many errors as
        entries.
        """
        if end_error == END_OF_FILE:
            return END_OF_FILE
        if not self.plan.idempotent:
            return None if self.plan.ignores_missing else KEY_NOT_FOUND
        while not self._finished():
            self._errors += 1
            if not self._finished():
                self.counters.read_next += 1
        return None
