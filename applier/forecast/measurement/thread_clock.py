"""How long a thread stood in line for a processor, as Linux counts it."""

from __future__ import annotations

from pathlib import Path


class ThreadClock:
    """How long one thread stood in line for a processor since now (the second number of
    `/proc/PID/task/TID/schedstat`)."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.began = self._read()

    def in_line(self) -> float:
        """Seconds; none when the thread is gone."""
        return max(self._read() - self.began, 0.0)

    def _read(self) -> float:
        try:
            return int(self.file.read_text().split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0
