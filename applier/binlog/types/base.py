"""What all type families share."""

from __future__ import annotations

from typing import NoReturn


class ValueRefused(ValueError):
    """A SQL value does not fit its column. `number` is the server's error; `closest` what
    non-strict mode would store."""

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


class Unevaluated:
    """The stored value of a column that could not be computed. Whatever needs it gets the refusal
    that it stands for.

    It compares with nothing, has no hash and converts to nothing, so that it cannot end up in a key
    or in a dump unnoticed.
    """

    __slots__ = ("_error", "_name")

    def __init__(self, name: str, error: Exception) -> None:
        self._name = name
        self._error = error

    def refuse(self, *_arguments: object) -> NoReturn:
        """Raises the error of the expression."""
        raise self._error.with_traceback(None)

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = refuse
    __hash__ = refuse
    __int__ = __float__ = __bytes__ = __str__ = __len__ = __iter__ = __getitem__ = __index__ = (
        refuse
    )

    __add__ = __sub__ = __mul__ = __floordiv__ = __mod__ = __and__ = __or__ = __xor__ = refuse
    __rshift__ = __lshift__ = __neg__ = __abs__ = __bool__ = refuse

    def __getattr__(self, name: str) -> NoReturn:
        self.refuse()
