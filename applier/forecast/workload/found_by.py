"""By which values of a non-unique key the changes of a log find their rows, from a sample of their
before images."""

from __future__ import annotations

from dataclasses import dataclass

from applier.binlog.header import Event
from applier.binlog.rows import RowsHead
from applier.binlog.table_map import TableMap
from applier.errors import ReplicationError
from applier.forecast.inventory.key_places import Values
from applier.forecast.workload.sampled_rows import ForEachHead
from applier.forecast.workload.schema import Schema
from applier.tables.images import RowImages


@dataclass(frozen=True, slots=True)
class KeyValues:
    """Of events of one head: their images as the replica stores them, and where the key's columns
    stand in those. `hashes`: each value of an event is looked up once."""

    images: RowImages
    key: str
    places: tuple[int, ...]
    hashes: bool


class FoundBy:
    """Shown events, it keeps for each table and key the values that are looked up: each value of an
    event once where the replica hashes its rows, else once for each row."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.values: dict[tuple[str, str], list[Values]] = {}
        """(Table, key) -> values in the order of the log."""
        self._readers = ForEachHead(self._reader)

    def take(self, event: Event, head: RowsHead, table_map: TableMap) -> None:
        """The rows of an update or a delete."""
        reader = self._readers.of(head, table_map)
        if reader is None:
            return
        rows = reader.images.rows(event, head)
        befores = [pair[0] for pair in rows] if head.kind == "update" else rows
        values: list[Values] = [tuple([row[at] for at in reader.places]) for row in befores]
        looked_up = dict.fromkeys(values) if reader.hashes else values
        self.values.setdefault((table_map.full_name, reader.key), []).extend(looked_up)

    def _reader(self, head: RowsHead, table_map: TableMap) -> KeyValues | None:
        """None where a row is found by a unique key or a scan, or the replica's table is another
        one."""
        definition = self._schema.facts[table_map.full_name].definition
        try:
            images = RowImages(head, table_map, definition)
        except ReplicationError:
            return None
        columns = images.before_columns
        decision = self._schema.decision_of(table_map.full_name, columns)
        if decision is None or decision.key is None or decision.strategy is None:
            return None
        if decision.key.unique:  # whose values but NULL stand in one row
            return None
        places = tuple(columns.index(at) for at in decision.key.columns)
        return KeyValues(images, decision.key.name, places, decision.strategy.hashes)
