"""What a replay did: one record per rows event, sums per table, and the error that stopped it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from applier.errors import ReplicationError
from applier.logs import logger
from checkpoints.gtid import GtidSet, MariadbGtid, MariadbGtidSet
from lookup.handler import Counters
from lookup.versions import ServerRules

_LOG = logger("replay")
MOST_COSTS = 15
"""Lines of costs that `repr` of a result shows."""
MOST_RUNS = 10_000
"""Of GTIDs that are kept apart until somebody asks."""


class ExecutedGtids:
    """The GTIDs of what was replayed, noted as fast as it goes and made a set when somebody
    asks."""

    def __init__(self) -> None:
        self._runs: list[list[Any]] = [[b"", 0, 0]]
        """UUID, first number, number behind the last one."""
        self._others = GtidSet()
        self._domains = MariadbGtidSet()

    def add_plain(self, uuid: bytes, number: int) -> None:
        """One without a tag; `uuid` is 16 bytes."""
        run = self._runs[-1]
        if run[2] == number and run[0] == uuid:
            run[2] = number + 1
        else:
            self._runs.append([uuid, number, number + 1])
            if len(self._runs) > MOST_RUNS:
                self._gather()

    def add(self, gtids: GtidSet | MariadbGtid) -> None:
        """Takes in GTIDs of any form."""
        if isinstance(gtids, MariadbGtid):
            self._domains.add(gtids)
        else:
            self._others = self._others.union(gtids)

    def __str__(self) -> str:
        """As gtid_executed (gtid_slave_pos of MariaDB) shows it."""
        self._gather()
        return ",".join(filter(None, (str(self._others), str(self._domains))))

    def _gather(self) -> None:
        """Runs into the set: transactions of two sources in turn are a run each, and a log may have
        any number of them."""
        runs = GtidSet()
        for uuid, first, behind in self._runs[1:]:
            runs.add_interval((str(UUID(bytes=uuid)), ""), first, behind)
        self._others = self._others.union(runs)
        self._runs = [[b"", 0, 0]]


@dataclass(slots=True)
class RowsRecord:
    """One rows event, as `--stats` writes it.

    Positions are byte offsets in `file`, `end_log_pos` in the source's log; `cost` is what the
    event was added to. `rows` are those in the event, `rows_changed` those that it changed;
    `counters` are its handler calls. `error`: the server's number, where it failed.
    """

    file: str
    position: int
    end_log_pos: int
    gtid: str | None
    cost: Cost
    rows: int
    counters: Counters
    error: int | None
    rows_changed: int

    @property
    def table(self) -> str:
        """Database and table on the replica."""
        return self.cost.table

    @property
    def kind(self) -> str:
        """ "write", "update" or "delete"."""
        return self.cost.kind

    @property
    def algorithm(self) -> str:
        """How its rows were found."""
        return self.cost.algorithm

    @property
    def key(self) -> str | None:
        """The key they were found by, if any."""
        return self.cost.key

    def as_dict(self) -> dict[str, Any]:
        """As a line of --stats has it."""
        return {
            "file": self.file,
            "pos": self.position,
            "end_log_pos": self.end_log_pos,
            "gtid": self.gtid,
            "table": self.table,
            "type": self.kind,
            "rows": self.rows,
            "algorithm": self.algorithm,
            "key": self.key,
            "handler": self.counters.as_dict(),
            "error": self.error,
        }


@dataclass(slots=True)
class Cost:
    """The rows events of one table that were applied the same way, summed.

    `kind` is "write", "update" or "delete", `algorithm` one of lookup.decision's, `key` the key
    that was read, None without one. `rows` are those in the events, `rows_changed` those that they
    changed; `counters` are handler calls.
    """

    table: str
    kind: str
    algorithm: str
    key: str | None
    events: int = 0
    rows: int = 0
    rows_changed: int = 0
    counters: Counters = field(default_factory=Counters)

    @property
    def rows_read(self) -> int:
        """Rows that the engine was asked for."""
        return self.counters.rows_read

    @property
    def reads_per_change(self) -> float | None:
        """Rows read per row changed; None where nothing was changed."""
        return self.rows_read / self.rows_changed if self.rows_changed else None

    def as_dict(self) -> dict[str, Any]:
        """As --json has it."""
        return {
            "table": self.table,
            "type": self.kind,
            "algorithm": self.algorithm,
            "key": self.key,
            "events": self.events,
            "rows": self.rows,
            "rows_changed": self.rows_changed,
            "rows_read": self.rows_read,
            "handler": self.counters.as_dict(),
        }


@dataclass(slots=True, repr=False)
class ReplayResult:
    """The outcome of a replay.

    `events` has a record of each rows event, `costs` their sums by (table, kind, algorithm, key);
    `transactions` and `statements` count what was applied. `error` is what stopped the applier.
    `notes` says once what was passed over, and how often. `incomplete_transaction`: file and byte
    of one whose end is not in the log; it was rolled back. `last_position` is the byte after the
    last commit, in `last_file`; `executed` has its GTIDs. `server` and `row_search` are the rules
    that held.
    """

    events: list[RowsRecord] = field(default_factory=list)
    costs: dict[tuple[str, str, str, str | None], Cost] = field(default_factory=dict)
    transactions: int = 0
    statements: int = 0
    error: ReplicationError | None = None
    notes: dict[str, int] = field(default_factory=dict)
    incomplete_transaction: str | None = None
    last_file: str | None = None
    last_position: int = 0
    source_file: str | None = None
    """The source's log that a relay log is of; None for other logs."""
    source_position: int = 0
    """Where the source's log goes on behind what was replayed last (Exec_Source_Log_Pos)."""
    executed: ExecutedGtids = field(default_factory=ExecutedGtids)
    server: str = ""
    rules: ServerRules | None = None
    """Those of the log's own release, or of the one that was asked for; None before the first
    event."""
    row_search: str = ""
    inexact: dict[str, str] = field(default_factory=dict)
    """Table here -> what of it was not carried out, though a server would: 1235, skipped. "" stands
    for any table."""
    keep: Callable[[RowsRecord], None] | None = None
    """What gets the record of each rows event: `events`, or a function that writes it away. None:
    no records are made."""

    def cost(self, table: str, kind: str, algorithm: str, key: str | None) -> Cost:
        """The sum that events of this table, kind and algorithm go into."""
        place = (table, kind, algorithm, key)
        if place not in self.costs:
            self.costs[place] = Cost(*place)
        return self.costs[place]

    def note(self, text: str, **place: Any) -> None:
        """Counts a remark. The log has its first occurrence at INFO, further ones at DEBUG, with
        the place (file, position, table …)."""
        _LOG.log(logging.DEBUG if text in self.notes else logging.INFO, text, extra=place)
        self.notes[text] = self.notes.get(text, 0) + 1

    def __repr__(self) -> str:
        """One screen: what was replayed, the error if there is one, and the tables that read
        most."""
        costs = sorted(
            self.costs.values(), key=lambda cost: (-cost.rows_read, cost.table, cost.kind)
        )
        width = max((len(cost.table) for cost in costs[:MOST_COSTS]), default=0)
        events = sum(cost.events for cost in costs)
        ended = f"rules of {self.server or 'no server'}; {self.error or 'no error'}"
        lines = [
            (
                f"ReplayResult: {self.transactions:,} transactions, {events:,} rows events,"
                f" {self.rows:,} rows; {ended}"
            )
        ]
        lines += [
            f"  {cost.table.ljust(width)}  {cost.kind:6}  {cost.algorithm:15}  {cost.rows:>11,}"
            f" rows  {cost.rows_read:>15,} rows read"
            for cost in costs[:MOST_COSTS]
        ]
        more = len(costs) - MOST_COSTS
        return "\n".join(lines + [f"  … and {more:,} more"] * (more > 0))

    @property
    def counters(self) -> dict[str, int]:
        """Handler calls of all rows events, by counter."""
        return sum_counters(cost.counters for cost in self.costs.values()).as_dict()

    @property
    def rows(self) -> int:
        """Rows written, changed and deleted by rows events."""
        return sum(cost.rows for cost in self.costs.values())

    def as_dict(self) -> dict[str, Any]:
        """The summary that `--json` prints."""
        return {
            "server": self.server,
            "row_search": self.row_search,
            "transactions": self.transactions,
            "rows_events": sum(cost.events for cost in self.costs.values()),
            "rows": self.rows,
            "counters": self.counters,
            "tables": [cost.as_dict() for cost in self.costs.values()],
            "notes": self.notes,
            "incomplete_transaction": self.incomplete_transaction,
            "file": self.last_file,
            "position": self.last_position,
            "source_file": self.source_file or self.last_file,
            "source_position": self.source_position,
            "gtids": str(self.executed),
            "error": None if self.error is None else self.error.as_dict(),
        }


def sum_counters(many: Iterable[Counters]) -> Counters:
    """Handler calls of all of them together."""
    total = Counters()
    for counters in many:
        total.add(counters)
    return total
