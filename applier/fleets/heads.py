"""The heads of a source's logs: who wrote each, and whether they are one log without a gap, before
anybody reads all of them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from applier.binlog.header import EventFlag, FormatDescription
from applier.binlog.reader import FRAME_TYPES, ORDER_HINT, LogReader, check_next
from applier.error_codes import Code
from applier.errors import InputError, cannot_read
from applier.remote import RemoteFile, address_of
from applier.sources import log_name, next_log_name, source_name

READERS = 16
"""Heads that are read at once: on a store each takes a while, and no time of this process."""


@dataclass(frozen=True, slots=True)
class LogHead:
    """What the first events of a log tell."""

    path: str
    name: str
    server_id: int
    version: str
    is_relay_log: bool


def heads(files: Sequence[str]) -> list[LogHead]:
    """The heads of these files. Raises InputError for one that is no log."""
    if len(files) == 1:
        return [_head(files[0])]
    with ThreadPoolExecutor(READERS) as readers:
        return list(readers.map(_head, files))


def _head(path: str) -> LogHead:
    reader = LogReader([path])
    server_id, is_relay_log = 0, False
    for event in reader:
        if event.type not in FRAME_TYPES:
            break
        server_id = server_id or event.server_id
        is_relay_log = is_relay_log or bool(event.flags & EventFlag.RELAY_LOG)
    description: FormatDescription | None = reader.format
    return LogHead(
        path,
        log_name(path),
        server_id,
        description.server_version if description else "",
        is_relay_log,
    )


def check(found: Sequence[LogHead]) -> list[str]:
    """What is to be said of logs of several versions. Raises InputError for logs that are not one
    log without a gap."""
    seen: dict[str, LogHead] = {}
    for one in found:
        other = seen.setdefault(one.name, one)
        if other is not one:
            problem = f"{source_name(other.path)} is a log of the same name and positions"
            raise InputError(
                problem, code=Code.BAD_FORMAT, file=source_name(one.path), hint=ORDER_HINT
            )
    for before, after in pairwise(found):
        check_next(before, after, next_log_name(before.name), file=source_name(after.path))
    changes = [
        (before, after) for before, after in pairwise(found) if before.version != after.version
    ]
    return [
        f"{after.name} is the first log of {after.version}, those before it are of {before.version}"
        for before, after in changes
    ]


def stamp(path: str) -> tuple[int, int]:
    """(Bytes, when it was written in nanoseconds) of a file; of one on a store 0 for the time.
    Raises InputError."""
    address = address_of(path)
    if address is not None:
        return RemoteFile(address).size, 0
    try:
        state = Path(path).stat()
    except OSError as error:
        raise cannot_read(error, path) from None
    return state.st_size, state.st_mtime_ns
