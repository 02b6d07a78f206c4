"""Time, GTID, database and table filters."""

from __future__ import annotations

from pathlib import Path

import pytest

from applier.binlog.reader import LogReader
from applier.binlog.selection.filters import LogFilter, time_of
from applier.binlog.transactions import with_formats
from applier.errors import UsageError
from tests.binlog.build import (
    MAGIC,
    UUID_TEXT,
    event,
    format_description,
    gtid,
    log,
    mariadb_gtid,
    query,
    rows,
    table_map,
    write,
    xid,
)

BEGIN, DDL = query(b"BEGIN"), query(b"CREATE TABLE t (a INT)")
T = 1_700_000_000


def selected(path: Path, log_filter: LogFilter) -> list[int]:
    return [event.type for event, _ in log_filter.select(with_formats(LogReader([path])))]


def timed(folder: Path, *times: int) -> Path:
    out = MAGIC + format_description()
    for time in times:
        kind, body = query(b"x")
        out += event(kind, body, at=len(out), timestamp=time)
    return write(folder, out)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2023-11-14 22:13:20", T),
        ("2023-11-14T22:13:20", T),
        ("2023-11-14T23:13:20+01:00", T),
        ("2023-11-14T22:13:20Z", T),
        ("@1700000000", T),
        ("2023-11-14", 1_699_920_000),
    ],
)
def test_times(text: str, seconds: int) -> None:
    assert time_of("--start-datetime", text) == seconds


@pytest.mark.parametrize(
    "text", ["", "yesterday", "@x", "2023-13-01", "0001-01-01T00:00:00+23:00x"]
)
def test_no_time(text: str) -> None:
    with pytest.raises(UsageError, match="not a date and time"):
        time_of("--start-datetime", text)


def test_start_time_opens_once_and_stop_time_ends(tmp_path: Path) -> None:
    path = timed(tmp_path, T, T + 5, T + 3, T + 9, T + 1)
    reader = with_formats(LogReader([path]))
    log_filter = LogFilter.of(start_datetime=f"@{T + 4}", stop_datetime=f"@{T + 9}")
    assert [event.timestamp - T for event, _ in log_filter.select(reader)] == [0, 5, 3]


def test_stop_time_before_everything(tmp_path: Path) -> None:
    assert selected(timed(tmp_path, T), LogFilter.of(stop_datetime="@1")) == []


def make(folder: Path) -> Path:
    return write(
        folder,
        log(
            (35, bytes(8)),
            gtid(1),
            BEGIN,
            table_map(),
            rows(30, b""),
            xid(),
            gtid(2),
            DDL,
            gtid(0, anonymous=True),
            DDL,
        ),
    )


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (f"{UUID_TEXT}:1", None, [15, 35, 33, 2, 19, 30, 16]),
        (f"{UUID_TEXT}:2-9", None, [15, 35, 33, 2]),
        (None, f"{UUID_TEXT}:1", [15, 35, 33, 2, 34, 2]),
        (f"{UUID_TEXT}:1-2", f"{UUID_TEXT}:1", [15, 35, 33, 2]),
        (f"{UUID_TEXT}:tag:1", None, [15, 35]),
    ],
)
def test_gtids(
    tmp_path: Path, include: str | None, exclude: str | None, expected: list[int]
) -> None:
    assert (
        selected(make(tmp_path), LogFilter.of(include_gtids=include, exclude_gtids=exclude))
        == expected
    )


def test_gtids_of_mariadb(tmp_path: Path) -> None:
    events = [
        mariadb_gtid(1, 4),
        DDL,
        xid(),
        mariadb_gtid(2, 1),
        DDL,
        mariadb_gtid(3, 1, domain=7),
        DDL,
    ]
    path = write(tmp_path, log(*events, version="10.11.6-MariaDB"))
    assert selected(path, LogFilter.of(include_gtids="0-9-1")) == [15, 162, 2, 16]
    assert selected(path, LogFilter.of(exclude_gtids="0-1-1")) == [15, 162, 2, 162, 2]


def test_a_set_of_the_other_kind_of_server_is_refused(tmp_path: Path) -> None:
    """It would take nothing, or leave nothing out, without a word."""
    with pytest.raises(
        UsageError, match="0-1-100 names transactions of MariaDB, and the log is one of MySQL"
    ):
        selected(make(tmp_path), LogFilter.of(include_gtids="0-1-100"))
    path = write(tmp_path, log(mariadb_gtid(1), DDL, xid(), version="10.11.6-MariaDB"))
    with pytest.raises(
        UsageError, match=":1 names transactions of MySQL, and the log is one of MariaDB"
    ):
        selected(path, LogFilter.of(exclude_gtids=f"{UUID_TEXT}:1"))
    assert selected(path, LogFilter.of(exclude_gtids="")) == [15, 162, 2, 16]


def test_transactions_without_gtid_are_in_no_set(tmp_path: Path) -> None:
    path = write(tmp_path, log(BEGIN, xid(), DDL))
    assert selected(path, LogFilter.of(include_gtids=f"{UUID_TEXT}:1")) == [15]
    assert selected(path, LogFilter.of(exclude_gtids=f"{UUID_TEXT}:1")) == [15, 2, 16, 2]


@pytest.mark.parametrize(
    "text", ["x", "1-2", f"{UUID_TEXT}", f"{UUID_TEXT}:0", f"{UUID_TEXT}:UPPER!"]
)
def test_bad_gtids(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        LogFilter.of(include_gtids=text)
    assert caught.value.exit_code == 2
