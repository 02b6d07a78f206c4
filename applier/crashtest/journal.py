"""A journal for consumers of one's own: records in a file, each a line of JSON with its checksum.

journal = Journal(disk)
journal.append({"rows": ["a"], "position": 4})
journal.records[-1]["position"]      # after a restart, too
"""

from __future__ import annotations

import json
import zlib
from typing import Any

from checkpoints.disk import Disk


class Journal:
    """The records of a file; a line that is not whole does not count, nor what follows it: it is
    cut off."""

    def __init__(self, disk: Disk, name: str = "journal") -> None:
        self._file = disk.open(name, create=True)
        self.records: list[dict[str, Any]] = []
        self._end = 0
        for line in self._file.read().splitlines(keepends=True):
            checksum, _, text = line.partition(b" ")
            if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(text):
                break
            self.records.append(json.loads(text))
            self._end += len(line)
        self._file.truncate(self._end)

    def append(self, record: dict[str, Any], *, sync: bool = True) -> None:
        """Writes a record; without `sync` it survives the process, not the machine."""
        text = json.dumps(record).encode() + b"\n"
        line = b"%08x %b" % (zlib.crc32(text), text)
        self._file.write(self._end, line)
        self._end += len(line)
        self.records.append(record)
        if sync:
            self._file.fsync()
