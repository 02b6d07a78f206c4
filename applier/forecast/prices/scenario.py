"""The replica as it is, and as it could be: one scenario for each row of the what-if table.

A what-if changes the shape of tables, the server's options, or how the source cuts and fills
events. It never changes the log's traffic: the same rows are changed at the same times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite

from applier.error_codes import Code
from applier.errors import UsageError
from applier.forecast.inventory.pool import BufferPool
from applier.forecast.inventory.pool_rules import POOL_RULES, PoolRules
from applier.forecast.inventory.table_cache import TABLE_CACHE_RULES, UNLIMITED, TableCache
from applier.forecast.prices.calibration import (
    BESIDE,
    COORDINATOR,
    HAND_OVER,
    PAGE_WRITE,
    SYNC,
    TimePrice,
    commit_syncs,
    page_write_at,
)
from applier.forecast.prices.conditions import size
from applier.replica.scheduling import LOGICAL_CLOCK, MOST_WORKERS
from applier.spelling import did_you_mean
from applier.timing.work_clock import Machine, WorkClock, spins
from applier.timing.worker_rules import WORKER_RULES
from lookup.table_shape import NO_KEY, OTHER, PRIMARY, UNIQUE, TableShape
from lookup.versions import ServerRules, parse_row_search

WHAT_IFS = {
    "primary-key": "every table without a primary or NOT NULL unique key gets a primary key",
    "gipk": (
        "the same by sql_generate_invisible_primary_key on the source (8.0.30 and later), so that"
        " the log carries it"
    ),
    "index": "index=200: such tables get a secondary index, 200 rows for each of its values",
    "row-search": (
        "row-search=INDEX_SCAN,HASH_SCAN: another slave_rows_search_algorithms (up to 8.0)"
    ),
    "minimal-image": "binlog_row_image=MINIMAL on the source",
    "event-size": "event-size=65536: another binlog_row_event_max_size on the source, in bytes",
    "workers": "workers=8: another number of applier workers",
    "rows": "rows=10: tables hold ten times as many rows",
    "durable": "innodb_flush_log_at_trx_commit=1 and sync_binlog=1",
    "relaxed": "innodb_flush_log_at_trx_commit=2 and sync_binlog=0",
    "buffer-pool": "buffer-pool=8G: another innodb_buffer_pool_size",
    "redo-log": "redo-log=2G: another redo log of a 5.6 or 5.7, all of its files together",
    "table-open-cache": "table-open-cache=8000: another table_open_cache",
    "cores": "cores=8: another number of processor cores",
}
"""Name -> what it does, as in --help."""


@dataclass(frozen=True, slots=True)
class AddedKey:
    """A key of this kind for tables without a unique one: for `table`, or for all of them."""

    kind: str
    rows_per_value: float = 1.0
    table: str | None = None

    def fits(self, table: str) -> bool:
        """Whether the table gets it."""
        return self.table is None or self.table == table


@dataclass(frozen=True)
class Scenario:
    """One replica. `keys` are added to its tables, one after the other.

    `in_turn`: workers that scan the same table never overtake each other, which is luck.
    `found_at_once`: finding rows costs nothing, which leaves what large transactions take by
    themselves. `factor` multiplies all times.
    """

    name: str
    rules: ServerRules
    row_search: frozenset[str] | None = None
    workers: int = 1
    preserve_order: bool = True
    keys: tuple[AddedKey, ...] = ()
    row_factor: float = 1.0
    minimal_image: bool = False
    event_bytes: int | None = None
    found_at_once: bool = False
    in_turn: bool = False
    factor: float = 1.0
    parallel_type: str = LOGICAL_CLOCK
    cores: float = inf
    syncs: float = 0.0
    """Syncs of a commit that waits for nobody: of the redo log and of the binary log."""
    binary_log: bool = True
    pool_bytes: float = inf
    redo_log_bytes: float = inf
    """Of a server whose workers wait when it is full; without end where the log cannot fill it."""
    read_seconds: float | None = None
    """For a page, instead of the calibration's; `reads_per_second` is what the disk can."""
    reads_per_second: float = inf
    sync_seconds: float | None = None
    """For a sync of one log, instead of the calibration's."""
    table_cache: TableCache = UNLIMITED

    def machine(self, shared: Mapping[str, TimePrice], priced_syncs: float = 0.0) -> Machine:
        """What its workers share, at these prices; the price of a transaction holds `priced_syncs`
        already."""
        sync, factor = self.sync_price(shared[SYNC]), self.factor
        syncs = max(self.syncs - priced_syncs, 0.0)
        return Machine(
            self.cores,
            spins(self.parallel_type, self.workers),
            sync.processor * syncs * factor,
            sync.waiting * syncs * factor,
            shared[COORDINATOR[0]].processor * factor,
            shared[COORDINATOR[1]].processor * factor,
            self.reads_per_second,
            syncs,
            shared[BESIDE].processor,
            shared[HAND_OVER].processor * factor,
            WORKER_RULES[self.rules.name],
        )

    def sync_price(self, measured: TimePrice) -> TimePrice:
        """What a sync of one log takes: as it was `measured`, or on a disk that is known."""
        if self.sync_seconds is None:
            return measured
        processor = min(measured.processor, self.sync_seconds)
        return TimePrice(processor, self.sync_seconds - processor)

    def page_write_seconds(self, shared: Mapping[str, TimePrice]) -> float:
        """What a page takes that a worker waits for."""
        if self.pool_rules.waits_for_redo:
            return page_write_at(shared, self.sync_price(shared[SYNC])).waiting
        return shared[PAGE_WRITE].waiting

    @property
    def tables_of_a_cache(self) -> float:
        """The log's tables that stay open for a worker, or for several that share a cache."""
        return self.table_cache.tables_of_the_log(TABLE_CACHE_RULES[self.rules.name])

    def keeping_open(self, tables: float) -> Scenario:
        """The same with another table_open_cache."""
        return replace(self, table_cache=replace(self.table_cache, tables=tables))

    @property
    def table_caches(self) -> int:
        """Instances of the cache of open tables that workers use."""
        return min(self.workers, self.table_cache.instances)

    @property
    def follows_pages(self) -> bool:
        """Whether somebody must look at each page: tables are larger than the pool, or the log has
        more redo than the redo log holds."""
        return min(self.pool_bytes, self.redo_log_bytes) != inf

    @property
    def pages_as(self) -> Scenario:
        """Equal for work that asks the same of a pool. Where all pages are in memory, it matters
        which are changed, and not how rows are found."""
        if self.pool_bytes != inf:
            return self
        return Scenario(
            "", self.rules, row_factor=self.row_factor, redo_log_bytes=self.redo_log_bytes
        )

    def pool(self, write_seconds: float) -> BufferPool:
        """Its buffer pool; a page is written in so many seconds."""
        return BufferPool.of(self.pool_bytes, self.pool_rules, write_seconds, self.redo_log_bytes)

    @property
    def pool_rules(self) -> PoolRules:
        """How its server's pool works."""
        return POOL_RULES[self.rules.name]

    def grown(self, shape: TableShape) -> TableShape:
        """The shape of a table with as many rows as it has in this scenario."""
        if self.row_factor == 1:
            return shape
        return replace(
            shape,
            rows=shape.rows * self.row_factor,
            rows_per_value=max(shape.rows_per_value * self.row_factor, 1.0),
        )

    def with_keys(self, table: str, shape: TableShape) -> TableShape:
        """The shape of a table with the keys that this scenario adds; the very same object where it
        adds none, or no better one."""
        for added in self.keys:
            is_better = (
                added.kind != OTHER
                or shape.key == NO_KEY
                or shape.rows_per_value > added.rows_per_value
            )
            if added.fits(table) and shape.key not in (PRIMARY, UNIQUE) and is_better:
                shape = replace(
                    shape, key=added.kind, rows_per_value=added.rows_per_value, null_share=0.0
                )
        return shape

    def adds_primary(self, table: str) -> bool:
        """Whether a table without a unique key gets a primary key."""
        return any(added.kind == PRIMARY and added.fits(table) for added in self.keys)

    def clock(self, machine: Machine) -> WorkClock:
        """A clock of its workers on a machine."""
        return WorkClock(
            self.workers, preserve_order=self.preserve_order, parallel_type=self.parallel_type,
            machine=machine, in_turn=self.in_turn,
        )  # fmt: skip

    @property
    def work(self) -> Scenario:
        """Equal for scenarios that ask for the same work, at whatever price and by however many."""
        return replace(
            self, name="", factor=1.0, found_at_once=False, in_turn=False, workers=1,
            preserve_order=True, parallel_type=LOGICAL_CLOCK,
            cores=inf, syncs=0.0, binary_log=True, read_seconds=None, reads_per_second=inf,
            sync_seconds=None, table_cache=UNLIMITED,
        )  # fmt: skip

    @property
    def waits_for_pages(self) -> bool:
        """Whether its pages take time. Rows that are found at once need none of a pool that is too
        small; changed pages of one that holds them all must be written all the same."""
        return not self.found_at_once or self.pool_bytes == inf

    @property
    def named_tables(self) -> list[str]:
        """Tables that get a key of their own."""
        return [added.table for added in self.keys if added.table is not None]

    @property
    def same_events(self) -> bool:
        """Whether the source writes the events as they stand in the log."""
        return self.event_bytes is None and not self.minimal_image


