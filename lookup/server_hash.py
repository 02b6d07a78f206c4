"""In which order equal before images leave the applier's hash.

Identical rows of one event are entries of their own, and each table row that matches takes one.
Which one it takes decides which after image goes to which of the identical rows. 8.0 and later keep
the entries in a std::unordered_multimap, where the entry put in last comes out first. 5.6 and 5.7
keep them in the server's own hash (mysys/hash.c): linear hashing with the chains threaded through
one array. There a new entry also goes to the front of its chain, but taking an entry out moves the
array's last one into the gap, and when two buckets fold into one a member of a chain can overtake
its head. So the order is that of the array, and it is simulated, but only from the moment on when
it matters: when one of several equal entries is asked for.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from operator import methodcaller
from typing import Any

from lookup.handler import Image
from lookup.table import Column, TableDefinition

NOTHING = -1
_MASK64 = (1 << 64) - 1
INTEGER_BYTES = {
    "tinyint": 1,
    "smallint": 2,
    "mediumint": 3,
    "int": 4,
    "bigint": 8,
    "year": 1,
    "date": 3,
}
BYTES_PER_CHARACTER = {
    "utf8mb4": 4,
    "utf16": 4,
    "utf16le": 4,
    "utf32": 4,
    "gb18030": 4,
    "utf8mb3": 3,
    "utf8": 3,
    "ujis": 3,
    "eucjpms": 3,
}
BYTES_PER_CHARACTER |= dict.fromkeys(("ucs2", "sjis", "cp932", "big5", "gbk", "gb2312", "euckr"), 2)
VARIABLE = ("varchar", "varbinary", "text", "blob")


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
        """Puts in an entry, a number that its user gives it and no other has."""
        order = self._orders.get(content)
        if order is None:
            order = self._orders[content] = len(self.contents)
            self.contents.append(content)
            self._entries.append([])
        self._entries[order].append(entry)
        self._size += 1

    def has(self, content: Image) -> bool:
        """Whether an entry of this content is left."""
        order = self._orders.get(content)
        return order is not None and bool(self._entries[order])

    def order_of(self, content: Image) -> int:
        """The number of the content, in the order in which contents came first."""
        return self._orders[content]

    def live(self) -> list[int]:
        """The numbers of the contents that still have entries."""
        return [order for order, entries in enumerate(self._entries) if entries]

    def oldest(self, content: Image) -> int:
        """The entry of this content that was put in first of those that are left. The content must
        be there."""
        return self._entries[self._orders[content]][0]

    def take(self, content: Image) -> int:
        """Removes the entry that the server would meet first and returns it. The content must be
        there."""
        self._size -= 1
        return self._entries[self._orders[content]].pop()


class MysysOrder(EntryOrder):
    """The same with the order of 5.6 and 5.7. `checksum` is the server's hash of a content."""

    def __init__(self, checksum: Callable[[Image], int]) -> None:
        super().__init__()
        self._checksum = checksum
        self._log: list[tuple[bool, Image, int]] = []
        self._array: ServerArray | None = None

    def add(self, content: Image, entry: int) -> None:
        """Puts in an entry. Nothing is hashed as long as no content stands there twice."""
        super().add(content, entry)
        if self._array is None:
            self._log.append((True, content, entry))
        else:
            self._array.insert(self._checksum(content), content, entry)

    def take(self, content: Image) -> int:
        """Takes out the entry of this content that the server's array finds first."""
        entries = self._entries[self._orders[content]]
        if len(entries) > 1 and self._array is None:
            self._array = self._replayed()
        if self._array is None:
            self._log.append((False, content, entries[0]))
            return super().take(content)
        entry = self._array.first(self._checksum(content), content)
        self._array.remove(self._checksum(content), entry)
        entries.remove(entry)
        self._size -= 1
        return entry

    def _replayed(self) -> ServerArray:
        """The array as it stands after all that was put in and taken out so far."""
        array = ServerArray()
        for added, content, entry in self._log:
            if added:
                array.insert(self._checksum(content), content, entry)
            else:
                array.remove(self._checksum(content), entry)
        self._log = []
        return array


