"""What a crash makes of eleven more consumers: five of them do what they promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from more_consumers import (
    AtLeastOnce,
    ByKey,
    CutBeforeWritten,
    FilePerTransaction,
    InMemory,
    Lazily,
    NamesNotSynced,
    OneAhead,
    OneBehind,
    RenamedTooEarly,
    Snapshots,
)  # fmt: skip
from test_saved_offset import SECTORS

from applier.errors import UsageError


@pytest.mark.parametrize("right", [Snapshots, FilePerTransaction, Lazily, ByKey])
def test_right_ones(right: type[Any], crash_test: Callable[..., Any]) -> None:
    assert crash_test(right, medium=SECTORS).trials


def test_at_least_once_is_right_where_nothing_more_is_promised(
    crash_test: Callable[..., Any],
) -> None:
    assert crash_test(AtLeastOnce, medium=SECTORS, allow={"re-executes"}).trials


@pytest.mark.parametrize(
    ("wrong", "verdict"),
    [
        (RenamedTooEarly, "loses rows"),
        (NamesNotSynced, "loses rows"),
        (OneBehind, "re-executes"),
        (OneAhead, "loses rows"),
        (CutBeforeWritten, "re-executes"),
    ],
)
def test_wrong_ones(wrong: type[Any], verdict: str, crash_test: Callable[..., Any]) -> None:
    with pytest.raises(AssertionError, match=verdict):
        crash_test(wrong, medium=SECTORS)


def test_what_keeps_nothing_on_the_disk_is_refused(crash_test: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="without an operation of the disk"):
        crash_test(InMemory)
