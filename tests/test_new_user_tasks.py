"""What four people want of binlag, typed as they would (scripts/new_user): each ends in the file
that the person wanted."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.session import environment, scratch_copy

LONGEST_SECONDS = 600


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scratch_copy(tmp_path_factory.mktemp("clone"))


def done(task: str, checkout: Path, folder: Path) -> Path:
    """The folder in which a task has left its files."""
    work = folder / "work"
    programs = (Path(sys.executable).parent, checkout / ".venv" / "bin")
    script = checkout / "scripts" / "new_user" / f"{task}.sh"
    variables = environment(folder / "home", *programs, PYTHONPATH=str(checkout))
    run = subprocess.run(
        ["bash", script, checkout, work],
        env=variables,
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return work


@pytest.mark.in_ci
def test_a_dba_gets_a_list_of_tables_and_statements(checkout: Path, tmp_path: Path) -> None:
    work = done("dba", checkout, tmp_path)
    rows = list(csv.DictReader((work / "keys.csv").read_text().splitlines()))
    assert {"shop.cart_item", "shop.audit_log"} <= {row["table"] for row in rows}
    reads = [float(row["rows_read_per_change"] or "inf") for row in rows]
    assert reads == sorted(reads, reverse=True)
    fixes = (work / "fixes.sql").read_text().splitlines()
    assert fixes
    assert all(fix.startswith("ALTER TABLE `") and fix.endswith(";") for fix in fixes)
    assert "| shop.cart_item |" in (work / "keys.md").read_text().replace("`", "")


@pytest.mark.in_ci
def test_an_engineer_gets_a_report_and_a_gate(checkout: Path, tmp_path: Path) -> None:
    work = done("engineer", checkout, tmp_path)
    assert "shop.audit_log" in (work / "forecast.html").read_text()
    assert (
        json.loads((work / "baseline.json").read_text())["tables"][0]["table"] == "shop.audit_log"
    )
    assert "<failure" in (work / "gate.xml").read_text()
    assert (work / "comment.md").read_text().strip()


def test_a_developer_of_consumers_gets_the_crash_that_breaks_one(
    checkout: Path, tmp_path: Path
) -> None:
    work = done("cdc_developer", checkout, tmp_path)
    assert "disks after a crash are wrong" in (work / "verdict.txt").read_text()
    changes = [json.loads(line) for line in (work / "changes.jsonl").read_text().splitlines()]
    assert any("rows" in str(change) for change in changes)


@pytest.mark.skipif(find_spec("pyspark") is None, reason="PySpark is not installed")
@pytest.mark.skipif(
    os.environ.get("BINLAG_ALL_CASES") != "1",
    reason="Spark starts twice; BINLAG_ALL_CASES=1 runs it",
)
def test_a_data_engineer_gets_the_fleet_and_the_changes_of_a_table(
    checkout: Path, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    work = done("data_engineer", checkout, tmp_path)
    tables = pq.read_table(work / "fleet" / "tables.parquet").to_pylist()
    assert tables[0]["table"] == "shop.audit_log"
    assert "shop.audit_log" in (work / "fleet.html").read_text()
    changes = pq.read_table(work / "cart_items.parquet")
    assert {"before", "after", "type", "gtid", "commit_time"} <= set(changes.column_names)
    assert sorted(set(changes["type"].to_pylist())) == ["delete", "insert", "update"]
