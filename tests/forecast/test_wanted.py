"""What is asked for of a log: exactly that comes, and the rest is left out before it is read or
made into rows. Without Spark."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from applier.binlog.header import EventFlag
from applier.errors import UsageError
from applier.forecast.log_rows import batches
from applier.forecast.workload import loads as load_module
from applier.forecast.workload.load_batch import LoadBatch
from applier.forecast.workload.loads import LoadReader
from applier.forecast.workload.ranges import FileRange, ranges
from applier.forecast.workload.table_changes import changes, column_schema
from applier.forecast.workload.wanted import EVERYTHING, Wanted, wanted_of
from checkpoints.gtid import GtidSet
from tests.binlog.build import UUID_TEXT, log, write
from tests.captures_support import captures, logs
from tests.forecast.logs import DELETE, UPDATE, WRITE, transaction

START = 1_700_000_000.0


def seconds(option: str) -> float:
    return (
        float(option[1:])
        if option.startswith("@")
        else datetime.fromisoformat(option + "+00:00").timestamp()
    )


def matching(rows: list[dict[str, Any]], options: dict[str, str]) -> list[dict[str, Any]]:
    """The rows that the options ask for, of all rows."""
    found = rows
    if "from_time" in options:
        found = [row for row in found if time_of(row) >= seconds(options["from_time"])]
    if "to_time" in options:
        found = [row for row in found if time_of(row) < seconds(options["to_time"])]
    if "gtids" in options:
        found = [
            row
            for row in found
            if row["gtid"] is not None and GtidSet(row["gtid"]).issubset(GtidSet(options["gtids"]))
        ]
    if "tables" in options:
        found = [
            row
            for row in found
            if f"{row['database']}.{row['table']}" in options["tables"].split(", ")
        ]
    return found


def time_of(row: dict[str, Any]) -> float:
    time = row["commit_time"]
    return time.timestamp() if isinstance(time, datetime) else float(time)


def rows_of(path: str, wanted: Wanted = EVERYTHING) -> list[dict[str, Any]]:
    return [row for batch in batches(FileRange(path), wanted=wanted) for row in batch.to_pylist()]


def log_of(folder: Path) -> str:
    """200 transactions of a row each, ten a second."""
    kinds, tables = (WRITE, UPDATE, DELETE), (b"plain", b"twice")
    parts = [transaction(n, tables[n % 2], kinds[n % 3], n, seconds=n / 10) for n in range(1, 201)]
    return str(write(folder, log(*(event for one in parts for event in one))))


def later(folder: Path) -> str:
    """The next file, two transactions, and what it says of those before."""
    executed = (35, GtidSet(f"{UUID_TEXT}:1-200").encode())
    parts = [
        event for n in (201, 202) for event in transaction(n, b"plain", WRITE, n, seconds=n / 10)
    ]
    return str(write(folder, log(executed, *parts), "binlog.000002"))


@pytest.fixture(params=[True, False], ids=["compiled", "plain"])
def in_bulk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        monkeypatch.setattr(load_module, "smallest_log_bytes", lambda: 0)
    else:
        monkeypatch.setattr(load_module, "compiled_loads", lambda: None)


CHOICES = [
    {"from_time": "2023-11-14 22:13:30"},
    {"from_time": "@1700000010", "to_time": "@1700000011"},
    {"to_time": "2023-11-14 22:13:21.5"},
    {"gtids": f"{UUID_TEXT}:77"},
    {"gtids": f"{UUID_TEXT}:7-12:180"},
    {"tables": "d.plain"},
    {"tables": "d.twice, d.none", "to_time": "@1700000003"},
    {"tables": "d.none"},
]


@pytest.mark.usefixtures("in_bulk")
@pytest.mark.parametrize("options", CHOICES, ids=" ".join)
def test_what_is_asked_for_and_nothing_else(tmp_path: Path, options: dict[str, str]) -> None:
    path = log_of(tmp_path)
    everything, found = rows_of(path), rows_of(path, wanted_of(options))
    assert found == matching(everything, options)
    assert len(found) < len(everything) == 200
    assert found or options == {"tables": "d.none"}


@pytest.mark.parametrize("capture", captures(), ids=lambda capture: capture.name)
def test_captures(capture: Path) -> None:
    for path in logs(capture):
        everything = rows_of(str(path))
        for row in [row for row in everything if row["table"] is not None][
            :: max(len(everything) // 4, 1)
        ]:
            table = {"tables": f"{row['database']}.{row['table']}"}
            gtid = (
                {"gtids": row["gtid"]}
                if row["gtid"] is not None and row["gtid"].count("-") == 4
                else table
            )
            for options in (
                {"from_time": f"@{int(row['commit_time'])}"},
                {"to_time": f"@{int(row['commit_time'])}"},
                table,
                gtid,
            ):
                assert rows_of(str(path), wanted_of(options)) == matching(everything, options)


@pytest.mark.usefixtures("in_bulk")
@pytest.mark.parametrize("options",
                         [{"to_time": "@1700000003"}, {"tables": "d.twice"},
                          {"from_time": "@1700000019", "tables": "d.plain"}],
                         ids=" ".join)  # fmt: skip
def test_no_objects_are_made_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    path, made = log_of(tmp_path), list[int]()
    plain = LoadBatch._load

    def shown(self: LoadBatch, *rows: Any) -> Any:
        made.append(1)
        return plain(self, *rows)

    monkeypatch.setattr(LoadBatch, "_load", shown)
    found = list(wanted_of(options).loads(LoadReader([path])))
    assert 0 < len(found) < 120
    assert len(made) <= len(found)


def test_changes_of_wanted_transactions_are_decoded_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from applier.binlog.columnar import plain

    path, decoded = log_of(tmp_path), list[int]()
    columns = column_schema([path], "d.plain")
    rows = plain._Plain._rows

    def counted(*given: Any) -> None:
        decoded.append(1)
        rows(*given)

    monkeypatch.setattr(plain._Plain, "_rows", counted)

    def read(wanted: Wanted) -> Iterator[dict[str, Any]]:
        for part in ranges([path], 3000):
            for batch in changes(part, "d.plain", columns, wanted):
                yield from batch.to_pylist()

    everything = list(read(EVERYTHING))
    assert len(decoded) == 200
    for options in (
        {"from_time": "@1700000010"},
        {"from_time": "@1700000010", "to_time": "@1700000011"},
        {"gtids": f"{UUID_TEXT}:20-40"},
    ):
        decoded.clear()
        found = list(read(wanted_of(options)))
        assert found == matching(everything, options) != []
        assert len(found) <= len(decoded) <= 2 * len(found) + 1


def test_changes_of_a_log_without_commit_times(tmp_path: Path) -> None:
    """The second of the event counts, as in the column."""
    found = ((path, rows_of(str(path))) for capture in captures() for path in logs(capture))
    path, rows = next(
        (path, rows)
        for path, rows in found
        if {row["commit_time"] % 1 for row in rows} == {0.0} and rows[-1]["table"]
    )
    row = rows[-1]
    table = f"{row['database']}.{row['table']}"
    columns = column_schema([str(path)], table)

    def read(wanted: Wanted) -> list[dict[str, Any]]:
        return [
            row
            for batch in changes(FileRange(str(path)), table, columns, wanted)
            for row in batch.to_pylist()
        ]

    everything = read(EVERYTHING)
    for place in (0, len(everything) // 2, -1):
        moment = f"@{int(time_of(everything[place]))}"
        for options in ({"from_time": moment}, {"to_time": moment}):
            assert read(wanted_of(options)) == matching(everything, options)


def test_files_that_began_when_the_gtids_were_there_are_not_read(tmp_path: Path) -> None:
    one, second = wanted_of({"gtids": f"{UUID_TEXT}:77"}), later(tmp_path)
    assert [one.may_hold(path) for path in (log_of(tmp_path), second)] == [True, False]
    assert wanted_of({"gtids": f"{UUID_TEXT}:77:201"}).may_hold(second)
    assert EVERYTHING.may_hold(second)


def test_a_relay_log_may_hold_a_transaction_twice(tmp_path: Path) -> None:
    content = bytearray(Path(later(tmp_path)).read_bytes())
    content[4 + 17] |= EventFlag.RELAY_LOG
    end = 4 + int.from_bytes(content[13:17], "little")
    content[end - 4 : end] = zlib.crc32(content[4 : end - 4]).to_bytes(4, "little")
    path = write(tmp_path, bytes(content), "relay.000001")
    assert wanted_of({"gtids": f"{UUID_TEXT}:77"}).may_hold(str(path))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"from_time": "soon"}, "from_time: 'soon' is not a date and time"),
        ({"from_time": "@3", "to_time": "@2"}, "to_time is before from_time"),
        ({"gtids": "1-2-"}, "gtids: "),
    ],
)
def test_bad_options(options: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        wanted_of(options)


def test_a_gtid_set_of_the_other_kind_of_server(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the log is one of MySQL"):
        rows_of(log_of(tmp_path), wanted_of({"gtids": "0-1-5"}))
