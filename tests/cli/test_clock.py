"""`binlag clock` and `binlag status`: what they print, as text, table and JSON, and what they
refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from applier.cli.commands import clock, status
from applier.cli.main import cli
from applier.cli.output import rows
from applier.errors import UsageError
from applier.timing.scenarios import SCENARIOS
from tests.binlog.build import gtid, log, query, table_map, write, xid
from tests.binlog.build import rows as rows_event
from tests.report.test_report import Outside
from tests.status.test_status import FILE_SCENARIOS


def run(command: click.Command, *arguments: object) -> Result:
    """As people call it: a command keeps the --help of the context that it is first called in."""
    return CliRunner().invoke(cli, [str(command.name), *(str(argument) for argument in arguments)])


def lines(*arguments: object) -> list[dict[str, Any]]:
    result = run(clock.command, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def binlog(tmp_path: Path) -> Path:
    images = b"".join(b"\x00" + bytes([number, 0, 0, 0]) for number in range(200))
    events = (
        gtid(1),
        query(b"BEGIN"),
        table_map(),
        rows_event(30, images),
        xid(),
        gtid(2),
        query(b"DROP TABLE x", b"d2"),
    )
    return write(tmp_path, log((35, bytes(8)), *events))


def test_scenarios_are_listed() -> None:
    listed = [
        line.split()[0] for line in run(clock.command, "--scenario", "list").stdout.splitlines()
    ]
    assert listed == list(SCENARIOS)


def test_a_scenario_as_json() -> None:
    found = [
        line for line in lines("--scenario", "ddl", "--every", 5) if line["replica"] == "no workers"
    ]
    assert [line["seconds_behind"] for line in found] == [
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        5,
        10,
        15,
        20,
        25,
        30,
        0,
        0,
    ]
    assert [line["transactions_left"] for line in found][7:15] == [0, 1, 1, 1, 1, 1, 1, 0]
    assert found[8]["seconds_left"] == 25.3


def test_a_log_as_text(binlog: Path) -> None:
    result = run(
        clock.command,
        binlog,
        "--server",
        "8.0",
        "--workers",
        2,
        "--row-speed",
        0.0001,
        "--every",
        1,
    )
    assert result.exit_code == 0, result.output
    head, columns, first, *_ = result.stdout.splitlines()
    assert head == "-- 8.0, 2 workers"
    assert columns.split() == [
        "time",
        "(UTC)",
        "seconds",
        "behind",
        "true",
        "lag",
        "left",
        "MB",
        "left",
        "s",
        "to",
        "drain",
    ]
    assert first.split()[-3] == "2"


def test_the_whole_status_at_a_moment(binlog: Path) -> None:
    result = run(
        clock.command,
        binlog,
        "--server",
        "8.0",
        "--workers",
        2,
        "--row-speed",
        0.0001,
        "--status-at",
        1,
        "--json",
    )
    told = json.loads(result.stdout)
    assert told["status"]["Replica_SQL_Running"] == "Yes"
    workers = told["performance_schema"]["replication_applier_status_by_worker"]
    assert [worker["WORKER_ID"] for worker in workers] == [1, 2]
    assert workers[0]["APPLYING_TRANSACTION"].endswith(":1")
    vertical = run(clock.command, binlog, "--status-at", 1)
    assert "        Seconds_Behind_Source: " in vertical.stdout
    assert "performance_schema.replication_applier_status_by_worker" in vertical.stdout


def test_a_picture(binlog: Path, tmp_path: Path) -> None:
    pytest.importorskip("altair")
    pictures = [tmp_path / "curve.json", tmp_path / "gap.json"]
    assert run(clock.command, binlog, "--plot", pictures[0]).exit_code == 0
    assert (
        run(clock.command, "--scenario", "gap", "--every", 5, "--plot", pictures[1]).exit_code == 0
    )
    curve, gap = (json.loads(path.read_text()) for path in pictures)
    assert len(curve["hconcat"]) == 1
    assert len(gap["vconcat"][0]["hconcat"]) == len(gap["vconcat"][1]["hconcat"]) == 3
    assert gap["title"] == SCENARIOS["gap"].title


def test_a_page_with_a_picture_asks_no_address(tmp_path: Path) -> None:
    pytest.importorskip("altair")
    page = tmp_path / "gap.html"
    assert run(clock.command, "--scenario", "gap", "--every", 60, "--plot", page).exit_code == 0
    outside = Outside()
    outside.feed(page.read_text())
    assert outside.found == []


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--scenario", "none"],
        ["FILE", "--scenario", "ddl"],
        ["FILE", "--server", "9.7", "--workers", "0"],
        ["FILE", "--server", "nonsense"],
        ["FILE", "--until", "nonsense"],
        ["FILE", "--plot", "picture.bmp"],
        ["--scenario", "ddl", "--plot", "missing/folder/picture.json"],
    ],
    ids=str,
)
def test_what_it_refuses(binlog: Path, arguments: list[str]) -> None:
    result = run(
        clock.command, *(str(binlog) if argument == "FILE" else argument for argument in arguments)
    )
    assert isinstance(result.exception, UsageError)


def folder_of(tmp_path: Path) -> Path:
    """The files of a real 5.7.29 with four workers after STOP SLAVE."""
    scenario = next(
        scenario for scenario in FILE_SCENARIOS if scenario.name == "my57_file_mts4_gtid_ap1_rec0"
    )
    for path in (scenario / "raw").glob("3.*"):
        (tmp_path / path.name.removeprefix("3.")).write_bytes(path.read_bytes())
    return tmp_path


def test_status_of_a_folder(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    vertical = run(status.command, folder).stdout
    assert vertical.startswith(
        "*************************** 1. row ***************************\n"
        "               Slave_IO_State: \n"
    )
    assert "          Exec_Master_Log_Pos: 5354\n" in vertical
    assert "        Seconds_Behind_Master: NULL\n" in vertical
    table = run(status.command, folder, "--format", "table", "--performance-schema").stdout
    assert "| Exec_Master_Log_Pos           | 5354 " in table
    assert "performance_schema.replication_applier_status_by_worker" in table
    told = json.loads(run(status.command, folder, "--json").stdout)
    assert told["server"] == "5.7"
    assert told["status"]["Executed_Gtid_Set"] is None
    assert len(told["workers"]) == 4
    assert len(told["performance_schema"]["replication_applier_status_by_worker"]) == 4


def test_status_by_the_names_of_another_version(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    assert "Seconds_Behind_Source" in run(status.command, folder, "--server", "8.0").stdout
    assert (
        "Seconds_Behind_Master"
        in run(status.command, folder, "--server", "8.0", "--old-names").stdout
    )
    for server in ("9.7", "nonsense"):
        assert isinstance(
            run(status.command, folder, "--server", server, "--old-names").exception, UsageError
        )


def test_rows_as_the_client_prints_them() -> None:
    some: list[dict[str, Any]] = [{"id": 1, "name": None}, {"id": 22, "name": "x"}]
    assert list(rows.table(some)) == [
        "+----+------+",
        "| id | name |",
        "+----+------+",
        "| 1  | NULL |",
        "| 22 | x    |",
        "+----+------+",
        "2 rows in set",
    ]
    assert list(rows.vertical(some[:1]))[1:] == ["  id: 1", "name: NULL", "1 row in set"]
    assert list(rows.table([])) == ["Empty set"]
