"""The index of the relay logs: one name per line, replaced as a whole so that a crash leaves the
old one or the new one.

As MYSQL_BIN_LOG does since 5.6: the new index is written beside the old one (.index_crash_safe),
synced and renamed after the old one is deleted; a start that finds the new one alone takes it. A
relay log that is being created, and those about to be deleted, are named in a register (.~rec~)
first; a start deletes what the register names and the index does not.
"""

from __future__ import annotations

from applier.replica.relay.relay_event import KnownRelayLogs
from checkpoints.disk import Disk, plain, read_file


class RelayLogIndex:
    """The relay logs that count, oldest first. Names are as the server writes them,
    "./relay.000001"."""

    def __init__(self, disk: Disk, base: str) -> None:
        self._disk = disk
        self.file = f"{base}.index"
        self._next = f"{self.file}_crash_safe"
        self._register = f"{base}.~rec~"
        self.names: list[str] = []
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
        self.names = (
            []
            if data is None
            else [line for line in data.decode("utf-8", "surrogateescape").split("\n") if line]
        )
        if data is None:
            self._disk.open(self.file, create=True).close()
        registered = read_file(self._disk, self._register)
        if registered is not None:
            self._clean_up(registered.decode("utf-8", "surrogateescape").split("\n")[:-1])

    def register(self, names: list[str]) -> None:
        """Remembers that these files are being created or deleted."""
        self._write(self._register, names)

    def add(self, name: str) -> None:
        """The new relay log counts from here on."""
        self.replace([*self.names, name])
        self._disk.remove(self._register)

    def remove_before(self, name: str) -> list[str]:
        """Takes the older relay logs out of the index, then deletes them. Returns their names."""
        gone = self.names[: self.names.index(name)]
        if gone:
            self.register(gone)
            self.replace(self.names[len(gone) :])
            self._clean_up(gone)
        return gone

    def remove_after(self, name: str) -> list[str]:
        """Takes the newer relay logs out of the index, then deletes them. Returns their names."""
        gone = self.names[self.names.index(name) + 1 :]
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
        self.names = []

    def _clean_up(self, names: list[str]) -> None:
        there = self._disk.names()
        for name in names:
            if name and name not in self.names and plain(name) in there:
                self._disk.remove(name)
        if self._register in there:
            self._disk.remove(self._register)

    def replace(self, names: list[str]) -> None:
        """These are the relay logs that count."""
        self._write(self._next, names)
        self._disk.remove(self.file)
        self._disk.rename(self._next, self.file)
        self.names = names

    def _write(self, file: str, names: list[str]) -> None:
        handle = self._disk.open(file, create=True)
        try:
            handle.write(
                0, "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape")
            )
            handle.fsync()
        finally:
            handle.close()
