"""GTID sets: which transactions, in text and in the binary forms of the log.

MySQL's sets hold intervals per (server UUID, tag); tags exist from 8.3 on (sql/rpl_gtid_set.cc,
libs/mysql/gtid 9.7). MariaDB names a transaction domain-server-sequence; a position there is the
last one of each domain.
"""

from __future__ import annotations

import re
import struct
import uuid as uuid_module
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sortedcontainers import SortedDict

MAX_NUMBER = (1 << 63) - 2
_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_SPAN = re.compile(r"([0-9]{1,19})(?:\s*-\s*([0-9]{1,19}))?")
"""Numbers have nineteen digits at most, as 2^63 has."""
_MARIADB_GTID = re.compile(r"\s*([0-9]{1,10})-([0-9]{1,10})-([0-9]{1,20})\s*")

Span = tuple[int, int]
"""[start, end)"""
Source = tuple[str, str]
"""(server UUID in lower case, tag or "")"""


class GtidError(ValueError):
    """A text or a byte string is not a GTID set."""


class Intervals:
    """Disjoint, sorted, half-open intervals of transaction numbers."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(zip(self._starts, self._ends, strict=True))

    def __len__(self) -> int:
        return len(self._starts)

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._starts, number) - 1
        return at >= 0 and number < self._ends[at]

    def add(self, start: int, end: int) -> None:
        """Adds [start, end), joining what touches."""
        first = bisect_right(self._starts, start)
        if first and self._ends[first - 1] >= start:
            first -= 1
        last = first
        while last < len(self._starts) and self._starts[last] <= end:
            start, end = min(start, self._starts[last]), max(end, self._ends[last])
            last += 1
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def add_all(self, spans: Iterable[Span]) -> None:
        """Adds many at once, in any order: n log n, where one by one would move all that follow
        again and again."""
        starts: list[int] = []
        ends: list[int] = []
        for start, end in sorted([*self, *spans]):
            if ends and start <= ends[-1]:
                ends[-1] = max(end, ends[-1])
            else:
                starts.append(start)
                ends.append(end)
        self._starts, self._ends = starts, ends

    def subtract(self, other: Intervals) -> None:
        """Takes all of `other` out, in one pass over both."""
        kept: list[Span] = []
        at = 0
        for low, high in self:
            while at < len(other) and other._ends[at] <= low:
                at += 1
            here = at
            while here < len(other) and other._starts[here] < high:
                if low < other._starts[here]:
                    kept.append((low, other._starts[here]))
                low = other._ends[here]
                here += 1
            if low < high:
                kept.append((low, high))
        self._starts = [low for low, _ in kept]
        self._ends = [high for _, high in kept]


class GtidSet:
    """A set of MySQL GTIDs, with tags (8.3) or without, in the server's text:
    "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:tag:7".

    A source is (UUID in lower case, tag); its transactions are disjoint intervals, so a set takes
    memory by gaps, not by transactions. Texts are normalised as `Gtid_set::to_string` does
    (sql/rpl_gtid_set.cc). Raises GtidError for text that is no set.
    """

    def __init__(self, text: str = "") -> None:
        self._sources: SortedDict[Source, Intervals] = SortedDict()
        found: defaultdict[Source, list[Span]] = defaultdict(list)
        for part in filter(None, (part.strip() for part in text.replace("\n", "").split(","))):
            _read_text(part, found)
        self._add_all(found)

    def __bool__(self) -> bool:
        return bool(self._sources)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GtidSet) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __iter__(self) -> Iterator[tuple[Source, tuple[int, int]]]:
        """(source, [start, end)) pairs in order."""
        for source, intervals in self._sources.items():
            for interval in intervals:
                yield source, interval

    def __str__(self) -> str:
        """The server's own form: sources in order, tags of one UUID behind it, joined by commas."""
        texts: dict[str, str] = {}
        for (uuid, tag), intervals in self._sources.items():
            spans = ":".join(
                f"{low}" if high == low + 1 else f"{low}-{high - 1}" for low, high in intervals
            )
            texts[uuid] = f"{texts.get(uuid, uuid)}{':' + tag if tag else ''}:{spans}"
        return ",".join(texts.values())

    def __repr__(self) -> str:
        return f"GtidSet({str(self)!r})"

    def contains(self, uuid: str, number: int, tag: str = "") -> bool:
        """Whether the transaction is in the set; `uuid` in lower case."""
        intervals = self._sources.get((uuid, tag))
        return intervals is not None and number in intervals

    def add(self, uuid: str, number: int, tag: str = "") -> None:
        """Puts one transaction in."""
        self.add_interval((uuid.lower(), tag), number, number + 1)

    def add_interval(self, source: Source, start: int, end: int) -> None:
        """Adds [start, end) of one source. Raises GtidError when it is empty or out of range."""
        _check(start, end)
        self._sources.setdefault(source, Intervals()).add(start, end)

    def _add_all(self, spans: Mapping[Source, Iterable[Span]]) -> None:
        for source, intervals in spans.items():
            self._sources.setdefault(source, Intervals()).add_all(intervals)

    def union(self, other: GtidSet) -> GtidSet:
        """What is in one of the two."""
        result = GtidSet()
        result._add_all(self._sources)
        result._add_all(other._sources)
        return result

    def subtract(self, other: GtidSet) -> GtidSet:
        """What is in this set and not in the other (GTID_SUBTRACT)."""
        result = self.union(GtidSet())
        for source, taken in other._sources.items():
            intervals = result._sources.get(source)
            if intervals is not None:
                intervals.subtract(taken)
                if not len(intervals):
                    del result._sources[source]
        return result

    def issubset(self, other: GtidSet) -> bool:
        """Whether all of this set is in the other (GTID_SUBSET)."""
        return not self.subtract(other)

    def count(self) -> int:
        """How many transactions are in the set."""
        return sum(end - start for _, (start, end) in self)

    # codecs

    def encode(self) -> bytes:
        """The form of PREVIOUS_GTIDS and COM_BINLOG_DUMP_GTID; tagged when any tag is there."""
        tagged = any(tag for _, tag in self._sources)
        count = len(self._sources)
        parts = [struct.pack("<Q", count << 8 | 1 | 1 << 56 if tagged else count)]
        for (uuid, tag), intervals in self._sources.items():
            parts.append(uuid_module.UUID(uuid).bytes)
            if tagged:
                parts.append(bytes([len(tag) << 1]) + tag.encode())
            parts.append(struct.pack("<Q", len(intervals)))
            parts.extend(struct.pack("<QQ", low, high) for low, high in intervals)
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes) -> GtidSet:
        """Raises GtidError as the server's decoder refuses."""
        result = cls()
        try:
            (head,) = struct.unpack_from("<Q", data)
            form = head >> 56
            if form not in (0, 1):
                raise GtidError(f"unknown GTID set format {form}")
            count = (head >> 8) & ((1 << 48) - 1) if form else head
            at = 8
            for _ in range(count):
                at = result._decode_source(data, at, tagged=bool(form))
        except (struct.error, IndexError, UnicodeDecodeError):
            raise GtidError("the GTID set ends too early") from None
        if at != len(data):
            raise GtidError(f"{len(data) - at} bytes follow the GTID set")
        return result

    def _decode_source(self, data: bytes, at: int, *, tagged: bool) -> int:
        if at + 16 > len(data):
            raise GtidError("the GTID set ends too early")
        uuid, tag = str(uuid_module.UUID(bytes=data[at : at + 16])), ""
        at += 16
        if tagged:
            length = data[at] >> 1
            tag = data[at + 1 : at + 1 + length].decode("ascii")
            if data[at] & 1 or not is_tag(tag):
                raise GtidError(f"{uuid}: the GTID tag is not valid")
            at += 1 + length
        (count,) = struct.unpack_from("<Q", data, at)
        at += 8
        if count > (len(data) - at) // 16:
            raise GtidError("the GTID set ends too early")
        spans = list(struct.iter_unpack("<QQ", data[at : at + 16 * count]))
        previous = 0
        for start, end in spans:
            if start <= previous or end <= start:
                raise GtidError(f"the intervals of {uuid} are out of order")
            previous = end
        if spans:
            _check(spans[0][0], previous)
            self._sources.setdefault((uuid, tag), Intervals()).add_all(spans)
        at += 16 * count
        return at


