"""MariaDB's tables of numbers, which nobody creates: `seq_1_to_10`, `seq_1_to_10_step_3` (the
storage engine SEQUENCE, storage/sequence/sequence.cc)."""

from __future__ import annotations

import re

from applier.tables.engine import MemoryTable
from lookup.table import Column, Key, KeyPart, TableDefinition

_NAME = re.compile(r"seq_([0-9]+)_to_([0-9]+)(?:_step_([1-9][0-9]*))?", re.IGNORECASE)
_KEY = Key("PRIMARY", (KeyPart(0),), unique=True)


def number_table(database: str, name: str) -> MemoryTable | None:
    """The table of this name with its rows; None for another name."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    first, last, step = (int(group or 1) for group in match.groups())
    numbers = range(min(first, last), max(first, last) + 1, step)
    column = Column("seq", "bigint", nullable=False, unsigned=True)
    # Without a key where the numbers go down, so that they are read in that order.
    keys = (_KEY,) if first <= last else ()
    table = MemoryTable(TableDefinition(database, name, (column,), keys))
    table.load((number,) for number in (numbers if first <= last else reversed(numbers)))
    return table
