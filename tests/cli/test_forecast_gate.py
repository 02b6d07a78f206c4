"""`binlag forecast` as a gate of CI: against an earlier forecast, as Markdown and as a JUnit
file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from applier.cli.main import cli
from tests.forecast.logs import DELETE, UPDATE, calibration, file, transaction

KEYED = (
    "CREATE DATABASE d; USE d; CREATE TABLE t (a INT NOT NULL PRIMARY KEY); "
    "CREATE TABLE u (a INT PRIMARY KEY);"
)
BARE = KEYED.replace("t (a INT NOT NULL PRIMARY KEY)", "t (a INT)")
Command = Callable[..., Result]


@pytest.fixture
def forecast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(tmp_path)
    first = [transaction(number, b"t", DELETE, number) for number in range(1, 5)]
    file(tmp_path, *first, *(transaction(number, b"u", UPDATE, number) for number in range(5, 9)))
    calibration().save(tmp_path / "prices.json")
    for name, text in (("keyed", KEYED), ("bare", BARE)):
        (tmp_path / f"{name}.sql").write_text(text)

    def run(schema: str, *arguments: str, rows: str = "*=1000", fails: bool = False) -> Result:
        given = ["binlog.000001", "--schema", f"{schema}.sql", "--rows", rows, *arguments]
        result = CliRunner().invoke(
            cli, ["forecast", "--calibration", "prices.json", *given], standalone_mode=False
        )
        assert fails or result.exception is None, result.exception
        return result

    Path("main.json").write_text(run("keyed", "--json").stdout)
    Path("bare.json").write_text(run("bare", "--json").stdout)
    return run


def worse_than(result: Result) -> list[str]:
    return [line for line in result.stderr.splitlines() if line.startswith("binlag: worse than")]


def test_worse_fails_and_says_by_how_much(forecast: Command) -> None:
    result = forecast("bare", "--baseline", "main.json")
    assert result.return_value == 3
    replica, table = worse_than(result)
    start, was = "binlag: worse than main.json: ", r"was [0-9.]+ ms \([0-9,]+ times\)"
    assert re.fullmatch(rf"{start}the replica is up to 2\.0 s behind, {was}", replica)
    assert re.fullmatch(rf"{start}d\.t takes 2\.0 s, {was}; d\.t has no key", table)
    found = json.loads(forecast("bare", "--baseline", "main.json", "--json").stdout)
    assert [one["table"] for one in found["worse"]] == [None, "d.t"]
    assert found["worse"][1]["seconds"] > 1000 * found["worse"][1]["seconds_before"]


@pytest.mark.parametrize(
    ("schema", "baseline"), [("keyed", "main.json"), ("bare", "bare.json"), ("keyed", "bare.json")]
)
def test_as_it_was_or_better_passes(forecast: Command, schema: str, baseline: str) -> None:
    result = forecast(schema, "--baseline", baseline)
    assert (result.return_value, worse_than(result)) == (0, [])


def test_a_little_more_is_not_worse(forecast: Command) -> None:
    grown = ("bare", "--baseline", "bare.json")
    assert forecast(*grown, rows="*=1040").return_value == 0
    assert forecast(*grown, rows="*=1080").return_value == 3
    assert forecast(*grown, "--tolerance", "10", rows="*=1080").return_value == 0
    assert forecast(*grown, "--tolerance", "0", rows="*=1040").return_value == 3


def test_with_a_limit_both_must_be_crossed(forecast: Command) -> None:
    """A replica that was late before may stay late; one that is worse and still within the limit
    passes, too."""
    assert forecast("bare", "--max-lag", "1s").return_value == 3
    assert forecast("bare", "--max-lag", "1s", "--baseline", "bare.json").return_value == 0
    assert forecast("bare", "--max-lag", "1h", "--baseline", "main.json").return_value == 0
    result = forecast("bare", "--max-lag", "1s", "--baseline", "main.json", "--json")
    found = json.loads(result.stdout)
    assert result.return_value == 3
    assert found["max_lag_seconds"] == 1
    assert [one["table"] for one in found["offenders"]] == ["d.t"]


def _without(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda found: found.pop(name)


def _another_log(found: dict[str, Any]) -> None:
    found["transactions"] = 7


def _other_prices(found: dict[str, Any]) -> None:
    found["calibration"]["date"] = "2020-02-02"


@pytest.mark.parametrize(
    ("change", "told"),
    [(_another_log, "of another log: 7 transactions, this one 8"),
     (_other_prices, "prices are of 8.0.36, 2020-02-02, not of"),
     (_without("replica"), "not the output of binlag forecast --json"),
     (_without("tables"), "not the output of binlag forecast --json")],
)  # fmt: skip
def test_a_baseline_that_does_not_fit(
    forecast: Command, change: Callable[[dict[str, Any]], None], told: str
) -> None:
    found = json.loads(Path("main.json").read_text())
    change(found)
    Path("other.json").write_text(json.dumps(found))
    result = forecast("bare", "--baseline", "other.json", fails=True)
    assert told in str(result.exception)
    assert getattr(result.exception, "exit_code", None) == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["--baseline", "keyed.sql"], "it is not JSON"),
     (["--baseline", "none.json"], "cannot read the baseline"),
     (["--tolerance", "3"], "add --baseline"), (["--junit", "j.xml"], "nothing can fail"),
     (["--json", "--markdown"], "one output"),
     (["--max-lag", "1s", "--junit", "none/j.xml"], "j.xml")],
)  # fmt: skip
def test_what_is_wrong_is_said(forecast: Command, arguments: list[str], told: str) -> None:
    result = forecast("bare", *arguments, fails=True)
    assert told in str(result.exception)
    assert getattr(result.exception, "exit_code", None) == 2


def test_junit_has_a_case_for_each_table(forecast: Command) -> None:
    forecast("bare", "--baseline", "main.json", "--junit", "j.xml")
    suite = ElementTree.parse("j.xml").getroot()[0]
    cases = {case.get("name"): case.find("failure") for case in suite}
    assert (suite.get("tests"), suite.get("failures"), list(cases)) == (
        "3",
        "2",
        ["the replica", "d.t", "d.u"],
    )
    failure = cases["d.t"]
    assert failure is not None and "ALTER TABLE `d`.`t`" in str(failure.text)
    assert "worse than main.json" in str(failure.get("message"))
    assert cases["d.u"] is None
    forecast("keyed", "--max-lag", "1h", "--junit", "j.xml")
    assert ElementTree.parse("j.xml").getroot()[0].get("failures") == "0"


def test_markdown(forecast: Command) -> None:
    result = forecast("bare", "--baseline", "main.json", "--markdown")
    lines = result.stdout.splitlines()
    assert lines[0] == "### Replica lag forecast fails"
    assert "| d.t | 99." in result.stdout
    assert sum(line.startswith("- worse than main.json:") for line in lines) == 2
    assert "   ALTER TABLE `d`.`t` ADD COLUMN" in result.stdout
    assert forecast("keyed", "--max-lag", "1h", "--markdown").stdout.startswith(
        "### Replica lag forecast passes\n"
    )
    assert forecast("keyed", "--markdown").stdout.startswith("### Replica lag forecast\n")


def test_names_open_no_cell_and_no_tag(tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text("CREATE DATABASE d; USE d; CREATE TABLE `<b>|x` (a INT);")
    log = file(tmp_path, transaction(1, b"<b>|x", DELETE, 1))
    given = [log, "--schema", str(tmp_path / "s.sql"), "--rows", "*=1000", "--markdown"]
    result = CliRunner().invoke(cli, ["forecast", *given], standalone_mode=False)
    row = next(line for line in result.stdout.splitlines() if line.startswith("| d."))
    assert row.startswith("| d.&lt;b>\\|x |")
