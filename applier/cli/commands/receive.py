"""`binlag receive mysql://...` on the terminal: progress, what happens to the connection, and the
end by a signal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from applier.cli.notes import draws, is_logged, note
from applier.cli.parameters.metrics_options import CHANNEL, OPENMETRICS, channel_of
from applier.cli.parameters.options import Number
from applier.cli.parameters.server_options import server_options
from applier.cli.signals import interruptible
from applier.error_codes import Code
from applier.errors import UsageError
from applier.garbage import no_cycle_collection

if TYPE_CHECKING:
    from applier.mysql.client.url import Endpoint
    from applier.receive.receive_folder import Start
    from applier.receive.received import Received, ReceiveWatch


@click.command(
    name="receive",
    short_help="Receive the log of a live source into relay logs, as a replica does.",
)
@click.argument("source", metavar="mysql://USER@HOST:PORT")
@click.option(
    "--dir",
    "folder",
    required=True,
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Where the relay logs are.",
)
@click.option(
    "--from",
    "position",
    metavar="FILE:POSITION",
    help="Where to begin. [default: the oldest log of the source]",
)
@click.option(
    "--auto-position", is_flag=True, help="Ask for transactions by their GTIDs, not for a position."
)
@click.option(
    "--executed-gtids", metavar="SET", help="What is there already; with --auto-position."
)
@click.option(
    "--server-id",
    type=click.IntRange(1, (1 << 32) - 1),
    metavar="N",
    help="Our own. [default: made of a random UUID]",
)
@click.option(
    "--to-end", is_flag=True, help="End where the source's log ends, instead of waiting for more."
)
@click.option(
    "--heartbeat",
    type=Number(min=0.1, max=3600),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How often the source says that it is alive; twice as long without a word, "
    "and we connect again.",
)
@click.option(
    "--retries",
    type=click.IntRange(min=0),
    default=86400,
    show_default=True,
    metavar="N",
    help="Give up after this many failed connections.",
)
@click.option(
    "--max-relay-log-size",
    type=click.IntRange(4096, 1 << 30),
    default=1 << 30,
    metavar="BYTES",
    help="Begin a new relay log after so many. [default: 1 GiB]",
)
@click.option(
    "--compression-algorithms",
    metavar="LIST",
    help="Of the connection, best first: zlib, zstd (from 8.0.18 on), uncompressed. "
    "[default: uncompressed]",
)
@click.option("--zstd-compression-level", metavar="N", help="From 1 to 22. [default: 3]")
@OPENMETRICS
@CHANNEL
@server_options
def command(
    source: str,
    folder: str,
    password_file: str | None,
    auto_position: bool,
    openmetrics: str | None,
    channel: str | None,
    **given: Any,
) -> int:
    """Receive the binary log of a live SOURCE into relay logs in DIR.

    The relay logs are those that a replica writes; `binlag replay DIR` reads them, with --follow
    while they grow. A lost connection is made again, and a receiver that was ended or killed goes
    on where it was: no event is lost or doubled. The account needs REPLICATION SLAVE. Ctrl-C and
    SIGTERM end it behind the last whole event.
    """
    with no_cycle_collection():
        from applier.mysql.client.url import find_password, parse_url
        from applier.receive.receive import LiveReceiver
        from applier.receive.receive_folder import Folder
        from applier.receive.received import ReceiveOptions

    endpoint = _compressed(parse_url(source, "SOURCE"), **given)
    label = channel_of(Path(folder), openmetrics, channel)
    start, by_gtids = _start(auto_position=auto_position, **given)
    options = ReceiveOptions(
        by_gtids, given["to_end"], given["heartbeat"], retries=given["retries"]
    )
    endpoint = endpoint.with_password(
        find_password(password_file, ask=_ask if sys.stdin.isatty() else None)
    )
    began = time.monotonic()
    with _watch() as watch:
        receiver = LiveReceiver(
            endpoint, Folder(Path(folder), start, auto_position=by_gtids), options, watch
        )
        figures = _figures(receiver.received, openmetrics, label)
        with (
            figures,
            interruptible(receiver.stop),
        ):  # a second signal ends the process at once, which loses nothing either
            received = receiver.run()
    seconds = time.monotonic() - began
    rates = (
        f"{seconds:.1f} s ({received.events / seconds:,.0f} events/s,"
        f" {received.bytes / seconds / 1e6:,.1f} MB/s)"
    )
    click.echo(
        f"received {received.events:,} events, {received.bytes:,} bytes in {rates}; the source's"
        f" log up to {received.position}"
    )
    return 0


def _figures(received: Received, path: str | None, channel: str) -> AbstractContextManager[None]:
    """--openmetrics, while the receiver runs."""
    if path is None:
        return nullcontext()
    from applier import metrics

    return metrics.kept_up(lambda: metrics.of_receiver(received, channel), path)


def _compressed(
    endpoint: Endpoint,
    *,
    compression_algorithms: str | None,
    zstd_compression_level: str | None,
    **_: Any,
) -> Endpoint:
    """The options say more than the address."""
    if compression_algorithms is None and zstd_compression_level is None:
        return endpoint
    from applier.mysql.client.compression import Compression

    words = compression_algorithms or ",".join(endpoint.compression.algorithms)
    chosen = Compression.of(words, zstd_compression_level, "--")
    return endpoint.with_compression(chosen)


def _ask() -> str:
    return str(click.prompt("Password", hide_input=True, default="", show_default=False, err=True))


def _start(
    *,
    position: str | None,
    executed_gtids: str | None,
    auto_position: bool,
    server_id: int | None,
    max_relay_log_size: int,
    **_: Any,
) -> tuple[Start, bool]:
    """What a new folder begins with, and whether GTIDs are asked for."""
    from applier.receive.receive_folder import Start
    from checkpoints.gtid import GtidError, parse_gtid_set
    from checkpoints.position import Position

    if executed_gtids is not None and not auto_position:
        raise UsageError(
            "--executed-gtids: a position is asked for",
            code=Code.OPTION_MISSING,
            hint="add --auto-position",
        )
    if position is not None and auto_position:
        raise UsageError(
            "--from and --auto-position: either a position or GTIDs",
            code=Code.OPTIONS_CLASH,
            hint="leave one of them out",
        )
    place = None
    if position is not None:
        file, _colon, offset = position.rpartition(":")
        if not file or not offset.isdecimal() or int(offset) < 4:
            raise UsageError(
                f"--from: {position!r} is not FILE:POSITION",
                code=Code.OPTION_VALUE,
                hint="as SHOW BINARY LOGS names it: binlog.000003:4",
            )
        place = Position(file, int(offset))
    try:
        gtids = parse_gtid_set(executed_gtids) if executed_gtids else None
    except GtidError as error:
        raise UsageError(f"--executed-gtids: {error}", code=Code.GTID_SET) from None
    return Start(place, gtids, server_id, max_relay_log_size), auto_position


@contextmanager
def _watch() -> Iterator[ReceiveWatch]:
    """A line with events and bytes per second and the position, on a terminal only; what happens to
    the connection always."""
    from applier.receive.received import ReceiveWatch

    if not draws():
        yield ReceiveWatch() if is_logged() else ReceiveWatch(on_note=note)
        return
    from applier.cli.output.progress import text_progress

    with text_progress() as bar:
        task = bar.add_task("connecting", total=None)
        rates = _Rates()

        def draw(received: Received) -> None:
            bar.update(task, description=rates.text(received))

        yield ReceiveWatch(draw, bar.console.print)


class _Rates:
    """Events and bytes of about the last second."""

    def __init__(self) -> None:
        self._since, self._events, self._bytes = time.monotonic(), 0, 0
        self._text = ""

    def text(self, received: Received) -> str:
        seconds = time.monotonic() - self._since
        if seconds >= 1 or not self._text:
            events = (received.events - self._events) / max(seconds, 1)
            size = (received.bytes - self._bytes) / max(seconds, 1)
            self._text = f"{events:,.0f} events/s, {size / 1e6:,.1f} MB/s"
            self._since = time.monotonic()
            self._events = received.events
            self._bytes = received.bytes
        return (
            f"{self._text}  {received.position}  {received.events:,}"
            f" events{', waiting for more' if received.waiting else ''}"
        )
