"""The options of `binlag forecast` that say what the replica and its machine are like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from applier.cli.parameters.options import Number, with_options
from applier.errors import UsageError
from applier.forecast.prices.conditions import size, span
from applier.replica.scheduling import MOST_WORKERS
from applier.timing.work_clock import DEPENDENCIES


class Text(click.ParamType[Any]):
    """A text that a function reads."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self.read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Fails with what the function says."""
        if not isinstance(value, str):
            return value
        try:
            return self.read(value)
        except (ValueError, UsageError) as error:
            self.fail(str(error), param, ctx)


LIVE = "[default: the live replica's, else the version's]"
MACHINE = "[default: of the machine that the calibration is of]"
_OPTIONS = (
    click.option(
        "--workers", type=click.IntRange(0, MOST_WORKERS), help=f"replica_parallel_workers. {LIVE}"
    ),
    click.option(
        "--parallel-type",
        type=click.Choice(list(DEPENDENCIES), case_sensitive=False),
        help=f"replica_parallel_type, or MariaDB's slave_parallel_mode. {LIVE}",
    ),
    click.option(
        "--preserve-commit-order/--no-preserve-commit-order",
        "preserve_order",
        default=None,
        help=f"replica_preserve_commit_order. {LIVE}",
    ),
    click.option(
        "--durable/--relaxed",
        default=None,
        help="innodb_flush_log_at_trx_commit and sync_binlog: 1 and 1, or 2 and 0.",
    ),
    click.option(
        "--innodb-flush-log-at-trx-commit",
        type=click.IntRange(0, 2),
        help=f"Whether a commit syncs the redo log. {LIVE}",
    ),
    click.option(
        "--sync-binlog",
        type=click.IntRange(0),
        metavar="N",
        help=f"Commits for a sync of the binary log. {LIVE}",
    ),
    click.option(
        "--log-replica-updates/--no-log-replica-updates",
        default=None,
        help=f"Whether the replica has a binary log of its own. {LIVE}",
    ),
    click.option(
        "--buffer-pool",
        type=Text("size", size),
        metavar="SIZE",
        help=f"innodb_buffer_pool_size: 768M, 8G. {LIVE}",
    ),
    click.option(
        "--redo-log",
        type=Text("size", size),
        metavar="SIZE",
        help=f"All files of InnoDB's redo log of a 5.6 or 5.7 together: 96M, 2G. {LIVE}",
    ),
    click.option(
        "--table-open-cache",
        type=click.IntRange(1),
        metavar="N",
        help=f"Tables that are kept open. {LIVE}",
    ),
    click.option(
        "--table-open-cache-instances",
        type=click.IntRange(1, 64),
        metavar="N",
        help=f"Parts of that cache, of which a worker uses one. {LIVE}",
    ),
    click.option(
        "--cores", type=click.IntRange(1), metavar="N", help=f"Of the replica's machine. {MACHINE}"
    ),
    click.option(
        "--read-latency",
        type=Text("time", span),
        metavar="TIME",
        help=f"A read of a page from its disk: 500us, 0.5ms. {MACHINE}",
    ),
    click.option(
        "--sync-latency",
        type=Text("time", span),
        metavar="TIME",
        help=f"A sync of a log on its disk, as at a commit: 500us, 2ms. {MACHINE}",
    ),
    click.option(
        "--iops",
        type=Number(0, min_open=True),
        metavar="N",
        help="Reads that its disk does in a second. [default: no limit]",
    ),
)


def replica_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options; their names are those of `conditions.KINDS`."""
    return with_options(_OPTIONS, command)
