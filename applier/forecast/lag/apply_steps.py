"""Applying many transactions in one scenario, on flat rows of numbers, in plain Python or compiled.

`applier.forecast.lag.run` gathers the transactions and says what the numbers are for.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import isnan
from typing import NamedTuple

from applier.forecast.inventory.pool_rules import part_in_time
from applier.forecast.lag.open_tables import CACHE_NUMBERS, OpenTables, has_to_open
from applier.forecast.prices.units import EVENTS_AROUND, EVENTS_OF_ROWS
from applier.timing.clock_steps import Clock, take
from applier.timing.lag import START, add_lag

(
    FACTOR, SYNC, HISTORY, PURGE_SECONDS, USUAL_SECONDS, PAGE_PROCESSOR, PAGE_WAITING, PAGE_ROOM,
    PAGE_WRITE, READY, DONE, END_LAG, SECONDS, LOOKUP, SPAN, PAGE_READS, PAGE_SECONDS, PAGE_WRITES,
    WRITE_SECONDS, HISTORY_SECONDS, LEVEL_AT, TABLE_OPEN, OPEN_TABLES, CACHE, TABLE_OPENS,
    RUN_NUMBERS,
) = range(26)  # fmt: skip
"""Places in `Run.numbers`: settings, then what was found so far. HISTORY: seconds more of a
transaction that leaves old rows behind; PURGE_SECONDS, USUAL_SECONDS: as in `Splits`. LEVEL_AT is
NaN while the replica never was level. TABLE_OPEN: seconds to open a table; OPEN_TABLES: those that
a cache of them holds; CACHE: the one that the next transaction uses."""


class Turns(NamedTuple):
    """Transactions: one value each. `base`: seconds besides rows, at the calibration's prices;
    `domain`: a number for the domain of MariaDB; `part_end` and `database_end`: where the next
    one's begin."""

    arrival: array[float]
    base: array[float]
    events: array[int]
    last_committed: array[int]
    sequence_number: array[int]
    domain: array[int]
    commit_id: array[int]
    flags: array[int]
    log_bytes: array[int]
    part_end: array[int]
    database_end: array[int]
    databases: array[int]


class Parts(NamedTuple):
    """Their parts: one value each. `price` is a place in `PartPrices`; `pages`, `waits` and
    `writes` (`pool.PageReads`) are empty where no page is read."""

    price: array[int]
    row_bytes: array[int]
    pages: array[float]
    waits: array[float]
    writes: array[float]


class PartPrices(NamedTuple):
    """What parts cost in one scenario: seconds, those for finding rows, seconds of a byte, rows
    read; `marked`: seconds for entries of indexes that purge takes out later; `history`: 1 where it
    has anything to do. `splits`: seconds for leaves of full indexes that split, where transactions
    are as far apart as usual; `crowding`: of those indexes (`FullIndex.crowding`).

    `table`, `scanned` (the table as a number among those that are scanned, -1 where it is not) and
    `pair` (a table's algorithm, -1 for none) are places in `Charges`; `events` and `rows` are how
    many a part has."""

    seconds: array[float]
    lookup: array[float]
    byte_seconds: array[float]
    reads: array[float]
    table: array[int]
    pair: array[int]
    events: array[int]
    rows: array[int]
    scanned: array[int]
    marked: array[float]
    history: array[int]
    splits: array[float]
    crowding: array[float]


def no_prices() -> PartPrices:
    """PartPrices of nothing yet."""
    return PartPrices._make(map(array, "ddddqqqqqdqdd"))


class Run(NamedTuple):
    """A scenario's numbers. `saturated`: a clock that never waits for the source, which goes
    along where there are several workers. `open_tables`: those that its workers have open. `turn`
    is a row to work in."""

    numbers: array[float]
    clock: Clock
    saturated: Clock
    open_tables: OpenTables
    curve: array[float]
    values: array[float]
    turn: array[float]


class Outcomes(NamedTuple):
    """What became of each transaction: seconds of one worker, those for finding rows, lag, the part
    of its splits that is left at this pace."""

    seconds: array[float]
    lookup: array[float]
    lag: array[float]
    splits: array[float]


class Charges(NamedTuple):
    """What each table has cost: a value for each table; `by_algorithm` one for each pair."""

    seconds: array[float]
    lookup: array[float]
    reads: array[float]
    page_reads: array[float]
    events: array[float]
    rows: array[float]
    lag: array[float]
    by_algorithm: array[float]


