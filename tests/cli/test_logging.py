"""What is said beside the result: --log-level, --log-json, and silence without them."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import applier
from tests.applier.logs import INT_TABLE, insert, ints, log, transaction
from tests.binlog.build import rows, table_map, write
from tests.captures_support import captures, logs
from tests.cli.test_replay import Run, binlag, schema, small_log
from tests.receive.receiving import Offline

__all__ = ["binlag", "schema"]
SKIPPED = log(*insert(1, 1), *transaction(2, table_map(), rows(32, ints(9))), *insert(3, 2))
"""A transaction deletes a row that is not there."""


def records(err: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in err.splitlines()]


@pytest.mark.parametrize("before", [True, False])
def test_json_lines(binlag: Run, tmp_path: Path, schema: Path, before: bool) -> None:
    """The options stand before or behind the command; standard output stays the result."""
    command = ["replay", write(tmp_path, SKIPPED), "--schema", schema, "--skip-errors", "all"]
    silent = binlag(*command)
    code, out, err = binlag("--log-json", *command) if before else binlag(*command, "--log-json")
    assert (code, out, silent[2]) == (0, silent[1], "")
    reading, skipped = records(err)
    assert list(reading)[:4] == ["time", "level", "logger", "message"]
    assert (reading["level"], reading["logger"], reading["file"], reading["position"]) == (
        "info",
        "applier.replay",
        "binlog.000001",
        4,
    )
    assert reading["time"].endswith("Z")
    assert (skipped["level"], skipped["file"], skipped["table"]) == ("info", "binlog.000001", "d.t")
    assert skipped["message"] in json.loads(binlag(*command, "--json")[1])["notes"]


def test_lines_for_people(binlag: Run, tmp_path: Path, schema: Path) -> None:
    code, _, err = binlag("replay", small_log(tmp_path), "--schema", schema, "--log-level", "info")
    [line] = err.splitlines()
    assert code == 0
    assert " info applier.replay: reading a log file=binlog.000001 position=4 version=" in line
    assert (
        binlag("replay", small_log(tmp_path), "--schema", schema, "--log-level", "warning")[2] == ""
    )
    assert binlag("replay", small_log(tmp_path), "--schema", schema)[2] == "", (
        "the one before has left no handler"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "fields"),
    [
        (("replay", "absent", "--log-json"), 2, {"code": "BL101", "file": "absent"}),
        (("replay", "--log-json", "--statz"), 2,
         {"code": "BL301", "next": "did you mean --stats? see binlag replay --help"}),
        (("--log-json", "what"), 2, {"code": "BL301"}),
        (("replay", "LOG", "--log-json", "--verbose"), 1,
         {"number": 1146, "table": "d.t", "file": "binlog.000001"}),
        (("replay", "LOG", "--log-json", "--log-level", "error"), 1, {"number": 1146}),
    ],
)  # fmt: skip
def test_the_error_that_ends_a_command_is_a_record(
    binlag: Run, tmp_path: Path, arguments: tuple[str, ...], code: int, fields: dict[str, Any]
) -> None:
    found, _, err = binlag(
        *[str(small_log(tmp_path)) if argument == "LOG" else argument for argument in arguments]
    )
    last = records(err)[-1]
    assert (found, last["exit_code"], last["level"], last["logger"]) == (
        code,
        code,
        "error",
        "applier.cli",
    )
    assert {name: last[name] for name in fields} == fields
    assert ("context" in last) == ("--verbose" in arguments)


def test_notes_are_records(binlag: Run, tmp_path: Path) -> None:
    """Of each command that says something beside its result."""
    cut = write(tmp_path, log(*insert(1, 1))[:-31])
    assert binlag("events", cut)[2].startswith("binlag: the transaction ")
    [record] = records(binlag("events", cut, "--log-json")[2])
    assert record["message"].startswith("the transaction ")


def test_a_password_is_in_no_record(
    binlag: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BINLAG_PASSWORD", "s3cret")
    for url in ("mysql://root:s3cret@h", "mysql://root@127.0.0.1:1"):
        code, _, err = binlag(
            "receive",
            url,
            "--dir",
            tmp_path / "x",
            "--log-json",
            "--log-level",
            "debug",
            "--verbose",
        )
        assert (code, "s3cret" in err) == (2, False)
        assert records(err)


def test_a_receiver_says_what_happens(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each log of the source, with the relay log that it goes into."""
    capture = next(capture for capture in captures() if len(logs(capture)) > 1)
    with caplog.at_level(logging.INFO, "applier"):
        Offline(tmp_path / "relay", logs(capture)).receive()
    begun = [
        vars(record)
        for record in caplog.records
        if record.name == "applier.receive" and record.msg == "the source's log begins"
    ]
    assert [record["file"] for record in begun] == [path.name for path in logs(capture)]
    assert [record["relay_log"] for record in begun] == [
        f"relay-bin.{number:06}" for number in range(1, len(begun) + 1)
    ]


def test_a_program_that_uses_the_library_hears_nothing_unless_it_listens(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path, SKIPPED)
    program = (
        f"import applier; print(applier.replay([{str(path)!r}], "
        f"applier.load_schema({INT_TABLE!r}), skip_errors='all').transactions)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("3\n", "")
    with caplog.at_level(logging.INFO, "applier"):
        applier.replay([path], applier.load_schema(INT_TABLE), skip_errors="all")
    assert [record.name for record in caplog.records] == ["applier.replay"] * 2
