"""What the readers of Spark's data source read: the files that the options name, and ranges of
them."""

from __future__ import annotations

from pyspark.sql.datasource import InputPartition

from applier.forecast.workload.ranges import DEFAULT_BYTES, FileRange, ranges
from applier.forecast.workload.wanted import wanted_of


class RangePartition(InputPartition):
    """A range of one file."""

    def __init__(self, part: FileRange) -> None:
        super().__init__(part)
        self.part = part


def logs_of(options: dict[str, str]) -> list[str]:
    """The files that the options name, on this machine from the root on: executors have other
    folders. Raises UsageError for no path, InputError for one that leads nowhere."""
    from applier.error_codes import Code
    from applier.errors import UsageError
    from applier.forecast.workload.ranges import expand

    path = options.get("path") or options.get("paths")
    if not path:
        raise UsageError(
            "the data source binlog needs a path",
            code=Code.OPTION_MISSING,
            hint='spark.read.format("binlog").load("/var/lib/mysql/binlog.*")',
        )
    return [from_root(file) for file in expand(path)]


def from_root(file: str) -> str:
    """The path that leads to the same file from any folder."""
    from pathlib import Path

    from applier.remote import address_of

    if address_of(file) is not None:
        return file
    return str(Path(file.removeprefix("file://")).absolute())


def partitions_of(options: dict[str, str]) -> list[RangePartition]:
    """Stretches of the logs that may hold what is wanted, each for one task. Raises UsageError,
    InputError."""
    wanted = wanted_of(options)
    size = int(options.get("range_bytes", DEFAULT_BYTES))
    logs = [path for path in logs_of(options) if wanted.may_hold(path)]
    return [RangePartition(part) for part in ranges(logs, size)]
