"""A replay that does not end is a hang; one that only waits its turn on a busy machine is none."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import applier
from tests.peers import replaying
from tests.peers.replaying import replay_outcome


def _turns(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_the_limit_is_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "REPLAY_SECONDS", 1)
    monkeypatch.setattr(applier, "replay", lambda files, into: _turns(30))
    assert replay_outcome([Path("x")], [])[0] == "hang"

    def waits(files: list[Path], into: applier.Tables) -> None:
        time.sleep(1.5)
        raise LookupError("read to its end")

    monkeypatch.setattr(applier, "replay", waits)
    assert replay_outcome([Path("x")], [])[0] == "crash"
