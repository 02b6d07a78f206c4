"""Python's search for cycles of objects, which a replay has no use for."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_cycle_collection() -> Iterator[None]:
    """Rows and records hold no cycles, and looking for some in millions of them takes a fifth of a
    replay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def kept_for_good() -> Iterator[None]:
    """What is imported inside is never looked at, at the end of the process neither: that is an
    eighth of what a short command takes."""
    with no_cycle_collection():
        yield
    gc.freeze()
