"""`binlag replay` and `binlag --help`: texts, JSON, files, exit codes, and bad options one by
one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from applier.cli.main import cli, main
from tests.applier.logs import INT_TABLE, insert, ints, log, transaction
from tests.binlog.build import gtid, query, rows, table_map, write
from tests.captures_support import captures, logs

CAPTURE = next(capture for capture in captures() if capture.name == "my_nokey_duplicates")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def binlag(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line in this process: (exit code, standard output, standard error)."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        assert isinstance(caught.value.code, int)
        return caught.value.code, captured.out, captured.err

    return run


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "before.sql"
    path.write_text(INT_TABLE)
    return path


def small_log(folder: Path) -> Path:
    """Three rows in, one changed, one out."""
    return write(
        folder,
        log(
            *insert(1, 1, 2, 3),
            *transaction(2, table_map(), rows(31, ints(2, 20))),
            *transaction(3, table_map(), rows(32, ints(3))),
        ),
    )


# replay


def test_the_summary(binlag: Run, tmp_path: Path, schema: Path) -> None:
    code, out, err = binlag("replay", small_log(tmp_path), "--schema", schema)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "3 transactions, 3 rows events, 5 rows; rules of 8.0, INDEX_SCAN,HASH_SCAN"
    table = [line.split() for line in lines if line.strip().startswith("d.t ")]
    assert sorted(line[1] for line in table) == ["delete", "update", "write"]
    assert next(line for line in table if line[1] == "update")[2:] == [
        "index",
        "scan",
        "PRIMARY",
        "1",
        "1",
        "1",
        "1",
        "1.0",
    ]
    assert (
        lines[-1] == f"done: binlog.000001, position {(tmp_path / 'binlog.000001').stat().st_size}"
    )


def test_the_summary_says_what_is_wrong_and_what_would_fix_it(binlag: Run) -> None:
    code, out, _ = binlag("replay", *logs(CAPTURE), "--schema", CAPTURE / "before.sql")
    assert code == 0
    assert "rows for each row it changes" in out
    assert "  ALTER TABLE `ledger_db`." in out


def test_the_summary_as_json(binlag: Run, tmp_path: Path, schema: Path) -> None:
    code, out, err = binlag("replay", small_log(tmp_path), "--schema", schema, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert list(found) == [
        "server", "row_search", "transactions", "rows_events", "rows", "counters", "tables",
        "notes", "incomplete_transaction", "file",
        "position", "source_file", "source_position", "gtids", "error",
    ]  # fmt: skip
    assert (found["source_file"], found["source_position"]) == (found["file"], found["position"])
    assert (found["transactions"], found["rows_events"], found["rows"], found["error"]) == (
        3,
        3,
        5,
        None,
    )
    assert {table["type"]: table["rows_changed"] for table in found["tables"]} == {
        "write": 3,
        "update": 1,
        "delete": 1,
    }
    assert found["counters"] == {
        "read_first": 0,
        "read_key": 2,
        "read_next": 0,
        "read_rnd": 2,
        "read_rnd_next": 0,
        "write": 3,
        "update": 1,
        "delete": 1,
    }


def test_the_statistics(binlag: Run, tmp_path: Path, schema: Path) -> None:
    """One line per rows event; the names are a contract."""
    path = tmp_path / "stats.jsonl"
    assert binlag("replay", small_log(tmp_path), "--schema", schema, "--stats", path)[0] == 0
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [record["type"] for record in records] == ["write", "update", "delete"]
    assert list(records[1]) == [
        "file",
        "pos",
        "end_log_pos",
        "gtid",
        "table",
        "type",
        "rows",
        "algorithm",
        "key",
        "handler",
        "error",
    ]
    assert records[1]["handler"] == {
        "read_first": 0, "read_key": 1, "read_next": 0, "read_rnd": 1, "read_rnd_next": 0,
        "write": 0, "update": 1, "delete": 0,
    }  # fmt: skip
    assert (records[0]["algorithm"], records[0]["key"]) == ("not needed", None)
    assert (
        records[1]["algorithm"],
        records[1]["key"],
        records[1]["rows"],
        records[1]["error"],
    ) == ("index scan", "PRIMARY", 1, None)
    assert (records[1]["table"], records[1]["file"]) == ("d.t", "binlog.000001")
    assert records[1]["gtid"].endswith(":2")
    assert records[1]["end_log_pos"] > records[1]["pos"] > records[0]["end_log_pos"]


def test_the_dump(binlag: Run, tmp_path: Path) -> None:
    assert (
        binlag(
            "replay",
            *logs(CAPTURE),
            "--schema",
            CAPTURE / "before.sql",
            "--dump",
            tmp_path / "new" / "out",
        )[0]
        == 0
    )
    dumped = {path.name: path.read_bytes() for path in (tmp_path / "new" / "out").iterdir()}
    assert dumped == {path.name: path.read_bytes() for path in (CAPTURE / "after").iterdir()}


def test_the_applier_stops(binlag: Run, tmp_path: Path, schema: Path) -> None:
    """Exit code 1: number, file, position, table, row and the next step; tables and statistics are
    written all the same."""
    path = write(
        tmp_path, log(*insert(1, 1), *transaction(2, table_map(), rows(32, ints(9))), *insert(3, 2))
    )
    stats = tmp_path / "stats.jsonl"
    code, out, err = binlag(
        "replay", path, "--schema", schema, "--stats", stats, "--dump", tmp_path / "out"
    )
    assert code == 1
    assert err.startswith("binlag: error 1032: Could not execute Delete_rows event on table d.t; ")
    for part in (
        "HA_ERR_KEY_NOT_FOUND",
        "row 1 of the event",
        "(file binlog.000001, position ",
        ", table d.t). Next: ",
    ):
        assert part in err
    assert "done:" not in out
    assert (tmp_path / "out" / "d.t.tsv").read_text() == "a:int:text\n1\n"
    assert [json.loads(line)["error"] for line in stats.read_text().splitlines()] == [None, 1032]
    code, out, _ = binlag("replay", path, "--schema", schema, "--json")
    error = json.loads(out)["error"]
    assert (code, error["number"], error["table"], error["file"]) == (
        1,
        1032,
        "d.t",
        "binlog.000001",
    )
    assert set(error) == {"number", "code", "message", "file", "position", "table", "hint"}


@pytest.mark.parametrize(
    "options",
    [
        ("--exec-mode", "idempotent"),
        ("--skip-errors", "1032"),
        ("--skip-errors", "all"),
        ("--skip-errors", "1062,1032"),
    ],
)
def test_errors_that_are_let_pass(
    binlag: Run, tmp_path: Path, schema: Path, options: tuple[str, ...]
) -> None:
    path = write(
        tmp_path, log(*insert(1, 1), *transaction(2, table_map(), rows(32, ints(9))), *insert(3, 2))
    )
    code, out, _ = binlag("replay", path, "--schema", schema, *options, "--json")
    assert (code, json.loads(out)["transactions"]) == (0, 3)


def test_filters(binlag: Run, tmp_path: Path) -> None:
    both = "CREATE TABLE d.t (a INT PRIMARY KEY); CREATE TABLE e.t (a INT PRIMARY KEY);"
    (tmp_path / "s.sql").write_text(both)
    path = write(
        tmp_path,
        log(
            *insert(1, 1),
            *transaction(2, table_map(database=b"e"), rows(30, ints(2))),
            *insert(3, 3),
        ),
    )
    uuid = "00010203-0405-0607-0809-0a0b0c0d0e0f"
    chosen: dict[tuple[str, ...], tuple[list[str], list[str]]] = {
        (): (["1", "3"], ["2"]),
        ("--database", "e"): ([], ["2"]),
        ("--table", "d.t"): (["1", "3"], []),
        ("--include-gtids", f"{uuid}:2-3"): (["3"], ["2"]),
        ("--exclude-gtids", f"{uuid}:1"): (["3"], ["2"]),
        ("--start-datetime", "2100-01-01"): ([], []),
        ("--stop-datetime", "2000-01-01T00:00:00+02:00"): ([], []),
        ("--stop-datetime", "1970-01-01 00:00:00"): ([], []),
    }
    for number, (options, (first, second)) in enumerate(chosen.items()):
        out = tmp_path / f"out{number}"
        assert (
            binlag("replay", path, "--schema", tmp_path / "s.sql", "--dump", out, *options)[0] == 0
        ), options
        dumped = {file.name: file.read_text().split("\n")[1:-1] for file in out.iterdir()}
        assert [dumped.get(f"{name}.t.tsv", []) for name in "de"] == [first, second], options


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--start-datetime", "2100-01-01"), "the log ends at"),
        (("--stop-datetime", "1970-01-01"), "the log begins at"),
        ((), ""),
    ],
)
def test_times_without_an_event_are_said(
    binlag: Run, tmp_path: Path, schema: Path, options: tuple[str, ...], says: str
) -> None:
    code, out, _ = binlag("replay", small_log(tmp_path), "--schema", schema, *options)
    assert code == 0
    assert ("no event lies in these times" in out, says in out) == (bool(says), True)


def test_positions(binlag: Run, tmp_path: Path, schema: Path) -> None:
    path = small_log(tmp_path)
    stats = tmp_path / "stats.jsonl"
    binlag("replay", path, "--schema", schema, "--stats", stats)
    position = json.loads(stats.read_text().splitlines()[1])["pos"]
    code, out, _ = binlag("replay", path, "--schema", schema, "--stop-position", position, "--json")
    found = json.loads(out)
    assert (code, found["transactions"], found["incomplete_transaction"] is not None) == (
        0,
        1,
        True,
    )
    code, _, err = binlag("replay", path, "--schema", schema, "--start-position", position)
    assert (code, "no table map" in err) == (2, True)
    code, _, err = binlag("replay", path, "--schema", schema, "--start-position", position + 1)
    assert (code, "not the start of an event" in err) == (2, True)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--server", "4x"), "--server"), (("--row-search", "FAST"), "--row-search"),
        (("--server", "9.7", "--row-search", "TABLE_SCAN"), "--row-search"),
        (("--exec-mode", "lax"), "--exec-mode"), (("--skip-errors", "many"), "--skip-errors"),
        (("--type-conversions", "ALL"), "--type-conversions"),
        (("--rewrite-db", "a"), "--rewrite-db"), (("--rewrite-db", ":b"), "--rewrite-db"),
        (("--table", "t"), "--table"), (("--start-position", "x"), "--start-position"),
        (("--start-position", "3"), "--start-position"),
        (("--stop-position", "-1"), "--stop-position"),
        (("--start-datetime", "yesterday"), "--start-datetime"),
        (("--stop-datetime", "2024-13-01"), "--stop-datetime"),
        (("--include-gtids", "x:y"), "--include-gtids"),
        (("--exclude-gtids", "00010203"), "--exclude-gtids"),
        (("--into", "oracle://x"), "--into"),
        (("--frobnicate",), "--frobnicate"), (("--schema",), "--schema"),
    ],
)  # fmt: skip
def test_bad_options(binlag: Run, tmp_path: Path, options: tuple[str, ...], says: str) -> None:
    """Exit code 2 and the option's name; nothing is written."""
    code, out, err = binlag("replay", small_log(tmp_path), *options)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


