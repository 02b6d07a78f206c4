"""`binlag events`: text, JSON lines, Parquet, filters, errors and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from applier.cli.main import main
from tests.binlog.build import (
    UUID_TEXT,
    event,
    gtid,
    int_image,
    log,
    payload,
    query,
    rows,
    table_map,
    write,
    xid,
)

BEGIN = query(b"BEGIN")
UPDATE = rows(31, int_image(1) + b"\x01")


class Events(click.Command):
    """`binlag events` as the shell runs it: with the words for errors, and the exit code."""

    def main(self, args: Any = None, *others: Any, **more: Any) -> Any:
        return main(["events", *args])


def run(*arguments: object) -> Result:
    return CliRunner().invoke(Events("binlag"), [str(argument) for argument in arguments])


def records(*arguments: object) -> list[dict[str, Any]]:
    result = run("--json", *arguments)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    other = table_map(2, table=b"other")
    first = (
        gtid(1),
        BEGIN,
        table_map(),
        rows(30, int_image(5) * 2),
        UPDATE,
        other,
        rows(32, int_image(9), 2),
        xid(),
    )
    return write(tmp_path, log((35, bytes(8)), *first, gtid(2), query(b"DROP TABLE\n x", b"d2")))


def test_text(path: Path) -> None:
    result = run(path)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == [
        "File",
        "Position",
        "Event_type",
        "Server_id",
        "End_log_pos",
        "Info",
    ]
    assert lines[1].split(maxsplit=5) == [
        "binlog.000001",
        "4",
        "Format_desc",
        "1",
        "126",
        "Server ver: 8.0.36, Binlog ver: 4",
    ]
    assert lines[5].split()[2] == "Table_map"
    assert lines[-1].endswith("use `d2`; DROP TABLE\\n x")
    assert len(lines) == 13
    assert result.stderr == ""


def test_rows(path: Path) -> None:
    lines = [
        line.strip()
        for line in run("--rows", path).stdout.splitlines()
        if line.startswith(" " * 14)
    ]
    assert lines == [
        "insert d.t: @1=5",
        "insert d.t: @1=5",
        "update d.t: @1=1 -> @1=NULL",
        "delete d.other: @1=9",
    ]


def test_json(path: Path) -> None:
    found = records("--rows", path)
    assert [record["type"] for record in found][:5] == [
        "Format_desc",
        "Previous_gtids",
        "Gtid",
        "Query",
        "Table_map",
    ]
    update = found[6]
    assert update == {
        "file": "binlog.000001",
        "pos": update["pos"],
        "end_log_pos": found[7]["pos"],
        "type": "Update_rows",
        "timestamp": 1_700_000_000,
        "server_id": 1,
        "event_bytes": update["end_log_pos"] - update["pos"],
        "gtid": f"{UUID_TEXT}:1",
        "database": "d",
        "table": "t",
        "info": "table_id: 1 flags: STMT_END_F",
        "rows": 1,
        "values": [{"before": {"@1": 1}, "after": {"@1": None}}],
    }
    assert [record["gtid"] for record in found] == [None, None] + [f"{UUID_TEXT}:1"] * 8 + [
        f"{UUID_TEXT}:2"
    ] * 2


def test_events_out_of_a_payload(tmp_path: Path) -> None:
    inner = b"".join(
        event(kind, body, checksum=False) for kind, body in (BEGIN, table_map(), UPDATE, xid())
    )
    found = records(write(tmp_path, log(gtid(1), payload(inner))))
    assert [(record["type"], record.get("inner")) for record in found][2:] == [
        ("Transaction_payload", None),
        ("Query", 0),
        ("Table_map", 1),
        ("Update_rows", 2),
        ("Xid", 3),
    ]
    assert {(record["pos"], record["end_log_pos"]) for record in found[2:]} == {
        (found[2]["pos"], found[2]["end_log_pos"])
    }


def test_filters(path: Path) -> None:
    every = records(path)

    def kept(*options: object) -> list[int]:
        return [
            next(at for at, one in enumerate(every) if one["pos"] == record["pos"])
            for record in records(*options, path)
        ]

    assert kept("--start-position", every[9]["pos"]) == [0, 9, 10, 11]
    assert kept("--stop-position", every[3]["pos"]) == [0, 1, 2]
    assert kept("--include-gtids", f"{UUID_TEXT}:2") == [0, 1, 10, 11]
    assert kept("--exclude-gtids", f"{UUID_TEXT}:2") == list(range(10))
    assert kept("--start-datetime", "2030-01-01") == [0]
    assert kept("--stop-datetime", "2023-11-14 22:13:21") == list(range(12))
    assert kept("--database", "d2") == [0, 1, 2, 3, 9, 10, 11]
    assert kept("--exclude-table", r"d.oth%", "--database", "d") == [0, 1, 2, 3, 4, 5, 6, 9, 10]
    assert kept("--table", "d.other") == [0, 1, 2, 3, 7, 8, 9, 10]


def test_incomplete_transaction_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, log(gtid(1), BEGIN, table_map()))
    result = run(path)
    assert result.exit_code == 0
    place = f"the transaction {UUID_TEXT}:1 that starts at binlog.000001:{len(log())}"
    assert result.stderr.strip() == f"binlag: {place} has no end in this log"


def test_table_map_before_the_start(path: Path) -> None:
    start = records(path)[5]["pos"]
    assert [record["table"] for record in records("--start-position", start, path)][1:3] == [
        None,
        None,
    ]
    result = run("--rows", "--start-position", start, path)
    assert result.exit_code == 2
    assert (
        "speaks of table id 1, which no table map before it names (file binlog.000001, position "
        in result.stderr
    )


def test_parquet(path: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    target = tmp_path / "events.parquet"
    result = run("--parquet", target, path)
    assert (result.exit_code, result.output) == (0, "")
    table = parquet.read_table(target)
    assert table.column_names == [
        "file",
        "position",
        "end_log_pos",
        "type",
        "timestamp",
        "server_id",
        "gtid",
        "database",
        "table",
        "rows",
        "event_bytes",
    ]
    found = records(path)
    assert table["position"].to_pylist() == [record["pos"] for record in found]
    assert table["type"].to_pylist() == [record["type"] for record in found]
    assert table["rows"].to_pylist() == [
        None,
        None,
        None,
        None,
        None,
        2,
        1,
        None,
        1,
        None,
        None,
        None,
    ]
    assert table["table"].to_pylist()[4:9] == ["t", "t", "t", "other", "other"]
    assert sum(table["event_bytes"].to_pylist()) == path.stat().st_size - 4
    assert run("--parquet", tmp_path / "no" / "x.parquet", path).exit_code == 2


def test_arrow(path: Path, tmp_path: Path) -> None:
    ipc = pytest.importorskip("pyarrow.ipc")
    result = run(path, "--arrow", tmp_path / "rows")
    assert result.exit_code == 0, result.output
    images = {
        file.name: ipc.open_file(str(file)).read_all().num_rows
        for file in (tmp_path / "rows").iterdir()
    }
    assert images == {"d.t.arrow": 4, "d.other.arrow": 1}
    run(path, "--arrow", tmp_path / "some", "--database", "%", "--exclude-table", "d.other")
    assert [file.name for file in (tmp_path / "some").iterdir()] == ["d.t.arrow"]
    refused = run(path, "--arrow", tmp_path / "rows", "--stop-position", "4")
    assert refused.exit_code == 2
    assert "--stop-position" in refused.output


def test_parquet_without_pyarrow(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run("--parquet", tmp_path / "x.parquet", path)
    assert result.exit_code == 2
    assert "pip install 'binlag[arrow]'" in result.stderr


@pytest.mark.parametrize(
    ("content", "options", "word"),
    [
        (b"", [], "empty"),
        (b"hello", [], "not a binary log"),
        (log(xid())[:-3], [], "ends in the middle"),
        (log(xid()), ["--include-gtids", "nonsense"], "not a GTID set"),
        (log(xid()), ["--start-datetime", "nonsense"], "not a date and time"),
        (log(xid()), ["--table", "t"], "is not DATABASE.TABLE"),
        (log(xid()), ["--start-position", "-1"], "Invalid value"),
        (log(xid()), ["--start-position", "5000"], "behind the end"),
    ],
)
def test_errors_have_exit_code_2_and_no_traceback(
    tmp_path: Path, content: bytes, options: list[str], word: str
) -> None:
    result = run(*options, write(tmp_path, content))
    assert result.exit_code == 2
    assert word in result.stderr
    assert "Traceback" not in result.output


def test_checksum_option(tmp_path: Path) -> None:
    content = bytearray(log(xid()))
    content[-1] ^= 1
    path = write(tmp_path, bytes(content))
    assert run(path).exit_code == 2
    assert run("--no-verify", path).exit_code == 0


PIPE_BYTES = 1 << 16
"""What a pipe holds on Linux; the rest stays with the writer until somebody reads."""


def test_reader_that_goes_away(tmp_path: Path) -> None:
    """As in `binlag events ... | head -1`: there is more to come than the pipe and what was read of
    it hold, so that the end is met."""
    path = write(tmp_path, log(*[xid()] * 3000))
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "applier", "events", str(path)],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    first = os.read(reading, 200)
    os.close(reading)
    _, errors = process.communicate()
    assert first.split()[:2] == [b"File", b"Position"]
    assert (process.returncode, errors) == (141, "")
    assert len(run(path).stdout) > 2 * PIPE_BYTES


def test_help_imports_nothing_heavy() -> None:
    heavy = ("pyarrow", "numpy", "numba", "sqlglot", "rich", "zstandard")
    code = (
        f"import sys, applier.cli.commands.events; print([name for name in {heavy} if name in "
        "sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--table", "d.tt"],
            (
                "--table d.tt: names nothing that is in the log. Next: did you mean d.t? the log "
                "has d.other, d.t"
            ),
        ),
        (["--database", "d3"], "--database d3: names nothing that is in the log."),
        (
            ["--table", "d.*"],
            (
                "--table d.*: names nothing that is in the log. Next: % stands for any characters "
                "here, and * for itself"
            ),
        ),
        (
            ["--table", "d.t", "--exclude-table", "d.t"],
            "--table d.t, --exclude-table d.t: what one option chooses another leaves out.",
        ),
        (
            ["--include-gtids", f"{UUID_TEXT}:7"],
            f"--include-gtids {UUID_TEXT}:7: the log has none of these. Next: the log has others",
        ),
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_names_that_the_log_does_not_have(
    path: Path, options: list[str], said: str, form: list[str]
) -> None:
    """As `replay` has it."""
    result = run(*form, *options, path)
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr


NOT_THERE = ("--database d3", "--table d.tt", "--exclude-database d4", "--exclude-table d.tu")
"""Names that the log does not have, beside one that it has."""


@pytest.mark.parametrize("form", ["", "--json", "--parquet", "--arrow"])
def test_what_one_of_several_names_misses_is_said(path: Path, tmp_path: Path, form: str) -> None:
    """As `replay` has it."""
    if form.startswith("--") and form != "--json":
        pytest.importorskip("pyarrow")
    output = [form] * bool(form) + [str(tmp_path / "out")] * (form in ("--parquet", "--arrow"))
    result = run(*output, "--table", "d.t", *" ".join(NOT_THERE * 2).split(), path)
    assert (result.exit_code, result.stderr.splitlines()) == (
        0,
        [f"binlag: {name} names nothing in the log" for name in NOT_THERE],
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--start-datetime", "2035-01-01"],
            "no event lies in these times: the log ends at 2023-11-14 22:13:20+00:00",
        ),
        (
            ["--stop-datetime", "2001-01-01"],
            "no event lies in these times: the log begins at 2023-11-14 22:13:20+00:00",
        ),
    ],
)
def test_times_without_an_event(path: Path, options: list[str], said: str) -> None:
    result = run(*options, path)
    assert (result.exit_code, said in result.stderr) == (0, True), result.stderr
