"""Processes that work for this one, and end with it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from threading import Thread
from types import TracebackType
from typing import ParamSpec, TypeVar

from applier.error_codes import Code
from applier.errors import InputError

P = ParamSpec("P")
T = TypeVar("T")
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a process to end."""
KILLED = (
    "if the kernel's log says that memory was short, give fewer --jobs; then run the same command"
    " again"
)


class Workers(ProcessPoolExecutor):
    """A pool whose processes end at once when the block is left by an exception (the user
    interrupts), and when this process is killed. `start_method`: that of multiprocessing."""

    def __init__(self, jobs: int, start_method: str | None = None) -> None:
        super().__init__(jobs, mp_context=get_context(start_method), initializer=_die_quietly)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """As the base class; it may start a process."""
        with _signals_wait():
            return super().submit(fn, *args, **kwargs)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> bool | None:
        """Waits for what was submitted, unless there is an error. Raises InputError where somebody
        else ended a process."""
        if kind is not None:
            for worker in active_children():
                worker.terminate()
        self.shutdown(wait=True, cancel_futures=kind is not None)
        if isinstance(error, BrokenProcessPool):
            raise InputError(
                "a process that worked for this one was killed", code=Code.SYSTEM, hint=KILLED
            ) from None
        return None


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Until the block is over. What is started in it hears none before it knows what to do then;
    nor is it half started when this process is interrupted."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _die_quietly() -> None:
    """Ctrl-C reaches every process of a terminal; only the one that started the others speaks of
    it. When it is killed they end as well."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGKILL)
