"""A replica that is behind already: what is left, when it will have caught up, what it is at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from applier.cli.commands import forecast as command
from applier.errors import InputError
from applier.forecast.answers.words import headline, now_line, now_lines
from applier.forecast.inventory.facts import facts_of_file
from applier.forecast.live import live_progress
from applier.forecast.live.progress import Executed, ReplicaProgress, Underway
from applier.forecast.plan import ForecastPlan, run
from applier.metrics import of_now
from applier.mysql.client.url import parse_url
from checkpoints.gtid import GtidSet
from tests.forecast.logs import DELETE, UPDATE, calibration, file, schema, transaction

START = 1_700_000_000.0


def progress(position: int = 0, executed: str = "", **given: Any) -> ReplicaProgress:
    """100 s after the log's first transaction, on the log that `log` writes."""
    known = {"time": START + 100, "received": ("binlog.000001", 0), "behind": 77.0}
    return ReplicaProgress(
        source=("binlog.000001", position),
        relay=("relay.000002", 0),
        executed=GtidSet(executed),
        **(known | given),
    )


def log(folder: Path, count: int = 10) -> str:
    """A row in a second, each of which takes half a second to find."""
    return file(
        folder, *(transaction(n, b"plain", UPDATE, n, seconds=n) for n in range(1, count + 1))
    )


def forecast(
    folder: Path, at: ReplicaProgress | None, path: str = "", **given: Any
) -> dict[str, Any]:
    facts, files = facts_of_file(schema(folder)), [path or log(folder)]
    counts = ["d.plain=999"]
    plan = ForecastPlan(
        files, facts=facts, row_counts=counts, calibration=calibration(), progress=at, **given
    )
    return run(plan).summary()


def positions(folder: Path) -> Sequence[int]:
    facts = facts_of_file(schema(folder))
    sample = run(ForecastPlan([log(folder)], facts=facts, calibration=calibration())).sample
    return [load.end for load in sample.strata[0].loads]


def test_what_is_left_by_position(tmp_path: Path) -> None:
    ends = positions(tmp_path)
    found = forecast(tmp_path, progress(ends[3]))
    now, each = found["now"], found["replica"]["apply_seconds"] / 10
    assert (now["transactions_left"], found["transactions"]) == (6, 10)
    assert each == pytest.approx(0.5, rel=0.01)
    assert now["seconds_left"] == pytest.approx(6 * each)
    assert now["behind_seconds"] == pytest.approx(100 - 5)
    assert now["seconds_behind_source"] == 77
    load = 10 * each / 9
    assert now["capacity"] == pytest.approx(found["replica"]["capacity"])
    assert now["capacity"] == pytest.approx(1 / load)
    assert now["catch_up_seconds"] == pytest.approx(6 * each / (1 - load))
    assert now["caught_up_at"] == pytest.approx(START + 100 + now["catch_up_seconds"])
    assert now["transaction"]["pos"] == ends[3]
    assert now["transaction"]["left_seconds"] == pytest.approx(each)


def test_the_pace_is_what_it_applied_between_two_looks(tmp_path: Path) -> None:
    path = log(tmp_path, 100)
    facts = facts_of_file(schema(tmp_path))
    loads = run(ForecastPlan([path], facts=facts, calibration=calibration())).sample.strata[0].loads
    ends = [load.end for load in loads]
    plain = forecast(tmp_path, progress(ends[49], time=START + 200), path)["now"]
    assert plain["pace"] is None
    earlier = [progress(ends[19], time=START + 170)]
    now = forecast(tmp_path, progress(ends[49], time=START + 200, earlier=earlier), path)["now"]
    assert now["pace"] == pytest.approx(2.0, rel=0.01)  # 30 of half a second each took 30 s
    assert "Its pace, measured just now: 0.5 of what the prices say." in now_lines(now)[0]
    assert now["seconds_left"] == pytest.approx(2 * plain["seconds_left"], rel=0.01)
    assert now["capacity"] == pytest.approx(plain["capacity"] / 2, rel=0.01)


