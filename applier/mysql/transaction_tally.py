"""What of each transaction the filters leave out, counted once, before it is sent; and whether they
leave anything at all."""

from __future__ import annotations

from collections.abc import Sequence

from applier.binlog.events import Query, parse
from applier.binlog.follow import IndexedLogs
from applier.binlog.header import ROWS_TYPES, EventType
from applier.binlog.selection.filters import none_included
from applier.binlog.selection.table_filter import FilterTally
from applier.binlog.table_map import parse_table_map
from applier.mysql.feed import Feed, SourceTransaction
from applier.options import ReplayOptions
from applier.tables.sql.statement_names import is_wanted

TABLE_ID_BYTES = 6
MOST_MAPS = 10_000


class TransactionTally:
    """Tells a tally of each transaction."""

    def __init__(self, tally: FilterTally) -> None:
        self.tally = tally
        self._taken = self._again = 0
        self._maps: dict[bytes, str | None] = {}
        """Body of a table map -> the database of a table that is left out."""

    def go_back_to(self, count: int) -> None:
        """The next transaction is the one behind `count` of them: those that were taken come again,
        and count once."""
        self._again = max(0, self._taken - count)

    def take(self, source: SourceTransaction) -> None:
        """Looks at names only."""
        if self._again:
            self._again -= 1
            return
        self._taken += 1
        fde, left_out = source.format.fde, dict[bytes, str | None]()
        for event in source.events:
            if event.type == EventType.TABLE_MAP:
                body = event.buffer[event.body : event.end]
                if body not in self._maps:
                    self._look(body, fde.post_header_length(EventType.TABLE_MAP))
                left_out[body[:TABLE_ID_BYTES]] = self._maps[body]
            elif event.type in ROWS_TYPES:
                database = left_out.get(event.buffer[event.body : event.body + TABLE_ID_BYTES])
                if database is not None:
                    self.tally.left_out_rows(database)
            elif event.type in (EventType.QUERY, EventType.EXECUTE_LOAD_QUERY):
                parsed = parse(event, fde)
                is_wanted(self.tally, parsed if isinstance(parsed, Query) else parsed.query)

    def _look(self, body: bytes, post_header_length: int) -> None:
        if len(self._maps) >= MOST_MAPS:
            self._maps.clear()
        table_map = parse_table_map(body, 0, len(body), post_header_length)
        wanted = self.tally.wants_table(table_map.database, table_map.table)
        self._maps[body] = None if wanted else table_map.database


def check_filters(files: Sequence[str], options: ReplayOptions) -> None:
    """Looks into the log for the first thing that is wanted. Raises UsageError where nothing is.

    It is asked before a replay begins: the position of one that left everything out would be the
    log's end.
    """
    if isinstance(files, IndexedLogs) and files.follow:
        return
    if not options.only and options.include_gtids is None:
        return
    names, any_wanted, last = TransactionTally(options.tally()), False, None
    for source in Feed(files, options):
        last = source.gtid or last
        if source.wanted:
            any_wanted = True
            names.take(source)
            if not options.only or names.tally.leaves_something:
                return
    if options.include_gtids is not None and not any_wanted:
        raise none_included(options.include_gtids, last)
    names.tally.check()
