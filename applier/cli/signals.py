"""Ctrl-C and SIGTERM as a question: what is under way is finished first."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interruptible(on_signal: Callable[[], None] = lambda: None) -> Iterator[Callable[[], bool]]:
    """Gives a function that says whether a signal came. The first one calls `on_signal`; a second one raises KeyboardInterrupt."""
    asked = False

    def ask(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        on_signal()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