def test_the_range_is_that_of_the_pace_between_looks(tmp_path: Path) -> None:
    """A second for each of 20 transactions; then half of one for 20, and three that are too few to
    count by themselves in ten."""
    path = log(tmp_path, 100)
    facts = facts_of_file(schema(tmp_path))
    loads = run(ForecastPlan([path], facts=facts, calibration=calibration())).sample.strata[0].loads
    looks = [
        progress(loads[at].end, time=START + time)
        for at, time in ((4, 150), (24, 170), (34, 175), (44, 180), (47, 190))
    ]
    now = forecast(tmp_path, replace(looks[-1], earlier=looks[:-1]), path)["now"]
    plain = forecast(tmp_path, looks[-1], path)["now"]
    seconds, load, fastest = plain["seconds_left"], 1 / plain["capacity"], 20 / (23 * 0.5)
    assert now["pace"] == pytest.approx(40 / (43 * 0.5), rel=0.01)
    assert now["catch_up_low_seconds"] == pytest.approx(
        seconds * fastest / (1 - load * fastest), rel=0.1
    )
    assert now["catch_up_high_seconds"] == "never"  # a second each is more than the source's
    assert " to never), at" in now_lines(now)[0]
    assert plain["catch_up_low_seconds"] < plain["catch_up_seconds"], "the prices' margin"


