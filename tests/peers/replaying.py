"""binlag's side of a case: the log replayed in memory, and how that ended."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import applier
from tests.peers.contents import ServerTable, differences
from tests.peers.exceptions import EQUAL
from tests.peers.session import ServerGone

REPLAY_SECONDS = 60


class Hang(BaseException):
    """A replay did not end in time."""


def replay_outcome(files: list[Path], tables: list[ServerTable]) -> tuple[str, str]:
    """(outcome, cause) of a log, where `tables` are what the server holds at its end."""
    return guarded(lambda: _in_memory(files, tables))


def guarded(action: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    """What the action returns, or how it failed."""
    try:
        with _limited(REPLAY_SECONDS):
            return action()
    except Hang:
        return "hang", f"no end after {REPLAY_SECONDS} s of the processor"
    except applier.BinlagError as refusal:
        return f"refused {refusal.code}", str(refusal)
    except ServerGone:
        raise
    except (Exception, RecursionError) as bug:
        return "crash", repr(bug)


def _in_memory(files: list[Path], tables: list[ServerTable]) -> tuple[str, str]:
    ours = applier.Tables()
    error = applier.replay(files, into=ours).error
    if error is not None:
        return f"refused {error.number}", error.message
    return _compared(ours, tables)


def _compared(ours: applier.Tables, tables: list[ServerTable]) -> tuple[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        ours.dump(folder)
        found = differences(tables, Path(folder))
    return ("difference", "; ".join(found)) if found else (EQUAL, "")


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """Of the processor's time: what else the machine does makes no hang."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