def test_bad_files(binlag: Run, tmp_path: Path, schema: Path) -> None:
    good, text = small_log(tmp_path), tmp_path / "notes.txt"
    text.write_text("hello")
    (tmp_path / "bad.sql").write_text("CREATE TABLE d.t (a INT);\nCREATE TABLE d.u (a NOTATYPE);\n")
    cases: list[tuple[tuple[Any, ...], str]] = [
        ((), "FILE"),
        ((tmp_path / "gone.000001",), "gone.000001"),
        ((tmp_path,), "no index of logs"),
        ((text,), "not a binary log"),
        ((good, "--schema", tmp_path / "gone.sql"), "gone.sql"),
        ((good, "--schema", tmp_path / "bad.sql"), "line 2: "),
        ((good, "--schema", schema, "--stats", tmp_path / "no" / "stats"), "--stats"),
        ((good, "--schema", schema, "--dump", text), "--dump"),
        ((good, "--schema", schema, "--dump", text / "sub"), "notes.txt"),
    ]
    for arguments, says in cases:
        code, _, err = binlag("replay", *arguments)
        assert (code, says in err) == (2, True), (arguments, err)


def test_names_that_are_no_utf8(binlag: Run, tmp_path: Path) -> None:
    """They come out as escapes, in JSON too."""
    path = write(tmp_path, log(*transaction(1, table_map(table=b"t\xff"), rows(30, ints(1)))))
    code, out, err = binlag("replay", path, "--json", "--stats", tmp_path / "stats")
    assert (code, json.loads(out)["error"]["table"]) == (1, "d.t\udcff")
    assert "d.t\\udcff" in err
    path = write(
        tmp_path,
        log(
            gtid(1),
            query(b"CREATE TABLE `t\xff` (a INT)"),
            *transaction(2, table_map(table=b"t\xff"), rows(30, ints(1))),
        ),
    )
    code, out, _ = binlag("replay", path, "--stats", tmp_path / "stats")
    assert (code, "t\\udcff" in out) == (0, True)
    assert json.loads((tmp_path / "stats").read_text())["table"] == "d.t\udcff"


