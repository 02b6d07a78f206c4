"""In which order equal before images leave the applier's hash.

Identical rows of one event are entries of their own, and each table row that matches takes one. Which one decides which
after image goes to which of the identical rows. 8.0 and later keep the entries in a std::unordered_multimap.
"""

from __future__ import annotations

from lookup.handler import Image
from lookup.table import TableDefinition


class EntryOrder:
    """The entries of one event by content. The entry put in last comes out first."""

    def __init__(self) -> None:
        self.contents: list[Image] = []
        self._orders: dict[Image, int] = {}
        self._entries: list[list[int]] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, content: Image, entry: int) -> None:
        order = self._orders.get(content)
        if order is None:
            order = self._orders[content] = len(self.contents)
            self.contents.append(content)
            self._entries.append([])
        self._entries[order].append(entry)
        self._size += 1

    def has(self, content: Image) -> bool:
        order = self._orders.get(content)
        return order is not None and bool(self._entries[order])

    def order_of(self, content: Image) -> int:
        """The number of the content, in the order in which contents came first."""
        return self._orders[content]

    def live(self) -> list[int]:
        """The numbers of the contents that still have entries."""
        return [order for order, entries in enumerate(self._entries) if entries]

    def take(self, content: Image) -> int:
        """Removes the entry that the server would meet first and returns it. The content must be there."""
        self._size -= 1
        return self._entries[self._orders[content]].pop()


def entry_order(hash_order: str, definition: TableDefinition, columns: tuple[int, ...]) -> EntryOrder:
    return EntryOrder()
