"""The hash of before images: a list, searched from one end to the other.

What would be equal hash values with different contents is left out here: an entry is found by its
contents. The NULL flags count where they are part of the hash, also those of columns that the image
does not have (5.6, 5.7).
"""

from __future__ import annotations

from lookup.batch import RowsShape
from lookup.handler import Row
from lookup.server_hash import ServerArray
from lookup.table import TableDefinition
from lookup.versions import ServerRules, rules_for
from tests.oracle.checksum import checksum


class Entries:
    """Entries by content; `take` hands out the one that the version's container has in front."""

    def __init__(self, definition: TableDefinition, shape: RowsShape, rules: ServerRules) -> None:
        self.definition = definition
        self.columns = shape.before_columns
        self.null_flags = shape.bitmap_full
        if rules.name not in ("5.6", "5.7") and rules != rules_for("8.0.16"):
            self.null_flags = shape.bitmap_full and len(self.columns) == len(definition.columns)
        self.array = ServerArray() if rules.name in ("5.6", "5.7") else None
        self.held: list[tuple[Row, int, int]] = []
        """(row, index in the event, number of the entry)"""
        self.made = 0

    def __len__(self) -> int:
        return len(self.held)

    def add(self, row: Row, index: int) -> None:
        self.held.append((row, index, self.made))
        if self.array is not None:
            self.array.insert(self._checksum(row), self._content(row), self.made)
        self.made += 1

    def chain(self, row: Row) -> list[Row]:
        """The rows that were hashed to the checksum of `row`, the one put in last first
        (std::unordered_multimap)."""
        wanted = self._checksum(row)
        return [held for held, _, _ in reversed(self.held) if self._checksum(held) == wanted]

    def take(self, row: Row) -> int | None:
        """The event's row whose before image equals `row`; its entry is gone then. None when there
        is none."""
        matching = [entry for entry in self.held if self._content(entry[0]) == self._content(row)]
        if not matching:
            return None
        taken = matching[-1]
        if self.array is not None:
            number = self.array.first(self._checksum(row), self._content(row))
            self.array.remove(self._checksum(row), number)
            taken = next(entry for entry in matching if entry[2] == number)
        self.held.remove(taken)
        return taken[1]

    def _content(self, row: Row) -> Row:
        content = tuple(row[column] for column in self.columns)
        if self.null_flags:
            content += tuple(value is None for value in row)
        return content

    def _checksum(self, row: Row) -> int:
        return checksum(self.definition, row, self.columns, null_flags=self.null_flags)
