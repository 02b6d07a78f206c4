"""`binlag forecast` and `binlag measure` as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from applier.cli.commands.forecast import seconds
from applier.cli.main import cli
from applier.errors import UsageError
from applier.forecast.measurement.measured import read_parquet
from tests.forecast.logs import UPDATE, calibration, file, schema, transaction

STORY = Path(__file__).parent.parent / "captures" / "forecast"


def forecast(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["forecast", *arguments], standalone_mode=False)
    assert result.exception is None, result.exception
    assert result.return_value == code
    return result


def test_the_story(tmp_path: Path) -> None:
    """A table of a hundred million rows without a key puts the replica hours behind; a primary key
    keeps it level."""
    rows = ["--rows", "shop.audit_log=100_000_000", "--rows", "*=500000"]
    result = forecast(
        str(STORY / "binlog.000001"),
        "--schema",
        str(STORY / "schema.sql"),
        *rows,
        "--max-lag",
        "60s",
        code=3,
    )
    assert "never catches up" in result.output
    assert " h behind" in result.output
    assert "shop.audit_log has no key" in result.output
    assert result.stderr.count("binlag: over 60s: shop.audit_log") == 1
    cured = next(line for line in result.output.splitlines() if "add a primary key" in line)
    assert "never" not in cured and " h " not in cured


def test_what_one_of_several_names_misses_is_said() -> None:
    """As `replay` has it."""
    names = ["--table", "shop.audit_log", "--table", "shop.typo", "--exclude-table", "shop.x"]
    told = json.loads(
        forecast(
            str(STORY / "binlog.000001"), "--schema", str(STORY / "schema.sql"), *names, "--json"
        ).output
    )
    found = [text for text in told["notes"] if "names nothing" in text]
    assert found == [
        "--table shop.typo names nothing in the log",
        "--exclude-table shop.x names nothing in the log",
    ]


def test_json_is_one_object(tmp_path: Path) -> None:
    log = file(tmp_path, *(transaction(n, b"plain", UPDATE, n, seconds=n) for n in range(1, 4)))
    path = tmp_path / "c.json"
    calibration().save(path)
    given = [
        log,
        "--schema",
        schema(tmp_path),
        "--rows",
        "d.plain=999",
        "--calibration",
        str(path),
        "--json",
        "--max-lag",
        "100ms",
    ]
    found = json.loads(forecast(*given, code=3).stdout)
    assert found["transactions"] == 3
    assert found["replica"]["peak_lag_seconds"] == pytest.approx(0.50111)
    assert [one["table"] for one in found["offenders"]] == ["d.plain"]
    assert found["calibration"]["p90_error"] == 0.5
    assert forecast(*given[:-1], "10s").return_value == 0


def test_a_described_workload(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(
        "hours: 1\ntables: {a.t: {rows: 1000000}}\ntraffic: [{table: a.t, type: "
        "delete, rows_per_statement: 10, statements_per_hour: 3600}]"
    )
    result = forecast("--workload", str(path), "--what-if", "primary-key", "--what-if", "index=5")
    assert "3,600 transactions, 36,000 rows" in result.output
    assert "secondary index, rows per value 5" in result.output


def test_a_report_is_written(tmp_path: Path) -> None:
    log = file(tmp_path, transaction(1, b"plain", UPDATE, 1))
    forecast(
        log, "--schema", schema(tmp_path), "--rows", "*=10", "--report", str(tmp_path / "r.html")
    )
    assert (tmp_path / "r.html").stat().st_size > 100_000


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "binlog files or --workload"), (["LOG"], "needs --schema"),
        (["LOG", "--schema", "SCHEMA", "--max-lag", "soon"], "is not a time"),
        (["LOG", "--schema", "SCHEMA", "--server", "nine"], "--server"),
        (["LOG", "--schema", "none.sql"], "cannot read the schema"),
        (["LOG", "--schema", "SCHEMA", "--calibration", "none.json"],
         "cannot read the calibration"),
        (["LOG", "--schema", "SCHEMA", "--row-search", "FAST"], "row-search"),
        (["--workload", "none.yaml"], "cannot read the workload"),
        (["LOG", "--schema", "SCHEMA", "--what-if", "row-search=TABLE_SCAN", "--server", "9.7"],
         "has no slave_rows_search_algorithms"),
        (["LOG", "--schema", "SCHEMA", "--follow"], "add --replica"),
        (["LOG", "--schema", "SCHEMA", "--behind", "soon"], "--behind: 'soon'"),
        (["LOG", "--replica", "mysql://u@127.0.0.1:1", "--follow", "--max-lag", "5s"],
         "--follow and --max-lag"),
        (["LOG", "--schema", "mysql://u@127.0.0.1:1"], "cannot read the schema of mysql://u@127.0.0.1:1"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(
    tmp_path: Path, arguments: list[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BINLAG_PASSWORD", "x")
    words = {"LOG": file(tmp_path, transaction(1, b"plain", UPDATE, 1)), "SCHEMA": schema(tmp_path)}
    result = CliRunner().invoke(
        cli, ["forecast", *(words.get(one, one) for one in arguments)], standalone_mode=False
    )
    assert told in str(result.exception)
    assert getattr(result.exception, "exit_code", None) == 2


def test_times() -> None:
    assert [seconds(text) for text in ("60s", "5m", "1.5h", "250ms", "7")] == [
        60,
        300,
        5400,
        0.25,
        7,
    ]
    for text in ("", "x", "5 parsecs", "1.2.3s"):
        with pytest.raises(UsageError):
            seconds(text)


def test_measuring_in_memory_keeps_the_cells(tmp_path: Path) -> None:
    path = tmp_path / "cells.parquet"
    given = [
        "--table",
        str(path),
        "--largest",
        "1000",
        "--quick",
        "--server",
        "5.7",
        "--row-search",
        "INDEX_SCAN,HASH_SCAN",
    ]
    first = CliRunner().invoke(cli, ["measure", *given], standalone_mode=False)
    assert first.exception is None, first.exception
    cells = read_parquet(path)
    assert f"{len(cells)} cells measured" in first.output
    assert len(cells) > 5
    again = CliRunner().invoke(cli, ["measure", *given], standalone_mode=False)
    assert f"0 cells measured, {len(cells)} were there" in again.output
    assert read_parquet(path) == cells


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--output", "c.json"], "the emulator's"), ([], "nothing would be kept"),
        (["--table", "t", "--server", "7"], "--server"),
        (["--table", "t", "--row-search", "INDEX_SCAN"], "has no slave_rows_search_algorithms"),
        (["--table", "t", "--into", "postgres://x"], "not a server address"),
    ],
)  # fmt: skip
def test_measuring_wrongly(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["measure", *arguments], standalone_mode=False)
    assert told in str(result.exception)
