"""How to crash-test a consumer with pytest: pip install binlag, then pytest examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from saved_offset import (
    AfterTheData,
    BeforeTheData,
    Consumer,
    InsideTransactions,
    WithoutSync,
    WithTheData,
)

from applier.crashtest import Exploration
from applier.crashtest.plugin import Crash
from checkpoints.outcomes import Medium

SECTORS = Medium(sector_bytes=512)
"""A disk that writes 512 bytes as a whole or not at all: the eight digits of a position are never
torn."""


@pytest.mark.crash_points(system=WithTheData)
def test_position_and_rows_in_one_record(crash: Crash) -> None:
    """One test for each disk that a crash may leave, torn writes included."""
    crash.check()


def test_the_same_at_once(crash_test: Callable[..., Exploration]) -> None:
    crash_test(WithTheData)


@pytest.mark.parametrize("mistake", [InsideTransactions, BeforeTheData, WithoutSync, AfterTheData])
def test_mistakes_are_caught(mistake: type[Consumer], crash_test: Callable[..., Any]) -> None:
    with pytest.raises(AssertionError, match="disks after a crash are wrong"):
        crash_test(mistake, medium=SECTORS)