def apply(turns: Turns, parts: Parts, prices: PartPrices, run: Run, outcome: Outcomes) -> None:
    """Applies transactions in the log's order."""
    numbers = run.numbers
    part = database = 0
    caches = len(run.open_tables.ends) // CACHE_NUMBERS
    follows_tables = len(run.open_tables.older) > numbers[OPEN_TABLES] * caches
    for at in range(len(turns.arrival)):
        seconds, lookup = turns.base[at] * numbers[FACTOR], 0.0
        pages, waits, writes = 0.0, 0.0, 0.0
        scanned, scan, marked, history = -1, 0.0, 0.0, 0
        splits, crowding, opens = 0.0, 0.0, 0
        while part < turns.part_end[at]:
            price = parts.price[part]
            seconds += prices.seconds[price] + parts.row_bytes[part] * prices.byte_seconds[price]
            lookup += prices.lookup[price]
            marked += prices.marked[price]
            history |= prices.history[price]
            splits += prices.splits[price]
            crowding = max(crowding, prices.crowding[price])
            if len(parts.pages):
                pages += parts.pages[part]
                waits += parts.waits[part]
                writes += parts.writes[part]
            if follows_tables:
                opens += has_to_open(
                    run.open_tables, int(numbers[CACHE]), prices.table[price], numbers[OPEN_TABLES]
                )
            if prices.scanned[price] >= 0 and prices.lookup[price] >= scan:
                scanned, scan = prices.scanned[price], prices.lookup[price]
            part += 1
        left_behind = history * numbers[HISTORY]
        seconds += left_behind + opens * numbers[TABLE_OPEN]
        stopped = writes * numbers[PAGE_WRITE]
        waiting = waits * numbers[PAGE_WAITING]
        read = pages * numbers[PAGE_PROCESSOR] + waiting
        page_cost = read + stopped
        in_time = 1.0
        if splits > 0.0:
            in_time = splits_in_time(numbers, crowding, seconds + page_cost)
            seconds += splits * (in_time - 1.0)
            marked += splits * (in_time - 1.0)
        outcome.splits[at] = in_time
        turn = run.turn
        turn[1] = seconds + pages * numbers[PAGE_PROCESSOR]
        turn[2] = waiting + stopped
        turn[3] = pages
        turn[4] = events_in_log(turns.events[at])
        turn[5] = turns.last_committed[at]
        turn[6] = turns.sequence_number[at]
        turn[7], turn[8] = database, turns.database_end[at]
        turn[9], turn[10] = scanned, scan + (page_cost if scanned >= 0 else 0.0)
        turn[11], turn[12] = turns.domain[at], turns.commit_id[at]
        turn[13], turn[14] = turns.flags[at], turns.log_bytes[at]
        turn[15], turn[16] = waits * numbers[PAGE_ROOM], stopped
        turn[17] = marked
        database = turns.database_end[at]
        outcome.seconds[at] = seconds + page_cost + numbers[SYNC]
        outcome.lookup[at] = lookup
        outcome.lag[at] = _one(run, turns.arrival[at], turns.databases)
        numbers[CACHE] = (numbers[CACHE] + 1) % caches
        numbers[TABLE_OPENS] += opens
        numbers[LOOKUP] += lookup
        numbers[HISTORY_SECONDS] += left_behind
        numbers[PAGE_READS] += pages
        numbers[PAGE_SECONDS] += read
        numbers[PAGE_WRITES] += writes
        numbers[WRITE_SECONDS] += stopped


def splits_in_time(numbers: Sequence[float], crowding: float, seconds: float) -> float:
    """Which part is left of the splits of a transaction that takes a worker so many seconds, beside
    those at the usual pace (`Splits.in_time`): the next one comes as soon as that, times what the
    replica takes of one worker's time so far."""
    apart = (seconds + numbers[SYNC]) * pace(numbers)
    late = crowding * numbers[PURGE_SECONDS]
    return part_in_time(late, apart) / part_in_time(late, numbers[USUAL_SECONDS])


def pace(numbers: Sequence[float]) -> float:
    """Seconds that the replica takes for one of a worker, so far."""
    if numbers[SECONDS] > 0.0 and numbers[SPAN] > 0.0:
        return numbers[SPAN] / numbers[SECONDS]
    return 1.0


def events_in_log(rows_events: int) -> int:
    """What the coordinator reads of a transaction."""
    return EVENTS_OF_ROWS * rows_events + EVENTS_AROUND


def _one(run: Run, arrival: float, databases: Sequence[int]) -> float:
    """Applies the transaction in `run.turn`; the lag with which it is committed."""
    numbers, turn, curve = run.numbers, run.turn, run.curve
    ready = numbers[READY]
    if isnan(numbers[LEVEL_AT]) and max(numbers[DONE], ready) <= arrival:
        numbers[LEVEL_AT] = max(numbers[DONE], ready)
    turn[0] = max(arrival, ready)
    done = take(run.clock, turn, databases)
    alone = turn[1] + turn[2] + numbers[SYNC]
    if len(run.clock.workers) > 1:
        turn[0] = 0.0
        numbers[SPAN] = take(run.saturated, turn, databases)
    else:
        numbers[SPAN] += alone
    numbers[SECONDS] += alone
    if isnan(curve[START]) and ready > arrival:
        curve[START] = ready
    begin = min(max(numbers[DONE], arrival, ready), done)
    add_lag(curve, run.values, arrival, begin, done)
    numbers[DONE] = max(numbers[DONE], done)
    numbers[END_LAG] = numbers[DONE] - arrival
    return done - arrival


def charge(
    turns: Turns, parts: Parts, prices: PartPrices, run: Run, outcome: Outcomes, charges: Charges
) -> None:
    """Puts what parts cost down to their tables."""
    part = 0
    for at in range(len(turns.arrival)):
        while part < turns.part_end[at]:
            price = parts.price[part]
            table, pair = prices.table[price], prices.pair[price]
            cost = prices.seconds[price] + parts.row_bytes[part] * prices.byte_seconds[price]
            cost += prices.splits[price] * (outcome.splits[at] - 1.0)
            if len(parts.pages):
                cost += parts.pages[part] * run.numbers[PAGE_PROCESSOR]
                cost += parts.waits[part] * run.numbers[PAGE_WAITING]
                cost += parts.writes[part] * run.numbers[PAGE_WRITE]
                charges.page_reads[table] += parts.pages[part]
            charges.seconds[table] += cost
            charges.lookup[table] += prices.lookup[price]
            charges.reads[table] += prices.reads[price]
            charges.events[table] += prices.events[price]
            charges.rows[table] += prices.rows[price]
            charges.lag[table] = max(charges.lag[table], outcome.lag[at])
            if pair >= 0:
                charges.by_algorithm[pair] += cost
            part += 1


STEPS = (_one, events_in_log, pace, part_in_time, splits_in_time)
"""What a compiler has to know of besides the functions of the clock and the curve."""
