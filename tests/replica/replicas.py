"""Replicas over committed captures: a source made of its binlog files, tables from its dump, a
simulated disk."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import applier
from applier.binlog.reader import LogReader
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.interleaving import Interleaving
from applier.replica.replica import Replica
from applier.replica.source import BinlogFiles
from applier.replica.storage import MemoryStorage
from applier.tables.catalog import Tables
from checkpoints.position import Position
from checkpoints.simulated_disk import SimulatedDisk
from tests.captures_support import CAPTURES
from tests.replica.recovery_scenarios import events_of

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def logs_of(capture: str) -> list[Path]:
    return sorted(
        path for path in (CAPTURES / "open" / capture).iterdir() if path.suffix[1:].isdigit()
    )


@functools.cache
def _loaded(capture: str) -> Tables:
    return applier.load_schema(str(CAPTURES / "open" / capture / "before.sql"))


def tables_of(capture: str) -> Tables:
    return _loaded(capture).copy()


def source_of(capture: str) -> BinlogFiles:
    return BinlogFiles.read([*logs_of(capture)], uuid=UUID)


def contents(tables: Tables) -> dict[str, list[Any]]:
    return {table.definition.full_name: table.stored_rows() for table in tables}


@functools.cache
def replayed(capture: str, version: str) -> dict[str, list[Any]]:
    """The rows that a plain replay of the source's log leaves."""
    tables = tables_of(capture)
    result = applier.replay([*logs_of(capture)], into=tables, server=version)
    assert result.error is None
    return contents(tables)


@dataclass
class Rig:
    """A replica with all that outlives it."""

    source: BinlogFiles
    storage: MemoryStorage
    disk: SimulatedDisk = field(default_factory=SimulatedDisk)

    @classmethod
    def of(cls, capture: str) -> Rig:
        return cls(source_of(capture), MemoryStorage(tables_of(capture)))

    def replica(
        self,
        version: str,
        interleaving: Interleaving | None = None,
        start_at: Position | None = None,
        **options: Any,
    ) -> Replica:
        """A server on this disk that was just started."""
        configuration = ReplicaConfiguration(version, **options)
        replica = Replica(
            self.disk,
            configuration,
            self.source,
            self.storage,
            interleaving=interleaving,
            start_at=start_at,
            clock=lambda: 1_700_000_000,
        )
        replica.start()
        return replica

    def receive_and_forget(self, replica: Replica, type_code: int, events: int = 1) -> None:
        """Receives up to an event of a type; master.info says that so many events have not come,
        and the source sends them again."""
        parts = [b""]
        while parts[-1][4:5] != bytes([type_code]):
            assert replica.receive(1)
            parts = events_of(
                self.disk.contents()[replica.status.relay_logs[-1].removeprefix("./")]
            )
        received = replica.status.memory.received
        assert received is not None
        end = received.source_log_pos
        record = self.disk.contents()["master.info"]
        behind = record.replace(
            b"\n%d\n" % end, b"\n%d\n" % (end - sum(map(len, parts[-events:]))), 1
        )
        assert behind != record
        self.disk = SimulatedDisk({**self.disk.contents(), "master.info": behind})

    def relay_events(self, folder: Path) -> list[Any]:
        """All events of all relay logs, read by the ordinary reader, which checks lengths and
        checksums."""
        paths = []
        for name, content in self.disk.contents().items():
            if name.rpartition(".")[2].isdigit():
                (folder / name).write_bytes(content)
                paths.append(folder / name)
        return list(LogReader(paths))