# help


def test_help() -> None:
    result = CliRunner().invoke(cli, ["--help"])
    assert result.exit_code == 0
    for word in ("replay", "events", "explain", "A MySQL replica applier emulator."):
        assert word in result.output
    for name in ("replay", "events", "explain"):
        result = CliRunner().invoke(cli, [name, "--help"])
        assert result.exit_code == 0
        assert result.output.startswith("Usage: ")
    options = CliRunner().invoke(cli, ["replay", "--help"]).output
    for option in """--into --schema --server --row-search --exec-mode --skip-errors --database
        --table --rewrite-db --start-position --stop-position --start-datetime --stop-datetime
        --include-gtids --exclude-gtids --dump --stats --json""".split():
        assert f"{option} " in options


def test_help_imports_no_command() -> None:
    """--help is quick: neither the parser of SQL nor the tables are loaded for it."""
    script = """import sys
from applier.cli.main import main
try:
    main(["--help"])
except SystemExit:
    names = ("sqlglot", "rich", "numba", "applier.replay_loop", "zstandard")
    print([name for name in names if name in sys.modules])
"""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[-1] == "[]"


def test_an_unknown_command(binlag: Run) -> None:
    code, _, err = binlag("replya")
    assert (code, "replya" in err) == (2, True)


def test_as_a_process(tmp_path: Path, schema: Path) -> None:
    """Exit codes 0, 1 and 2, as a shell sees them; never a traceback."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "applier", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    path = small_log(tmp_path)
    for arguments, code in (
        (("replay", path, "--schema", schema), 0),
        (("replay", path), 1),
        (("replay", schema), 2),
        (("explain", schema), 0),
    ):
        result = run(*arguments)
        assert result.returncode == code, result.stderr
        assert "Traceback" not in result.stderr
        assert bool(result.stderr) == (code != 0)
