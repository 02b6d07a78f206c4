"""mysql.gtid_slave_pos, where a replica of MariaDB keeps what it has applied: a row for each
transaction, written within it.

The position is, in each domain, the row with the highest sub_id (rpl_load_gtid_slave_state,
sql/rpl_rli.cc of MariaDB 10.11). Older rows mean nothing; they are deleted behind the transactions,
64 at a time (gtid_cleanup_batch_size), and when the server starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from checkpoints.errors import InfoError
from checkpoints.gtid import MariadbGtid, MariadbGtidSet
from checkpoints.table_store import TableStore

TABLE: Final = "gtid_slave_pos"
COLUMNS: Final = ("domain_id", "sub_id", "server_id", "seq_no")
KEY: Final = COLUMNS[:2]
BATCH: Final = 64


def position(rows: Iterable[Mapping[str, Any]]) -> MariadbGtidSet:
    """What the rows of the table say. Raises InfoError for a row without one of its columns."""
    return MariadbGtidSet(_gtid(row) for row in _newest(rows))


def _newest(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    found: dict[int, Mapping[str, Any]] = {}
    for row in rows:
        wrong = next((name for name in COLUMNS if not isinstance(row.get(name), int)), None)
        if wrong is not None:
            raise InfoError(
                f"mysql.{TABLE}: {row.get(wrong)!r} is not a number",
                column=wrong,
                hint="give the rows as SELECT * shows them; nothing was written",
            )
        other = found.get(row["domain_id"])
        if other is None or row["sub_id"] > other["sub_id"]:
            found[row["domain_id"]] = row
    return list(found.values())


def _gtid(row: Mapping[str, Any]) -> MariadbGtid:
    return MariadbGtid(row["domain_id"], row["server_id"], row["seq_no"])


class GtidSlavePos:
    """The table in a store. What is recorded while a transaction is open belongs to it."""

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self._next = 1

    def load(self) -> None:
        """Server start: reads the table and deletes the rows that mean nothing. Raises InfoError
        for rows that are none of it."""
        rows = self._store.rows(TABLE)
        self._next = max((row["sub_id"] for row in _newest(rows)), default=0) + 1
        self._delete_old(rows)

    @property
    def position(self) -> MariadbGtidSet:
        """gtid_slave_pos."""
        return position(self._store.rows(TABLE))

    def next_number(self) -> int:
        """The sub_id of the next transaction of the log. Workers take it before they execute."""
        self._next += 1
        return self._next - 1

    def record(self, gtid: MariadbGtid, number: int | None = None) -> None:
        """The last transaction of its domain is this one now; `number` is the sub_id that was
        taken for it."""
        number = self.next_number() if number is None else number
        self._store.write(
            TABLE,
            {"domain_id": gtid.domain, "sub_id": number},
            {
                "domain_id": gtid.domain,
                "sub_id": number,
                "server_id": gtid.server_id,
                "seq_no": gtid.sequence,
            },
        )

    def clean_up(self) -> None:
        """Between transactions: old rows go, once there are enough of them."""
        rows = self._store.rows(TABLE)
        if len(rows) > BATCH:
            self._delete_old(rows)

    def _delete_old(self, rows: list[Mapping[str, Any]]) -> None:
        newest = _newest(rows)
        for row in rows:
            if row not in newest:
                self._store.delete(TABLE, {name: row[name] for name in KEY})
