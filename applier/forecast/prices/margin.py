"""How far the prices of a forecast may be off: what the calibration's own cells were, and more
where the replica is beyond what was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from applier.forecast.inventory.facts import TableFacts
from applier.forecast.inventory.index_fill import names_of_full_indexes
from applier.forecast.prices.calibration import SEVERAL_WORKERS, SYNCS, Calibration
from applier.forecast.prices.scenario import Scenario

LARGEST_MEASURED = 1_000_000
"""Rows of the largest table that `binlag measure` makes."""
FOR_EACH_TENFOLD = 0.15
WIDEST_MEASURED = {False: 300, True: 60_000}
"""Bytes of the widest rows that it makes; True: where it has rows that do not fit a page."""
FOR_EACH_TENFOLD_OF_BYTES = 0.6
"""Where nobody measured them, rows of 20 kB took 2.3 times as long on a 5.7.29 as the price of a
byte says, on a 9.7.4 0.6 to 0.9 times."""
UNMEASURED_CORES = 0.3
OTHER_MACHINE = 2.5
"""Of the prices that ship: the same kind of virtual machine took 0.7 to 3.5 times as long on other
days, for the same transactions."""
FULL_LEAVES = 1.4
"""Of updates that split and merge full pages of indexes, at prices that lack that. On a 9.7.4 they
took 1.8 to 2.5 times as long as those of other columns, or without merges (`index_fill`)."""
UNCOUNTED_VALUES = 1.0
"""Of keys whose values may have more rows where changes meet them than on average. sysbench's
oltp_write_only on a replica without a primary key took 1.98 times as long as such a mean says."""
REDO = 0.3
"""Of writes for a redo log that is full: how much a log fills is a model (`redo_log`)."""
PAGES = 0.35
"""Of page reads: which pages a pool holds is a model, and what a read takes is one number."""
PAGES_OF_MARIADB = 0.6
"""Its workers wait for pages that are written, too: a 10.11.18 took 0.9 to 1.4 times as long as
forecast, 1.5 times while purge went by the clock of one worker."""


def margin(
    base: Scenario,
    facts: Mapping[str, TableFacts],
    calibration: Calibration,
    uncounted: Sequence[str] = (),
) -> tuple[float, list[str]]:
    """(How far off nine of ten forecasts should be at most: the time is between that of the
    forecast divided by 1 + margin and times 1 + margin; what widens it, in words). `uncounted`:
    keys whose values nobody could count."""
    parts, said = [calibration.spread, calibration.unsteadiness], list[str]()
    if calibration.ships:
        parts.append(OTHER_MACHINE)
    for part, why in (_beyond_measured_rows(facts), _beyond_measured_widths(facts, calibration)):
        parts.append(part)
        said += [why] if why else []
    if full := names_of_full_indexes(facts):
        measured = "leaf split" in calibration.shown
        parts += [] if measured else [FULL_LEAVES]
        more = f" and {len(full) - 1} more" if len(full) > 1 else ""
        wider = "" if measured else ", which was not measured: the margin is wider"
        said.append(
            f"the pages of index {full[0]}{more} are full, as behind CREATE INDEX; updates split "
            f"and merge them again and again{wider} (from MySQL 5.7 on, ALTER TABLE … COMMENT = "
            "'MERGE_THRESHOLD=20' avoids most of it)"
        )
    if uncounted:
        parts.append(UNCOUNTED_VALUES)
        more = f" and {len(uncounted) - 1} more" if len(uncounted) > 1 else ""
        said.append(
            f"the rows of a value of {uncounted[0]}{more} could not be counted: changes are taken "
            "to meet the mean over all values; they may meet values with more rows, and the "
            "margin is wider (give --schema mysql://… or a dump with rows)"
        )
    if base.workers > 1:
        parts.append(calibration.unexplained[SEVERAL_WORKERS])
        if base.cores > calibration.cores and base.workers >= calibration.cores:
            parts.append(UNMEASURED_CORES)
            said.append(
                f"{base.workers} workers on {base.cores:,.0f} cores; the prices are of a machine "
                f"with {calibration.cores}: the margin is wider"
            )
    if base.syncs:
        parts.append(calibration.unexplained[SYNCS])
    if base.redo_log_bytes != math.inf:
        parts.append(REDO)
        said.append(
            "the log may fill the redo log, which is taken to be empty at its start; how many "
            "changed pages must be written first follows from the log's keys; the margin is wider"
        )
    if base.pool_bytes != math.inf:
        is_mariadb = base.rules.name == "mariadb"
        parts.append(PAGES_OF_MARIADB if is_mariadb else PAGES)
        said.append(
            "the tables are larger than the buffer pool: which pages it holds follows from the "
            "log's keys, and at the log's start it holds none of them; the margin is wider"
        )
    return math.hypot(*parts), said


def _beyond_measured_rows(facts: Mapping[str, TableFacts]) -> tuple[float, str]:
    """What a table adds that is larger than those that were measured, and why."""
    name, rows = _largest(facts.values(), lambda one: one.rows)
    if rows <= LARGEST_MEASURED:
        return 0.0, ""
    return FOR_EACH_TENFOLD * math.log10(rows / LARGEST_MEASURED), (
        f"{name} has {rows:,.0f} rows, the largest table that was "
        f"measured {LARGEST_MEASURED:,}: the margin is wider"
    )


def _beyond_measured_widths(
    facts: Mapping[str, TableFacts], calibration: Calibration
) -> tuple[float, str]:
    """The same of rows that are ten times as wide, in a table that the log changes."""
    changed = (one for one in facts.values() if one.in_log)
    name, row_bytes = _largest(changed, lambda one: one.row_bytes)
    widest = WIDEST_MEASURED["long byte" in calibration.shown]
    if row_bytes <= 10 * widest:
        return 0.0, ""
    return FOR_EACH_TENFOLD_OF_BYTES * math.log10(row_bytes / widest), (
        f"rows of {name} have {row_bytes:,.0f} bytes, the widest that "
        f"were measured {widest:,}: the margin is wider"
    )


def _largest(
    tables: Iterable[TableFacts], size: Callable[[TableFacts], float | None]
) -> tuple[str, float]:
    """(Name, size) of the largest table whose size is known; ("", 0) for none."""
    sizes = ((one.definition.full_name, size(one) or 0.0) for one in tables)
    return max(sizes, key=lambda one: one[1], default=("", 0.0))
