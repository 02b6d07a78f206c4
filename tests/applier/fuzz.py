"""Damage for logs, and a replay that bears it: what the fuzz tests of the replay share."""

from __future__ import annotations

import random
import signal
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import applier
from applier.errors import InputError, ReplicationError, UsageError
from tests.binlog.test_fuzz import MUTATIONS
from tests.captures_support import logs

SECONDS = 20
"""A replay of a small log that takes longer hangs. Of the processor's time: what else the machine
does is not counted."""
MAGIC_LENGTH, HEADER_LENGTH = 4, 19
OPTION_SETS: tuple[dict[str, Any], ...] = (
    {},
    {"exec_mode": "idempotent", "type_conversions": "ALL_LOSSY,ALL_NON_LOSSY"},
    {"skip_errors": "all", "type_conversions": "ALL_LOSSY,ALL_NON_LOSSY,ALL_UNSIGNED"},
    {"server": "5.7", "row_search": "INDEX_SCAN,HASH_SCAN"},
    {"server": "5.6", "row_search": "TABLE_SCAN"},
    {"server": "mariadb"},
)


class Hangs(AssertionError):
    """The replay did not come to an end."""


@contextmanager
def time_limit(seconds: float = SECONDS) -> Iterator[None]:
    """Interrupts what runs in the main thread after so many seconds of the processor."""

    def stop(number: int, frame: object) -> None:
        raise Hangs(f"still running after {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@dataclass(frozen=True)
class Original:
    """A log that is damaged in the tests: the first file of a capture, cut behind an event after
    `limit` bytes."""

    capture: Path
    content: bytes
    starts: tuple[int, ...]
    tables: applier.Tables

    @property
    def name(self) -> str:
        return self.capture.name


def event_starts(content: bytes) -> list[int]:
    """Offsets of the events, by the lengths in their headers."""
    at, starts = MAGIC_LENGTH, []
    while at + HEADER_LENGTH <= len(content):
        starts.append(at)
        at += max(int.from_bytes(content[at + 9 : at + 13], "little"), HEADER_LENGTH)
    return starts


@cache
def original(capture: Path, limit: int = 16_000) -> Original:
    content = logs(capture)[0].read_bytes()
    starts = event_starts(content)
    end = next((at for at in starts if at >= limit), len(content))
    return Original(
        capture,
        content[:end],
        tuple(at for at in starts if at < end),
        applier.load_schema(capture / "before.sql"),
    )


def flip_body(content: bytearray, at: int, chance: random.Random) -> None:
    """One byte of the body of the event around `at`."""
    starts = event_starts(bytes(content))
    start = max((start for start in starts if start <= at), default=MAGIC_LENGTH)
    end = next((other for other in starts if other > start), len(content))
    if end - start > HEADER_LENGTH + 8:
        content[chance.randrange(start + HEADER_LENGTH, end - 4)] = chance.randrange(256)


def table_map_byte(content: bytearray, at: int, chance: random.Random) -> None:
    """One byte of a table map: names, types, metadata, null bits."""
    maps = [start for start in event_starts(bytes(content)) if content[start + 4] == 19]
    if maps:
        flip_body(content, chance.choice(maps), chance)


ALL_MUTATIONS: tuple[Callable[[bytearray, int, random.Random], None], ...] = (
    *MUTATIONS,
    flip_body,
    flip_body,
    flip_body,
    table_map_byte,
)


def damaged(source: Original, chance: random.Random) -> bytes:
    content = bytearray(source.content)
    for _ in range(chance.choice((1, 1, 2, 3))):
        chance.choice(ALL_MUTATIONS)(
            content, chance.randrange(MAGIC_LENGTH, len(content) - 4), chance
        )
    return bytes(content)


def with_checksums(content: bytes) -> bytes:
    """The log with the checksum of every event made right again, as far as the lengths lead."""
    out = bytearray(content)
    starts = event_starts(content)
    for start in starts[1:]:
        length = int.from_bytes(content[start + 9 : start + 13], "little")
        if HEADER_LENGTH + 4 < length <= len(content) - start:
            struct.pack_into(
                "<I", out, start + length - 4, zlib.crc32(out[start : start + length - 4])
            )
    return bytes(out)


def survives(
    path: Path, tables: applier.Tables, **options: Any
) -> InputError | ReplicationError | UsageError | None:
    """The error that a replay ended with. Anything but the errors that are meant for the user goes
    through."""
    with time_limit():
        try:
            result = applier.replay([path], into=tables, **options)
        except (InputError, UsageError) as error:
            assert "\n" not in error.message
            assert error.file is not None, error.message
            return error
    if result.error is not None:
        assert result.error.file is not None, result.error
        assert result.error.position is not None, result.error
        assert result.error.number > 0
    return result.error


def contents(tables: applier.Tables) -> dict[str, list[Any]]:
    """The rows of every table, whatever order they stand in."""
    return {table.definition.full_name: sorted(map(repr, table.stored_rows())) for table in tables}
