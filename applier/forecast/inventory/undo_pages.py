"""Pages of undo logs that transactions write into: trx0rseg.cc, trx0undo.cc of 5.7 to 9.7.

Transactions take turns in the rollback segments: 128 in each of the two undo tablespaces of 8.0 and
later, 96 in 5.7. A transaction that changes or deletes rows writes into its segment's header and
behind the undo log of the one before it, until three quarters of that page are full
(TRX_UNDO_PAGE_REUSE_LIMIT); then into a new page. One that writes rows uses a page of their own
from the start each time, which is free again when it commits; the segment's first one makes it.
A row that takes the place of a deleted one is a changed row here
(row_ins_clust_index_entry_by_modify).

The end of the history is cut off once in 128 rounds of purge (`PoolRules.cut_after` in
transactions): a 9.7.4 did it 29 times in 3,789 rounds, for 12,000 transactions. That reads the
headers and undo logs of all that the history holds (trx_purge_truncate_rseg). MariaDB's purge does
it each time (trx_purge_truncate_history), and reads the headers of all segments.

All of these are pages that a small pool does not have for tables: some 600 of a 9.7.4 (seen in
information_schema.INNODB_BUFFER_PAGE), and the new ones.
"""

from __future__ import annotations

import math

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

    def __init__(
        self, segments: int, held: MidpointLru, cut_after: int, cut_seconds: float = math.inf
    ) -> None:
        self.held, self.cut_after, self.cut_seconds = held, cut_after, cut_seconds
        self._cut = 0.0
        """When it was cut off last, by the replica's clock."""
        self._used = [0.0] * segments
        self._logs = [-1 - AT_START * at for at in range(segments)]
        """Segment -> the page of its undo log of changed rows."""
        self._of_new_rows: set[int] = set()
        """Segments that have a page of undo logs of new rows."""
        self._transactions = 0
        self._history: dict[int, None] = {}
        """Pages that hold what is not cut off yet."""
        self._newest = -3 * segments
        for page in range(-AT_START * segments, 0):
            held.touch(page, 0.0)

    def write(self, changed_rows: float, new_rows: float, now: float) -> tuple[int, list[int]]:
        """The next transaction: how many pages are read, and those that purge needs for it, which
        are those of its undo log of changed rows."""
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
        header, pages = _header(at), [self._logs[at]]
        read += held.touch(header, now) + held.touch(pages[0], now)
        self._used[at] += LOG_BYTES + ROW_BYTES * changed_rows
        more = int(self._used[at] // REUSED_BYTES)
        if more:
            self._used[at] = 0.0
            for _ in range(more):
                self._newest -= 1
                held.create(self._newest, now)
                pages.append(self._newest)
            self._logs[at] = self._newest
        self._history.update(dict.fromkeys([header, *pages]))
        return read, pages

    def cut(self, now: float, elapsed: float) -> int:
        """Behind a transaction: cuts off the end of the history when it is time to, by the
        replica's clock; how many pages are read, by the pool's."""
        pages = self._history
        if elapsed - self._cut >= self.cut_seconds:
            self._cut = elapsed
            pages.update(dict.fromkeys(map(_header, range(len(self._used)))))
        elif self._transactions % self.cut_after:
            return 0
        self._history = {}
        return sum(self.held.touch(page, now) for page in pages)


def _header(segment: int) -> int:
    """The number of its page."""
    return -2 - AT_START * segment
