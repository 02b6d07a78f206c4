"""Makes a long log of a short one: its transactions many times over, behind each other.

    python benchmarks/grow_log.py bench/oltp.000001 bench/million.000001 --copies 21

Each copy has times, GTIDs, sequence numbers, positions and checksums of its own, so that the result
reads as one log that a server wrote. For logs of MySQL 8.0.1 and later with GTIDs and CRC32
checksums, as `make_log.py` makes them.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

GTID, XID, HEADER, CHECKSUM = 33, 16, 19, 4
"""Type codes, and lengths in bytes."""
NUMBER, LAST_COMMITTED, SEQUENCE_NUMBER, COMMITTED_AT = (36, 8), (45, 8), (53, 8), (61, 7)
"""Where in a GTID event, header included, a number stands, and its length."""
TIME, LOG_POS = (0, 4), (13, 4)
"""The same in any event's header."""
Integers = npt.NDArray[Any]


class Numbers:
    """Numbers in the bytes of a log, all of one kind at once."""

    def __init__(self, body: npt.NDArray[np.uint8]) -> None:
        self.body = body

    def get(self, events: Integers, place: tuple[int, int]) -> Integers:
        offset, size = place
        return sum(self.body[events + offset + at].astype(np.int64) << 8 * at for at in range(size))  # type: ignore[return-value]

    def put(self, events: Integers, place: tuple[int, int], values: Integers) -> None:
        offset, size = place
        for at in range(size):
            self.body[events + offset + at] = (values >> 8 * at & 255).astype(np.uint8)


def events_of(log: bytes) -> tuple[Integers, Integers, Integers]:
    """Start, type and length of each event."""
    found, at = [], 4
    while at < len(log):
        length = int.from_bytes(log[at + 9 : at + 13], "little")
        found.append((at, log[at + 4], length))
        at += length
    starts, types, lengths = np.array(found, np.int64).T
    return starts, types, lengths


def grow(source: Path, target: Path, copies: int, later: int = 0) -> int:
    """Writes the copies, all of them so many seconds later; how many transactions they hold."""
    log = source.read_bytes()
    starts, types, lengths = events_of(log)
    first, end = int(np.argmax(types == GTID)), int(np.nonzero(types == XID)[0][-1]) + 1
    head, begin = log[: starts[first]], int(starts[first])
    starts, types, lengths = starts[first:end] - begin, types[first:end], lengths[first:end]
    numbers = Numbers(
        np.frombuffer(log[begin : begin + int(starts[-1] + lengths[-1])], np.uint8).copy()
    )
    gtids, ends = starts[types == GTID], starts + lengths
    count = len(gtids)
    read = {
        place: numbers.get(gtids, place)
        for place in (NUMBER, LAST_COMMITTED, SEQUENCE_NUMBER, COMMITTED_AT)
    }
    times, before = numbers.get(starts, TIME), int(read[SEQUENCE_NUMBER].min()) - 1
    seconds = int(np.ptp(times)) + 1
    position = len(head)
    with target.open("wb") as file:
        file.write(head)
        for copy in range(copies):
            numbers.put(gtids, NUMBER, read[NUMBER] + copy * count)
            numbers.put(
                gtids, LAST_COMMITTED, np.maximum(read[LAST_COMMITTED] - before, 0) + copy * count
            )
            numbers.put(gtids, SEQUENCE_NUMBER, read[SEQUENCE_NUMBER] - before + copy * count)
            numbers.put(
                gtids, COMMITTED_AT, read[COMMITTED_AT] + (copy * seconds + later) * 1_000_000
            )
            numbers.put(starts, TIME, times + copy * seconds + later)
            numbers.put(starts, LOG_POS, ends + position & 0xFFFFFFFF)
            text = memoryview(numbers.body.tobytes())
            sums = [
                zlib.crc32(text[start : stop - CHECKSUM])
                for start, stop in zip(starts.tolist(), ends.tolist(), strict=True)
            ]
            numbers.put(ends - CHECKSUM, (0, CHECKSUM), np.array(sums, np.int64))
            file.write(numbers.body.tobytes())
            position += len(numbers.body)
    return copies * count


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--copies", type=int, default=21)
    arguments = parser.parse_args()
    count = grow(arguments.source, arguments.target, arguments.copies)
    print(f"{arguments.target}: {count:,} transactions, {arguments.target.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
