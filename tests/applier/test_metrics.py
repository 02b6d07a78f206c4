"""OpenMetrics files: both parsers read the same figures, the figures are those of the status, and
no reader meets half a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as prometheus_text

from applier import metrics
from applier.errors import UsageError
from applier.metrics import Gauge
from applier.status.failure import ThreadFailure
from applier.status.view import OFF, ON, ReplicaView, Thread
from checkpoints.info import RelayLogInfo
from tests.captures_support import captures, logs
from tests.cli.test_replay import Run, binlag
from tests.receive.receiving import Offline

__all__ = ["binlag"]
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
ROOT = Path(__file__).parent.parent.parent
LOG, SCHEMA = (
    ROOT / "tests/captures/forecast/binlog.000001",
    ROOT / "tests/captures/forecast/schema.sql",
)
Figures = dict[tuple[str, frozenset[tuple[str, str]]], float]


def figures(text: str) -> Figures:
    """What OpenMetrics' parser reads, after the check that the parser of the older form reads the
    same."""
    found, older = [
        {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in parse(text)
            for sample in family.samples
            if family.type == "gauge" and sample.timestamp is None
        }
        for parse in (open_metrics, prometheus_text)
    ]
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert found == older
    assert len(found) == len(lines) > 0
    assert text.endswith("# EOF\n")
    return found


def of(found: Figures, name: str, **labels: str) -> float | None:
    """The one sample with these labels among its own; None: there is none."""
    values = [
        value
        for (known, own), value in found.items()
        if known == f"binlag_{name}" and labels.items() <= dict(own).items()
    ]
    assert len(values) <= 1
    return values[0] if values else None


def test_a_view() -> None:
    view = ReplicaView(
        version="8.0",
        relay=RelayLogInfo(source_log_name="binlog.000007", source_log_pos=1234),
        receiver=Thread(ON),
        applier=Thread(OFF, failure=ThreadFailure(1032, "row is not there", 1.5e9)),
        source_file="binlog.000011",
        read_position=157,
        retrieved=f"{UUID}:1-100:200",
        executed=f"{UUID}:1-90",
        relay_log_bytes=4096,
        seconds_behind=None,
        delay=0,
    )
    found = figures(metrics.exposition(metrics.of_view(view, 'east "1"\n')).decode())
    label = {"channel": 'east "1"\n', "server": "8.0"}
    assert {
        name: of(found, f"replica_{name}", **label)
        for name in ("received_log_number", "received_position_bytes")
    } == {
        "received_log_number": 11,
        "received_position_bytes": 157,
    }
    assert (
        of(found, "replica_executed_log_number"),
        of(found, "replica_executed_position_bytes"),
    ) == (7, 1234)
    assert (of(found, "replica_retrieved_gtids"), of(found, "replica_executed_gtids")) == (101, 90)
    assert (
        of(found, "replica_running", thread="receiver"),
        of(found, "replica_running", thread="applier"),
    ) == (1, 0)
    assert of(found, "replica_last_error_number", thread="applier") == 1032
    assert of(found, "replica_last_error_timestamp_seconds", thread="applier") == 1.5e9
    assert of(found, "replica_seconds_behind_source") is None, "NULL has no line"
    assert of(found, "replica_last_error_number", thread="receiver") is None
    assert of(found, "replica_delay_seconds") == 0, "0 has one"


def test_the_status_of_a_folder(binlag: Run, tmp_path: Path) -> None:
    capture = next(
        capture for capture in captures() if capture.name == "my_oltp_compressed_rotated"
    )
    Offline(tmp_path / "relay", logs(capture)).receive()
    target = tmp_path / "replica.prom"
    code, out, _ = binlag("status", tmp_path / "relay", "--openmetrics", target)
    assert code == 0
    shown = {
        name: value
        for name, _, value in (line.strip().partition(": ") for line in out.splitlines())
    }
    found = figures(target.read_text())
    assert of(found, "replica_received_position_bytes", channel="relay") == int(
        shown["Read_Source_Log_Pos"]
    )
    assert of(found, "replica_received_log_number") == int(
        shown["Source_Log_File"].rpartition(".")[2]
    )
    assert of(found, "replica_relay_log_bytes") == int(shown["Relay_Log_Space"])
    assert (
        binlag("status", tmp_path / "relay", "--openmetrics", target, "--channel", "east")[0] == 0
    )
    assert of(figures(target.read_text()), "replica_relay_log_bytes", channel="east") is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["relay", "replica.prom"], (
        "no temporary file is left"
    )


def test_a_simulated_replica(binlag: Run, tmp_path: Path) -> None:
    target = tmp_path / "clock.prom"
    assert binlag("clock", "--scenario", "held-open", "--openmetrics", target)[0] == 0
    found = figures(target.read_text())
    assert of(found, "replica_peak_seconds_behind_source", channel="no workers") == 604
    assert of(found, "replica_peak_lag_seconds", channel="no workers") == pytest.approx(
        3.8, abs=0.01
    )
    assert of(found, "replica_work_left_transactions", channel="workers") == 0
    assert (
        binlag("clock", "--scenario", "held-open", "--status-at", "30", "--openmetrics", target)[0]
        == 0
    )
    now = figures(target.read_text())
    assert of(now, "replica_running", channel="workers", thread="applier") == 1
    assert of(now, "replica_lag_seconds", channel="workers") is not None
    assert of(now, "replica_peak_lag_seconds", channel="workers") is None


def test_a_forecast(binlag: Run, tmp_path: Path) -> None:
    target = tmp_path / "forecast.prom"
    arguments = (
        "forecast",
        LOG,
        "--schema",
        SCHEMA,
        "--rows",
        "shop.audit_log=100000000",
        "--rows",
        "*=500000",
    )
    assert binlag(*arguments, "--openmetrics", target)[0] == 0
    found = figures(target.read_text())
    late, cured = (
        of(found, "forecast_peak_lag_seconds", scenario=name)
        for name in ("as it is", "add a primary key")
    )
    assert late is not None and cured is not None
    assert late > 3600 > 1 > cured
    assert of(found, "forecast_catch_up_seconds", scenario="as it is") is None, "it never does"
    assert of(found, "forecast_table_rows_read", table="shop.audit_log") == 25_000_000_250


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "replica.prom"
    metrics.write([Gauge("one", "First.", 1.0)], target)
    before = target.read_bytes()
    assert target.stat().st_mode & 0o044 == 0o044, "the collector is another user"

    def full(self: Path, content: bytes) -> int:
        with self.open("wb") as file:
            file.write(content[:5])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UsageError, match="No space left on device"):
        metrics.write([Gauge("one", "First.", 2.0)], target)
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]


def test_a_name_that_the_collector_does_not_read(binlag: Run, tmp_path: Path) -> None:
    code, _, err = binlag("clock", "--scenario", "gap", "--openmetrics", tmp_path / "clock.txt")
    assert (code, "clock.prom" in err) == (2, True)
    assert list(tmp_path.iterdir()) == []
    assert (
        binlag("clock", "--scenario", "gap", "--openmetrics", tmp_path / "absent" / "clock.prom")[0]
        == 2
    )
