"""The error of this package: what is wrong, where, and what to do next."""

from __future__ import annotations


class CheckpointError(ValueError):
    """A checkpoint cannot be read, written or kept as asked. `line` counts from 1; `column` is a
    column of a table."""

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        column: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.column = column
        self.hint = hint

    def __str__(self) -> str:
        places = [
            f"{word} {value}"
            for word, value in (("file", self.file), ("line", self.line), ("column", self.column))
            if value is not None
        ]
        text = self.message + (f" ({', '.join(places)})" if places else "")
        return f"{text}. Next: {self.hint}" if self.hint else text


class InfoError(CheckpointError):
    """An info file or a row of an info table is not one: cut off, garbled, empty, or something
    else's."""