class ServerArray:
    """Linear hashing in one array: slot i holds an entry and the slot of the next one in its chain.

    With n entries there are n buckets; the head of bucket b stands in slot b whenever the bucket is
    not empty. A slot whose own bucket is empty may be lent to a later member of another chain.
    """

    def __init__(self) -> None:
        self._hashes: list[int] = []
        self._items: list[tuple[Image, int]] = []
        self._next: list[int] = []
        self._width = 1
        """The smallest power of two above the number of buckets."""

    def __len__(self) -> int:
        return len(self._hashes)

    def first(self, checksum: int, content: Image) -> int:
        """The entry of this content that stands first in its chain."""
        slot = self._bucket(_bucket_hash(checksum), self._width, len(self))
        while self._items[slot][0] != content:
            slot = self._next[slot]
        return self._items[slot][1]

    def insert(self, checksum: int, content: Image, entry: int) -> None:
        """`my_hash_insert` (mysys/hash.c 5.7): the array grows by one, and one chain is split in
        two."""
        count, new_hash = len(self), _bucket_hash(checksum)
        self._hashes.append(new_hash)
        self._items.append((content, entry))
        self._next.append(NOTHING)
        gap = self._split(count)
        slot = self._bucket(new_hash, self._width, count + 1)
        if slot == gap:
            self._put(slot, new_hash, (content, entry), NOTHING)
        else:
            owner = self._bucket(self._hashes[slot], self._width, count + 1)
            self._copy(slot, gap)
            self._put(slot, new_hash, (content, entry), gap if owner == slot else NOTHING)
            if owner != slot:
                self._relink(owner, slot, gap)
        if count + 1 == self._width:
            self._width *= 2

    def _split(self, count: int) -> int:
        """The bucket that the growth from `count` buckets divides hands entries to the new one.
        Returns the slot left free."""
        half = self._width >> 1
        source, gap = count - half, count
        if source == count or self._bucket(self._hashes[source], self._width, count) != source:
            return gap
        chain = []
        slot = source
        while slot != NOTHING:
            chain.append(slot)
            slot = self._next[slot]
        stay = [slot for slot in chain if not self._hashes[slot] & half]
        move = [slot for slot in chain if self._hashes[slot] & half]
        if not move:
            return gap
        if not stay:
            self._copy(move[0], count)
            self._link([count, *move[1:]])
            return move[0]
        if move[0] == source:
            self._copy(move[0], count)
            self._copy(stay[0], source)
            self._link([count, *move[1:]])
            self._link([source, *stay[1:]])
            return stay[0]
        self._copy(move[0], count)
        self._link([count, *move[1:]])
        self._link(stay)
        return move[0]

    def remove(self, checksum: int, entry: int) -> None:
        """`my_hash_delete` (mysys/hash.c 5.7): the last entry moves into the gap. The entry must be
        there."""
        width = self._width
        slot, before = self._bucket(_bucket_hash(checksum), width, len(self)), NOTHING
        while self._items[slot][1] != entry:
            before, slot = slot, self._next[slot]
        last = len(self) - 1
        if last < width >> 1:
            self._width >>= 1
        gap = slot
        if before != NOTHING:
            self._next[before] = self._next[slot]
        elif self._next[slot] != NOTHING:
            gap = self._next[slot]
            self._copy(gap, slot)
        if gap != last:
            self._fill(gap, last, width)
        del self._hashes[last], self._items[last], self._next[last]

    def _fill(self, gap: int, last: int, old_width: int) -> None:
        """Moves the array's last entry to where it belongs now that there is one bucket less; `gap`
        is free."""
        home = self._bucket(self._hashes[last], self._width, last)
        if home == gap:
            self._copy(last, gap)
            return
        owner = self._bucket(self._hashes[home], self._width, last)
        if owner != home:
            self._copy(home, gap)
            self._copy(last, home)
            self._relink(owner, home, gap)
            return
        was = self._bucket(self._hashes[last], old_width, last + 1)
        together = was == self._bucket(self._hashes[home], old_width, last + 1)
        self._copy(last, gap)
        if together and was != last:
            self._relink(home, last, gap)
            return
        self._relink(gap, home if together else NOTHING, self._next[home])
        self._next[home] = gap

    # slots

    def _bucket(self, value: int, width: int, count: int) -> int:
        inner = value & (width - 1)
        return inner if inner < count else value & ((width >> 1) - 1)

    def _put(self, slot: int, value: int, item: tuple[Image, int], following: int) -> None:
        self._hashes[slot], self._items[slot], self._next[slot] = value, item, following

    def _copy(self, source: int, target: int) -> None:
        self._put(target, self._hashes[source], self._items[source], self._next[source])

    def _link(self, slots: list[int]) -> None:
        for slot, following in zip(slots, [*slots[1:], NOTHING], strict=True):
            self._next[slot] = following

    def _relink(self, head: int, old: int, new: int) -> None:
        """In the chain that starts at `head`, the link to `old` goes to `new`."""
        slot = head
        while self._next[slot] != old:
            slot = self._next[slot]
        self._next[slot] = new


