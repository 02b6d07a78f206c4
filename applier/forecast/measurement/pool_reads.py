"""What a page costs that a replica has to read into a full buffer pool.

The same changes of rows all over a table are applied twice: beside a buffer pool that holds the
table, and beside one that holds half of it. What the second takes more, divided by the pages that
the server says it has read, is the price. So it holds the read itself, and what it takes to make
room: another page is evicted first, and as a rule it has to be written, too.

That is done once more with several workers, which read side by side, but share what other threads
do for that room: the page cleaner and those that write. Where workers wait for pages until they are
written (MariaDB, `PageCleaner.waited_for`), one waits as long as several for each of them: what one
worker takes more for a read is the read itself, and the rest is that wait.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from applier.error_codes import Code
from applier.errors import InputError
from applier.forecast.inventory.pool_rules import PAGE, POOL_RULES
from applier.forecast.measurement.measured import Measured
from applier.forecast.measurement.measurement_grid import FAR_ROWS, SINGLES, Cell
from applier.forecast.measurement.server_words import ServerWords
from applier.forecast.prices.calibration import PAGE_READ, PAGE_ROOM, PAGE_WRITE, TimePrice
from applier.mysql.client.connection import Server
from applier.timing.work_clock import Machine, spins
from lookup.table_shape import PRIMARY
from lookup.versions import rules_for

SMALL_MIB, BESIDE_MIB = 128, 512
"""The table of the cell has some 230."""
CELL = Cell(PRIMARY, FAR_ROWS, "update", 1, 1, SINGLES, filler=200, pool=SMALL_MIB)
SEVERAL = replace(CELL, workers=4)
PROCESSOR_SHARE = 0.35
"""Of what a read takes: the worker of a 9.7.4 had 72 µs of a processor for each of 190."""
LEAST_READ = 0.2
"""The read itself is at least this share of what one worker takes more."""
FEWEST_READS = 1_000
"""Fewer say nothing: a server reads pages of its own as well."""
RESIZE_SECONDS = 60.0
AGAIN_SECONDS, POLL_SECONDS = 2.0, 0.05
NEAR = 0.1
"""A pool has a few pages less than its size says."""
_POOL_STATUS = "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_%'"
_SETTLED = ("Completed", "Size did not change")
"""What the server says then; nothing where it was never asked, and in MariaDB."""


def pool_cells(*, workers: bool) -> list[Cell]:
    """The cells; `workers`: the target can run several."""
    return [CELL, SEVERAL] if workers else [CELL]


def can_resize(server: Server) -> bool:
    """Whether the server's pool can have both sizes without a restart (5.7.5 and later, MariaDB):
    it comes in chunks, one at least for each instance."""
    known = {
        str(name): int(str(value))
        for name, value in server.texts(
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_buffer_pool_chunk_size',"
            " 'innodb_buffer_pool_instances', 'innodb_buffer_pool_size_max', 'innodb_page_size')"
        )
    }
    chunk = known.get("innodb_buffer_pool_chunk_size")
    least = (chunk or 0) * known.get("innodb_buffer_pool_instances", 1)
    small, large = SMALL_MIB << 20, BESIDE_MIB << 20
    most = known.get("innodb_buffer_pool_size_max", large)
    is_usual = known.get("innodb_page_size") == PAGE
    return chunk is not None and is_usual and least <= small and large <= most


def resize_pool(server: Server, size: int) -> None:
    """Gives the pool so many bytes and waits until it has them. MySQL answers first and resizes
    then; a size that comes meanwhile is refused (3166, 5.7) or ignored (9.7). Raises InputError."""
    pages, begun, asked = size // PAGE, time.monotonic(), -AGAIN_SECONDS
    while True:
        found = {str(name): str(value) for name, value in server.texts(_POOL_STATUS)}
        now, total = time.monotonic(), int(found["Innodb_buffer_pool_pages_total"])
        said = found.get("Innodb_buffer_pool_resize_status", "")
        if not said or said.startswith(_SETTLED):
            if abs(total / pages - 1) <= NEAR:
                return
            if now >= asked + AGAIN_SECONDS:
                server.execute(f"SET GLOBAL innodb_buffer_pool_size = {size}")
                asked = now
        if now > begun + RESIZE_SECONDS:
            raise InputError(
                f"the buffer pool has {total:,} pages and not {pages:,}",
                code=Code.NOT_MEASURED,
                hint="the server's error log says more",
            )
        time.sleep(POLL_SECONDS)


def page_counts(server: Server) -> list[int]:
    """Pages that were read, and written, since the server's start."""
    return [
        int(str(server.texts(f"SHOW GLOBAL STATUS LIKE 'Innodb_pages_{what}'")[0][1]))
        for what in ("read", "written")
    ]


