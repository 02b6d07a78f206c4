"""How many rows a table has, and how long they are, while a log goes by."""

from __future__ import annotations

from copy import copy

from applier.forecast.workload.transaction_load import Applied

SMALL = 1_000
"""Rows of a table that is no dearer by its size."""


class TableState:
    """A table while the log goes by: `rows` follows inserts and deletes.

    Where nobody said how many rows there are, it has at least those that the log changes: `missing`
    of them were there before the log. DDL empties it (`empty`). `is_keyed`: changed rows are found
    by its primary key.
    """

    __slots__ = (
        "exists",
        "is_assumed",
        "is_keyed",
        "known",
        "looked_at",
        "missing",
        "most_before",
        "most_gained",
        "row_bytes",
        "rows",
        "seen_bytes",
        "seen_rows",
    )

    def __init__(self, rows: float | None) -> None:
        self.known = rows is not None
        self.is_keyed = False
        self.exists = True
        self.is_assumed = not self.known
        """Whether its rows are taken from the log, somewhere in it."""
        self.most_before = 0.0
        """The largest number of rows that it had until it was emptied."""
        self.rows = rows or 0.0
        self.missing = 0.0
        self.most_gained = self.rows
        self.seen_bytes = 0
        self.seen_rows = self.looked_at = 0
        self.row_bytes = 0.0

    def note(self, applied: Applied, images: int) -> None:
        """Keeps the mean length of an image, to two digits: it enters prices and must not change
        with each transaction."""
        self.seen_bytes += applied.row_bytes
        self.seen_rows += applied.rows * images
        if self.seen_rows > self.looked_at * 1.1:
            self.look(self.seen_bytes, self.seen_rows)

    def look(self, seen_bytes: int, seen_rows: int) -> None:
        """Takes the mean length anew, from so many bytes of images."""
        self.looked_at = seen_rows
        self.row_bytes = float(f"{seen_bytes / seen_rows:.2g}")

    def change(self, kind: str, rows: int) -> None:
        """Rows have come or gone."""
        if not self.known and kind != "write" and rows > self.rows:
            self.missing += rows - self.rows
            self.rows = float(rows)
        if kind == "write":
            self.rows += rows
        elif kind == "delete":
            self.rows = max(self.rows - rows, 0.0)
        self.most_gained = max(self.most_gained, self.rows - self.missing)

    def empty(self, *, is_known: bool, exists: bool) -> None:
        """The table has no rows from here on, and `is_known` says whether that is certain."""
        self.is_assumed = not is_known or (self.is_assumed and self.seen_rows > 0)
        self.most_before = self.most_rows
        self.known, self.exists = is_known, exists
        self.rows = self.missing = self.most_gained = 0.0

    def renamed(self, there: TableState) -> TableState:
        """Takes the name of a table that is not `there` any more; what is left of its own name."""
        left = copy(self)
        left.empty(is_known=True, exists=False)
        self.most_before = max(self.most_before, there.most_rows)
        self.is_assumed |= there.is_assumed and there.seen_rows > 0
        return left

    @property
    def most_rows(self) -> float:
        """The largest number of rows that the table had; where nobody said, a lower bound."""
        return max(self.missing + self.most_gained, self.most_before)

    @property
    def usual_rows(self) -> float:
        """Its rows at the end of the log, or those that it had until DDL emptied it, if more."""
        return max(self.rows, self.most_before)

    @property
    def rounded_rows(self) -> float:
        """The rows for a price: three significant digits, two where they are assumed anyway, so
        that equal parts meet again."""
        return self.rounded(int(self.rows))

    def rounded(self, rows: int) -> float:
        """So many rows of this table, rounded as `rounded_rows` says; of a small one whose rows are
        found by their key one digit is enough."""
        if self.is_keyed and rows < SMALL:
            return float(f"{rows:.1g}")
        return three_digits(rows) if self.known else float(f"{rows:.2g}")


def three_digits(value: int) -> int:
    """Rounded to three significant digits, half a percent off at most."""
    unit = int(10 ** max(len(str(value)) - 3, 0))
    return (value + unit // 2) // unit * unit
