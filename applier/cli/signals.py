"""Ctrl-C, SIGTERM and SIGHUP as a question: what is under way is finished first."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from applier.errors import Interrupted

if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType

AGAIN_SECONDS = 0.01


def heard_signals() -> list[signal.Signals]:
    """Those that ask a command to end. A command under nohup goes on when its terminal is gone."""
    ends = [signal.SIGINT, signal.SIGTERM]
    return ends if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [*ends, signal.SIGHUP]


@contextmanager
def interrupts(*, at_the_end: bool) -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP raise Interrupted, wherever the command is.

    `at_the_end`: behind the block neither is heard any more, since all that is left is to say how
    it ended and to end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    raised: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        raised.append(number)
        _interrupt(number, frame)

    before = {number: signal.signal(number, hear) for number in heard_signals()}
    hook = sys.unraisablehook
    sys.unraisablehook = partial(_look, hook)
    try:
        yield
    except (ImportError, RuntimeError, SystemError):
        # PyCapsule_Import puts an ImportError of its own in the place of whatever ended the import,
        # and up to 3.11 the making of a class a RuntimeError in the place of what __set_name__
        # raised.
        if raised:
            raise Interrupted from None
        raise
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
    """Python drops what is raised in a __del__ or a callback of a weak reference, and importlib has
    such callbacks: the signal comes again as soon as that is over. What else is dropped goes to
    `hook`."""
    if issubclass(dropped.exc_type, Interrupted):
        _again()
    else:
        hook(dropped)


def _again() -> None:
    threading.Timer(
        AGAIN_SECONDS, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)
    ).start()


@contextmanager
def interruptible(on_signal: Callable[[], None] = lambda: None) -> Iterator[Callable[[], bool]]:
    """Gives a function that says whether a signal came. The first one calls `on_signal`; a second
    one raises Interrupted."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise Interrupted
        asked = True
        on_signal()

    before = {number: signal.signal(number, ask) for number in heard_signals()}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
