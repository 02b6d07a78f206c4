"""Ctrl-C and SIGTERM as a question: what is under way is finished first."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType

AGAIN_SECONDS = 0.01


class Interrupted(KeyboardInterrupt):
    """What a signal raises. KeyboardInterrupt itself, once it was in code that `exec` compiles (dataclasses do), makes Python end by
    SIGINT whatever the exit code is (unhandled_keyboard_interrupt in run_eval_code_obj, Python/pythonrun.c of 3.11); it asks for that
    very class."""


@contextmanager
def interrupts(*, at_the_end: bool) -> Iterator[None]:
    """Ctrl-C and SIGTERM raise Interrupted, wherever the command is.

    `at_the_end`: behind the block neither is heard any more, since all that is left is to say how it ended and to end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    hook = sys.unraisablehook
    sys.unraisablehook = partial(_look, hook)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if at_the_end else handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code is _look.__code__:  # raised in there it would be dropped for good
            _again()
            return
        frame = frame.f_back
    raise Interrupted


def _look(hook: Callable[[UnraisableHookArgs], Any], dropped: UnraisableHookArgs) -> None:
    """Python drops what is raised in a __del__ or a callback of a weak reference, and importlib has such callbacks: the signal comes again
    as soon as that is over. What else is dropped goes to `hook`."""
    if issubclass(dropped.exc_type, Interrupted):
        _again()
    else:
        hook(dropped)


def _again() -> None:
    threading.Timer(AGAIN_SECONDS, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()


@contextmanager
def interruptible(on_signal: Callable[[], None] = lambda: None) -> Iterator[Callable[[], bool]]:
    """Gives a function that says whether a signal came. The first one calls `on_signal`; a second one raises Interrupted."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise Interrupted
        asked = True
        on_signal()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
