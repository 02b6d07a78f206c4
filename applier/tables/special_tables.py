"""Tables whose engine keeps rows in a way of its own."""

from __future__ import annotations

from applier.tables.engine import MemoryTable
from lookup.handler import Ref, Row


class SequenceTable(MemoryTable):
    """A sequence of MariaDB: it has one row, and a new one takes its place
    (`ha_sequence::write_row`, sql/ha_sequence.cc 10.11)."""

    def insert(self, row: Row) -> Ref:
        """Puts the row in the place of the one that is there."""
        for ref in self.refs():
            self.delete(ref)
        return super().insert(row)


class BlackholeTable(MemoryTable):
    """A table of the engine BLACKHOLE, which keeps no row (`ha_blackhole::write_row`,
    storage/blackhole/ha_blackhole.cc)."""

    def insert(self, row: Row) -> Ref:
        """Takes the row and forgets it."""
        return None
