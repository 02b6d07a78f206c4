"""`binlag crashtest` as a user meets it: one configuration, a small matrix, one crash again."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from applier.binlog.reader import LogReader
from applier.cli.main import cli, main
from applier.crashtest.workload import generated
from applier.replica.replica import Replica
from tests.applier.logs import INT_TABLE, insert
from tests.binlog.build import log, write

SMALL = [
    "crashtest",
    "--transactions",
    "2",
    "--engine",
    "InnoDB",
    "--workers",
    "0",
    "--sync",
    "10000",
    "--jobs",
    "1",
]
SAFE = [*SMALL, "--repository", "FILE", "--position", "auto", "--recovery", "1"]
UNSAFE = [*SMALL, "--repository", "FILE", "--position", "file", "--recovery", "1"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, standalone_mode=False)


def code(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[Any, str]:
    """Exit code and standard error of the whole program."""
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    return caught.value.code, capsys.readouterr().err


def test_a_safe_configuration(tmp_path: Path) -> None:
    result = run(*SAFE, "--json", "--html", str(tmp_path / "map.html"))
    assert result.return_value == 0
    found = json.loads(result.output)
    assert [cell["kind"] for cell in found["cells"]] == ["process", "os", "full disk", "I/O error"]
    assert {cell["verdict"] for cell in found["cells"]} == {"consistent"}
    assert {cell["promised"] for cell in found["cells"]} == {
        "GTID auto-position, relay_log_recovery=1"
    }
    assert all(
        cell["points"] and cell["disks"] == cell["counts"]["consistent"] for cell in found["cells"]
    )
    page = (tmp_path / "map.html").read_text()
    assert page.count('<td class="ok"') == 4
    assert "http" not in page


def test_an_unsafe_configuration_and_its_counter_example() -> None:
    """The line of the counter-example shows the same crash again."""
    result = run(*UNSAFE, "--kind", "process", "--json")
    assert result.return_value == 3
    (cell,) = json.loads(result.output)["cells"]
    assert (cell["verdict"], cell["promised"]) == ("re-executes", None)
    example = cell["counter_examples"]["re-executes"]
    assert example["detail"].startswith("error 1062: ")
    again = run(*shlex.split(example["reproduce"])[1:])
    assert again.return_value == 3
    assert again.output.startswith(f"{example['crash']}: re-executes: error 1062: ")


def test_a_log_that_cannot_be_replayed_is_named_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And not the relay log of the simulated replica."""
    (schema := tmp_path / "schema.sql").write_text(INT_TABLE)
    (other := tmp_path / "other.sql").write_text("CREATE DATABASE d;")
    content = log(*insert(1, 5), *insert(2, 5))
    rows_at = [
        event.position for event in LogReader([write(tmp_path, content)]) if event.type == 30
    ]
    path = str(tmp_path / "binlog.000001")
    ended, said = code(capsys, *SAFE[:1], path, *SAFE[3:], "--schema", str(other))
    assert (ended, said.count("\n")) == (2, 1)
    assert (
        "BL702: the log cannot be replayed even without a crash: error 1146: "
        "Table 'd.t' doesn't exist (file binlog.000001"
    ) in said
    assert f"position {rows_at[0]}, table d.t). Next: give the tables that exist before" in said
    ended, said = code(capsys, *SAFE[:1], path, *SAFE[3:], "--schema", str(schema))
    assert (ended, "error 1062: " in said, f"position {rows_at[1]}, table d.t" in said) == (
        2,
        True,
        True,
    )
    write(tmp_path, log(*insert(1, 5))[:-3])
    ended, said = code(capsys, *SAFE[:1], path, *SAFE[3:], "--schema", str(schema))
    assert (ended, "BL104" in said, "(file binlog.000001, position" in said) == (2, True, True)


