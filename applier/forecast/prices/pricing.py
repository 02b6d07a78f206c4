"""From what a transaction asks to the seconds it takes: the shape of its tables, the expected
handler calls, their prices.

Equal parts are priced once: a part is rows events of one target with the same sizes on a table of
about the same size (three significant digits), so a log of a million transactions has some hundreds
of them.

What a log does not say is assumed, and `Pricer.assumptions` lists it: rows stand anywhere in their
table; the events of one statement follow each other in the order of a scan, so each covers its part
of the table; no row is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from applier.forecast.inventory.facts import NO_TEXTS, TableFacts, table_bytes
from applier.forecast.inventory.index_fill import concentration, full_indexes
from applier.forecast.inventory.pool import NOTHING, Touches
from applier.forecast.inventory.references import references, rows_looked_up
from applier.forecast.prices.scenario import Scenario
from applier.forecast.prices.table_state import TableState
from applier.forecast.prices.touched_pages import TouchedPages
from applier.forecast.prices.units import (
    PLACE,
    UNITS,
    Amounts,
    Prices,
    RowWork,
    event_amounts,
)
from applier.forecast.workload.row_counts import Count
from applier.forecast.workload.transaction_load import Applied, LoadShape
from lookup.cost import Expected, expected
from lookup.shape import shape_of
from lookup.strategies import NOT_NEEDED
from lookup.table_shape import (
    NULLABLE_UNIQUE,
    OTHER,
    PRIMARY,
    ROW_EVENT_MAX_BYTES,
    EventShape,
    TableShape,
)

EVENT_HEAD_BYTES = 40
KEY_BYTES = 8
CHANGED_SHARE = 0.5
"""With a minimal image: the share of an after image's bytes that is still logged. The log does not
tell which columns changed."""

Sizes = tuple[tuple[Count, int], ...]


class Part(NamedTuple):
    """Rows events of one target within one transaction. `rows` are those of the table, `row_bytes`
    those of one image."""

    target: LoadShape
    sizes: Sizes
    statements: int
    rows: float
    row_bytes: float
    events: int
    changed: int


@dataclass(frozen=True, slots=True)
class Price:
    """Seconds of a part but for its bytes in the log; those of them spent on finding rows; seconds
    for each byte. `marked`: seconds for entries of indexes that purge takes out later; `splits`:
    those of them for leaves that split; `leaves_history`, `crowding`: as in Work."""

    seconds: float
    lookup: float
    algorithm: str
    reads: float
    byte_seconds: float
    touches: Touches = NOTHING
    marked: float = 0.0
    leaves_history: bool = False
    splits: float = 0.0
    crowding: float = 0.0


class Work(NamedTuple):
    """What a part asks of a replica: amounts of units but for bytes, rows read, and the factor by
    which its bytes change; `long_share`: of the images' bytes, those that are written outside of
    their rows' pages. `leaves_history`: old rows and entries of indexes stay for purge.
    `crowding`: of its full indexes (`FullIndex.crowding`)."""

    amounts: Amounts
    algorithm: str
    reads: float
    byte_factor: float
    touches: Touches = NOTHING
    leaves_history: bool = False
    crowding: float = 0.0
    long_share: float = 0.0


class Pricer:
    """Prices of parts in one scenario."""

    def __init__(
        self,
        scenario: Scenario,
        facts: Mapping[str, TableFacts],
        prices: Prices,
        placement: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.scenario = scenario
        self._facts = facts
        left = scenario.pool_rules.splits.beside_others(concentration(facts))
        self.prices = prices.with_more("leaf split", prices["leaf split"] * (left - 1))
        self.placement = placement
        self.assumptions: dict[str, None] = {}
        self._naming = references(facts)
        in_log = sum(table_bytes(one) for one in facts.values() if one.in_log)
        self._log_bytes = min(in_log * scenario.row_factor, scenario.pool_bytes)

    def facts_of(self, target: LoadShape) -> TableFacts | None:
        """The table as these events meet it; None where nothing is known of it."""
        return self._facts.get(target.table) if target.facts is None else target.facts

    def shape(self, target: LoadShape, rows: float, row_bytes: float) -> TableShape:
        """The table's shape for these images, in this scenario. A table that the schema lacks
        counts as having a primary key."""
        return self._shape_and_key(target, rows, row_bytes)[0]

    def _shape_and_key(
        self, target: LoadShape, rows: float, row_bytes: float
    ) -> tuple[TableShape, bool]:
        """The shape, and whether rows are looked up by the key whose distinct values the log's
        reader counted."""
        facts = self.facts_of(target)
        if facts is None:
            return (
                TableShape(
                    rows * self.scenario.row_factor,
                    PRIMARY,
                    row_bytes=row_bytes,
                    columns=target.columns,
                ),
                False,
            )
        local = tuple(at for at in target.before if at < len(facts.definition.columns))
        shape, decision = shape_of(
            facts.definition, local, self.scenario.rules, self.scenario.row_search,
            rows=rows, rows_per_value=facts.statistics, met=facts.met_rows, row_bytes=row_bytes,
        )  # fmt: skip
        if shape.key == OTHER and decision.key is not None and not facts.known(decision.key):
            name = f"{target.table}.{decision.key.name}"
            self.assumptions[
                f"each value of key {name} stands in one row (give --rows {name}=N)"
            ] = None
        if shape.key == NULLABLE_UNIQUE and decision.key is not None:
            key = f"`{decision.key.name}` of {target.table}"
            self.assumptions[f"no row has NULL in the nullable unique key {key}"] = None
        if facts.rows and rows < facts.rows:  # values lose rows as the table does
            shape = replace(
                shape, rows_per_value=max(shape.rows_per_value * rows / facts.rows, 1.0)
            )
        shape = self.scenario.grown(shape)
        changed = self.scenario.with_keys(target.table, shape)
        return (
            changed,
            changed is shape and decision.key is not None and decision.key.name == target.key,
        )

    def texts(self, target: LoadShape, changed: int) -> tuple[float, float]:
        """(Texts that FULLTEXT indexes take in of so many changed rows, seconds for them)."""
        facts = self.facts_of(target)
        texts, words = NO_TEXTS if facts is None else facts.texts.get(target.kind, NO_TEXTS)
        seconds = texts * self.prices["text"] + words * self.prices["word"]
        return changed * texts, changed * seconds * self.scenario.factor

    def price(self, part: Part) -> Price:
        """What a part of a transaction takes."""
        return self.price_of(self.work(part))

    def price_of(self, work: Work) -> Price:
        """What this work takes."""
        factor = self.scenario.factor
        seconds, lookup = self.prices.cost(work.amounts)
        if self.scenario.found_at_once:
            seconds, lookup = seconds - lookup, 0.0
        byte = self.prices["byte"] * work.byte_factor + self.prices["long byte"] * work.long_share
        splits = work.amounts[PLACE["leaf split"]] * self.prices["leaf split"] * factor
        marked = self.prices.entries(work.amounts) * factor if work.leaves_history else 0.0
        return Price(
            seconds * factor, lookup * factor, work.algorithm, work.reads, byte * factor,
            work.touches, marked, work.leaves_history, splits, work.crowding,
        )  # fmt: skip

    def work(self, part: Part) -> Work:
        """What a part asks for, in units."""
        scenario, target = self.scenario, part.target
        sizes, byte_factor = (part.sizes, 1.0) if scenario.same_events else self._cut(part)
        events = sum(times for _, times in sizes)
        spread = max(events / max(part.statements, 1), 1.0)
        shape, is_logged_key = self._shape_and_key(target, part.rows, part.row_bytes)
        alive, ghosts, first, last = self._places(part, shape, spread, events)
        shape = replace(shape, rows=alive)
        facts = self.facts_of(target)
        row = RowWork(
            shape.row_bytes,
            target.columns,
            self._index_entries(target),
            alive,
            last - first,
            self._log_bytes,
            scenario.pool_rules.steps_share_caches,
        )
        total = [0.0] * len(UNITS)
        total[PLACE["table"]] = 1.0
        total[PLACE["statement"]] = float(part.statements)
        crowding = 0.0
        if facts is not None:
            self._beside_rows(facts, part, total)
            if target.kind == "update":
                crowding = self._move_entries(facts, part.changed, total)
        reads, algorithm = 0.0, NOT_NEEDED
        touches = TouchedPages(
            facts, shape, target.kind, is_buffered=scenario.pool_rules.change_buffer
        )
        for (rows, distinct), times in sizes:
            if not rows:
                total[PLACE["event"]] += times
                continue
            event = EventShape(
                target.kind, max(rows, 1.0), distinct_values=_values(rows, distinct, is_logged_key),
                first=first, last=last, statement_events=spread,
            )  # fmt: skip
            found = self._expected(target, shape, event)
            behind = (
                ghosts
                * (1.0 if spread > 1 else min(found.counters.read_rnd_next / max(alive, 1.0), 1.0))
                if ghosts
                else 0.0
            )
            hashes = found.strategy is not None and found.strategy.hashes
            if not hashes and spread <= 1 and ghosts:
                behind /= max(rows, 1.0)
            for place, amount in enumerate(event_amounts(found, target.kind, rows, row, behind)):
                total[place] += times * amount
            reads += times * found.counters.rows_read
            algorithm = found.algorithm
            if scenario.follows_pages:
                touches.add(found, rows, times, self._index_leaves(target))
        return Work(
            tuple(total),
            algorithm,
            reads,
            byte_factor,
            touches.all(tuple(total)) if scenario.follows_pages else NOTHING,
            target.kind != "write",
            crowding,
            0.0 if facts is None else facts.long_shares.get(target.kind, 0.0),
        )

    def _beside_rows(self, facts: TableFacts, part: Part, total: list[float]) -> None:
        """Adds what the server does for the table's foreign keys and FULLTEXT indexes."""
        target, changed = part.target, part.changed
        naming = self._naming[target.table]
        looked_up = rows_looked_up(facts, naming, target.kind, self.scenario.rules)
        total[PLACE["foreign key"]] = changed * looked_up
        texts, words = facts.texts.get(target.kind, NO_TEXTS)
        total[PLACE["text"]] = changed * texts
        total[PLACE["word"]] = changed * words

    def _move_entries(self, facts: TableFacts, changed: int, total: list[float]) -> float:
        """Adds what so many updates move within full leaves of indexes; how crowded these are."""
        crowding = 0.0
        for index in full_indexes(facts):
            total[PLACE["full entry"]] += index.moved(changed)
            total[PLACE["leaf split"]] += index.leaves_split(
                changed, self.scenario.pool_rules.splits
            )
            crowding = max(crowding, index.crowding(changed))
        return crowding

    def _expected(self, target: LoadShape, shape: TableShape, event: EventShape) -> Expected:
        rules, row_search = self.scenario.rules, self.scenario.row_search
        found = expected(shape, event, rules, row_search)
        facts = self.facts_of(target)
        own = None if facts is None else facts.own_rows.get(target.kind)
        # Where the log wrote all rows of a value, they stand among themselves.
        is_among_own = facts is not None and facts.rows is None and shape.key == OTHER
        if own is None or is_among_own or target.kind == "write":
            return found
        place = own.first_place(shape.rows, event.rows)
        late = expected(shape, replace(event, first=place, last=place), rules, row_search)
        anywhere = found.counters.times(1 - own.share)
        return replace(found, counters=anywhere.plus(late.counters.times(own.share)))

    def _places(
        self, part: Part, shape: TableShape, spread: float, events: float
    ) -> tuple[float, float, float, float]:
        """(Rows alive on average, deleted rows that are stepped over, the part of the table that an
        event's rows stand in).

        A statement of several events goes through the table once: event k of E finds its rows in
        the k-th part. The mean over k is taken for all, since reads grow in a straight line with k.
        """
        before, after = self.placement
        rows = max(shape.rows, float(part.changed) if part.target.kind != "write" else 0.0)
        deleted = part.changed if part.target.kind == "delete" else 0.0
        alive = max(rows - deleted * (events - 1) / (2 * events), 1.0)
        ghosts = deleted * (events - 1) / (2 * events)
        if spread <= 1:
            return alive, ghosts, before, after
        width = after - before
        start = (
            before
            + width
            * (spread - 1)
            / (2 * spread)
            * max(rows - deleted / max(part.statements, 1), 0.0)
            / alive
        )
        return alive, ghosts, min(start, 1.0), min(start + width * rows / spread / alive, 1.0)

    def _cut(self, part: Part) -> tuple[Sequence[tuple[tuple[float, float], float]], float]:
        """The events as the source would write them in this scenario, and by what factor their
        bytes change."""
        scenario, target = self.scenario, part.target
        images = 2 if target.kind == "update" else 1
        whole = part.row_bytes * images
        row_bytes = whole
        facts = self.facts_of(target)
        if scenario.minimal_image and target.kind != "write":
            has_key = (
                facts is None
                or facts.definition.primary is not None
                or scenario.adds_primary(target.table)
            )
            before = KEY_BYTES if has_key else part.row_bytes
            row_bytes = before + (part.row_bytes * CHANGED_SHARE if images == 2 else 0.0)
            if images == 2:
                self.assumptions[
                    "with a minimal image half of an after image's bytes are taken to be left"
                ] = None
        limit = scenario.event_bytes or ROW_EVENT_MAX_BYTES
        most = max((limit - EVENT_HEAD_BYTES) // max(min(row_bytes, whole), 1.0), 1.0)
        statements = max(part.statements, 1)
        per_statement = part.changed / statements
        if part.events <= statements and per_statement <= most:
            return part.sizes, min(row_bytes / whole, 1.0) if whole else 1.0
        events = max(-(-per_statement // most), 1.0)
        return [((max(per_statement / events, 1.0), 0), events * statements)], (
            min(row_bytes / whole, 1.0) if whole else 1.0
        )

    def _index_leaves(self, target: LoadShape) -> float:
        """Leaves of secondary indexes that a changed row needs at once. Changes of the others wait
        in the change buffer, until 8.4."""
        facts = self.facts_of(target)
        if facts is None or not self.scenario.pool_rules.change_buffer:
            return self._index_entries(target)
        if target.kind == "update":
            return 0.0
        return float(sum(key.unique for key in facts.definition.secondary_keys))

    def _index_entries(self, target: LoadShape) -> float:
        """Entries of secondary indexes that a changed row writes, or marks as deleted."""
        facts = self.facts_of(target)
        if facts is None:
            return 0.0
        if target.kind != "update":
            return float(len(facts.definition.secondary_keys))
        if facts.updated_entries is None and facts.definition.secondary_keys:
            self.assumptions[f"updates of {target.table} change no column of a secondary index"] = (
                None
            )
        return facts.updated_entries or 0.0


def _values(rows: float, distinct: float, is_logged_key: bool) -> float | None:
    """Distinct values of the key that an event's rows are looked up by, where the log's reader
    counted them."""
    return min(max(distinct, 1), rows) if distinct and is_logged_key else None


def part_of(applied: Applied, state: TableState) -> Part:
    """The part of a transaction, rounded so that equal ones meet again."""
    sizes = tuple(applied.sizes.items())
    return Part(
        applied.target,
        sizes,
        applied.statements,
        state.rounded_rows,
        state.row_bytes,
        applied.events,
        applied.rows,
    )
