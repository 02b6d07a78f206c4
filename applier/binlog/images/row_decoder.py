"""Row images into stored values, by functions made to measure.

For a table map and a column bitmap a small Python function is generated: runs of fixed-width
columns become one struct.unpack_from, strings one slice each, and the null bitmap is tested once.
The functions are made once per shape and reused for every event that has it. A value that would run
past the event pushes the read position past the end, which is checked once per event.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

from applier.binlog.wire import Wire
from applier.error_codes import Code
from applier.errors import InputError

Image = tuple[Any, ...]
ImageReader = Callable[[bytes, int, int], tuple[Image, int]]
"""(buffer, start, end) -> (image, position behind it). Raises InputError when it does not end at or
before `end`."""
RowsReader = Callable[[bytes, int, int], list[Any]]
"""(buffer, start, end) -> all rows between. Raises InputError when they do not end exactly at
`end`."""

STRUCT_CODES = {
    ("int", 1): "b", ("uint", 1): "B", ("int", 2): "h", ("uint", 2): "H",
    ("int", 4): "i", ("uint", 4): "I", ("int", 8): "q", ("uint", 8): "Q",
}  # fmt: skip


@dataclass(frozen=True)
class ImageColumn:
    """One column that an image holds. `keep` False: read over. `convert` is applied to values that
    are not NULL.

    `null` replaces NULL where the local column cannot hold it (the server stores the default,
    warning 1048).
    """

    wire: Wire
    keep: bool = True
    convert: Callable[[Any], Any] | None = None
    null: Any = None


def image_reader(columns: Sequence[ImageColumn]) -> ImageReader:
    """A function that reads one image."""
    source = _Source()
    names = source.image(columns, "v", " " * 8)
    read: ImageReader = source.compile(
        ["def read(buffer, p, end):", "    try:"],
        source.checked("p > end", [f"        image = ({names})"], "image, p"),
    )
    return read


def rows_reader(
    before: Sequence[ImageColumn], after: Sequence[ImageColumn] | None = None
) -> RowsReader:
    """A function that reads all rows of an event: images, or (before, after) pairs when `after` is
    given."""
    source = _Source()
    indent = " " * 12
    first = source.image(before, "v", indent)
    item = f"({first})"
    if after is not None:
        second = source.image(after, "w", indent)
        item = f"({item}, ({second}))"
    if not before and not after:
        return _empty_rows(() if after is None else ((), ()))
    read: RowsReader = source.compile(
        ["def read(buffer, p, end):", "    rows = []", "    try:", "        while p < end:"],
        source.checked("p != end", [f"            rows.append({item})"], "rows"),
    )
    return read


def _empty_rows(row: Any) -> RowsReader:
    """Images without a column take no bytes: the server applies such an event as one row (its loop
    tests at the end)."""

    def read_rows(buffer: bytes, start: int, end: int) -> list[Any]:
        if start != end:
            raise corrupt()
        return [row]

    return read_rows


def corrupt() -> InputError:
    """The error of rows that are shorter than their columns."""
    return InputError(
        "a row image runs past the end of its event",
        code=Code.BAD_ROWS,
        hint="the event does not fit its table map: the log is damaged",
    )


KEPT_TEXT = 100_000
"""Characters of a function whose code is kept for others like it: some 500 columns. A log may hold
any number of wide tables."""


@lru_cache(maxsize=4096)
def _compiled(text: str) -> CodeType:
    """Many tables, and one table in every replay of it, have the same text."""
    return compile(text, "<row decoder>", "exec")


class _Source:
    """Collects the lines of a generated function and the objects that it names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"from_bytes": int.from_bytes}

    def compile(self, before: list[str], behind: list[str]) -> Any:
        """The function `read` whose text is the lines collected, with these around them."""
        text = "\n".join([*before, *self.lines, *behind])
        exec(
            _compiled(text) if len(text) <= KEPT_TEXT else compile(text, "<row decoder>", "exec"),
            self.names,
        )
        return self.names["read"]

    def checked(self, is_outside: str, last: list[str], result: str) -> list[str]:
        """The end of a function whose body is in a `try`: no position outside of the event gets
        through."""
        raise_corrupt = f"raise {self.name(corrupt)}()"
        return [
            *last,
            f"    except {self.name((struct.error, IndexError))}:",
            f"        {raise_corrupt} from None",
            f"    if {is_outside}:",
            f"        {raise_corrupt}",
            f"    return {result}",
        ]

    def name(self, value: Any) -> str:
        name = f"o{len(self.names)}"
        self.names[name] = value
        return name

    def image(self, columns: Sequence[ImageColumn], prefix: str, indent: str) -> str:
        """Adds the lines that read one image; returns the names of its values, as the inside of a
        tuple."""
        count = len(columns)
        size = (count + 7) // 8
        if count == 0:
            return ""
        bits = f"{prefix}n"
        load = "buffer[p]" if size == 1 else f"from_bytes(buffer[p:p+{size}], 'little')"
        self.lines += [
            f"{indent}{bits} = {load}",
            f"{indent}p += {size}",
            f"{indent}if {bits} & {(1 << count) - 1}:",
        ]
        for at, column in enumerate(columns):
            self.lines.append(
                f"{indent}    if {bits} & {1 << at}: {prefix}{at} = {self._null(column)}"
            )
            self.lines.append(f"{indent}    else:")
            self._run([(f"{prefix}{at}", column)], indent + "        ")
        self.lines.append(f"{indent}else:")
        self._all_present(
            [(f"{prefix}{at}", column) for at, column in enumerate(columns)], indent + "    "
        )
        return "".join(f"{prefix}{at}, " for at, column in enumerate(columns) if column.keep)

    def _null(self, column: ImageColumn) -> str:
        return "None" if column.null is None else self.name(column.null)

    def _all_present(self, columns: list[tuple[str, ImageColumn]], indent: str) -> None:
        run: list[tuple[str, ImageColumn]] = []
        for item in columns:
            if item[1].wire.kind == "prefixed":
                self._run(run, indent)
                run = []
                self._prefixed(item[0], item[1], indent)
            else:
                run.append(item)
        self._run(run, indent)

    def _run(self, run: list[tuple[str, ImageColumn]], indent: str) -> None:
        """A run of fixed-width columns: one unpack, then what struct cannot do."""
        if not run:
            return
        if run[0][1].wire.kind == "prefixed":
            self._prefixed(*run[0], indent)
            return
        unpacker = struct.Struct("<" + "".join(_code(column.wire) for _, column in run))
        targets = "".join(f"{name}, " for name, _ in run)
        self.lines.append(f"{indent}{targets}= {self.name(unpacker.unpack_from)}(buffer, p)")
        self.lines.append(f"{indent}p += {unpacker.size}")
        for name, column in run:
            wire = column.wire
            if wire.kind != "bytes" and (wire.kind, wire.size) not in STRUCT_CODES:
                order, signed = ("big" if wire.kind == "bits" else "little"), wire.kind == "int"
                self.lines.append(
                    f"{indent}{name} = from_bytes({name}, '{order}', signed={signed})"
                )
            self._convert(name, column, indent)

    def _prefixed(self, name: str, column: ImageColumn, indent: str) -> None:
        size = column.wire.size
        length = (
            "buffer[p]"
            if size == 1
            else (
                "buffer[p] | buffer[p+1] << 8"
                if size == 2
                else f"from_bytes(buffer[p:p+{size}], 'little')"
            )
        )
        self.lines += [
            f"{indent}q = p + {size} + ({length})",
            f"{indent}{name} = buffer[p+{size}:q]",
            f"{indent}p = q",
        ]
        self._convert(name, column, indent)

    def _convert(self, name: str, column: ImageColumn, indent: str) -> None:
        if column.convert is not None:
            self.lines.append(f"{indent}{name} = {self.name(column.convert)}({name})")


def _code(wire: Wire) -> str:
    return STRUCT_CODES.get((wire.kind, wire.size), f"{wire.size}s")