def is_tag(text: str) -> bool:
    """Whether a text can be the tag of a GTID; "" stands for none."""
    return not text or _TAG.fullmatch(text) is not None


def _check(start: int, end: int) -> None:
    if not 1 <= start < end <= MAX_NUMBER + 1:
        raise GtidError(f"{start}-{end - 1} is not an interval of transaction numbers")


def _read_text(part: str, found: Mapping[Source, list[Span]]) -> None:
    """Adds the intervals of one `uuid:...` of a set's text to `found`."""
    uuid, *pieces = [piece.strip() for piece in part.split(":")]
    if not _UUID.fullmatch(uuid) or not pieces:
        raise GtidError(f"not a GTID set: {shortened(part)}")
    uuid, tag = str(uuid_module.UUID(uuid)), ""
    for piece in pieces:
        span = _SPAN.fullmatch(piece)
        if span is not None:
            start, end = int(span[1]), int(span[2] or span[1])
            if end >= start:
                _check(start, end + 1)
                found[uuid, tag].append((start, end + 1))
        elif _TAG.fullmatch(piece.lower()):
            tag = piece.lower()
        else:
            raise GtidError(
                f"{shortened(piece)} is neither an interval nor a tag, in {shortened(part)}"
            )


def shortened(text: str, most: int = 80) -> str:
    """A piece of a foreign text as an error shows it."""
    return repr(text if len(text) <= most else text[:most] + "…")


