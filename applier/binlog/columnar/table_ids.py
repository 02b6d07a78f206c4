"""The hash from table id to table map that the kernels look ids up in."""

from __future__ import annotations

from typing import Any

import numpy as np

from applier.binlog.columnar.control import Id

Integers = np.ndarray[Any, np.dtype[np.int64]]
"""As npt.NDArray[np.int64], without the time to load numpy.typing."""
_FIRST_IDS = 256


class TableIds:
    """`entries` is the kernel's view: it is replaced when it grows."""

    def __init__(self) -> None:
        self.entries: Integers = np.full((_FIRST_IDS, Id.SIZE_OF_ENTRY), -1, np.int64)
        self._count = 0

    def forget(self) -> None:
        """Table ids mean nothing beyond the file (or the server's run) that they stand in."""
        self.entries[:] = -1
        self._count = 0

    def set(self, table_id: int, number: int, body: int, length: int) -> None:
        """From here on the id stands for table map `number`, whose bytes stand at the address
        `body`."""
        if 2 * self._count >= len(self.entries):
            old = self.entries[self.entries[:, Id.SCHEMA] >= 0]
            self.entries = np.full((2 * len(self.entries), Id.SIZE_OF_ENTRY), -1, np.int64)
            for entry in old:
                self.entries[self._slot(int(entry[Id.TABLE_ID]))] = entry
        slot = self._slot(table_id)
        if self.entries[slot, Id.SCHEMA] < 0:
            self._count += 1
        self.entries[slot] = (table_id, number, body, length)

    def _slot(self, table_id: int) -> int:
        mask = len(self.entries) - 1
        slot = table_id & mask
        while self.entries[slot, Id.SCHEMA] >= 0 and self.entries[slot, Id.TABLE_ID] != table_id:
            slot = (slot + 1) & mask
        return slot
