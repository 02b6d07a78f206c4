"""Logs while they grow: the reader that waits at the end for more.

Which logs there are is in their index, as a server keeps it. A log is over when the index names the
next one; until then half an event at its end is one that is being written. Only whole events are
mapped, so that the half one may be cut off by a receiver that starts again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import overload

from applier.binlog.header import HEADER_LENGTH, MAGIC
from applier.binlog.reader import LogReader, open_log
from applier.error_codes import Code
from applier.errors import InputError
from applier.remote import address_of
from applier.sources import INDEX_SUFFIX, expanded, names_in_index

PIECE_BYTES = 8 << 20
"""What is handed out between two looks at the index and at `stopped`."""
POLL_SECONDS = 0.05
BEING_REPLACED = "_crash_safe"
"""A server writes the new index under this name, and renames it when the old one is gone."""


LogFiles = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""One log, a pattern or a folder with an index; or several logs and patterns, in order."""


class IndexedLogs(Sequence[str]):
    """The logs that an index names, oldest first, as of the moment that somebody looks.

    `folder` has one index, or is the index itself. With `follow` a reader of these logs waits for
    more at their end, until `stopped` says so; `on_idle` is called each time that it begins to
    wait, and `waiting` says whether it does.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        follow: bool = False,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.index_file = _index_of(Path(folder))
        self.follow = follow
        self.stopped = stopped
        self.on_idle: Callable[[], None] = lambda: None
        self.waiting = False
        self._names: list[str] = []
        self._seen = b""

    def paths(self) -> list[str]:
        """Reads the index. While it is being replaced it may be missing: what it said before holds.
        Raises InputError for what is not an index."""
        try:
            content = self.index_file.read_bytes()
        except FileNotFoundError:
            return self._names
        if b"\0" in content:
            raise InputError(
                "this is not an index of logs: it is not text",
                code=Code.LOG_GONE,
                file=str(self.index_file),
            )
        if content != self._seen:
            self._names = [str(self.index_file.parent / name) for name in names_in_index(content)]
            self._seen = content
        return self._names

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        return self.paths()[at]

    def __len__(self) -> int:
        return len(self.paths())

    def after(self, path: Path) -> Path | None:
        """The log behind this one, None when it is the last. Raises InputError when this one was
        taken out of the index."""
        names = self.paths()
        if str(path) not in names:
            raise InputError(
                f"{path.name} was taken out of {self.index_file.name} while it was read",
                code=Code.LOG_GONE,
                hint="relay logs are removed too early",
            )
        at = names.index(str(path)) + 1
        return Path(names[at]) if at < len(names) else None


def log_files(files: LogFiles) -> Sequence[str]:
    """The logs that are meant: patterns are expanded, a folder or an index alone gives the logs
    that it names.

    Raises InputError for a pattern that nothing fits, and for a folder without an index.
    """
    if isinstance(files, IndexedLogs):
        return files
    names = [
        os.fspath(file) for file in ([files] if isinstance(files, str | os.PathLike) else files)
    ]
    alone = names[0] if len(names) == 1 and address_of(names[0]) is None else ""
    if alone and (alone.endswith(INDEX_SUFFIX) or Path(alone).is_dir()):
        return IndexedLogs(alone)
    return [file for name in names for file in expanded(name) if not file.endswith(INDEX_SUFFIX)]


def _index_of(path: Path) -> Path:
    if not path.is_dir():
        return path
    files = {file.name.removesuffix(BEING_REPLACED) for file in path.iterdir()}
    found = [path / name for name in sorted(files) if name.endswith(".index")]
    if len(found) != 1:
        if found:
            names = f"more than one index of logs: {', '.join(file.name for file in found)}"
            hint = f"name one of them: {found[0]}"
        else:
            names = "no index of logs"
            hint = f"name the logs themselves, as {path}/binlog.*, or the folder of a receiver"
        raise InputError(f"the folder {path} has {names}", code=Code.LOG_GONE, hint=hint)
    return found[0]


class LogFollower(LogReader):
    """Iterates over the events of growing logs from `start` on (None: the first in the index),
    until `logs.stopped()`."""

    def __init__(
        self,
        logs: IndexedLogs,
        *,
        start: str | None = None,
        verify_checksum: bool = True,
        start_position: int | None = None,
    ) -> None:
        super().__init__(
            [start or logs.index_file],
            verify_checksum=verify_checksum,
            start_position=start_position,
        )
        self.logs = logs
        self._start = start

    def _files(self) -> Iterator[Path]:
        logs, path = self.logs, None if self._start is None else Path(self._start)
        while path is None and not logs and not logs.stopped():
            time.sleep(POLL_SECONDS)
        if path is None and logs:
            path = Path(logs[0])
        while path is not None:
            yield path
            path = None if logs.stopped() else logs.after(path)

    def _pieces(self, number: int, path: Path) -> Iterator[tuple[bytes, int]]:
        logs, end = self.logs, len(MAGIC)
        with path.open("rb") as file:
            while not logs.stopped():
                # looked at first: behind it nothing is added to this file
                following = logs.after(path)
                whole = _whole_events(file.fileno(), end)
                if whole > end:
                    logs.waiting, end = False, whole
                    yield open_log(path, whole), whole
                elif following is not None:
                    size = os.fstat(file.fileno()).st_size
                    if size > end:
                        # half an event that nobody will finish: the reader says so
                        yield (open_log(path, size), size)
                    return
                else:
                    if not logs.waiting:
                        logs.on_idle()
                        logs.waiting = True
                    time.sleep(POLL_SECONDS)


def _whole_events(descriptor: int, position: int) -> int:
    """Offset behind the last whole event within the next piece."""
    size = os.fstat(descriptor).st_size
    limit = position + PIECE_BYTES
    while position + HEADER_LENGTH <= size and position < limit:
        length = int.from_bytes(os.pread(descriptor, 4, position + 9), "little")
        if position + length > size:
            break
        # an impossible length is the reader's to complain of
        position += max(length, HEADER_LENGTH)
    return position


def open_reader(
    files: Sequence[str | os.PathLike[str]],
    *,
    verify_checksum: bool,
    start_position: int | None,
    stop_position: int | None,
) -> LogReader:
    """A reader of these files; one that waits for more if they are logs to follow."""
    if isinstance(files, IndexedLogs) and files.follow:
        return LogFollower(files, verify_checksum=verify_checksum, start_position=start_position)
    return LogReader(
        files,
        verify_checksum=verify_checksum,
        start_position=start_position,
        stop_position=stop_position,
    )