def test_a_matrix_for_people() -> None:
    """Nothing promised is broken, so the exit code is 0; --require makes a gate of what must be
    safe."""
    matrix = [
        *SMALL,
        "--position",
        "file",
        "--position",
        "auto",
        "--repository",
        "FILE",
        "--recovery",
        "1",
        "--kind",
        "process",
    ]
    result = run(*matrix)
    assert result.return_value == 0
    assert re.search(r"auto.*FILE.*✓ ", result.output)
    assert re.search(r"file.*FILE.*R\d", result.output)
    assert "cells: 2; " in result.output and "promised: 1; broken promises: 0\n" in result.output
    assert (
        "binlag crashtest --transactions 2 --seed 1 --server 8.0 --repository FILE" in result.output
    )
    assert run(*matrix, "--require", "position=auto").return_value == 0
    assert run(*matrix, "--require", "position=file,repository=FILE").return_value == 3


def test_a_brief_matrix() -> None:
    """What any sync and any crash ends in, each promise told from luck."""
    options = (
        "crashtest",
        "--transactions",
        "1",
        "--sync",
        "1",
        "--workers",
        "0",
        "--repository",
        "FILE",
        "--engine",
        "InnoDB",
    )
    result = run(*options, "--kind", "process", "--kind", "full disk", "--brief", "--jobs", "1")
    assert result.return_value == 0
    assert result.output.splitlines()[:6] == [
        "| position | relay_log_recovery | repository | InnoDB, 0 workers |",
        "| --- | --- | --- | --- |",
        "| file | 0 | FILE | RS |",
        "| file | 1 | FILE | R |",
        "| auto | 0 | FILE | S |",
        "| auto | 1 | FILE | ✓ |",
    ]
    lucky = run(*options, "--kind", "full disk", "--position", "file", "--recovery", "1", "--brief")
    assert "| file | 1 | FILE | (✓) |" in lucky.output
    assert "(✓) though nothing is promised" in lucky.output


def test_a_captured_log(tmp_path: Path) -> None:
    workload = generated(2, gtids=False)
    for name, content in workload.files.items():
        (tmp_path / name).write_bytes(content)
    schema = "".join(
        f"CREATE DATABASE {name}; CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT); "
        f"CREATE TABLE {name}.log (v INT); "
        f"INSERT INTO {name}.t VALUES (1, 0), (2, 0);"
        for name in ("d1", "d2")
    )
    (tmp_path / "schema.sql").write_text(schema)
    logs = [str(tmp_path / name) for name in workload.files]
    options = [
        "--schema",
        str(tmp_path / "schema.sql"),
        *SMALL[3:],
        "--recovery",
        "1",
        "--repository",
        "TABLE",
        "--kind",
        "process",
    ]
    result = run("crashtest", *logs, *options, "--json")
    assert result.return_value == 0
    (cell,) = json.loads(result.output)["cells"]
    assert (cell["auto_position"], cell["verdict"]) == (False, "consistent")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_logs_as_every_command_takes_them(tmp_path: Path, jobs: str) -> None:
    """Compressed, a folder with its index, standard input; tables whose keys compare text, in as
    many processes as wanted."""
    names = "CREATE TABLE names (id INT PRIMARY KEY, name VARCHAR(20), KEY (name));"
    (tmp_path / "schema.sql").write_text(names + INT_TABLE)
    content = log(*insert(1), *insert(2))
    (tmp_path / "binlog.000001").write_bytes(content)
    (tmp_path / "binlog.index").write_text("./binlog.000001\n")
    (tmp_path / "binlog.000001.gz").write_bytes(gzip.compress(content))
    options = [
        *("--schema", str(tmp_path / "schema.sql"), "--default-database", "d"),
        *("--engine", "InnoDB", "--workers", "0", "--repository", "TABLE", "--recovery", "1"),
        *("--sync", "1", "--sync", "10000", "--kind", "process", "--json", "--jobs", jobs),
    ]
    found = []
    for given in (
        str(tmp_path / "binlog.000001"),
        str(tmp_path),
        str(tmp_path / "binlog.000001.gz"),
        "-",
    ):
        result = CliRunner().invoke(
            cli, ["crashtest", given, *options], input=content, standalone_mode=False
        )
        assert result.return_value == 0, result.exception
        found.append(
            [
                (cell["sync"], cell["points"], cell["verdict"])
                for cell in json.loads(result.stdout)["cells"]
            ]
        )
    assert found[0] == found[1] == found[2]
    assert {cell[2] for cells in found for cell in cells} == {"consistent"}