def _bucket_hash(checksum: int) -> int:
    """The server's hash of the four bytes of a checksum (`my_hash_sort_bin`, seeds 1 and 4), cut to
    32 bits."""
    first, second = 1, 4
    for byte in checksum.to_bytes(4, "little"):
        first = first ^ ((((first & 63) + second) * byte + (first << 8)) & _MASK64)
        second += 3
    return first & 0xFFFFFFFF


def entry_order(
    hash_order: str,
    definition: TableDefinition,
    columns: tuple[int, ...],
    null_flags: frozenset[int] | None,
) -> EntryOrder:
    """The order of a server version (`ServerRules.hash_order`) for images of `columns`;
    `null_flags` as in row_checksum."""
    return (
        MysysOrder(row_checksum(definition, columns, null_flags))
        if hash_order == "mysys"
        else EntryOrder()
    )


def row_checksum(
    definition: TableDefinition, columns: tuple[int, ...], null_flags: frozenset[int] | None
) -> Callable[[Image], int]:
    """The CRC32 that the applier hashes an image by (`make_hash_key`, sql/rpl_utility.cc).

    NULL flags count when the image holds all columns of the source; those of columns that only the
    replica has count, too (5.6, 5.7): `null_flags` are the columns without a value in the image
    that are NULL, None: flags do not count. NULLs add nothing else; text of varying length stands
    without its length, so different rows can have the same checksum.
    """
    writers = [
        (place, writer)
        for place, at in enumerate(columns)
        if (writer := _writer(definition.columns[at])) is not None
    ]
    flags_of = _null_flags(definition, columns, null_flags)
    without_nulls = zlib.crc32(flags_of((0,) * len(columns)))

    def checksum(image: Image) -> int:
        parts = list(image)
        if None not in image:
            for place, write in writers:
                parts[place] = write(parts[place])
            return zlib.crc32(b"".join(parts), without_nulls)
        for place, write in writers:
            if parts[place] is not None:
                parts[place] = write(parts[place])
        return zlib.crc32(
            b"".join([part for part in parts if part is not None]), zlib.crc32(flags_of(image))
        )

    return checksum


def _null_flags(
    definition: TableDefinition, columns: tuple[int, ...], null_flags: frozenset[int] | None
) -> Callable[[Image], bytes]:
    """The record's NULL bits; the first bit of a record that is not packed, and the bits left over,
    are ones."""
    if null_flags is None:
        return lambda image: b""
    packed = any(
        column.type.endswith(VARIABLE) or column.type == "json" for column in definition.columns
    )
    nullable = [at for at, column in enumerate(definition.columns) if column.nullable]
    first = 0 if packed else 1
    size = (len(nullable) + first + 7) // 8
    bit_of = {column: 1 << bit for bit, column in enumerate(nullable, start=first)}
    bits = (
        (1 << 8 * size)
        - 1
        - sum(
            bit for column, bit in bit_of.items() if column not in null_flags or column in columns
        )
    )
    held = [(place, bit_of[column]) for place, column in enumerate(columns) if column in bit_of]

    def flags(image: Image) -> bytes:
        found = bits
        for place, bit in held:
            if image[place] is None:
                found |= bit
        return found.to_bytes(size, "little")

    return flags


def _writer(column: Column) -> Callable[[Any], bytes] | None:
    """How a stored value stands in the server's record; None: as it is."""
    size = INTEGER_BYTES.get(column.type)
    if column.type in ("enum", "set"):
        count = len(column.labels)
        size = (
            (1 if count < 256 else 2)
            if column.type == "enum"
            else 8
            if count > 32
            else (count + 7) // 8
        )
    if size is not None:
        width, mask = size, (1 << 8 * size) - 1
        return lambda value: (value & mask).to_bytes(width, "little")
    if column.type == "bit":
        return methodcaller("to_bytes", ((column.length or 1) + 7) // 8, "big")
    if column.type in ("char", "binary"):
        pad = b" " if column.type == "char" else b"\0"
        most = (column.length or 0) * (
            BYTES_PER_CHARACTER.get(column.charset or "", 1) if column.type == "char" else 1
        )
        return methodcaller("ljust", most, pad)
    return None
