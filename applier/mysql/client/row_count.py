"""How many rows were written, changed and deleted: the target counts them itself, in its session
status."""

from __future__ import annotations

from collections.abc import Sequence

from applier.mysql.client.pipeline import Pipeline

_STATUS = (
    "SHOW SESSION STATUS WHERE Variable_name IN (_latin1'Handler_write', _latin1'Handler_update',"
    " _latin1'Handler_delete')"
)


class RowCount:
    """Counts from its creation on. What the counting itself costs, and the position row of each
    commit, are left out."""

    def __init__(self, pipelines: Sequence[Pipeline]) -> None:
        self._pipelines = pipelines
        first = self._read()
        self._before = self._read()
        self._own = self._before - first
        self._left_out = 0

    def rows(self, own: int) -> int:
        """Rows up to now without `own`, those of the replay's own tables. Waits for what is under
        way."""
        now = self._read()
        self._left_out += self._own
        return max(0, now - self._before - self._left_out - own)

    def leave_out_since(self, rows: int, own: int) -> None:
        """Takes back what was counted since `rows`: the server's own tables, which a DDL statement
        changes."""
        self._left_out += self.rows(own) - rows

    def _read(self) -> int:
        return sum(
            int(value or 0) for pipeline in self._pipelines for _, value in pipeline.query(_STATUS)
        )
