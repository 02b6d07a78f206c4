"""Binlog files cut into ranges at transactions, so that several processes can read one file.

A range begins where a transaction does. The cut nearest to a wanted byte is found without reading
what stands before it: an event knows where it ends in the file (`log_pos`), so a GTID event shows
by four bytes that are right, and the event behind it that its length is. Where that fails (relay
logs carry the source's positions, logs of 5.5 no GTID events, one transaction fills the file) a
range grows to the next cut, or to the whole file.
"""

from __future__ import annotations

import glob
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from applier.binlog.header import KNOWN_TYPES, MAGIC, EventType
from applier.error_codes import Code
from applier.errors import InputError
from applier.remote import address_of
from applier.sources import MAGIC_BYTES, RandomAccess, expanded, open_at, packing

DEFAULT_BYTES = 32 << 20
LOOK_BYTES = 1 << 20
_HEADER = struct.Struct("<IBIIIH")
GTIDS = (EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID)
LONGEST_GTID = 1024


@dataclass(frozen=True)
class FileRange:
    """Transactions that begin from `start` on and before `stop` (None: to the end of the file)."""

    path: str
    start: int | None = None
    stop: int | None = None


def expand(paths: str | Sequence[str]) -> list[str]:
    """Files for names, directories and globs; several may stand in one text with commas between.
    Raises InputError for none."""
    names = paths.split(",") if isinstance(paths, str) else list(paths)
    found: list[str] = []
    for name in (one.strip().removeprefix("file://") for one in names):
        if address_of(name) is not None:
            inside = expanded(name)
        elif Path(name).is_dir():
            inside = sorted(
                entry.path for entry in os.scandir(name) if entry.is_file() and _is_log(entry.path)
            )
        else:
            inside = [name] if Path(name).exists() else sorted(glob.glob(name))  # noqa: PTH207 - a pattern with its own root
        if not inside:
            raise InputError("no such binlog file or pattern", code=Code.NOTHING_TO_READ, file=name)
        found += inside
    return found


def _is_log(path: str) -> bool:
    with Path(path).open("rb") as file:
        return file.read(4) == MAGIC


def ranges(paths: Iterable[str], range_bytes: int = DEFAULT_BYTES) -> list[FileRange]:
    """Ranges of about that many bytes each, in the order of the files. What is compressed is one
    range. Raises OSError or InputError."""
    found = []
    for path in paths:
        with closing(open_at(path)) as file:
            cuts = (
                list(_cuts(file, range_bytes))
                if packing(file.read_at(MAGIC_BYTES, 0)) is None
                else []
            )
        starts, stops = [None, *cuts], [*cuts, None]
        found += [FileRange(path, start, stop) for start, stop in zip(starts, stops, strict=True)]
    return found


def transaction_behind(file: RandomAccess, offset: int) -> int | None:
    """Where the first transaction from a byte on begins, in a log that is not compressed; None
    where that does not show."""
    if packing(file.read_at(MAGIC_BYTES, 0)) is not None:
        return None
    return _next_gtid(file, offset, file.size)


def _cuts(file: RandomAccess, range_bytes: int) -> Iterator[int]:
    wanted = range_bytes
    while wanted < file.size:
        cut = _next_gtid(file, wanted, file.size)
        if cut is None:
            return
        yield cut
        wanted = cut + range_bytes


def _next_gtid(file: RandomAccess, start: int, size: int) -> int | None:
    """The first GTID event from a byte on; None when there is none that shows."""
    at = start
    while at < size:
        data = file.read_at(LOOK_BYTES + LONGEST_GTID, at)
        found = [
            place
            for type_code in GTIDS
            if (place := _of_type(file, data, type_code, at, size)) is not None
        ]
        if found:
            return at + min(found)
        at += LOOK_BYTES
    return None


def _of_type(file: RandomAccess, data: bytes, type_code: int, base: int, size: int) -> int | None:
    """Where in a piece of the file the first event of a type begins."""
    place = data.find(type_code, 4)
    while 0 <= place < LOOK_BYTES + 4:
        if _is_event(file, data, place - 4, base, size):
            return place - 4
        place = data.find(type_code, place + 1)
    return None


def _is_event(file: RandomAccess, data: bytes, place: int, base: int, size: int) -> bool:
    """Whether a GTID event begins there: its end is what it says, and another event or the end of
    the file follows."""
    if place + 19 > len(data):
        return False
    _, type_code, _, length, log_pos, _ = _HEADER.unpack_from(data, place)
    end = base + place + length
    if (
        type_code not in GTIDS
        or not 19 < length < LONGEST_GTID
        or log_pos != end & 0xFFFFFFFF
        or end > size
    ):
        return False
    if end == size:
        return True
    following = file.read_at(19, end)
    if len(following) < 19:
        return False
    _, next_type, _, next_length, next_end, _ = _HEADER.unpack(following)
    return next_type in KNOWN_TYPES and (end + next_length) & 0xFFFFFFFF == next_end
