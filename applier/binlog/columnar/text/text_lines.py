"""Events of plain transactions as the lines of `binlag events`, many at a time: written by a
compiled kernel.

What the kernel needs to know of a table map or of the head of a rows event comes from the listing,
which has met it before. So both write the same lines; the listing writes whatever the kernel stops
for, and the values that it leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from ctypes import string_at
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from applier.binlog.charsets import charset
from applier.binlog.columnar.known_heads import KnownHeads, address
from applier.binlog.header import SERVER_NAMES, EventType, FormatDescription
from applier.binlog.images.row_values import UNREADABLE, ShownColumn, ShownRows, is_number
from applier.binlog.rows import RowsHead
from applier.binlog.table_map import TableMap
from applier.binlog.types.json import MAX_DEPTH

if TYPE_CHECKING:
    from applier.binlog.columnar.table_ids import Integers

TEXT_BYTES = 1 << 20
HOLES = 8192
LENGTH_FIRST = 255
"""As in `text_control`, which is not imported before it is needed."""
STATUS_VARIABLES = {
    0: 4, 1: 8, 3: 4, 4: 6, 5: LENGTH_FIRST, 6: LENGTH_FIRST, 7: 2, 8: 2, 9: 8, 10: 4, 13: 3, 16: 1,
    18: 2, 19: 1, 20: 1, 21: 1, 128: 3,
}  # fmt: skip
"""Bytes of those that change nothing in the Info of a BEGIN; see `status_vars`."""
PRINTABLE = bytes(range(0x20, 0x7F)) + b"  "
UTF8 = "utf-8"
"""The codec of character sets that are UTF-8, of up to three or four bytes."""
ENCODING, ERRORS = UTF8, "surrogatepass"


@dataclass(frozen=True, slots=True)
class Lines:
    """What the kernel wrote, up to `position`. `bad`: it ends before a rows event with a value that
    cannot be read."""

    text: str
    position: int
    bad: BadRows | None = None


@dataclass(frozen=True, slots=True)
class BadRows:
    """A rows event that cannot be shown: its position, head and table map."""

    position: int
    head: RowsHead
    table_map: TableMap


@dataclass(frozen=True, slots=True)
class Stopped:
    """Where the kernel stopped in a transaction. `state`: that of a TransactionTracker; `tables`
    were met in it, by id.

    `ended`: the transaction that was open at the start is over. `heads`: positions of the events
    that a tracker has to be fed: the first of the transaction that is open, where it began since
    the start, and its BEGIN.
    """

    state: int
    ended: bool
    heads: tuple[int, ...]
    tables: dict[int, TableMap]


class LineWriter(KnownHeads):
    """Runs the kernel over one file after the other. Table maps and heads are those of the file
    since `begin`."""

    def __init__(self) -> None:
        import numpy as np

        from applier.binlog.columnar.cache import load_kernel
        from applier.binlog.columnar.text import text_control as control

        super().__init__(control.TextBlock.SIZE_OF_BLOCK, control.TextShape.SIZE_OF_ENTRY)
        self._kernel = load_kernel("lines").call
        self._text, self._hole, self._column, self._kind = (
            control.TextBlock,
            control.Hole,
            control.TextColumn,
            control.TextKind,
        )
        self._status, self._map_item = control.TextStatus, control.TextMap
        self._out = np.zeros(TEXT_BYTES, np.uint8)
        self._holes: Integers = np.zeros((HOLES, control.Hole.SIZE_OF_ENTRY), np.int64)
        self._gtid: Integers = np.zeros(16, np.int64)
        self._map_entries: Integers = np.zeros((16, control.TextMap.SIZE_OF_ENTRY), np.int64)
        self._fixed = [
            _names(control.NAME_WIDTH),
            _words(control.WORD_WIDTH, control.WORD_TEXTS),
            _variables(),
        ]
        self._of_values: list[Any] = []
        self._tables: list[TableMap] = []
        self._rows: list[tuple[RowsHead, TableMap]] = []
        self._fillers: list[Callable[[bytes], str]] = []
        self._file: Any = None
        self._point_at_fixed()

    def _point_at_fixed(self) -> None:
        item, block = self._text, self._control
        block[item.OUT], block[item.ROOM] = address(self._out), len(self._out)
        block[item.HOLES], block[item.HOLES_CAPACITY] = address(self._holes), len(self._holes)
        block[item.GTID] = address(self._gtid)
        places = item.NAMES, item.WORDS, item.VARIABLES
        for place, array in zip(places, self._fixed, strict=True):
            block[place] = address(array)

    def _point_at_values(self) -> None:
        """What only the values of rows need."""
        from applier.binlog.columnar.text.text_control import Open, powers_of_ten

        np, item = self._np, self._text
        self._of_values = [
            _printable(),
            np.array(powers_of_ten(), np.int64),
            np.zeros((MAX_DEPTH + 1, Open.SIZE_OF_ENTRY), np.int64),
        ]
        for place, array in zip(
            (item.PRINTABLE, item.TENS, item.FRAMES), self._of_values, strict=True
        ):
            self._control[place] = address(array)

    def start(self, fde: FormatDescription, *, verify: bool, with_rows: bool, file: str) -> bool:
        """A file with this format description; `file` is how its lines begin. False: its layout is
        not the kernel's."""
        if fde.post_header_length(EventType.QUERY) not in (0, 13) or not self.begin(
            fde, verify=verify
        ):
            return False
        self._file = self._np.frombuffer(file.encode(ENCODING, ERRORS), self._np.uint8)
        item, block = self._text, self._control
        block[item.FILE], block[item.FILE_LENGTH] = address(self._file), len(self._file)
        block[item.WITH_ROWS] = with_rows
        if with_rows and not self._of_values:
            self._point_at_values()
        return True

    def forget(self) -> None:
        """All table maps and heads."""
        super().forget()
        self._fillers.clear()
        self._tables.clear()
        self._rows.clear()
        self.clear_tables()

    @property
    def id_bytes(self) -> int:
        """Bytes of a table id."""
        return int(self._control[self._item.ID_SIZE])

    def clear_tables(self) -> None:
        """A transaction begins or ends: no table map counts any more."""
        self._control[self._text.TRANSACTION] += 1

    def add_table(self, body: bytes, table_map: TableMap, info: str) -> None:
        """A table map event of the transaction at hand."""
        number, item = self.add_map(body, table_map.table_id), self._map_item
        if number == len(self._tables):
            if number == len(self._map_entries):
                self._map_entries = self._np.concatenate(
                    [self._map_entries, self._np.zeros_like(self._map_entries)]
                )
            self._tables.append(table_map)
            self._map_entries[number] = (0, *self._told(info))
        self._map_entries[number, item.TRANSACTION] = self._control[self._text.TRANSACTION]

    def add_head(
        self, map_body: bytes, head: RowsHead, text: bytes, info: str, rows: ShownRows | None
    ) -> None:
        """A rows event's head, whose bytes are `text`, behind a table map. `rows`: how its rows are
        shown."""
        if not self.may_add(map_body, head, text):
            return
        shown: tuple[int, ...] = (0,) * 6
        if rows is not None and rows.before and (rows.after or head.kind != "update"):
            images = [(self._columns(image), len(image)) for image in (rows.before, rows.after)]
            shown = (*self._told(rows.line), *images[0], *images[1])
        self._add_shape(map_body, head, text, (*self._told(info), *shown))
        self._rows.append((head, self._tables[self._maps[map_body]]))

    def _told(self, text: str) -> tuple[int, int]:
        """Address and length of a text."""
        told = text.encode(ENCODING, ERRORS)
        return self._kept(told), len(told)

    def _columns(self, columns: Sequence[ShownColumn]) -> int:
        """Address of the columns of an image, as the kernel reads them."""
        entries = []
        for at, column in enumerate(columns):
            kind, first, second = _kind(column, self._kind)
            name = self._told(f"{', ' if at else ''}{column.name}=")
            entries.append(
                (
                    column.wire.size,
                    column.wire.kind == "prefixed",
                    kind,
                    first,
                    second,
                    len(self._fillers),
                    *name,
                )
            )
            self._fillers.append(column.text_of)
        return self._kept_array(
            self._np.array([*entries, (0,) * self._column.SIZE_OF_ENTRY], self._np.int64)
        )

    def run(self, position: int, limit: int, state: int) -> Iterator[Lines]:
        """The lines of events from `position` on, up to one that the kernel does not take. `state`:
        a TransactionTracker's."""
        item, block = self._text, self._control
        self._bind(position, limit)
        block[item.MAPS] = address(self._map_entries)
        block[item.STATE], block[item.OPENING], block[item.SECOND], block[item.ENDED] = (
            state,
            -1,
            -1,
            0,
        )
        while True:
            block[item.AT], block[item.HOLES_COUNT] = address(self._out), 0
            status = self._kernel(address(block))
            written = int(block[item.AT]) - address(self._out)
            if written:
                yield self._filled(self._out[:written].tobytes(), int(block[item.POSITION]))
            if status != self._status.FULL or not written:
                return

    def left(self) -> Stopped:
        """Where the last run stopped."""
        item, block = self._text, self._control
        heads = tuple(int(at) for at in (block[item.OPENING], block[item.SECOND]) if at >= 0)
        tables = {}
        if block[item.STATE]:
            numbers = self._ids.entries[:, 1]
            known = numbers >= 0
            current = (
                self._map_entries[numbers[known], self._map_item.TRANSACTION]
                == block[item.TRANSACTION]
            )
            tables = {
                table.table_id: table
                for table in (self._tables[number] for number in numbers[known][current].tolist())
            }
        return Stopped(int(block[item.STATE]), bool(block[item.ENDED]), heads, tables)

    def _filled(self, text: bytes, position: int) -> Lines:
        """The text with its holes filled."""
        count = int(self._control[self._text.HOLES_COUNT])
        if not count:
            return Lines(text.decode(ENCODING, ERRORS), position)
        parts, done = [], 0
        known: dict[tuple[int, bytes], bytes] = {}  # an update mostly shows a value twice
        for at, number, start, length, line, shape, event in self._holes[:count].tolist():
            key = number, string_at(start, length)
            try:
                filled = known.get(key)
                if filled is None:
                    filled = known[key] = self._fillers[number](key[1]).encode(ENCODING, ERRORS)
            except UNREADABLE:
                parts.append(text[done:line] if done <= line else b"")
                bad = BadRows(event, *self._rows[shape])
                return Lines(b"".join(parts).decode(ENCODING, ERRORS), event, bad)
            parts.append(text[done:at])
            parts.append(filled)
            done = at
        return Lines(b"".join([*parts, text[done:]]).decode(ENCODING, ERRORS), position)


