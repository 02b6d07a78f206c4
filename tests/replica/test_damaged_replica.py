"""Damaged and missing files: an error that names the file and the place, and nothing that was there is written over."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from applier.errors import ReplicationError
from checkpoints.errors import InfoError
from checkpoints.simulated_disk import SimulatedDisk
from tests.replica.replicas import Rig

DOCUMENT = Path(__file__).parents[2] / "docs" / "concepts" / "where-the-replica-stands.md"


def stopped() -> Rig:
    """A 5.7 that has applied half of what it has received."""
    rig = Rig.of("my57_xa")
    replica = rig.replica("5.7")
    replica.receive(200)
    replica.apply(10)
    replica.shutdown()
    return rig


def with_file(rig: Rig, name: str, content: bytes | None) -> dict[str, bytes]:
    files = {**rig.disk.contents(), **({} if content is None else {name: content})}
    if content is None:
        del files[name]
    rig.disk = SimulatedDisk(files)
    return files


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("relay-log.info", lambda data: b"", r"the file is empty.*relay-log\.info"),
        ("relay-log.info", lambda data: data.replace(b"\n0\n0\n", b"\nx\n0\n"), r"garbled.*relay-log\.info, line 6"),
        ("master.info", lambda data: data[:20], r"cut off in the middle of a line.*master\.info, line \d"),
        ("master.info", lambda data: b"#!/bin/sh\necho\n", r"this is no master\.info"),
    ],
)
def test_info_files(name: str, damage: object, message: str) -> None:
    rig = stopped()
    before = with_file(rig, name, damage(rig.disk.contents()[name]))  # type: ignore[operator]
    with pytest.raises(InfoError, match=message):
        rig.replica("5.7")
    assert rig.disk.contents() == before


def test_a_missing_relay_log() -> None:
    rig = stopped()
    before = with_file(rig, "relay.000002", None)
    with pytest.raises(ReplicationError, match=r"error 1872: .*index file: \./relay\.000002; there are .*\./relay\.000003"):
        rig.replica("5.7")
    kept = rig.disk.contents()
    assert [name for name in before if kept[name] != before[name]] == ["relay.index"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: b"this is no log" * 40, r"does not start with fe 62 69 6e \(file relay\.000002, position 0\)"),
        (
            lambda data: data[:-60] + bytes([data[-60] ^ 1]) + data[-59:],
            r"the checksum of a \w+ event is wrong \(file relay\.000002, position \d+\)",
        ),
        (lambda data: data[:-40], r"the file ends inside an event \(file relay\.000002, position \d+\)"),
    ],
)
def test_relay_logs(damage: object, message: str) -> None:
    rig = stopped()
    before = with_file(rig, "relay.000002", damage(rig.disk.contents()["relay.000002"]))  # type: ignore[operator]
    with pytest.raises(ReplicationError, match=rf"error 1594: (?s:.*){message}"):
        rig.replica("5.7").apply()
    assert rig.disk.contents()["relay.000002"] == before["relay.000002"]


def test_recovery_reads_none_of_it() -> None:
    rig = stopped()
    with_file(rig, "relay.000002", b"this is no log")
    replica = rig.replica("5.7", relay_log_recovery=True)
    assert replica.recovered_from is not None
    assert replica.recovered_from.relay_log_name == "./relay.000002"
    replica.receive()
    replica.apply()
    assert replica.status.memory.applied is not None
    assert replica.status.memory.applied.source_position == replica.status.memory.received.source_position  # type: ignore[union-attr]


def test_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """What its example leaves behind."""
    monkeypatch.chdir(DOCUMENT.parents[2])
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    again, killed = names["again"], names["replica"]
    assert again.recovered_from.source_position <= killed.status.memory.applied.source_position
    assert again.status.memory.received.source_position == again.recovered_from.source_position
    assert again.status.relay_logs[:-1] == killed.status.relay_logs