def test_an_index_that_names_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "binlog.index").write_text("")
    ended, said = code(capsys, "crashtest", str(tmp_path))
    assert (ended, said.partition(" Next:")[0]) == (
        2,
        f"binlag: error BL117: there is no log (file {tmp_path}).",
    )


def test_equal_writes_are_tried_once() -> None:
    """What is recorded to write and sync the same is said to, and its disks are not counted again;
    where N comes up, it is not."""
    options = [
        "--transactions",
        "4",
        "--engine",
        "InnoDB",
        "--workers",
        "0",
        "--position",
        "auto",
        "--recovery",
        "1",
        "--jobs",
        "1",
    ]
    varied = [
        *options,
        "--repository",
        "TABLE",
        "--kind",
        "process",
        "--sync",
        "0",
        "--sync",
        "10000",
        "--sync",
        "3",
        "--sync",
        "500",
    ]
    found = json.loads(run("crashtest", *varied, "--json").output)
    cells = {cell["sync"]: cell for cell in found["cells"]}
    assert {sync: cell["same_writes_as"] for sync, cell in cells.items()} == {
        0: None,
        10000: {"sync": 0},
        3: None,
        500: {"sync": 0},
    }
    assert cells[10000]["counts"] == cells[0]["counts"] != cells[3]["counts"]
    points, disks = (sum(cells[sync][name] for sync in (0, 3)) for name in ("points", "disks"))
    assert found["summary"] == [
        f"cells: 4; crash points: {points:,}; different disks that are left: {disks:,}",
        "consistent after every crash: 4; not: 0",
        "promised: 4; broken promises: 0",
        "sync=10000: same writes and syncs as sync=0, tried once, in 1 of 1 configurations",
        "sync=500: same writes and syncs as sync=0, tried once, in 1 of 1 configurations",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--server", "9.7", "--repository", "FILE"],
         "MySQL 9.7 has no relay_log_info_repository=FILE"),
        (["--server", "5.5"], "5.5 is older than 5.6, the oldest version known"),
        (["--crash", "process | 1 before | process"],
         "--crash needs one configuration, and these are 128"),
        (["--require", "colour=red"], "there is no axis 'colour'"),
        (["--require", "position=auto,sync=100"],
         "--require position=auto,sync=100: the matrix has no such cell"),
        (["nothing.000001"], "cannot read the file: No such file or directory"),
    ],
)  # fmt: skip
def test_bad_usage(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    status, error = code(capsys, "crashtest", *arguments)
    assert status == 2
    assert message in error


def test_a_crash_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    for place, message in (
        ("nonsense", "is not a crash"),
        ("process | 99999 before | process", "the run has no point '99999 before'"),
    ):
        status, error = code(capsys, *SAFE, "--crash", place)
        assert (status, message in error) == (2, True)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_mistake_of_the_emulator_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], jobs: str
) -> None:
    """It is told as that, from whichever process, with the line that shows it again."""

    def mistaken(self: Replica) -> None:
        raise KeyError("nothing")

    monkeypatch.setattr(Replica, "standing_behind_start", mistaken)
    arguments = ["--jobs", jobs, *(["--recovery", "0"] if jobs == "2" else []), "--kind", "process"]
    ended, said = code(capsys, *SAFE, *arguments)
    assert ended == 70
    assert (
        "KeyError: 'nothing' while recovering, which is a mistake, not a refusal to start" in said
    )
    assert (
        "again: binlag crashtest --transactions 2 --seed 1 --server 8.0 --repository FILE" in said
    )
    assert "--crash 'process | 1 before | process'" in said
