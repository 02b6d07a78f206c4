"""What a replica's workers share, measured: the sync of a commit, and what a coordinator spends on
handing transactions out, a 5.7's workers on taking them; what those of MariaDB cost each other.

The cells are small transactions that do not depend on each other, applied by 1 to 8 workers, with
durable commits and without. Each is measured right behind the same transactions with one worker
and no syncs, and only the ratio of the two counts: the speed of a machine may change for minutes.
The prices are those with which the forecast's own clock gives these ratios, where one worker takes
what it took at the median of the cells alike. (Unit prices say up to a fifth more of them or less,
and a sync would be wrong by as much.)
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from applier.forecast.lag.apply_steps import events_in_log
from applier.forecast.measurement.measured import Measured
from applier.forecast.measurement.measurement_grid import Cell
from applier.forecast.measurement.server_words import ServerWords
from applier.forecast.prices.calibration import (
    SEVERAL_WORKERS,
    SHARED,
    SYNC,
    SYNCS,
    TimePrice,
    priced_by_scale_up,
)
from applier.forecast.prices.scenario import Scenario
from applier.timing.work_clock import Turn
from lookup.table_shape import PRIMARY
from lookup.versions import rules_for

ROWS_CHANGED, ROWS_RELAXED = 8_000, 12_000
"""Without syncs a MariaDB is through with 8,000 in a tenth of a second. A run is fast or slow as a
whole, so several short ones say more than a long one."""
SHAPES = (1, 4, 20)
"""Statements of one row in a transaction: what is handed over for each of its events shows beside
what is for the transaction."""
WORKERS = (1, 2, 4, 8)
QUICK_WORKERS = (1, 4)
DEARER = (0.0, 2.5)
"""The fit begins at what ships, and at so many times e of the third price, the coordinator's: as
long as that takes less of a transaction than the workers do, it shows in no cell, and nothing leads
from there to one that takes more."""
TURNS = 300
"""Transactions of a simulation: long enough for workers and syncs to come into step."""
PULL = 0.1
"""How much a price that the cells hardly show keeps to the one that ships: a factor of e there
counts as a tenth off in a cell."""
FEWEST_CELLS = 5
FURTHEST = 4.0
"""A price lies within e to the power of that around the one that ships."""


def scale_up_cells(rows: int, *, workers: bool, quick: bool = False) -> Iterator[Cell]:
    """The cells, over tables of so many rows. `workers`: the target can run several."""
    numbers = (QUICK_WORKERS if quick else WORKERS) if workers else WORKERS[:1]
    for statements in SHAPES:
        for number in numbers:
            for durable in (1, 0) if number > 1 else (1,):
                changed = min(ROWS_CHANGED if durable else ROWS_RELAXED, rows // 4)
                yield Cell(
                    PRIMARY, rows, "update", 1, statements, changed // statements,
                    statements=statements, workers=number, durable=durable,
                )  # fmt: skip


def spread(cells: Sequence[Cell], among: Sequence[Cell]) -> list[Cell]:
    """`among` with one of `cells` now and then: a machine's speed changes over minutes."""
    found, step = list(among), len(among) / max(len(cells), 1)
    for number in range(len(cells) - 1, -1, -1):
        found.insert(round((number + 0.5) * step), cells[number])
    return found


def shared_prices(
    measured: Sequence[Measured],
    *,
    cores: int,
    syncs: float,
    usual: Mapping[str, TimePrice] = SHARED,
) -> dict[str, TimePrice]:
    """What of SHARED the cells of scale-up show; `syncs` of a durable commit, `usual` prices of
    this version."""
    cells = [one for one in measured if one.beside_seconds > 0 and one.seconds > 0]
    if not cells:
        return {}
    from scipy.optimize import least_squares

    alone = _alone(cells)
    names = priced_by_scale_up(rules_for(cells[0].server_version).name)

    def shared_at(logarithms: Sequence[float]) -> dict[str, TimePrice]:
        processor, waiting, *others = map(math.exp, logarithms)
        sync = usual[SYNC]
        return {
            **usual,
            SYNC: TimePrice(sync.processor * processor, sync.waiting * waiting),
            **{
                name: TimePrice(usual[name].processor * factor)
                for name, factor in zip(names, others, strict=True)
            },
        }

    def errors(logarithms: Sequence[float]) -> list[float]:
        found = shared_at(logarithms)
        off = [
            math.log(_ratio(one, alone, found, cores, syncs))
            - math.log(one.seconds / one.beside_seconds)
            for one in cells
        ]
        return off + [PULL * x for x in logarithms]

    solved = min(
        (
            least_squares(
                errors, start, bounds=(-FURTHEST, FURTHEST), loss="soft_l1", f_scale=0.2,
                diff_step=0.05,
            )
            for start in ([0.0, 0.0, dear, 0.0] for dear in DEARER)
        ),
        key=lambda found: float(found.cost),
    )  # fmt: skip
    found = shared_at(solved.x.tolist())
    return {name: found[name] for name in (SYNC, *names)}


