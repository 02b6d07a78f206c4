"""One scenario of a forecast while the log goes by: its clocks, its prices, what came of it."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from math import inf, isnan, nan

from applier.forecast.inventory.pool import NO_READS, PageReads
from applier.forecast.lag import apply_steps as steps
from applier.forecast.lag.open_tables import know_tables, no_tables
from applier.forecast.prices.calibration import (
    PAGE_READ,
    PAGE_ROOM,
    SHARED,
    TimePrice,
)
from applier.forecast.prices.pricing import Pricer
from applier.forecast.prices.scenario import Scenario
from applier.timing.clock_steps import TURN_NUMBERS
from applier.timing.lag import LagCurve

NEVER = "never"
"""How long a replica takes to catch up that falls further behind."""


class ScenarioRun:
    """One scenario while the log goes by. `seconds` is the applying, on one worker; `lookup` the
    part that finds rows."""

    def __init__(
        self,
        scenario: Scenario,
        pricer: Pricer,
        shared: Mapping[str, TimePrice] = SHARED,
        priced_syncs: float = 0.0,
    ) -> None:
        self.scenario = scenario
        self.pricer = pricer
        self.work = scenario.work
        """Equal for scenarios that ask for the same work at other prices."""
        self.pool_place: int | None = None
        """Which of the followed pools it reads pages from; None for none."""
        machine = scenario.machine(shared, priced_syncs)
        self.clock = scenario.clock(machine)
        self.saturated = scenario.clock(machine)
        """A clock for which the whole log is there at once."""
        self.curve = LagCurve()
        page = shared[PAGE_READ]
        waiting = page.waiting if scenario.read_seconds is None else scenario.read_seconds
        numbers = [0.0] * steps.RUN_NUMBERS
        numbers[steps.FACTOR], numbers[steps.SYNC] = scenario.factor, machine.sync
        numbers[steps.HISTORY] = pricer.prices["history"] * scenario.factor
        splits = scenario.pool_rules.splits
        numbers[steps.PURGE_SECONDS] = splits.purge_seconds
        numbers[steps.USUAL_SECONDS] = splits.usual_seconds
        numbers[steps.PAGE_PROCESSOR] = page.processor * scenario.factor
        numbers[steps.PAGE_WAITING] = waiting * scenario.factor
        numbers[steps.PAGE_ROOM] = shared[PAGE_ROOM].processor * scenario.factor
        numbers[steps.PAGE_WRITE] = scenario.page_write_seconds(shared) * scenario.factor
        numbers[steps.TABLE_OPEN] = pricer.prices["table open"] * scenario.factor
        numbers[steps.OPEN_TABLES] = scenario.tables_of_a_cache
        numbers[steps.READY], numbers[steps.LEVEL_AT] = -inf, nan
        self.numbers = steps.Run(
            array("d", numbers), self.clock.numbers, self.saturated.numbers,
            no_tables(scenario.table_caches), self.curve.numbers, self.curve.all_values,
            array("d", [0.0] * TURN_NUMBERS),
        )  # fmt: skip
        self.prices = steps.no_prices()

    def _number(self, place: int) -> float:
        return self.numbers.numbers[place]

    @property
    def sync(self) -> float:
        """Seconds of a commit's sync when nobody is in its way."""
        return self._number(steps.SYNC)

    @property
    def seconds(self) -> float:
        """What the log takes one worker."""
        return self._number(steps.SECONDS)

    @property
    def history(self) -> float:
        """Seconds more of a transaction that leaves old rows behind."""
        return self._number(steps.HISTORY)

    @property
    def history_seconds(self) -> float:
        """What transactions take more that leave old rows behind, in one worker."""
        return self._number(steps.HISTORY_SECONDS)

    @property
    def table_opens(self) -> float:
        """Tables that workers had to open again since their cache was full of others."""
        return self._number(steps.TABLE_OPENS)

    @property
    def table_open_seconds(self) -> float:
        """What that takes one worker."""
        return self.table_opens * self._number(steps.TABLE_OPEN)

    def know_tables(self, count: int) -> None:
        """The log has so many tables."""
        know_tables(self.numbers.open_tables, count)

    @property
    def lookup(self) -> float:
        """The part that finds rows."""
        return self._number(steps.LOOKUP)

    @property
    def span(self) -> float:
        """What the log takes when all of it is there at once."""
        return self._number(steps.SPAN)

    @property
    def pace(self) -> float:
        """Seconds that the replica takes for one of a worker, so far."""
        return steps.pace(self.numbers.numbers)

    @property
    def retries(self) -> float:
        """Rollbacks of transactions whose worker scanned a table out of order, as expected."""
        return self.clock.retries

    @property
    def end_lag(self) -> float:
        """Seconds from the last commit on the source to the end."""
        return self._number(steps.END_LAG)

    @property
    def page_reads(self) -> float:
        """Pages that were read."""
        return self._number(steps.PAGE_READS)

    @property
    def page_seconds(self) -> float:
        """Seconds of workers for reads of pages, and for writes that they wait for where the pool
        is too small."""
        writes = 0.0 if self._waits_for_redo else self._number(steps.WRITE_SECONDS)
        return self._number(steps.PAGE_SECONDS) + writes

    @property
    def redo_writes(self) -> float:
        """Pages that workers waited for since the redo log was full."""
        return self._number(steps.PAGE_WRITES) if self._waits_for_redo else 0.0

    @property
    def redo_seconds(self) -> float:
        """Seconds of workers for them."""
        return self._number(steps.WRITE_SECONDS) if self._waits_for_redo else 0.0

    @property
    def _waits_for_redo(self) -> bool:
        return self.scenario.pool_rules.waits_for_redo

    @property
    def level_at(self) -> float | None:
        """When everything was applied that had come so far; None while it never was."""
        at = self._number(steps.LEVEL_AT)
        return None if isnan(at) else at

    def part_seconds(self, parts: steps.Parts, part: int, in_time: float) -> float:
        """What a part of a transaction takes of which this part of the splits is left."""
        columns = parts.pages, parts.waits, parts.writes
        reads = PageReads(*(one[part] for one in columns)) if len(parts.pages) else NO_READS
        price = parts.price[part]
        late = self.prices.splits[price] * (in_time - 1)
        return self.seconds_of(price, parts.row_bytes[part], reads) + late

    def seconds_of(self, price: int, row_bytes: int, reads: PageReads) -> float:
        """What a part takes that has this price and reads these pages."""
        prices = self.prices
        return (
            prices.seconds[price]
            + row_bytes * prices.byte_seconds[price]
            + reads.pages * self._number(steps.PAGE_PROCESSOR)
            + reads.waits * self._number(steps.PAGE_WAITING)
            + reads.writes * self._number(steps.PAGE_WRITE)
        )

    def utilisation(self, duration: float) -> float | None:
        """Seconds that the replica needs for a second of the log, were it never idle; None for a
        log without duration."""
        return self.span / duration if duration > 0 else None

    def catch_up(self, duration: float) -> float | str:
        """Seconds after the log's end until the replica is level, with traffic going on as it was;
        "never" when it cannot be."""
        load = self.utilisation(duration)
        if load is None:
            return self.end_lag
        return NEVER if load >= 1 else self.end_lag / (1 - load)
