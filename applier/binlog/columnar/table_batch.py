"""What readers of row changes hand out: the rows of one table out of a stretch of a log."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from applier.binlog.table_map import TableMap

Paths = Sequence[str | os.PathLike[str]]
Wants = Callable[[str, str], bool]
"""Whether rows of this database's table are asked for."""


@dataclass(frozen=True)
class TableBatch:
    """Rows of one table out of a stretch of one file, in the order of the log. `version` tells
    table definitions apart.

    `data` has the columns that `layout` describes; `version` is the same for all batches of equal
    schema.
    """

    table: TableMap
    version: int
    file: str
    data: pa.RecordBatch

    @property
    def name(self) -> str:
        """Database and table."""
        return self.table.full_name
