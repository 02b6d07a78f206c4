"""What all type families share."""

from __future__ import annotations


class ValueRefused(ValueError):
    """A SQL value does not fit its column. `number` is the server's error; `closest` what non-strict mode would store."""

    def __init__(self, number: int, message: str, closest: object = None) -> None:
        super().__init__(message)
        self.number = number
        self.message = message
        self.closest = closest


def text_of(value: object) -> str:
    """A SQL literal as text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, bool):
        return str(int(value))
    return str(value)
