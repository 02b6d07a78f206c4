"""What a replica's workers share, measured: the sync of a commit, and the coordinator that hands
transactions out.

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

from applier.forecast.lag.apply_steps import events_in_log
from applier.forecast.measurement.measured import Measured
from applier.forecast.measurement.measurement_grid import Cell
from applier.forecast.measurement.server_words import ServerWords
from applier.forecast.prices.calibration import SEVERAL_WORKERS, SHARED, SYNCS, TimePrice
from applier.forecast.prices.units import Prices
from applier.timing.work_clock import Machine, Turn, WorkClock, spins
from lookup.table_shape import PRIMARY
from lookup.versions import rules_for

ROWS_CHANGED = 8_000
SHAPES = (1, 4)
"""Statements of one row in a transaction."""
WORKERS = (1, 2, 4, 8)
QUICK_WORKERS = (1, 4)
GUESSES = (
    SHARED["sync"].processor, SHARED["sync"].waiting,
    SHARED["coordinator transaction"].processor, SHARED["coordinator event"].processor,
)  # fmt: skip
"""Where the fit begins: what ships."""
COORDINATORS = (0.0, 2.5)
"""And so many times e of its coordinator's price: as long as it takes less of a transaction than
the workers do, it shows in no cell, and nothing leads from there to one that takes more."""
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
        count = min(ROWS_CHANGED, rows // 4) // statements
        for number in numbers:
            for durable in (1, 0) if number > 1 else (1,):
                yield Cell(
                    PRIMARY, rows, "update", 1, statements, count, statements=statements,
                    workers=number, durable=durable,
                )  # fmt: skip


def spread(cells: Sequence[Cell], among: Sequence[Cell]) -> list[Cell]:
    """`among` with one of `cells` now and then: a machine's speed changes over minutes."""
    found, step = list(among), len(among) / max(len(cells), 1)
    for number in range(len(cells) - 1, -1, -1):
        found.insert(round((number + 0.5) * step), cells[number])
    return found


def shared_prices(
    measured: Sequence[Measured], *, cores: int, syncs: float
) -> dict[str, TimePrice]:
    """What of SHARED the cells of scale-up show; `syncs` of a durable commit."""
    cells = [one for one in measured if one.beside_seconds > 0 and one.seconds > 0]
    if not cells:
        return {}
    from scipy.optimize import least_squares

    alone = _alone(cells)

    def prices_at(logarithms: Sequence[float]) -> list[float]:
        return [guess * math.exp(x) for guess, x in zip(GUESSES, logarithms, strict=True)]

    def errors(logarithms: Sequence[float]) -> list[float]:
        found = prices_at(logarithms)
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
            for start in ([0.0, 0.0, dear, 0.0] for dear in COORDINATORS)
        ),
        key=lambda found: float(found.cost),
    )  # fmt: skip
    processor, waiting, transaction, event = prices_at(solved.x.tolist())
    return {
        "sync": TimePrice(processor, waiting),
        "coordinator transaction": TimePrice(transaction),
        "coordinator event": TimePrice(event),
    }


def unsteadiness(measured: Sequence[Measured], prices: Prices) -> float:
    """How far the machine's speed was off its median, in nine of ten readings: the transactions
    without syncs that each cell of scale-up has beside it, beside what prices say of them."""
    speeds = [
        one.beside_seconds / prices.cost(one.amounts)[0] for one in measured if one.beside_seconds
    ]
    if not speeds:
        return 0.0
    usual = statistics.median(speeds)
    return _nine_of_ten(one / usual for one in speeds)


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
    sync = shared["sync"]
    found = [
        sync.processor, sync.waiting,
        shared["coordinator transaction"].processor, shared["coordinator event"].processor,
    ]  # fmt: skip
    factors: dict[str, list[float]] = {}
    alone = _alone(measured)
    for one in measured:
        if one.beside_seconds > 0 and one.seconds > 0:
            said = _ratio(one, alone, found, cores, syncs)
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
            found.setdefault(one.cell.alone, []).append(seconds)
    return {shape: statistics.median(each) for shape, each in found.items()}


def _ratio(
    one: Measured,
    alone_seconds: Mapping[Cell, float],
    found: Sequence[float],
    cores: int,
    syncs: float,
) -> float:
    """The clock's time for a cell, in times of the same with one worker and no syncs; `found` are
    what workers share, in the order of GUESSES."""
    cell = one.cell
    alone = alone_seconds[cell.alone]
    kind = ServerWords(rules_for(one.server_version)).parallel_type
    processor, waiting, transaction, event = found
    number = syncs if cell.durable else 0.0
    machine = Machine(
        cores, spins(kind, cell.workers), processor * number, waiting * number, transaction, event,
        synced_logs=number,
    )  # fmt: skip
    clock = WorkClock(cell.workers, machine=machine, parallel_type=kind)
    events = events_in_log(cell.events)
    done = 0.0
    for place in range(1, TURNS + 1):
        turn = Turn(alone, 0.0, 0.0, events, min(place - 1, 1), place)
        done = max(done, clock.take(0.0, turn))
    return done / (TURNS * alone)
