"""`apply_steps` as plain Python, or compiled by Numba: the same source, the same numbers to the
last digit."""

from __future__ import annotations

import hashlib
import inspect
from array import array
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from applier.forecast.lag import apply_steps, open_tables
from applier.forecast.lag.open_tables import OpenTables
from applier.replica import scheduling
from applier.timing import clock_steps, lag
from applier.timing.clock_steps import Clock

WORTH_LOADING = 8_000
"""Transactions of a log before compiled code is asked for: it takes about a second to load;"""
WORTH_COMPILING = 40_000
"""and before it is compiled, which takes some seconds once."""
OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
"""`_nrt`: the steps make no arrays, so nothing has to count who holds one. Counting, at each call
that is handed a clock, took six sevenths of the time."""


GROUPS: dict[str, type[tuple[Any, ...]]] = {"Clock": Clock, "OpenTables": OpenTables}
"""Rows of numbers within others."""


class Steps(NamedTuple):
    """`apply_steps.apply` and `apply_steps.charge`."""

    apply: Callable[..., None]
    charge: Callable[..., None]


PYTHON = Steps(apply_steps.apply, apply_steps.charge)


def steps_for(transactions: int, *, is_large: bool = False) -> Steps:
    """The steps for a log of so many transactions or more; `is_large`: its files say that more
    than WORTH_LOADING come."""
    transactions = max(transactions, WORTH_LOADING if is_large else 0)
    if compiled_steps.cache_info().currsize:
        return compiled_steps()
    if transactions < WORTH_LOADING or find_spec("numba") is None:
        return PYTHON
    return compiled_steps() if transactions >= WORTH_COMPILING or _is_cached() else PYTHON


@cache
def compiled_steps() -> Steps:
    """The compiled steps, from the cache on disk when they are there."""
    from numba import config as numba_config
    from numba import njit
    from numba.extending import register_jitable

    for function in (
        scheduling.is_out_of_order, scheduling.waits_for_all, scheduling.batch_of,
        *clock_steps.STEPS, *lag.STEPS, *open_tables.STEPS, *apply_steps.STEPS,
    ):  # fmt: skip
        register_jitable(**OPTIONS)(function)
    config: Any = numba_config
    before = config.CACHE_DIR, getattr(config, "CACHE_LOCATOR_CLASSES", "")
    try:
        config.CACHE_DIR = str(_cache_directory())
        config.CACHE_LOCATOR_CLASSES = f"{__name__}.{StepsFolder.__name__}"
        made = [_on_arrays(njit(cache=True, **OPTIONS)(function)) for function in PYTHON]
    except (OSError, RuntimeError):  # no folder that can be written
        made = [_on_arrays(njit(**OPTIONS)(function)) for function in PYTHON]
    finally:
        config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = before
    no_turns, no_parts, no_run, no_outcomes = map(
        _nothing, (apply_steps.Turns, apply_steps.Parts, apply_steps.Run, apply_steps.Outcomes)
    )
    made[0](no_turns, no_parts, apply_steps.no_prices(), no_run, no_outcomes)
    made[1](
        no_turns,
        no_parts,
        apply_steps.no_prices(),
        no_run,
        no_outcomes,
        _nothing(apply_steps.Charges),
    )
    return Steps(*made)


def _nothing(kind: type[tuple[Any, ...]]) -> Any:
    """Rows without numbers, to compile for: while Numba compiles it holds on to what it was given,
    and an array that somebody holds cannot grow."""
    hints = [hint.__forward_arg__ for hint in kind.__annotations__.values()]
    columns = [
        _nothing(GROUPS[hint]) if hint in GROUPS else array("q" if "int" in hint else "d")
        for hint in hints
    ]
    return kind(*columns)


def _is_cached() -> bool:
    try:
        return any(_cache_directory().glob("**/*.nbc"))
    except (OSError, RuntimeError):
        return False


class StepsFolder:
    """Where Numba keeps the compiled steps, as it asks a class of its CACHE_LOCATOR_CLASSES.

    Numba's own classes keep them by the path of the source, so that each place where binlag is
    installed compiles anew; and Spark unpacks a package in a new place for each job. Before 0.61
    Numba asks nobody else.
    """

    @classmethod
    def from_function(cls, *_: object) -> StepsFolder:
        """Raises OSError where the folder cannot be written."""
        found = cls()
        found.ensure_cache_path()
        return found

    def ensure_cache_path(self) -> None:
        """Raises OSError where the folder cannot be written."""
        _cache_directory().mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=_cache_directory()).close()

    def get_cache_path(self) -> str:
        """The folder; its name changes with the sources."""
        return str(_cache_directory())

    def get_source_stamp(self) -> str:
        """The same for all that is in it."""
        return _cache_directory().name

    def get_disambiguator(self) -> str:
        """Nothing: no two of the steps have the same name."""
        return ""


@cache
def _cache_directory() -> Path:
    """A folder of its own for each state of the sources and options: Numba looks at the outermost
    function's file only."""
    from applier.binlog.columnar.cache import cache_directory

    sources = "".join(
        inspect.getsource(module)
        for module in (scheduling, clock_steps, lag, open_tables, apply_steps)
    )
    key = hashlib.sha256(f"{sources}{OPTIONS}".encode()).hexdigest()[:16]
    return cache_directory() / f"steps-{key}"


def _on_arrays(function: Callable[..., None]) -> Callable[..., None]:
    """The compiled function with NumPy's views of the arrays that it is given."""
    import numpy as np

    def view(group: Any) -> Any:
        return type(group)(*map(view, group)) if isinstance(group, tuple) else np.asarray(group)

    def call(*groups: tuple[Any, ...]) -> None:
        function(*map(view, groups))

    return call
