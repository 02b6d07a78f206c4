"""How long a thread of a server stood in line behind other programs, as Linux counts it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

BUSY = (0, 1, 2, 5, 6)
"""Of the numbers of /proc/stat: user, nice, system, irq, softirq."""
UTIME, STIME = 11, 12
"""Of /proc/PID/stat, behind the name."""


class ThreadClock:
    """How long one thread of a process stood in line for a processor since now, because of others.

    It also waits while threads of its own server work (purge, the coordinator): a replica has these
    as well, so that share of the time counts as the server's.
    """

    def __init__(self, process: int, thread: int, proc: Path = Path("/proc")) -> None:
        self._proc, self._process = proc, proc / str(process)
        self._thread = self._process / "task" / str(thread) / "schedstat"
        self._began = self._read()

    def in_line(self) -> float:
        """Seconds; none when the thread is gone."""
        began, now = self._began, self._read()
        if began is None or now is None:
            return 0.0
        own = (now.process - began.process) - (now.thread - began.thread)
        others = (now.machine - began.machine) - (now.process - began.process)
        return (now.waited - began.waited) * _share(max(others, 0.0), max(own, 0.0))

    def _read(self) -> _Times | None:
        try:
            thread, waited = (int(text) / 1e9 for text in self._thread.read_text().split()[:2])
            machine = (self._proc / "stat").read_text().split("\n", 1)[0].split()[1:]
            process = (self._process / "stat").read_text().rpartition(")")[2].split()
            ticks = os.sysconf("SC_CLK_TCK")
            return _Times(
                thread,
                waited,
                (int(process[UTIME]) + int(process[STIME])) / ticks,
                sum(int(machine[at]) for at in BUSY) / ticks,
            )
        except (OSError, ValueError, IndexError):
            return None


@dataclass(frozen=True, slots=True)
class _Times:
    """Seconds of processor time, but for `waited`, in which the thread stood in line."""

    thread: float
    waited: float
    process: float
    machine: float


def _share(others: float, own: float) -> float:
    return others / (others + own) if others + own else 1.0
