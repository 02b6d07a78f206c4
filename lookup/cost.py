"""What one rows event is expected to cost in handler calls, in closed form: no rows, no table, only
shapes.

The exact engine (`lookup.rows` on a table) counts what one event costs; these formulas give the
mean of that count over the events of a shape. Where nothing is left to chance (a primary key, all
rows of a table, the first rows of it) they are the count itself and say so (`Expected.exact`). What
they take for granted:

- The event's rows are drawn without repetition, each alike, from the part of the table that the
  event's shape names.
- Key values are equally common (`rows_per_value`) but for NULL, and independent of where a row
  stands. An event with `distinct_values` has as many rows of each of them.
- No update changes the key it is looked up by, nor makes a row equal to another row's before image
  in the event.
- Rows that are alike in all columns of the before image: the event names at most one of each such
  set.
- A table holds at least the rows that the event finds; a row count that is too small is raised to
  that.
- A row is missing by chance, independent of the others. The other rows with its key value are still
  there. Missing rows are forgiven (exec mode IDEMPOTENT): in STRICT mode the applier stops at the
  first. An UPDATE with images of different columns counts as in 5.7 and later (5.6 goes astray
  after a missing row, `misread_after_index_miss`).

With N rows in the table, R in the event, all found, drawn from anywhere, m rows per key value, the
core of it is:

    primary key          R position reads (InnoDB) or R key reads
    index scan           R key reads, and (m-1)/2 steps for each row
    table scan           R(N+1)/2 reads; a DELETE saves one for each pair of rows whose first stands
                         ahead
    hash over table      R(N+1)/(R+1): the expected position of the furthest row, where the hash is
                         empty and the scan ends
    hash over index      one key read for each of d distinct values, m reads for each (one of them
                         misses), and the last value is left at the row that empties the hash;
                         d = N/m (1 - C(N-m,R)/C(N,R))
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from lookup.read_formulas import ExpectedCounters, draw_of
from lookup.shape import decision_for
from lookup.strategies import NOT_NEEDED, Strategy
from lookup.table_shape import EventShape, TableShape
from lookup.versions import ServerRules


@dataclass(frozen=True, slots=True)
class Expected:
    """The cost of one event. `strategy`: None where rows need not be found; `key` is the kind of
    key in use ("none" for scans); `exact`: nothing in it is left to chance."""

    strategy: Strategy | None
    key: str
    counters: ExpectedCounters
    exact: bool = False

    @property
    def algorithm(self) -> str:
        """As `--stats` prints it."""
        return NOT_NEEDED if self.strategy is None else self.strategy.name


@lru_cache(maxsize=65536)
def expected(
    table: TableShape,
    event: EventShape,
    rules: ServerRules,
    row_search: frozenset[str] | None = None,
) -> Expected:
    """The mean cost of one event, in handler calls, under a server's rules.

    `row_search` is slave_rows_search_algorithms (None: the version's default). A closed form: no
    table is needed, and no row.
    """
    if event.kind == "write":
        return _write(table, event)
    decision = decision_for(table, rules, row_search)
    key, strategy = table.key if decision.key is not None else "none", decision.strategy
    assert strategy is not None
    if not table.traits.stores_rows:
        return Expected(strategy, key, ExpectedCounters(), exact=True)
    draw = draw_of(table, event, rules)
    reads = strategy.reads(draw, rules)
    found = event.rows * (1 - event.missing)
    changes = ExpectedCounters(delete=found) if draw.deletes else ExpectedCounters(update=found)
    return Expected(
        strategy,
        key,
        reads.plus(changes),
        event.missing in (0, 1) and strategy.is_exact(draw),
    )


def _write(table: TableShape, event: EventShape) -> Expected:
    """A row that is already there costs a read and an update; a delete and another insert when
    other unique keys are behind."""
    traits = table.traits
    if not traits.stores_rows:
        return Expected(None, "none", ExpectedCounters(), exact=True)
    there = event.rows * event.missing
    update = there if table.unique_keys <= 1 else 0.0
    again = there - update
    counters = ExpectedCounters(
        read_key=0.0 if traits.duplicate_position else there,
        read_rnd=there if traits.duplicate_position else 0.0,
        write=event.rows + again,
        update=update,
        delete=again,
    )
    return Expected(None, "none", counters, exact=event.missing in (0, 1))


__all__ = ["Expected", "ExpectedCounters", "expected"]
