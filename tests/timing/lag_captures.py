"""Seconds_Behind_Source as real 5.6.24, 5.7.29 and 9.7.4 replicas showed it, and the same log on
the simulated clock.

What a capture cannot tell the simulation is how long its transactions took on the replica and when
they arrived: both are taken from the positions that were sampled with it, two or four times a
second. 9.7's log has the commit timestamps itself.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from applier.binlog.header import ROWS_TYPES, Event, EventType
from applier.timing.clock import ClockConfiguration
from applier.timing.simulate import simulate
from applier.timing.simulation import Simulation
from applier.timing.timed import TimedTransaction, timed_transactions

ARCHIVE = Path(__file__).parent.parent / "captures" / "sbm.tar.xz"
SMALL_SECONDS, SMALL_WEIGHT = 0.002, 50.0
"""What a transaction of one row takes, and what rows event it has at most."""
STATEMENT_WEIGHT = 100.0


@dataclass(frozen=True)
class Sample:
    time: float
    seconds_behind: int | None
    read: int
    executed: int
    remaining_delay: int | None = None


@dataclass(frozen=True)
class LagCapture:
    """One curve. `log` is the source's binary log."""

    name: str
    summary: dict[str, Any]
    samples: list[Sample]
    log: bytes

    @property
    def version(self) -> str:
        return ".".join(self.summary["server"].split(".")[:2])

    def configuration(self) -> ClockConfiguration:
        _, _, mode = self.name.partition("_mts4_")
        return ClockConfiguration(
            server=self.version,
            workers=self.summary.get("workers", 4 if mode else 0),
            parallel_type=mode.upper() or None,
            delay_seconds=self.summary.get("delay", 0),
            start=self.samples[0].time - 1,
            clock_difference=0,
        )

    def transactions(self) -> list[TimedTransaction]:
        """The log, with the measured arrival for commit and the measured work shared out over the
        rows events."""
        with TemporaryDirectory() as folder:
            log = Path(folder) / "binlog.000001"
            log.write_bytes(self.log)
            return [self._timed(found) for found in timed_transactions([log], _weight)]

    def _timed(self, found: TimedTransaction) -> TimedTransaction:
        arrived = (
            found.commit if found.timed else self._first(lambda sample: sample.read >= found.end)
        )
        done = self._first(lambda sample: sample.executed >= found.end)
        if self.configuration().worker_count:  # the position moves with the next checkpoint only
            done -= self.configuration().checkpoint_period_seconds / 2
        work = max(done - arrived, SMALL_SECONDS) if found.seconds > SMALL_WEIGHT else SMALL_SECONDS
        weight = found.seconds or 1.0
        steps = tuple(step._replace(seconds=step.seconds / weight * work) for step in found.steps)
        return replace(found, commit=arrived, seconds=work, steps=steps)

    def _first(self, holds: Any) -> float:
        """Between the sample in which something holds first and the one before."""
        at = next(number for number, sample in enumerate(self.samples) if holds(sample))
        return (self.samples[at].time + self.samples[max(at - 1, 0)].time) / 2

    def simulate(self) -> Simulation:
        return simulate(self.transactions(), self.configuration())

    def remaining_delays(self, simulation: Simulation) -> list[int | None]:
        """The simulated SQL_Remaining_Delay at the moments of the samples."""
        return [simulation.naps.remaining(sample.time, sample.time) for sample in self.samples]

    def curve(self, simulation: Simulation) -> list[int | None]:
        """The simulated values at the moments of the samples."""
        return [simulation.seconds_behind(sample.time) for sample in self.samples]


def _weight(event: Event) -> float:
    """Rows events by their bytes; a statement other than BEGIN and COMMIT as a whole."""
    if event.type in ROWS_TYPES:
        return float(event.length)
    return STATEMENT_WEIGHT if event.type == EventType.QUERY and event.length > 80 else 0.0


def lag_captures() -> Iterator[LagCapture]:
    """The committed ones, or those in the folder sbm of BINLAG_CAPTURES."""
    outside = os.environ.get("BINLAG_CAPTURES")
    folder = Path(outside) / "sbm" if outside else None
    files: dict[str, dict[str, bytes]] = {}
    if folder is not None and folder.is_dir():
        for path in sorted(folder.glob("*/*")):
            files.setdefault(path.parent.name, {})[path.name] = path.read_bytes()
    else:
        with tarfile.open(fileobj=BytesIO(ARCHIVE.read_bytes())) as archive:
            for member in sorted(archive.getmembers(), key=lambda found: found.name):
                content = archive.extractfile(member) if member.isfile() else None
                if content is not None:
                    files.setdefault(Path(member.name).parent.name, {})[Path(member.name).name] = (
                        content.read()
                    )
    for name, found in files.items():
        yield LagCapture(
            name,
            json.loads(found["summary.json"]),
            _samples(found["series.csv"].decode()),
            found["binlog.000001"],
        )


def _samples(text: str) -> list[Sample]:
    rows = [line.split(",") for line in text.splitlines()[1:]]
    return [
        Sample(
            float(row[1]),
            _number(row[2]),
            int(row[4]),
            int(row[5]),
            _number(row[9]) if len(row) > 9 else None,
        )
        for row in rows
    ]


def _number(text: str) -> int | None:
    return int(text) if text not in ("", "NULL") else None
