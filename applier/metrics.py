"""Figures of an emulated replica in the OpenMetrics text form, for the textfile collector of
Prometheus' node exporter.

Only gauges, without time stamps: such a file is valid OpenMetrics, and also what the collector
reads, the older Prometheus text form. What is unknown (the server's NULL) has no line. A file is
replaced by a rename, so nobody reads half of one; it ends in .prom, and the temporary one beside it
does not. Needs prometheus_client (`binlag[metrics]`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from applier.error_codes import Code
from applier.errors import UsageError
from applier.logs import logger
from applier.status.view import OFF, ON, ReplicaView, Thread
from applier.timing.seconds_behind import seconds_behind
from applier.timing.simulation import LagSample
from applier.whole_file import write_whole
from checkpoints.gtid import GtidError, GtidSet, parse_gtid_set

if TYPE_CHECKING:
    from applier.receive.applier_progress import ApplierProgress
    from applier.receive.received import Received

_LOG = logger("metrics")
PREFIX = "binlag"
SUFFIX = ".prom"


@dataclass(frozen=True, slots=True)
class Gauge:
    """One figure: `name` without the prefix, its unit last; `labels` of this sample; None as value
    is unknown."""

    name: str
    text: str
    value: float | None
    labels: tuple[tuple[str, str], ...] = ()


def check_name(path: str | os.PathLike[str]) -> Path:
    """The file's path. Raises UsageError for a name that the collector does not read."""
    target = Path(path)
    if target.suffix != SUFFIX:
        raise UsageError(
            f"--openmetrics: {target.name} does not end in {SUFFIX}",
            code=Code.OPTION_VALUE,
            hint=f"the collector reads *{SUFFIX} only: {target.stem}{SUFFIX}",
        )
    return target


def write(gauges: Iterable[Gauge], path: str | os.PathLike[str]) -> None:
    """Writes a file in one step. Raises UsageError where that is not possible or where the
    collector would not read a file of that name."""
    target = check_name(path)
    try:
        write_whole(target, exposition(gauges))
    except OSError as error:
        raise UsageError(
            f"--openmetrics: cannot write {target}: {error.strerror}", code=Code.CANNOT_WRITE
        ) from None


