"""Which transactions and tables of a log somebody asks for. What is not wanted is left out before
it is decoded or made into rows; a file that cannot hold a wanted GTID is not read.

Spark's own filters are not taken (`DataSourceReader.pushFilters`, Spark 4.1 and later): 4.3.0 keeps
those of one query of a DataFrame for the next query of it, whose result is then wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from applier.binlog.selection.filters import AnyGtidSet, check_flavour, gtids_of, time_of
from applier.error_codes import Code
from applier.errors import UsageError
from applier.forecast.workload.load_batch import LoadBatch, commit_times
from applier.forecast.workload.transaction_load import TransactionLoad
from checkpoints.gtid import GtidSet, MariadbGtid, MariadbGtidSet, parse_gtid_set

if TYPE_CHECKING:
    from applier.forecast.workload.loads import LoadReader


@dataclass(frozen=True)
class Wanted:
    """Transactions committed from `earliest` on and before `end`, in seconds since 1970; with a
    GTID of the set; rows of these tables ("database.table"). None takes everything."""

    earliest: float = -inf
    end: float = inf
    gtids: AnyGtidSet | None = None
    tables: frozenset[str] | None = None

    def takes_time(self, commit_time: float) -> bool:
        """Whether a commit time is in the range."""
        return self.earliest <= commit_time < self.end

    def takes_gtid(self, gtid: str | None) -> bool:
        """Whether a GTID, as a log names it, is in the set. Raises UsageError for a set of MySQL
        and a log of MariaDB, or the other way round."""
        wanted = self.gtids
        if wanted is None or gtid is None:
            return wanted is None
        one = parse_gtid_set(gtid)
        check_flavour(wanted, isinstance(one, MariadbGtidSet))
        if isinstance(wanted, MariadbGtidSet):
            return MariadbGtid.parse(gtid) in wanted
        return isinstance(one, GtidSet) and one.issubset(wanted)

    def takes_table(self, full_name: str) -> bool:
        """Whether rows of a table are wanted."""
        return self.tables is None or full_name in self.tables

    def takes(self, load: TransactionLoad) -> bool:
        """Whether a transaction has wanted rows."""
        return (
            self.takes_time(load.commit_time)
            and (self.tables is None or any(name in self.tables for name in load.tables))
            and self.takes_gtid(load.gtid)
        )

    def loads(self, reader: LoadReader) -> Iterator[TransactionLoad]:
        """The transactions that are wanted. Of others in a batch no object is made."""
        if self == EVERYTHING:
            yield from reader
            return
        for found in reader.batches():
            if not isinstance(found, LoadBatch):
                yield from [found] if self.takes(found) else []
            elif places := self._places(found):
                yield from filter(self.takes, found.chosen(places))

    def _places(self, batch: LoadBatch) -> list[int]:
        """Transactions of a batch that may be wanted, by all but their GTID."""
        import numpy as np

        from applier.binlog.columnar.control import Summed, SummedEvent

        rows, events = batch.stretch.transactions, batch.stretch.events
        times = commit_times(batch)
        taken = (times >= self.earliest) & (times < self.end)
        if self.tables is not None:
            shapes = [at for at, one in batch.plans.items() if one.target.table in self.tables]
            owners = np.repeat(np.arange(len(rows)), rows[:, Summed.EVENTS])
            hits = np.isin(events[:, SummedEvent.SHAPE], shapes)
            taken &= np.bincount(owners[hits], minlength=len(rows)) > 0
        found: list[int] = np.flatnonzero(taken).tolist()
        return found

    def may_hold(self, path: str) -> bool:
        """Whether a file may hold a wanted GTID. A binary log holds no transaction that its
        PREVIOUS_GTIDS event names: the server had executed it when the file began. Raises
        InputError."""
        from applier.binlog.events import PreviousGtids, parse
        from applier.binlog.header import EventFlag, EventType
        from applier.binlog.reader import LogReader
        from applier.binlog.transactions import with_formats

        if not isinstance(self.gtids, GtidSet):
            return True
        for event, fde in with_formats(LogReader([path])):
            if event.type == EventType.PREVIOUS_GTIDS:
                head = parse(event, fde)
                return not isinstance(head, PreviousGtids) or not self.gtids.issubset(head.gtids)
            if event.type != EventType.FORMAT_DESCRIPTION or event.flags & EventFlag.RELAY_LOG:
                return True  # relay logs may hold a transaction twice
        return True


EVERYTHING = Wanted()


def wanted_of(options: Mapping[str, str]) -> Wanted:
    """What the options `from_time`, `to_time`, `gtids` and `tables` ask for; each may be missing.
    Raises UsageError."""
    start = time_of("from_time", options.get("from_time"))
    end = time_of("to_time", options.get("to_time"))
    if start is not None and end is not None and end < start:
        raise UsageError(
            "to_time is before from_time", code=Code.OPTIONS_CLASH, hint="exchange them"
        )
    tables = options.get("tables")
    return Wanted(
        -inf if start is None else start,
        inf if end is None else end,
        gtids_of("gtids", options.get("gtids")),
        None if tables is None else frozenset(name.strip() for name in tables.split(",")),
    )