def unsteadiness(measured: Sequence[Measured]) -> float:
    """How far the machine's speed was off its median, in nine of ten readings: the transactions
    without syncs that each cell of scale-up has beside it, beside others of the same shape."""
    alone = _alone(measured)
    speeds = [
        one.beside_seconds / one.cell.transactions / alone[_shape(one.cell)]
        for one in measured
        if one.beside_seconds
    ]
    return _nine_of_ten(speeds) if speeds else 0.0


def unexplained(
    measured: Sequence[Measured],
    shared: Mapping[str, TimePrice],
    *,
    cores: int,
    syncs: float,
) -> dict[str, float]:
    """How far the clock is off at these prices, in nine of ten cells: of several workers without
    syncs, and of durable commits. Names as in `Calibration.unexplained`; `syncs` as above.

    The disk's part of a sync changes by a factor of two and more from minute to minute on a virtual
    machine, which no price can say. Where there are fewer than FEWEST_CELLS of a kind, it is left
    out: they are fitted by as many prices.
    """
    factors: dict[str, list[float]] = {}
    alone = _alone(measured)
    for one in measured:
        if one.beside_seconds > 0 and one.seconds > 0:
            said = _ratio(one, alone, shared, cores, syncs)
            name = SYNCS if one.cell.durable else SEVERAL_WORKERS
            factors.setdefault(name, []).append(said * one.beside_seconds / one.seconds)
    enough = {name: one for name, one in factors.items() if len(one) >= FEWEST_CELLS}
    return {name: _nine_of_ten(values) for name, values in enough.items()}


def _nine_of_ten(factors: Iterable[float]) -> float:
    """How far off 1 nine of ten of them are at most, either way: 0.5 is a factor of 1.5."""
    off = sorted(max(one, 1 / one) - 1 for one in factors)
    return off[min(round(0.9 * len(off)), len(off) - 1)]


def _alone(measured: Sequence[Measured]) -> dict[Cell, float]:
    """Seconds of a transaction with one worker and no syncs, for each shape of a cell."""
    found: dict[Cell, list[float]] = {}
    for one in measured:
        if one.beside_seconds > 0:
            seconds = one.beside_seconds / one.cell.transactions
            found.setdefault(_shape(one.cell), []).append(seconds)
    return {shape: statistics.median(each) for shape, each in found.items()}


def _shape(cell: Cell) -> Cell:
    """What cells have in common whose transactions are alike."""
    return replace(cell.alone, transactions=1)


def _ratio(
    one: Measured,
    alone_seconds: Mapping[Cell, float],
    shared: Mapping[str, TimePrice],
    cores: int,
    syncs: float,
) -> float:
    """The clock's time for a cell, in times of the same with one worker and no syncs."""
    cell = one.cell
    alone = alone_seconds[_shape(cell)]
    rules = rules_for(one.server_version)
    replica = Scenario(
        "a cell",
        rules,
        workers=cell.workers,
        parallel_type=ServerWords(rules).parallel_type,
        cores=cores,
        syncs=syncs if cell.durable else 0.0,
    )
    clock = replica.clock(replica.machine(shared))
    events = events_in_log(cell.events)
    done = 0.0
    for place in range(1, TURNS + 1):
        turn = Turn(alone, 0.0, 0.0, events, min(place - 1, 1), place)
        done = max(done, clock.take(0.0, turn))
    return done / (TURNS * alone)