def read_prices(
    measured: Sequence[Measured], *, cores: int, usual: Mapping[str, TimePrice]
) -> dict[str, TimePrice]:
    """The prices of a read, of room for a page and of a write, by their names in
    `calibration.SHARED`; the `usual` ones where no cell shows them."""
    prices = {name: usual[name] for name in (PAGE_READ, PAGE_ROOM, PAGE_WRITE)}
    alone, several = (
        [one for one in measured if _shows_reads(one, cell)] for cell in (CELL, SEVERAL)
    )
    if not alone:
        return prices
    read = statistics.median(map(_seconds_a_page, alone))
    written = statistics.median(map(_written_a_page, alone))
    worker_cores = _worker_cores(alone[0].server_version, cores)
    if written:
        write = _write_seconds(several, read, written, PROCESSOR_SHARE / worker_cores)
        prices[PAGE_WRITE], prices[PAGE_ROOM] = TimePrice(0.0, write), TimePrice(0.0)
        read -= write * written
    prices[PAGE_READ] = TimePrice(read * PROCESSOR_SHARE, read * (1 - PROCESSOR_SHARE))
    if several and not written:
        seconds = statistics.median(map(_seconds_a_page, several))
        room = seconds * worker_cores - prices[PAGE_READ].processor
        prices[PAGE_ROOM] = TimePrice(max(room, 0.0))
    return prices


def _write_seconds(
    several: Sequence[Measured], read: float, written: float, side_by_side: float
) -> float:
    """What one write of a page takes, where one worker takes `read` seconds for a read and the
    `written` pages that come with it: several take `side_by_side` of the read itself, and the
    same for each write."""
    most = read * (1 - LEAST_READ) / written
    beside = statistics.median(map(_written_a_page, several)) if several else 0.0
    if beside <= side_by_side * written:
        return most / 2
    seconds = statistics.median(map(_seconds_a_page, several))
    found = (seconds - side_by_side * read) / (beside - side_by_side * written)
    return min(max(found, 0.0), most)


def _worker_cores(version: str, cores: int) -> float:
    """Cores that the workers of SEVERAL have."""
    kind = ServerWords(rules_for(version)).parallel_type
    return min(Machine(cores, spins(kind, SEVERAL.workers)).worker_cores, SEVERAL.workers)


def _shows_reads(one: Measured, cell: Cell) -> bool:
    is_it = one.cell.pool > 0 and one.cell.workers == cell.workers
    return is_it and one.page_reads >= FEWEST_READS and one.seconds > one.beside_seconds


def _seconds_a_page(one: Measured) -> float:
    return (one.seconds - one.beside_seconds) / one.page_reads


def _written_a_page(one: Measured) -> float:
    """Pages that workers wait for until they are written, for one that is read."""
    cleaner = POOL_RULES[rules_for(one.server_version).name].cleaner(SMALL_MIB << 20)
    held = (SMALL_MIB << 20) // PAGE
    return cleaner.waited_for(round(one.page_writes), held) / one.page_reads
