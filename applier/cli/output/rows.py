"""Rows of a server's answer as its command line client prints them: vertically with \\G, as a
table, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Row = dict[str, Any]
WIDE = 12
"""Columns from which on a table is turned: one line a column."""


def text_of(value: Any) -> str:
    """A value as text; NULL for none."""
    return "NULL" if value is None else str(value)


def vertical(rows: Sequence[Row]) -> Iterator[str]:
    """As with \\G."""
    for number, row in enumerate(rows, start=1):
        width = max(map(len, row))
        yield f"*************************** {number}. row ***************************"
        for column, value in row.items():
            yield f"{column:>{width}}: {text_of(value)}"
    yield _count(rows)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """With lines around; a wide row is turned."""
    for part in _tables(rows):
        widths = [max(len(line[at]) for line in part) for at in range(len(part[0]))]
        frame = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
        yield frame
        for number, line in enumerate(part):
            yield (
                "|"
                + "|".join(f" {cell:<{width}} " for cell, width in zip(line, widths, strict=True))
                + "|"
            )
            if number == 0:
                yield frame
        yield frame
    yield _count(rows)


def _tables(rows: Sequence[Row]) -> Iterator[list[list[str]]]:
    """Head and lines of each table to draw."""
    if rows and len(rows[0]) > WIDE:
        for row in rows:
            yield [
                ["Column", "Value"],
                *([column, text_of(value)] for column, value in row.items()),
            ]
    elif rows:
        yield [list(rows[0]), *([text_of(value) for value in row.values()] for row in rows)]


def _count(rows: Sequence[Row]) -> str:
    if not rows:
        return "Empty set"
    return f"{len(rows)} row{'s' * (len(rows) != 1)} in set"
