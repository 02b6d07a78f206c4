"""Why a thread of a replica is not at work."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ThreadFailure:
    """An error of a thread; number 0 is none. `time` in seconds since 1970."""

    number: int = 0
    message: str = ""
    time: float | None = None


NO_FAILURE = ThreadFailure()
