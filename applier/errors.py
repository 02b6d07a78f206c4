"""The errors a user may see. Each has a stable code and says what, where, and what to do next, on
one line.

    BinlagError
      +-- InputError         something given cannot be read (exit code 2)
      +-- UsageError         an option is wrong (exit code 2)
      +-- ReplicationError   the applier stopped as a server's would, with its number (exit code 1)

What a code means is in `applier.error_catalogue`, and on a page each in docs/errors.
"""

from __future__ import annotations

from typing import Any

from applier.error_catalogue import situation
from applier.error_codes import Code


def one_line(text: str) -> str:
    """The text with line breaks and other control characters escaped: names and SQL out of a log
    may hold any, for a terminal too."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode()
        for char in text
    )


class Interrupted(BaseException):
    """What a signal raises in a command. Not a KeyboardInterrupt: click writes an empty line
    wherever it meets one, and one that was in code that `exec` compiles (dataclasses do) makes
    Python end by SIGINT whatever the exit code is (unhandled_keyboard_interrupt in
    run_eval_code_obj, Python/pythonrun.c of 3.11)."""


class BinlagError(Exception):
    """Base of all errors that are meant for the user. `code` is stable, and the name of its page:
    "BL104", or "MY-1032" for the server's error 1032. `position` is a byte offset in `file`, `hint`
    the next step if one was given."""

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        code: str,
        file: str | None = None,
        position: int | None = None,
        table: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = str(code)
        self.file = file
        self.position = position
        self.table = table
        self.hint = hint

    @property
    def next_step(self) -> str:
        """The hint, or what the catalogue says for the code."""
        return self.hint or situation(self.code).next_step

    @property
    def label(self) -> str:
        """How the line begins."""
        return f"error {self.code}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `number` is the server's, None where no server has one."""
        return {
            "number": None,
            "code": self.code,
            "message": self.message,
            "file": self.file,
            "position": self.position,
            "table": self.table,
            "hint": self.next_step,
        }

    def locate(
        self, *, file: str | None = None, position: int | None = None, table: str | None = None
    ) -> None:
        """Fills in what is not known yet about the place of the error. A position in another file
        than the error's own says nothing."""
        if file is None or self.file is None or self.file == file:
            self.position = self.position if self.position is not None else position
        self.file = self.file if self.file is not None else file
        self.table = self.table if self.table is not None else table

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors travel between processes: those of the crash tests, and Spark's."""
        return _again, (type(self), self.message), self.__dict__

    def __str__(self) -> str:
        places = [
            f"{word} {value}"
            for word, value in (
                ("file", self.file),
                ("position", self.position),
                ("table", self.table),
            )
            if value is not None
        ]
        text = self.message + (f" ({', '.join(places)})" if places else "")
        return one_line(f"{self.label}: {text}. Next: {self.next_step}")


def _again(kind: type[BinlagError], message: str) -> BinlagError:
    return kind.__new__(kind, message)


class InputError(BinlagError):
    """A file or its content cannot be read."""


class UsageError(BinlagError):
    """An option or argument makes no sense."""


def cannot_write(error: OSError, file: object, what: str = "there") -> InputError:
    """For a file or folder that the operating system does not let us write."""
    return InputError(
        f"cannot write {what}: {error.strerror or error}", code=Code.CANNOT_WRITE, file=str(file)
    )


def cannot_read(
    error: OSError, file: object = None, what: str = "file", hint: str | None = None
) -> InputError:
    """For a file, the error's own unless one is named, that the operating system does not let us
    read."""
    return InputError(
        f"cannot read the {what}: {error.strerror or error}",
        code=Code.CANNOT_READ,
        file=str(error.filename if file is None else file),
        hint=hint,
    )


NOT_SUPPORTED = 1235
"""ER_NOT_SUPPORTED_YET: what is refused here, and a server carries out."""


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
        super().__init__(
            message,
            code=f"MY-{number}",
            file=file,
            position=position,
            table=table,
            hint=hint,
        )
        self.number = number

    @property
    def label(self) -> str:
        """With the bare number, as the server's own logs have it."""
        return f"error {self.number}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**super().as_dict(), "number": self.number}
