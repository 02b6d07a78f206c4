"""The changes of one table as Spark reads them: all that a log holds, or what comes to a folder
that grows.

A stream's offset is a position for each file, always behind a whole transaction; Spark keeps it in
its checkpoint. A range of a file holds the same rows whenever it is read, so each change comes
once, through a restart of the query, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from applier.forecast.spark_ranges import RangePartition, logs_of, partitions_of
from applier.forecast.workload.ranges import DEFAULT_BYTES, FileRange
from applier.forecast.workload.wanted import wanted_of


class _Changes:
    """What both readers have in common. Runs in Python workers; third-party imports stay inside the
    methods."""

    def __init__(self, options: dict[str, str], schema: Any) -> None:
        self.options = options
        self.schema = schema
        self.size = int(options.get("range_bytes", DEFAULT_BYTES))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The changes of one stretch as Arrow batches. Runs once a stretch, in a worker."""
        import pyarrow as pa

        from applier.forecast.workload.table_changes import changes

        assert isinstance(partition, RangePartition)
        image = _arrow(self.schema).field("before").type
        columns = pa.schema([image.field(at) for at in range(image.num_fields)])
        wanted = wanted_of(self.options)
        yield from changes(partition.part, self.options["table"], columns, wanted)


class ChangeReader(_Changes, DataSourceReader):
    """All changes of the logs as they are."""

    def partitions(self) -> Sequence[InputPartition]:
        """Stretches of the logs, each for one task. Runs once, on the driver."""
        return partitions_of(self.options)


class ChangeStreamReader(_Changes, DataSourceStreamReader):
    """The changes of a folder, a prefix or a pattern, as files come and grow. Runs on the driver
    but for `read`."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - pyspark's name
        """Nothing was read."""
        return {}

    def latestOffset(  # noqa: N802 - pyspark's name
        self, start: dict[str, int] | None = None, limit: object = None
    ) -> dict[str, int]:
        """The end of the last whole transaction in each file. Raises InputError for a file that has
        become shorter."""
        from applier.forecast.workload.table_changes import whole_transactions

        self._known = {**getattr(self, "_known", {}), **(start or {})}
        ends = {
            path: whole_transactions(path, self._known.get(path)) for path in logs_of(self.options)
        }
        self._known = {path: end for path, end in ends.items() if end is not None}
        return dict(self._known)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """What lies between two offsets, cut at transactions."""
        found: list[InputPartition] = []
        for path, stop in sorted(end.items()):
            if stop > start.get(path, 0):
                found += [RangePartition(part) for part in self._cut(path, start.get(path), stop)]
        return found

    def _cut(self, path: str, start: int | None, stop: int) -> Iterator[FileRange]:
        from applier.forecast.workload.ranges import ranges

        for part in ranges([path], self.size):
            first, last = max(part.start or 0, start or 0), min(part.stop or stop, stop)
            if first < last:
                yield FileRange(path, first or None, last)

    def commit(self, end: dict[str, int]) -> None:
        """Spark keeps the offset; nothing else has to be kept."""


def _arrow(schema: Any) -> Any:
    """A schema of Spark as one of Arrow."""
    from inspect import signature

    from pyspark.sql.pandas.types import to_arrow_schema

    asks_for_zone = "timezone" in signature(to_arrow_schema).parameters  # not before Spark 4.1
    return to_arrow_schema(schema, timezone="UTC") if asks_for_zone else to_arrow_schema(schema)
