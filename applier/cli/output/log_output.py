"""What the loggers of `applier` say, on standard error: a line each, or a JSON object each."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from applier.errors import BinlagError
from applier.logs import ROOT, logger
from applier.masking import mask, secrets_of

DEFAULT_LEVEL = "info"
_OWN = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"})
"""Attributes that every record has; the others are what was said with `extra=`."""


def begin(level: str | None, *, as_json: bool) -> Callable[[], None]:
    """From now on the loggers write to standard error, until the function is called that is
    returned. `level`: None is info."""
    root, handler = logging.getLogger(ROOT), logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else TextLines())
    root.addHandler(handler)
    root.setLevel((level or DEFAULT_LEVEL).upper())

    def end() -> None:
        root.removeHandler(handler)
        root.setLevel(logging.NOTSET)

    return end


def say_error(error: BinlagError, *, during: str, context: Iterable[str]) -> None:
    """The error that ends a command, as a record. `context`: what --verbose adds."""
    said = {
        "code": error.code,
        "number": getattr(error, "number", None),
        "file": error.file,
        "position": error.position,
        "table": error.table,
        "next": error.next_step,
        "during": during or None,
        "exit_code": error.exit_code,
        "context": [line.strip() for line in context] or None,
    }
    logger("cli").error("%s", error.message, extra=said)


def fields(record: logging.LogRecord) -> dict[str, Any]:
    """What was said with `extra=`, without what is None."""
    return {
        name: value
        for name, value in vars(record).items()
        if name not in _OWN and value is not None
    }


class TextLines(logging.Formatter):
    """`2026-11-21T12:00:00.000Z info applier.replay: reading a log file=binlog.000001 position=4`,
    without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record, passwords masked."""
        told = "".join(f" {name}={value}" for name, value in fields(record).items())
        said = (
            f"{_time(record)} {record.levelname.lower()} {record.name}: {record.getMessage()}{told}"
        )
        return mask(
            "".join(char if char.isprintable() else repr(char)[1:-1] for char in said), secrets_of()
        )


class JsonLines(logging.Formatter):
    """One JSON object: time, level, logger, message, and what else was said. Values that JSON does
    not have are texts."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record, passwords masked."""
        head = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        secrets = secrets_of()
        said = {
            name: mask(value, secrets) if isinstance(value, str) else value
            for name, value in (head | fields(record)).items()
        }
        return json.dumps(said, default=lambda value: mask(str(value), secrets))


def _time(record: logging.LogRecord) -> str:
    return (
        datetime.fromtimestamp(record.created, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