@dataclass(frozen=True, slots=True, order=True)
class MariadbGtid:
    """domain-server-sequence."""

    domain: int
    server_id: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.domain}-{self.server_id}-{self.sequence}"

    @classmethod
    def parse(cls, text: str) -> MariadbGtid:
        """From "0-1-42". Raises GtidError."""
        match = _MARIADB_GTID.fullmatch(text)
        if match is None:
            raise GtidError(f"not a MariaDB GTID: {shortened(text)}")
        return cls(int(match[1]), int(match[2]), int(match[3]))


class MariadbGtidSet:
    """A MariaDB position read as a set: every transaction up to the one named, domain by domain."""

    def __init__(self, gtids: Iterable[MariadbGtid] | str = ()) -> None:
        if isinstance(gtids, str):
            gtids = [MariadbGtid.parse(part) for part in gtids.split(",") if part.strip()]
        self._last = {gtid.domain: gtid for gtid in gtids}

    def __bool__(self) -> bool:
        return bool(self._last)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MariadbGtidSet) and self._last == other._last

    def __hash__(self) -> int:
        return hash(str(self))

    def __iter__(self) -> Iterator[MariadbGtid]:
        """The last transaction of each domain, in order."""
        return iter(sorted(self._last.values()))

    def __str__(self) -> str:
        return ",".join(str(gtid) for _, gtid in sorted(self._last.items()))

    def last(self, domain: int) -> MariadbGtid | None:
        """The last transaction of a domain."""
        return self._last.get(domain)

    def __contains__(self, gtid: MariadbGtid) -> bool:
        last = self._last.get(gtid.domain)
        return last is not None and gtid.sequence <= last.sequence

    def add(self, gtid: MariadbGtid) -> None:
        """The position of the GTID's domain is this one from now on."""
        self._last[gtid.domain] = gtid


AnyGtidSet = GtidSet | MariadbGtidSet


def parse_gtid_set(text: str) -> GtidSet | MariadbGtidSet:
    """A set in either server's form. Raises GtidError."""
    if re.match(r"\s*[0-9]+-[0-9]+-[0-9]+\s*(,|$)", text):
        return MariadbGtidSet(text)
    return GtidSet(text)