def what_if(text: str, base: Scenario) -> Scenario:
    """A scenario from "primary-key", "index=200", "row-search=INDEX_SCAN,HASH_SCAN", several joined
    by "+"; see WHAT_IFS.

    "primary-key:shop.orders" changes that table only; "primary-key:shop.a+primary-key:shop.b"
    changes both. Raises UsageError.
    """
    scenario = base
    settings = [_setting(part) for part in text.split("+")]
    if len(settings) > len(set(settings)):
        raise UsageError(
            f"--what-if {text}: a setting is changed twice",
            code=Code.OPTIONS_CLASH,
            hint="give --what-if twice, once for each value",
        )
    for part in text.split("+"):
        word, _, value = part.strip().partition("=")
        word, _, table = word.partition(":")
        scenario = _one(scenario, word, value, table)
    return replace(scenario, name=_title(text))


def _setting(part: str) -> str:
    """What a part changes, of which there is only one: keys are for each table."""
    word = part.strip().partition("=")[0]
    return "durable" if word == "relaxed" else word


def _one(scenario: Scenario, word: str, value: str, table: str) -> Scenario:
    try:
        if word in ("primary-key", "gipk"):
            return replace(scenario, keys=(*scenario.keys, AddedKey(PRIMARY, table=table or None)))
        if word == "index":
            return replace(
                scenario,
                keys=(*scenario.keys, AddedKey(OTHER, _number(value or "1", 1), table or None)),
            )
        if word == "row-search":
            if not scenario.rules.row_search_selectable:
                raise UsageError(
                    f"--what-if {word}: {scenario.rules.name} has no slave_rows_search_algorithms",
                    code=Code.VERSION_LACKS,
                    hint="see --server",
                )
            return replace(scenario, row_search=parse_row_search(value))
        if word == "redo-log":
            if not scenario.pool_rules.waits_for_redo:
                raise UsageError(
                    f"--what-if {word}: nothing of a forecast depends on it with"
                    f" {scenario.rules.name}",
                    code=Code.VERSION_LACKS,
                    hint="see --server",
                )
            return replace(scenario, redo_log_bytes=float(size(value)))
        if word in _ALWAYS:
            return _ALWAYS[word](scenario, value)
    except ValueError as error:
        raise UsageError(f"--what-if {word}: {error}", code=Code.OPTION_VALUE) from None
    raise UsageError(
        f"--what-if: {word!r} is unknown",
        code=Code.OPTION_VALUE,
        hint=f"{did_you_mean(word, WHAT_IFS) or ''} use one of {', '.join(WHAT_IFS)}".strip(),
    )


