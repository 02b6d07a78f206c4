"""Prices from measured cells: non-negative least squares on relative errors, their spread, and how
well unseen cells are foretold.

Each cell says: the sum of its amounts times prices is its seconds. Dividing by the seconds makes
every cell weigh alike, whether it took a millisecond or a minute; once there are first prices,
dividing by what they say, since cells that were quick by chance would weigh more than those that
were slow, and all prices be too low (by 7 % where a measurement wavers by 20 %). A few cells that
something disturbed (another process, a flush) must not bend the prices: cells far off are weighed
down and the fit is done again (Huber's weights).

Few cells do not tell all prices apart: an event costs nothing where the transaction that is always
beside it takes all. So each price is pulled to the one that ships, at the speed of this machine; a
unit that no cell shows costs just that.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from applier.error_codes import Code
from applier.errors import InputError
from applier.forecast.inventory.pool_rules import POOL_RULES
from applier.forecast.measurement.measured import Measured, means
from applier.forecast.measurement.pool_reads import read_prices
from applier.forecast.measurement.scale_up import (
    shared_prices,
    unexplained,
    unsteadiness,
)
from applier.forecast.prices.calibration import (
    COORDINATOR,
    CORES,
    DURABLE,
    HAND_OVER,
    OWN_LOG,
    PAGE_WRITE,
    SHARED,
    SYNC,
    UNEXPLAINED,
    Calibration,
    Residuals,
    TimePrice,
    default_calibration,
    page_write_at,
    syncs_at,
)
from applier.forecast.prices.units import PLACE, Prices
from applier.lazy_imports import needed
from lookup.versions import rules_for

Floats = npt.NDArray[np.float64]
FOLDS = 5
RESAMPLES = 200
ROUNDS = 12
TOLERATED = 0.3
"""Relative error up to which a cell has its full weight."""
TIMING_SECONDS = 0.001
"""What an onlooker is off by."""
LEAST_SECONDS = 0.005
"""Cells that took less say nothing."""
STEADY = 0.1
"""Half of the cells of a server on a quiet machine are less off than that (6 to 8 % on two virtual
cores; 10 to 14 % on days on which their speed changed)."""
PULL = 0.1
"""How much prices keep to those that ship: twice such a price counts as a tenth off in a cell."""


def fit(
    measured: Sequence[Measured],
    *,
    settings: Mapping[str, str] | None = None,
    machine: str | None = None,
    date: str | None = None,
    cores: int | None = None,
) -> Calibration:
    """The calibration of one target on one server version; `cores` of the server's machine.

    Raises InputError when there is nothing to fit.
    """
    every = [one for one in means(measured) if one.seconds >= LEAST_SECONDS]
    scale_up = [one for one in every if one.cell.workers and not one.cell.pool]
    measured = [one for one in every if not (one.cell.workers or one.cell.pool)]
    measured += [one.alone for one in scale_up if one.beside_seconds]
    if not measured:
        raise InputError(
            "no cell was measured: there is nothing to fit",
            code=Code.MEASUREMENTS,
            hint="binlag measure --into mysql://user@host:port",
        )
    if len({(one.target, one.server_version) for one in measured}) > 1:
        raise InputError(
            "the measurements are of several targets or server versions",
            code=Code.MEASUREMENTS,
            hint="give each a table of its own",
        )
    amounts = np.array([one.amounts for one in measured])
    seconds = np.array([one.seconds for one in measured])
    ships = default_calibration(rules_for(measured[0].server_version).name)
    usual, speed = _prices_here(ships, amounts, seconds)
    prices = solve(amounts, seconds, usual)
    low, high = _intervals(amounts, seconds, usual, ships, speed)
    errors = relative_errors(amounts, seconds, prices)
    unseen = _cross_validate(amounts, seconds, usual)
    largest = (np.median(errors), np.quantile(errors, 0.9), errors.max())
    residuals = Residuals(
        len(measured),
        *(_round(float(value)) for value in largest),
        *(_round(float(value)) for value in (np.median(unseen), np.quantile(unseen, 0.9))),
    )  # fmt: skip
    found, settings, cores = Prices(tuple(map(float, prices))), dict(settings or {}), cores or CORES
    syncs = syncs_at(settings | DURABLE)
    own_log = TimePrice(ships.shared[OWN_LOG].processor * speed)
    reads = read_prices(every, cores=cores, usual=ships.shared)
    workers = {
        name: TimePrice(ships.shared[name].processor * speed) for name in (*COORDINATOR, HAND_OVER)
    }
    shared = SHARED | workers | {OWN_LOG: own_log} | reads
    shared |= shared_prices(scale_up, cores=cores, syncs=syncs, usual=shared)
    if POOL_RULES[ships.rules_name].waits_for_redo:
        shared[PAGE_WRITE] = page_write_at(ships.shared, shared[SYNC])  # no cell fills it
    off = unexplained(scale_up, shared, cores=cores, syncs=syncs)
    return Calibration(
        measured[0].server_version,
        found,
        Prices(tuple(map(float, np.minimum(low, prices)))),
        Prices(tuple(map(float, np.maximum(high, prices)))),
        residuals,
        measured[0].target,
        machine or describe_machine(),
        date or datetime.now(UTC).strftime("%Y-%m-%d"),
        settings,
        shared=shared,
        cores=cores,
        unsteadiness=_round(unsteadiness(scale_up)),
        unexplained=UNEXPLAINED | {name: _round(value) for name, value in off.items()},
        shown=frozenset(name for name, at in PLACE.items() if amounts[:, at].any()),
    )


def _prices_here(ships: Calibration, amounts: Floats, seconds: Floats) -> tuple[Floats, float]:
    """(The prices that ship, in the middle of their intervals where cells will move them, at the
    speed that most cells show; the seconds here for one of theirs)."""
    between = (np.array(ships.low.seconds) + np.array(ships.high.seconds)) / 2
    usual = np.where(amounts.any(axis=0), between, ships.prices.seconds)
    said = amounts @ usual
    known = said > 0
    speed = float(np.median(seconds[known] / said[known])) if known.any() else 1.0
    here: Floats = usual * speed
    return here, speed


def solve(amounts: Floats, seconds: Floats, usual: Floats) -> Floats:
    """Prices, none below zero, for rows of amounts and the seconds they took; pulled to the `usual`
    ones. Raises UsageError when SciPy is not installed."""
    with needed("fitting prices needs SciPy", "scipy"):
        from scipy.optimize import nnls
    weight = 1 / (seconds + TIMING_SECONDS)
    robust = np.ones(len(seconds))
    prices = usual
    scale = np.where(usual > 0, usual, 1e-9)
    pulls = np.diag(np.where(usual > 0, PULL, 0.0))
    for _ in range(ROUNDS):
        each = weight * robust
        rows = np.vstack([amounts * each[:, None] * scale, pulls])
        solution, _ = nnls(rows, np.concatenate([seconds * each, pulls.diagonal()]))
        prices = solution * scale
        said = amounts @ prices
        weight = 1 / (said + TIMING_SECONDS)
        off = np.abs(said - seconds) * weight
        robust = np.sqrt(np.minimum(1.0, TOLERATED / np.maximum(off, 1e-12)))
    return prices


def relative_errors(amounts: Floats, seconds: Floats, prices: Floats) -> Floats:
    """How far prices are off, as parts of the seconds measured. `amounts`: cells x units;
    `seconds`: one a cell."""
    errors: Floats = np.abs(amounts @ prices - seconds) / (seconds + TIMING_SECONDS)
    return errors


def _cross_validate(amounts: Floats, seconds: Floats, usual: Floats) -> Floats:
    """The relative error of each cell under prices that were fitted without it."""
    order = np.random.default_rng(1).permutation(len(seconds))
    errors = np.zeros(len(seconds))
    for fold in range(FOLDS):
        left_out = order[fold::FOLDS]
        rest = np.setdiff1d(order, left_out)
        if len(rest) and len(left_out):
            errors[left_out] = relative_errors(
                amounts[left_out], seconds[left_out], solve(amounts[rest], seconds[rest], usual)
            )
    return errors


def _intervals(
    amounts: Floats, seconds: Floats, usual: Floats, ships: Calibration, speed: float
) -> tuple[Floats, Floats]:
    """95 % intervals of the prices, by drawing cells anew; those that ship, at this speed, of units
    that no cell shows."""
    chance = np.random.default_rng(1)
    drawn = []
    for _ in range(RESAMPLES):
        pick = chance.integers(0, len(seconds), len(seconds))
        drawn.append(solve(amounts[pick], seconds[pick], usual))
    low, high = np.quantile(np.array(drawn), (0.025, 0.975), axis=0)
    unshown = ~amounts.any(axis=0)
    low[unshown], high[unshown] = (
        np.array(one.seconds)[unshown] * speed for one in (ships.low, ships.high)
    )
    return low, high


def _round(value: float) -> float:
    return round(value, 4)


def describe_machine() -> str:
    """Processor and cores, in a line."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    found = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), ""
    )
    return f"{found or name}, {os.cpu_count()} cores, {platform.system()}"
