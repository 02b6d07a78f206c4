"""Time zones of a session: what 5.7.29, 9.7.4 and MariaDB 10.11.18 said with their mysql.time_zone
tables filled."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from applier.binlog.time_zone import from_utc, time_zone, to_utc
from applier.errors import ReplicationError

UNIX_TIMESTAMPS = [
    ("Europe/Berlin", "2024-03-31 01:59:59", 1711846799.0),
    ("Europe/Berlin", "2024-03-31 02:00:00", 1711846800.0),
    ("Europe/Berlin", "2024-03-31 02:30:15.5", 1711846800.5),
    ("Europe/Berlin", "2024-03-31 03:00:00", 1711846800.0),
    ("Europe/Berlin", "2024-10-27 02:30:00", 1729989000.0),
    ("Europe/Berlin", "2024-10-27 03:00:00", 1729994400.0),
    ("America/New_York", "2024-03-10 02:30:00", 1710054000.0),
    ("America/New_York", "2024-11-03 01:30:00", 1730611800.0),
    ("Australia/Lord_Howe", "2024-10-06 02:15:00", 1728142200.0),
    ("Australia/Lord_Howe", "2024-04-07 01:45:00", 1712414700.0),
    ("+05:30", "2024-01-01 05:30:00", 1704067200.0),
    ("-03:00", "2024-01-01 00:00:00", 1704078000.0),
]


@pytest.mark.parametrize(("zone", "local", "seconds"), UNIX_TIMESTAMPS)
def test_a_local_time_is_the_moment_that_servers_say(zone: str, local: str, seconds: float) -> None:
    assert to_utc(datetime.fromisoformat(local), time_zone(zone)).timestamp() == seconds


def test_the_second_of_two_equal_times_comes_back_as_itself() -> None:
    zone = time_zone("Europe/Berlin")
    moment = datetime(2024, 10, 27, 1, 30, tzinfo=UTC)
    assert str(from_utc(moment, zone)) == "2024-10-27 02:30:00"
    assert to_utc(from_utc(moment, zone), zone) == moment


def test_system_is_utc() -> None:
    assert time_zone("SYSTEM") is UTC


@pytest.mark.parametrize("name", ["Middle/Nowhere", "../etc/passwd", "", "+1"])
def test_a_zone_that_is_not_known_is_the_servers_error(name: str) -> None:
    with pytest.raises(ReplicationError) as caught:
        time_zone(name)
    assert caught.value.number == 1298
