"""A value that could not be computed is of no use to anybody: whatever needs it gets the
refusal."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

from applier.binlog.types import Unevaluated
from applier.errors import ReplicationError

USES: dict[str, Callable[[Any], object]] = {
    "compared": lambda value: value == 1, "ordered": lambda value: value < 1,
    "in a set": lambda value: {value}, "int": int, "text": str, "bytes": bytes, "length": len,
    "item": lambda value: value[0], "date": lambda value: value >> 9,
    "bits": lambda value: value & 7, "sum": lambda value: value + 1,
    "product": lambda value: value * 2, "rest": lambda value: value % 2, "sign": operator.neg,
    "truth": lambda value: not value, "method": lambda value: value.strip(),
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_whatever_needs_it_gets_the_refusal(use: str) -> None:
    value = Unevaluated(
        "g", ReplicationError(1235, "this expression is not supported in memory: f(1)")
    )
    with pytest.raises(ReplicationError, match=r"f\(1\)"):
        USES[use](value)
