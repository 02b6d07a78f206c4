"""Pages of undo logs that transactions write into: trx0rseg.cc, trx0undo.cc of 5.7 to 9.7.

Transactions take turns in the rollback segments: 128 in each of the two undo tablespaces of 8.0 and
later, 96 in 5.7. A transaction that changes or deletes rows writes into its segment's header and
behind the undo log of the one before it, until three quarters of that page are full
(TRX_UNDO_PAGE_REUSE_LIMIT); then into a new page. One that writes rows uses a page of their own
from the start each time, which is free again when it commits; the segment's first one makes it.

All of these are pages that a small pool does not have for tables: some 600 of a 9.7.4 (seen in
information_schema.INNODB_BUFFER_PAGE), and the new ones.
"""

from __future__ import annotations

from applier.forecast.inventory.midpoint_lru import MidpointLru

REUSED_BYTES = 16 * 1024 * 3 / 4
LOG_BYTES = 250
"""Of an undo log's header, with room for the names of XA and GTIDs."""
ROW_BYTES = 60
"""Of a changed row: its key, and the old values of what changes."""
AT_START = 2
"""Pages of a segment that a server reads at its start: the header, and the undo log in use."""


class UndoPages:
    """Of so many rollback segments. Their pages have negative numbers."""

    def __init__(self, segments: int, held: MidpointLru) -> None:
        self.held = held
        self._used = [0.0] * segments
        self._logs = [-1 - AT_START * at for at in range(segments)]
        """Segment -> the page of its undo log of changed rows."""
        self._of_new_rows: set[int] = set()
        """Segments that have a page of undo logs of new rows."""
        self._transactions = 0
        self._newest = -3 * segments
        for page in range(-AT_START * segments, 0):
            held.touch(page, 0.0)

    def write(self, changed_rows: float, new_rows: float, now: float) -> tuple[int, list[int]]:
        """The next transaction: how many pages are read, and those that purge needs for it, which
        are its segment's header and its undo log of changed rows."""
        segments, held, read = len(self._used), self.held, 0
        at = self._transactions % segments
        self._transactions += 1
        if new_rows:
            page = -1 - AT_START * segments - at
            if at in self._of_new_rows:
                read += held.touch(page, now)
            else:
                self._of_new_rows.add(at)
                held.create(page, now)
        if not changed_rows:
            return read, []
        pages = [-2 - AT_START * at, self._logs[at]]
        read += sum(held.touch(page, now) for page in pages)
        self._used[at] += LOG_BYTES + ROW_BYTES * changed_rows
        more = int(self._used[at] // REUSED_BYTES)
        if more:
            self._used[at] = 0.0
            for _ in range(more):
                self._newest -= 1
                held.create(self._newest, now)
                pages.append(self._newest)
            self._logs[at] = self._newest
        return read, pages
