"""The errors a user may see. Each says what and where, and what to do next, on one line.

    BinlagError
      +-- InputError         something given cannot be read (exit code 2)
      +-- UsageError         an option is wrong (exit code 2)
      +-- ReplicationError   the applier stopped as a server's would, with the server's error number (exit code 1)
"""

from __future__ import annotations


def one_line(text: str) -> str:
    """The text with line breaks and other control characters escaped: names and SQL out of a log may hold any, for a terminal too."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text)


class BinlagError(Exception):
    """Base of all errors that are meant for the user. `position` is a byte offset in `file`."""

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        position: int | None = None,
        table: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.position = position
        self.table = table
        self.hint = hint

    def locate(self, *, file: str | None = None, position: int | None = None, table: str | None = None) -> None:
        """Fills in what is not known yet about the place of the error."""
        self.file = self.file if self.file is not None else file
        self.position = self.position if self.position is not None else position
        self.table = self.table if self.table is not None else table

    def __str__(self) -> str:
        places = [
            f"{word} {value}"
            for word, value in (("file", self.file), ("position", self.position), ("table", self.table))
            if value is not None
        ]
        text = self.message + (f" ({', '.join(places)})" if places else "")
        return one_line(f"{text}. Next: {self.hint}" if self.hint else text)


class InputError(BinlagError):
    """A file or its content cannot be read."""


class UsageError(BinlagError):
    """An option or argument makes no sense."""


class ReplicationError(BinlagError):
    """The applier stopped. `number` is the server's error number (1032, 1062, 1677, ...)."""

    exit_code = 1

    def __init__(
        self,
        number: int,
        message: str,
        *,
        file: str | None = None,
        position: int | None = None,
        table: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, file=file, position=position, table=table, hint=hint)
        self.number = number

    def __str__(self) -> str:
        return f"error {self.number}: {super().__str__()}"