@pytest.mark.parametrize(
    ("behind", "looks", "pause"),
    [
        ([60.0, 59.0, 58.0, 57.0, 56.0, 55.0], 6, 2.4),
        ([60.0, 54.0, 48.0], 3, 2.4),  # a fifth is gone
        ([5.0, 5.0, 5.0, 5.0, 5.0, 5.0], 6, 0.4),
        ([3600.0, 3590.0, 3580.0, 3570.0, 3560.0, 3550.0], 6, 4.0),
        ([0.0], 1, None),
    ],
)
def test_how_often_it_looks_at_a_replica(
    behind: list[float], looks: int, pause: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, slept = [progress(behind=one) for one in behind], list[float]()
    monkeypatch.setattr(live_progress, "read_progress", lambda *_: found.pop(0))
    monkeypatch.setattr(command.time, "sleep", slept.append)
    at = command._progress_of(parse_url("mysql://u@127.0.0.1", "--replica"), ["binlog.000001"])
    assert at is not None
    assert (at.behind, len(at.earlier) + 1, found) == (behind[-1], looks, [])
    assert slept == pytest.approx([pause] * (looks - 1))


@pytest.mark.parametrize(
    "before",
    [
        {"position_of": 39},  # too few
        # the next one was not there yet: it may have idled
        {"position_of": 19, "time": START + 49},
        {"position_of": 19, "relay": ("relay.000001", 0)},
    ],
)
def test_a_pace_that_says_little_does_not_count(tmp_path: Path, before: dict[str, Any]) -> None:
    path = log(tmp_path, 100)
    facts = facts_of_file(schema(tmp_path))
    loads = run(ForecastPlan([path], facts=facts, calibration=calibration())).sample.strata[0].loads
    place = loads[before.pop("position_of")].end
    earlier = replace(progress(place, time=START + 170), **before)
    at = progress(loads[49].end, time=START + 200, earlier=[earlier])
    assert forecast(tmp_path, at, path)["now"]["pace"] is None


@pytest.mark.parametrize("place", [("relay.000002", 0), ("relay.000009", 4)])
def test_by_relay_log(tmp_path: Path, place: tuple[str, int]) -> None:
    """The same bytes as a relay log: the source's names and positions do not count."""
    ends = positions(tmp_path)
    (tmp_path / place[0]).write_bytes((tmp_path / "binlog.000001").read_bytes())
    at = replace(progress(ends[7]), source=("other.000001", 4), relay=(place[0], ends[7]))
    found = forecast(tmp_path, at, str(tmp_path / place[0]))
    assert found["now"]["transactions_left"] == 2


def test_by_gtid(tmp_path: Path) -> None:
    """Workers may be ahead of the position; those that the set holds are executed."""
    path = log(tmp_path)
    facts = facts_of_file(schema(tmp_path))
    loads = run(ForecastPlan([path], facts=facts, calibration=calibration())).sample.strata[0].loads
    gtids = [load.gtid for load in loads]
    assert all(gtids)
    executed = ",".join(str(gtids[at]) for at in (0, 1, 2, 4, 9))
    at = progress(loads[1].end, executed)
    assert [number for number, load in enumerate(loads) if not Executed(at, [path])(load)] == [
        3,
        5,
        6,
        7,
        8,
    ]
    assert forecast(tmp_path, at)["now"]["transactions_left"] == 5


def test_nothing_left(tmp_path: Path) -> None:
    found = forecast(tmp_path, progress(positions(tmp_path)[-1]))
    now = found["now"]
    assert (now["transactions_left"], now["catch_up_seconds"], now["behind_seconds"]) == (0, 0, 0)
    assert now["capacity"] == pytest.approx(9 / 5, rel=0.01)
    assert now_lines(now)[0].startswith(
        "Now: the replica has applied all of the log. Capacity: 1.8 s of"
    )
    assert found["notes"].keys() == {*found["notes"]} - {"the log holds no complete transaction"}


@pytest.mark.parametrize(
    ("received", "lacks"),
    [(("binlog.000001", 100), 0), (("binlog.000001", 1 << 30), 1), (("binlog.000002", 4), 1)],
)
def test_logs_that_end_before_what_was_received(
    tmp_path: Path, received: tuple[str, int], lacks: int
) -> None:
    notes = forecast(tmp_path, progress(0, received=received))["notes"]
    assert sum(text.startswith("the replica has received more, up to") for text in notes) == lacks


def test_a_stopped_replica_never_catches_up(tmp_path: Path) -> None:
    now = forecast(tmp_path, progress(0, stopped="it stopped with error 1032"))["now"]
    assert (now["catch_up_seconds"], now["caught_up_at"], now["transaction"]) == (
        "never",
        None,
        None,
    )
    assert "it stopped with error 1032." in now_lines(now)[0]
    assert "10 transactions left" in now_line(now) and "error 1032" in now_line(now)


def test_more_traffic_than_the_replica_takes(tmp_path: Path) -> None:
    path = file(
        tmp_path, *(transaction(n, b"plain", UPDATE, n, seconds=n * 0.1) for n in range(1, 9))
    )
    now = forecast(tmp_path, progress(0), path)["now"]
    assert now["catch_up_seconds"] == "never"
    assert now["capacity"] < 1
    assert "never catches up" in now_lines(now)[0]


def test_the_transaction_under_way(tmp_path: Path) -> None:
    """Forecast to take 50 s; 25 of its 100 rows are done after 30 s: 90 s are left, not 20."""
    path = file(tmp_path, transaction(1, b"plain", DELETE, *range(100), seconds=1, events=100))
    plain = forecast(tmp_path, progress(0), path)["now"]
    assert plain["transaction"]["elapsed_seconds"] is None
    seconds = plain["seconds_left"]
    at = progress(0, under_way=[Underway("ANONYMOUS", 30.0, 25.0)])
    now = forecast(tmp_path, at, path)["now"]
    assert now["transaction"]["left_seconds"] == now["seconds_left"] == pytest.approx(90)
    assert "100 rows of d.plain, 25 of them done, for 30.0 s; 90.0 s to go." in now_lines(now)[1]
    unknown = progress(0, under_way=[Underway("ANONYMOUS", 10.0, None)])
    assert forecast(tmp_path, unknown, path)["now"]["seconds_left"] == pytest.approx(seconds - 10)
    short = progress(0, under_way=[Underway("ANONYMOUS", 0.5, 1.0)])  # says nothing of its pace yet
    assert forecast(tmp_path, short, path)["now"]["seconds_left"] == pytest.approx(seconds * 0.99)


def test_behind_when_it_begins(tmp_path: Path) -> None:
    """Half of each second is left to catch up: 5 s behind need 5 s and what the traffic of these
    takes."""
    found = forecast(tmp_path, None, log(tmp_path, 100), behind=5.0)
    now, replica = found["now"], found["replica"]
    assert (now["behind_seconds"], now["transactions_left"]) == (5, 100)
    assert now["catch_up_seconds"] == pytest.approx(5, rel=0.2)
    assert replica["peak_lag_seconds"] == pytest.approx(5.5, rel=0.01)
    assert replica["end_lag_seconds"] == pytest.approx(0.5, rel=0.01)
    assert found["curve"]["points"][0][0] == pytest.approx(START + 1 + 5)
    late = forecast(tmp_path, None, log(tmp_path, 100), behind=7200.0)
    long = late["now"]
    assert "catches up in" in now_lines(long)[0]
    assert headline(late) == "The replica will be up to 2.0 h behind.", "when is said once"
    load = 100 * 0.5011 / 99
    assert long["catch_up_seconds"] == pytest.approx(7200 * load / (1 - load), rel=0.02)
    assert forecast(tmp_path, None)["now"] is None


def test_gauges(tmp_path: Path) -> None:
    now = forecast(tmp_path, progress(positions(tmp_path)[3]))["now"]
    gauges = {one.name: one.value for one in of_now(now)}
    assert gauges["forecast_now_left_transactions"] == 6
    assert gauges["forecast_now_capacity_ratio"] == now["capacity"]
    stopped = forecast(tmp_path, progress(0, stopped="it is stopped"))["now"]
    assert {one.name: one.value for one in of_now(stopped)}[
        "forecast_now_caught_up_in_seconds"
    ] is None


def test_a_replica_that_cannot_be_reached() -> None:
    from applier.forecast.live.live_progress import read_progress

    with pytest.raises(InputError, match="BL401"):
        read_progress(
            parse_url("mysql://u@127.0.0.1:1", "--replica").with_password("x"), ["binlog.000001"]
        )