def _kind(column: ShownColumn, kinds: Any) -> tuple[int, int, int]:
    """How the kernel writes the column's values, and what it needs to know for that."""
    sql, source = column.column, column.source
    if column.convert is not None:
        return kinds.HOLE, 0, 0
    if sql is None:
        return (kinds.TEXT, 1, 0) if column.wire.kind == "prefixed" else (kinds.HOLE, 0, 0)
    if is_number(source, sql):
        return (
            {"int": kinds.SIGNED, "uint": kinds.UNSIGNED, "bits": kinds.BITS}[column.wire.kind],
            0,
            0,
        )
    if sql.type in ("char", "varchar"):
        shown = charset(sql.charset)
        is_ascii = shown.shown(PRINTABLE) == PRINTABLE.decode()
        return (kinds.TEXT if is_ascii else kinds.HOLE), shown.codec == UTF8, 0
    if sql.type == "year" and sql.length != 2:
        return kinds.YEAR, 0, 0
    if sql.type in ("binary", "varbinary"):
        return (
            kinds.HEX,
            (1 if sql.length is None else sql.length) if sql.type == "binary" else 0,
            0,
        )
    if sql.type == "decimal":
        return kinds.DECIMAL, (sql.length or 10) - sql.scale, sql.scale
    others = {
        "date": kinds.DATE,
        "datetime": kinds.DATETIME,
        "timestamp": kinds.TIMESTAMP,
        "time": kinds.TIME,
        "float": kinds.FLOAT,
        "double": kinds.DOUBLE,
        "json": kinds.JSON,
    }
    return others.get(sql.type, kinds.HOLE), sql.scale, 0


def _names(width: int) -> Any:
    import numpy as np

    names = b"".join(
        SERVER_NAMES.get(code, "").ljust(width).encode()[:width] for code in range(256)
    )
    return np.frombuffer(names, np.uint8)


def _words(width: int, texts: dict[Any, bytes]) -> Any:
    import numpy as np

    return np.frombuffer(
        b"".join(text.ljust(width - 1) + bytes([len(text)]) for text in texts.values()), np.uint8
    )


def _printable() -> Any:
    """A bit for each code point of up to three bytes in UTF-8: whether it is shown as it is."""
    import numpy as np

    bits = np.fromiter(map(str.isprintable, map(chr, range(1 << 16))), bool, 1 << 16)
    return np.packbits(bits, bitorder="little")


def _variables() -> Any:
    import numpy as np

    sizes = np.zeros(256, np.uint8)
    sizes[list(STATUS_VARIABLES)] = list(STATUS_VARIABLES.values())
    return sizes
