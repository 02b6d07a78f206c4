"""Which logs a command reads: files, or all that the index of a folder names; with --follow for as
long as they grow, and with figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from applier.binlog.follow import IndexedLogs
from applier.cli.parameters.log_files import plain_files
from applier.cli.parameters.metrics_options import channel_of
from applier.error_codes import Code
from applier.errors import BinlagError, InputError, UsageError

if TYPE_CHECKING:
    from applier.receive.applier_progress import ApplierProgress

_HINT = "give the folder of a receiver, or its index: binlag replay --follow relay/"


def logs_of(
    files: tuple[str, ...], *, follow: bool = False, stop_position: int | None = None
) -> Sequence[str]:
    """The logs in order, as files that can be mapped. A folder, or an index without its logs,
    stands alone.

    Raises InputError when there is no log yet, UsageError for what does not go together.
    """
    indexes = [file for file in files if Path(file).is_dir() or file.endswith(".index")]
    if indexes and len(files) == 1:
        if follow and stop_position is not None:
            raise UsageError(
                "--stop-position: the last log is not known yet",
                code=Code.OPTIONS_CLASH,
                hint="leave --follow out",
            )
        logs = IndexedLogs(files[0], follow=follow)
        if not follow:
            _check_all_there(logs)
        if not logs:
            raise InputError(
                f"{logs.index_file} names no log yet",
                code=Code.NOTHING_TO_READ,
                hint="is the receiver at work?",
            )
        return logs
    if follow:
        raise UsageError(
            "--follow: files do not say which log comes next", code=Code.OPTIONS_CLASH, hint=_HINT
        )
    if any(Path(file).is_dir() for file in indexes):
        raise UsageError(
            f"{indexes[0]}: a folder stands alone",
            code=Code.OPTIONS_CLASH,
            hint="give files, or one folder",
        )
    return plain_files(files)


def _check_all_there(logs: IndexedLogs) -> None:
    """Before anything is printed of the logs. Raises InputError for an index that is not there, and
    for one that names what is not."""
    index = logs.index_file
    if not index.exists():
        raise InputError(
            "the index of the logs is not there", code=Code.CANNOT_READ, file=str(index)
        )
    gone = next((path for path in map(Path, logs) if not path.exists()), None)
    if gone is not None:
        raise InputError(
            f"{index} names {gone.name}, which is not there",
            code=Code.LOG_GONE,
            file=str(gone),
            hint=f"copy it into {gone.parent}, or name the logs that are there one by one",
        )


@contextmanager
def figures(
    logs: Sequence[str], path: str | None, channel: str | None
) -> Iterator[ApplierProgress | None]:
    """--openmetrics: gives what the replay is to tell of itself; the file at `path` is kept up with
    that. None without a path.

    Raises UsageError when the logs are not followed: a replay that ends has no lag; and for a label
    that nothing would bear.
    """
    label = channel_of(
        Path(logs.index_file).parent if isinstance(logs, IndexedLogs) else Path(), path, channel
    )
    if path is None:
        yield None
        return
    if not (isinstance(logs, IndexedLogs) and logs.follow):
        raise UsageError(
            "--openmetrics: this replay follows no log",
            code=Code.OPTIONS_CLASH,
            hint="add --follow",
        )
    from applier import metrics
    from applier.receive.applier_progress import ApplierProgress

    applying = ApplierProgress(logs)
    with ExitStack() as stack:
        stack.enter_context(metrics.kept_up(lambda: metrics.of_applying(applying, label), path))
        stack.callback(applying.ended)
        try:
            yield applying
        except BinlagError as error:
            applying.fail(error)
            raise
