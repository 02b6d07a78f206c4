"""The index of the relay logs: one name per line, replaced as a whole so that a crash leaves the
old one or the new one.

As MYSQL_BIN_LOG does since 5.6: the new index is written beside the old one (.index_crash_safe),
synced and renamed after the old one is deleted; a start that finds the new one alone takes it. A
relay log that is being created, and those about to be deleted, are named in a register (.~rec~)
first; a start deletes what the register names and the index does not.
"""

from __future__ import annotations

import itertools

from applier.replica.relay.relay_event import KnownRelayLogs
from checkpoints.disk import Disk, plain, read_file


def as_listed(name: str) -> str:
    """The name of a relay log as servers write it; "" stays."""
    return name if not name or "/" in name else f"./{name}"


class RelayLogIndex:
    """The relay logs that count, oldest first. Names are as the server writes them,
    "./relay.000001".

    `normalizes`: a line without "./", or with the line end of another system, names the same file
    (normalize_binlog_name, find_log_pos; 5.7.29 and 9.7.4, not 5.6.24).
    """

    def __init__(self, disk: Disk, base: str, *, normalizes: bool = True) -> None:
        self._disk = disk
        self._normalizes = normalizes
        self.file = f"{base}.index"
        self._next = f"{self.file}_crash_safe"
        self._register = f"{base}.~rec~"
        self.names: list[str] = []
        self.removed = 0
        """How many names went from its beginning."""
        self.newest: str | None = None
        """The relay log that is written, where one was added."""
        self._text = b""
        self.known: KnownRelayLogs | None = None
        """What the readers of these relay logs remember; None: nothing, as the logs of a server
        have no end."""

    def open(self) -> None:
        """Reads the index, after it has put right what a crash left half done.

        The old index is deleted when the new one is on disk as a whole, so a new one beside an old
        one does not count (MYSQL_BIN_LOG::open_index_file). Half a name in the register is no name.
        """
        there = self._disk.names()
        if self._next in there:
            if self.file in there:
                self._disk.remove(self._next)  # it may not be whole
            else:
                self._disk.rename(self._next, self.file)
        data = read_file(self._disk, self.file)
        self._text = data or b""
        self.names, self.newest = self._listed(self._text), None
        if data is None:
            self._disk.open(self.file, create=True).close()
        registered = read_file(self._disk, self._register)
        if registered is not None:
            self._clean_up(registered.decode("utf-8", "surrogateescape").split("\n")[:-1])

    def register(self, names: list[str]) -> None:
        """Remembers that these files are being created or deleted."""
        self._write(self._register, b"".join(map(_line, names)))

    def add(self, name: str) -> None:
        """The new relay log counts from here on, where the lines before it are whole."""
        self._put(self._text + _line(name))
        self.newest = name
        self._disk.remove(self._register)

    def remove_before(self, name: str) -> list[str]:
        """Takes the older relay logs out of the index, then deletes them. Returns their names."""
        gone = self.names[: self.names.index(name)]
        if gone:
            self.register(gone)
            self.replace(self.names[len(gone) :])
            self.removed += len(gone)
            self._clean_up(gone)
        return gone

    def remove_after(self, name: str) -> list[str]:
        """Takes the newer relay logs out of the index, then deletes them. Returns their names."""
        newer = self.names[::-1].index(name)
        gone = self.names[len(self.names) - newer :]
        if gone:
            self.register(gone)
            self.replace(self.names[: -len(gone)])
            self._clean_up(gone)
        return gone

    def clear(self) -> None:
        """RESET REPLICA: all relay logs and the index go."""
        for name in self.names:
            if plain(name) in self._disk.names():
                self._disk.remove(name)
        self._disk.remove(self.file)
        self._text, self.names, self.newest = b"", [], None

    def _clean_up(self, names: list[str]) -> None:
        there = self._disk.names()
        for name in names:
            if name and name not in self.names and plain(name) in there:
                self._disk.remove(name)
        if self._register in there:
            self._disk.remove(self._register)

    def replace(self, names: list[str]) -> None:
        """These are the relay logs that count."""
        self._put(b"".join(map(_line, names)))

    def _listed(self, text: bytes) -> list[str]:
        """Up to the first line that is empty, which is the end for a server."""
        lines = (line.decode("utf-8", "surrogateescape") for line in text.split(b"\n"))
        if self._normalizes:
            lines = (as_listed(line.removesuffix("\r")) for line in lines)
        return list(itertools.takewhile(bool, lines))

    def _put(self, text: bytes) -> None:
        self._write(self._next, text)
        self._disk.remove(self.file)
        self._disk.rename(self._next, self.file)
        self._text, self.names = text, self._listed(text)

    def _write(self, file: str, text: bytes) -> None:
        handle = self._disk.open(file, create=True)
        try:
            handle.write(0, text)
            handle.fsync()
        finally:
            handle.close()


def _line(name: str) -> bytes:
    return f"{name}\n".encode("utf-8", "surrogateescape")