_ALWAYS: dict[str, Callable[[Scenario, str], Scenario]] = {
    "minimal-image": lambda one, _: replace(one, minimal_image=True),
    "event-size": lambda one, value: replace(one, event_bytes=int(_number(value, 256))),
    "workers": lambda one, value: replace(one, workers=int(_number(value, 1, MOST_WORKERS))),
    "rows": lambda one, value: replace(one, row_factor=_number(value, 0)),
    "durable": lambda one, _: replace(one, syncs=commit_syncs(1, 1, logs=one.binary_log)),
    "relaxed": lambda one, _: replace(one, syncs=0.0),
    "buffer-pool": lambda one, value: replace(one, pool_bytes=float(size(value))),
    "table-open-cache": lambda one, value: one.keeping_open(_number(value, 1)),
    "cores": lambda one, value: replace(one, cores=_number(value, 1, MOST_WORKERS)),
}
"""What-ifs that any version and any table can have."""


def _number(text: str, least: float, most: float = inf) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if not isfinite(value):
        raise ValueError(f"{text!r} is not a number")
    if value < least:
        raise ValueError(f"{text!r} is less than {least}")
    if value > most:
        raise ValueError(f"{text!r} is more than {most}")
    return value


def _title(text: str) -> str:
    words: Mapping[str, str] = {
        "primary-key": "add a primary key", "gipk": "generated invisible primary key",
        "minimal-image": "minimal row image",
        "index": "secondary index, rows per value", "event-size": "binlog_row_event_max_size",
        "workers": "workers",
        "rows": "rows, times", "row-search": "row search",
        "durable": "durable commits", "relaxed": "relaxed commits", "buffer-pool": "buffer pool",
        "redo-log": "redo log", "table-open-cache": "table_open_cache",
    }  # fmt: skip
    titles = []
    for part in text.split("+"):
        word, _, value = part.strip().partition("=")
        word, _, table = word.partition(":")
        titles.append(
            " ".join(
                piece
                for piece in (words.get(word, word), value, f"on {table}" if table else "")
                if piece
            )
        )
    return ", ".join(titles)