@contextmanager
def kept_up(
    gauges: Callable[[], Iterable[Gauge]], path: str | os.PathLike[str], every_seconds: float = 1.0
) -> Iterator[None]:
    """Writes a file now, again and again while the block lasts, and at its end.

    A thread writes, so that a replica that hangs shows in figures that are fresh. Raises UsageError
    as `write` does at first; later, when a disk is full for a while, a record in the log says so
    and the next time is tried.
    """
    write(gauges(), path)
    over = threading.Event()

    def rewrite() -> None:
        try:
            write(gauges(), path)
        except UsageError as error:
            _LOG.warning("%s", error.message, extra={"code": error.code, "file": os.fspath(path)})

    def run() -> None:
        while not over.wait(every_seconds):
            rewrite()

    thread = threading.Thread(target=run, name="openmetrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        rewrite()


def exposition(gauges: Iterable[Gauge]) -> bytes:
    """The text of a file."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.openmetrics.exposition import generate_latest

    families: dict[str, GaugeMetricFamily] = {}
    for gauge in gauges:
        if gauge.value is None:
            continue
        name = f"{PREFIX}_{gauge.name}"
        family = families.get(name)
        if family is None:
            family = families[name] = GaugeMetricFamily(
                name, gauge.text, labels=[label for label, _ in gauge.labels]
            )
        family.add_metric([value for _, value in gauge.labels], gauge.value)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(list(families.values())))
    content: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return content


class _Families:
    """A collector of what is there already."""

    def __init__(self, families: list[Any]) -> None:
        self._families = families

    def collect(self) -> list[Any]:
        return self._families


# a replica


def of_view(view: ReplicaView, channel: str) -> Iterator[Gauge]:
    """What SHOW REPLICA STATUS says of one channel, as numbers; the end of a log's name is its
    number."""
    labels = (("channel", channel), ("server", view.version))

    def one(name: str, text: str, value: float | None) -> Gauge:
        return Gauge(f"replica_{name}", text, value, labels)

    source, relay = view.source, view.relay
    yield one(
        "seconds_behind_source",
        "Seconds_Behind_Source as the server would say it.",
        view.seconds_behind,
    )
    yield one("delay_seconds", "SOURCE_DELAY.", view.delay)
    places = {
        "received": (
            view.source_file or _of(source, "source_log_name"),
            _first(view.read_position, _of(source, "source_log_pos")),
        ),
        "executed": (
            view.executed_file or _of(relay, "source_log_name"),
            _first(view.executed_position, _of(relay, "source_log_pos")),
        ),
    }
    for what, (file, position) in places.items():
        yield one(
            f"{what}_log_number",
            f"Number of the source's log up to which was {what}.",
            _number(file),
        )
        yield one(
            f"{what}_position_bytes",
            f"Position in the source's log up to which was {what}.",
            position if file else None,
        )
    yield one("relay_log_bytes", "Size of all relay logs.", view.relay_log_bytes)
    yield one("retrieved_gtids", "Transactions in Retrieved_Gtid_Set.", _count(view.retrieved))
    yield one("executed_gtids", "Transactions in Executed_Gtid_Set.", _count(view.executed))
    yield one("workers", "Workers of the applier.", len(view.workers))
    for name, thread in (("receiver", view.receiver), ("applier", view.applier)):
        yield from _of_thread(thread, name, labels)


def _of_thread(thread: Thread, name: str, labels: tuple[tuple[str, str], ...]) -> Iterator[Gauge]:
    labels = (*labels, ("thread", name))
    running = None if thread.state is None else float(thread.state == ON)
    yield Gauge("replica_running", "1 while the thread runs, otherwise 0.", running, labels)
    number, time = (
        (None, None) if thread.failure is None else (thread.failure.number, thread.failure.time)
    )
    yield Gauge(
        "replica_last_error_number",
        "Number of the thread's last error, 0 for none.",
        number,
        labels,
    )
    yield Gauge(
        "replica_last_error_timestamp_seconds",
        "When that was, in seconds since 1970.",
        time,
        labels,
    )


# while it runs


def of_receiver(received: Received, channel: str) -> Iterator[Gauge]:
    """A live receiver: how far it is and how its connection does."""
    labels = (("channel", channel),)
    file, offset = received.position.file, received.position.offset
    for name, text, value in (
        (
            "received_log_number",
            "Number of the source's log up to which was received.",
            _number(file),
        ),
        (
            "received_position_bytes",
            "Position in the source's log up to which was received.",
            offset if file else None,
        ),
        ("received_events", "Events received since the receiver began.", received.events),
        ("received_event_bytes", "Their bytes in the source's log.", received.bytes),
        ("heartbeats", "Heartbeats that were received.", received.heartbeats),
        (
            "connections",
            (
                "Connections made to the source since the receiver began; one more for each that"
                " was lost."
            ),
            received.connections,
        ),
    ):
        yield Gauge(f"replica_{name}", text, value, labels)
    yield from _of_thread(
        Thread(ON if received.connected else OFF, failure=received.failure), "receiver", labels
    )


def of_applying(applying: ApplierProgress, channel: str) -> Iterator[Gauge]:
    """A replay that follows relay logs. Its clock is taken for the source's; at the end of the
    relay logs it is behind by nothing."""
    labels = (("channel", channel),)
    behind = seconds_behind(
        time.time(),
        applying.timestamp,
        0,
        applier_running=applying.running,
        connected=True,
        same_position=applying.idle,
    )
    for name, text, value in (
        ("seconds_behind_source", "Seconds_Behind_Source as the server would say it.", behind),
        (
            "relay_log_number",
            "Number of the relay log up to which was applied.",
            _number(applying.file),
        ),
        (
            "relay_log_position_bytes",
            "Position in the relay log up to which was applied.",
            applying.position if applying.file else None,
        ),
        (
            "applied_transactions",
            "Transactions applied since the replay began.",
            applying.transactions,
        ),
    ):
        yield Gauge(f"replica_{name}", text, value, labels)
    yield from _of_thread(
        Thread(ON if applying.running else OFF, failure=applying.failure), "applier", labels
    )


def of_moment(moment: LagSample, channel: str, server: str) -> Iterator[Gauge]:
    """A sample of a simulated replica: how late it says that it is, and how late it is."""
    labels = (("channel", channel), ("server", server))
    work = moment.work
    for name, text, value in (
        (
            "seconds_behind_source",
            "Seconds_Behind_Source as the server would say it.",
            moment.seconds_behind,
        ),
        (
            "lag_seconds",
            (
                "True lag: age of the oldest transaction that is committed on the source and not on"
                " the replica."
            ),
            moment.true_lag,
        ),
        ("work_left_transactions", "Transactions that are not yet executed.", work.transactions),
        ("work_left_bytes", "Their size in the log.", work.bytes),
        (
            "work_left_seconds",
            "Until they are executed, if nothing more came; unknown when that is never.",
            work.seconds,
        ),
        (
            "timestamp_seconds",
            "The moment of the simulation that the figures are of, in seconds since 1970.",
            moment.time,
        ),
    ):
        yield Gauge(f"replica_{name}", text, value, labels)


def of_moments(
    moments: Mapping[str, list[LagSample]], servers: Mapping[str, str]
) -> Iterator[Gauge]:
    """The last sample of each simulated replica, and the largest of all; `servers` has their
    versions."""
    for channel, samples in moments.items():
        labels = (("channel", channel), ("server", servers[channel]))
        yield from of_moment(samples[-1], channel, servers[channel])
        behind = max(
            (moment.seconds_behind for moment in samples if moment.seconds_behind is not None),
            default=None,
        )
        lag = max(
            (moment.true_lag for moment in samples if moment.true_lag is not None), default=None
        )
        yield Gauge(
            "replica_peak_seconds_behind_source",
            "The largest Seconds_Behind_Source of all samples.",
            behind,
            labels,
        )
        yield Gauge("replica_peak_lag_seconds", "The largest true lag of all samples.", lag, labels)


# a forecast


def of_forecast(summary: Mapping[str, Any]) -> Iterator[Gauge]:
    """Of `applier.forecast.answers.summary.summarize`: each scenario, and each table of the replica
    as it is."""
    server = ("server", summary["server"])
    for scenario in (summary["replica"], summary["without_lookup"], *summary["what_if"]):
        labels = (server, ("scenario", scenario["name"]))
        for name, text, value in (
            ("peak_lag_seconds", "Largest lag of the forecast.", scenario["peak_lag_seconds"]),
            ("end_lag_seconds", "Lag when the log ends.", scenario["end_lag_seconds"]),
            ("catch_up_seconds",
                "From the end of the log until it has caught up; no line for never.",
                scenario["catch_up_seconds"]),
            ("apply_seconds", "Time that the workers apply.", scenario["apply_seconds"]),
            ("lookup_seconds", "The part of it in which rows are found.",
                scenario["lookup_seconds"]),
            ("utilisation_ratio", "Applying by the log's duration; over 1 the lag grows.",
                scenario["utilisation"]),
        ):  # fmt: skip
            yield Gauge(f"forecast_{name}", text, None if isinstance(value, str) else value, labels)
    if summary["now"] is not None:
        yield from of_now(summary["now"], (server,))
    for table in summary["tables"]:
        labels = (server, ("table", table["table"]))
        yield Gauge(
            "forecast_table_apply_seconds",
            "Time that the table's events are applied.",
            table["seconds"],
            labels,
        )
        yield Gauge(
            "forecast_table_rows_read",
            "Rows read to find the table's rows.",
            table["rows_read"],
            labels,
        )
        yield Gauge(
            "forecast_table_lag_seconds",
            "Largest lag of a transaction that changes the table.",
            table["max_lag_seconds"],
            labels,
        )


def of_now(now: Mapping[str, Any], labels: tuple[tuple[str, str], ...] = ()) -> Iterator[Gauge]:
    """A replica that is behind already, of `applier.forecast.live.backlog`."""
    transaction = now["transaction"] or {}
    catch_up = now["catch_up_seconds"]
    for name, text, value in (
        (
            "behind_seconds",
            "Age of the oldest transaction that is not executed.",
            now["behind_seconds"],
        ),
        ("left_transactions", "Transactions that are not executed.", now["transactions_left"]),
        ("left_seconds", "Time to apply them.", now["seconds_left"]),
        (
            "capacity_ratio",
            "Seconds of the source's traffic that are applied in a second.",
            now["capacity"],
        ),
        (
            "caught_up_in_seconds",
            "Until the replica has caught up, the source's traffic going on; no line for never.",
            None if isinstance(catch_up, str) else catch_up,
        ),
        (
            "transaction_left_seconds",
            "Until the transaction that the replica is in is done.",
            transaction.get("left_seconds"),
        ),
    ):
        yield Gauge(f"forecast_now_{name}", text, value, labels)


def _of(record: Any, name: str) -> Any:
    return None if record is None else getattr(record, name)


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _number(file: str | None) -> int | None:
    suffix = (file or "").rpartition(".")[2]
    return int(suffix) if suffix.isdecimal() and "." in (file or "") else None


def _count(gtids: str | None) -> int | None:
    """None for MariaDB's, which name the last of each domain only."""
    if gtids is None:
        return None
    try:
        found = parse_gtid_set(gtids) if gtids else GtidSet()
    except GtidError:
        return None
    return found.count() if isinstance(found, GtidSet) else None
