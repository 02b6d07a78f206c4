"""Python's search for cycles of objects, which a replay and imports have no use for."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_cycle_collection() -> Iterator[None]:
    """Rows and records hold no cycles, and looking for some in millions of them takes a fifth of a
    replay. What is imported stays, and looking at it takes a tenth of a command's start."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
