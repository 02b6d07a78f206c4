"""What the cost of a rows event depends on, with no row at hand: the shape of a table and the shape
of an event.

Both are frozen and hashable, so that a forecast can ask for the cost of a million events and have
each kind worked out once. A shape only says which kind of key is the best usable one; which that is
of a real table is asked in `lookup.shape`.

How rows are cut into events: `Rows_log_event`/`binlog_prepare_pending_rows_event` (sql/binlog.cc
5.6 to 9.7): a row goes into the pending event unless the event's body and the row together are
longer than binlog_row_event_max_size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lookup.handler import EngineTraits, engine_traits

PRIMARY = "primary"
UNIQUE = "unique"
NULLABLE_UNIQUE = "nullable unique"
OTHER = "other"
NO_KEY = "none"
KEY_KINDS = (PRIMARY, UNIQUE, NULLABLE_UNIQUE, OTHER, NO_KEY)
"""The best key that the before image makes usable. "unique": all parts NOT NULL, and not the
primary key."""

KINDS = ("write", "update", "delete")
IMAGES = ("FULL", "MINIMAL", "NOBLOB")
ORDERS = {"scan": 1.0, "random": 0.5, "reverse": 0.0}
"""Order of an event's rows -> share of pairs of rows whose earlier one stands first in the table.

"scan" is what a statement writes that reads its rows as the replica does: a source with the same
keys, a purge of old rows.
"""

ROW_EVENT_MAX_BYTES = 8192
"""The default of binlog_row_event_max_size."""


@dataclass(frozen=True, slots=True)
class TableShape:
    """A table on the replica, as far as finding rows in it goes.

    `rows_per_value`: rows that share one value of the key (all values alike; rows over index
    cardinality). `null_share`: rows whose key holds a NULL, over all rows; they share one value.
    `identical_rows`: rows that are alike in every column of the before image (1: all rows differ).
    `free_slots`: places of deleted rows in a MyISAM table with rows of `fixed` length. Bytes are
    those of one row image: the whole row, its primary key's columns, its BLOB and TEXT columns.

    Raises ValueError for what no table can be.
    """

    rows: float
    key: str = NO_KEY
    rows_per_value: float = 1.0
    null_share: float = 0.0
    identical_rows: float = 1.0
    engine: str = "InnoDB"
    fixed: bool = False
    free_slots: float = 0.0
    unique_keys: int = 1
    columns: int = 1
    row_bytes: float = 0.0
    key_bytes: float = 0.0
    blob_bytes: float = 0.0

    def __post_init__(self) -> None:
        if self.key not in KEY_KINDS:
            raise ValueError(f"key must be one of {', '.join(KEY_KINDS)}, not {self.key!r}")
        if self.rows < 0 or self.free_slots < 0:
            raise ValueError("a table cannot have less than no rows")
        if self.rows_per_value < 1 or self.identical_rows < 1:
            raise ValueError("rows_per_value and identical_rows count the row itself: at least 1")
        if not 0 <= self.null_share <= 1:
            raise ValueError(f"null_share must be between 0 and 1, not {self.null_share}")

    @property
    def traits(self) -> EngineTraits:
        """What its storage engine does."""
        return engine_traits(self.engine)


@dataclass(frozen=True, slots=True)
class EventShape:
    """One rows event. `missing`: the share of rows that an update or delete does not find; of a
    write's, those already there.

    `first` and `last` say from which part of the table, in scan order, the rows are drawn: 0 and 1
    for anywhere, 0 and 0 for the first rows (a purge of the oldest), 1 and 1 for the last ones.
    `distinct_values`: distinct key values among the event's rows, each with its share of them;
    None: rows are drawn whatever their value. `changed_bytes`: the after image of an update under
    MINIMAL, None for the whole row. `statement_events`: events of its statement, which follow each
    other through the rows of a key value.

    Raises ValueError for what no event can be.
    """

    kind: str
    rows: float = 1.0
    missing: float = 0.0
    distinct_values: float | None = None
    first: float = 0.0
    last: float = 1.0
    order: str = "scan"
    image: str = "FULL"
    changed_bytes: float | None = None
    statement_events: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {self.kind!r}")
        if self.order not in ORDERS:
            raise ValueError(f"order must be one of {', '.join(ORDERS)}, not {self.order!r}")
        if self.image not in IMAGES:
            raise ValueError(f"image must be one of {', '.join(IMAGES)}, not {self.image!r}")
        if self.rows < 1 or not 0 <= self.missing <= 1 or not 0 <= self.first <= self.last <= 1:
            raise ValueError(
                "an event has at least one row; missing, first and last are shares from 0 to 1,"
                " first before last"
            )
        if self.distinct_values is not None and not 1 <= self.distinct_values <= self.rows:
            raise ValueError(
                f"{self.rows} rows cannot have {self.distinct_values} distinct key values"
            )


def row_image_bytes(table: TableShape, event: EventShape) -> float:
    """Bytes that one row takes in the event: one image, or two for an update
    (`mark_columns_per_binlog_row_image`)."""
    whole = table.row_bytes
    if event.kind == "write":
        return whole
    before = whole
    if table.key == PRIMARY and event.image == "MINIMAL":
        before = table.key_bytes
    elif table.key == PRIMARY and event.image == "NOBLOB":
        before = whole - table.blob_bytes
    if event.kind == "delete":
        return before
    return before + (
        event.changed_bytes
        if event.image == "MINIMAL" and event.changed_bytes is not None
        else whole
    )


def event_head_bytes(table: TableShape, kind: str) -> int:
    """Bytes of a version 2 rows event's body before its rows: the fixed part, the column count and
    the bitmaps."""
    return (
        10
        + (1 if table.columns < 251 else 3)
        + (table.columns + 7) // 8 * (2 if kind == "update" else 1)
    )


def most_rows_per_event(
    table: TableShape, event: EventShape, max_bytes: int = ROW_EVENT_MAX_BYTES
) -> float:
    """How many rows of this kind an event takes before the next one is begun. A row that is too
    long has an event alone.

    `max_bytes` is the source's binlog_row_event_max_size. Raises ValueError for a table whose rows
    have no bytes.
    """
    room = max_bytes - event_head_bytes(table, event.kind)
    image = row_image_bytes(table, event)
    if image <= 0:
        raise ValueError("rows_per_event needs the bytes of a row")
    return max(room // image, 1)


def cut(
    table: TableShape, event: EventShape, max_bytes: int = ROW_EVENT_MAX_BYTES
) -> tuple[EventShape, float]:
    """A statement that changes `event.rows` rows: (the shape of one of its events, how many events
    it writes).

    All events count as equally long; the last one is shorter in truth. Raises ValueError for a
    table whose rows have no bytes.
    """
    most = most_rows_per_event(table, event, max_bytes)
    count = max(-(-event.rows // most), 1)
    distinct = event.distinct_values
    rows = event.rows / count
    if distinct is not None:
        distinct = min(max(distinct / count, 1.0), rows)
    return replace(event, rows=max(rows, 1.0), distinct_values=distinct), count
