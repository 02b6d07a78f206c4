"""binlag fleet in one process and in several: the numbers of binlag forecast, for every source,
whatever becomes of the others."""

from __future__ import annotations

import gzip
import json
import pickle
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import applier
from applier.cli.main import cli
from applier.errors import BinlagError, UsageError
from applier.fleets.config import FleetSource, read_fleet
from applier.fleets.prepare import find
from applier.fleets.results import CURVE, SOURCES, TABLES, FleetResult
from applier.forecast.inventory.facts import TableFacts, facts_of_file
from applier.forecast.workload import loads as load_module
from applier.pages.fleet_report import fleet_page
from tests.binlog.build import log
from tests.fleets.made import FLEET, made_fleet, made_source
from tests.forecast.logs import UPDATE, WRITE, transaction
from tests.stores.fixtures import Bucket, bucket, moto_server

__all__ = ["bucket", "moto_server"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["fleet", *arguments], standalone_mode=False)


def forecast(folder: Path) -> dict[str, Any]:
    """The same by binlag forecast."""
    logs = sorted(str(path) for path in folder.glob("binlog.0*"))
    weight = int(folder.name[-3:])
    rows = ["--rows", f"d.plain={1000 * weight}", "--rows", "d.twice=9000"]
    given = [
        "--schema",
        str(folder / "schema.sql"),
        "--calibration",
        str(folder.parent / "prices.json"),
        "--workers",
        "2",
        "--json",
    ]
    result = CliRunner().invoke(cli, ["forecast", *logs, *given, *rows])
    assert result.exit_code == 0, result.exception
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_source_has_the_numbers_of_its_forecast(tmp_path: Path) -> None:
    result = applier.fleet(made_fleet(tmp_path))
    assert [one.source for one in result.outcomes] == ["shop-001", "shop-002", "shop-003"]
    for one in result.outcomes:
        expected = forecast(tmp_path / one.source)
        assert one.summary is not None
        same = {
            "replica",
            "curve",
            "fixes",
            "transactions",
            "rows",
            "worst",
            "what_if",
            "peak_low_seconds",
            "peak_high_seconds",
        }
        assert {name: one.summary[name] for name in same} == {name: expected[name] for name in same}
        rows_from = {"table_rows_from", "reasons", "why", "hash_scan"}
        tables = [
            {name: value for name, value in table.items() if name not in rows_from}
            for table in expected["tables"]
        ]
        assert [
            {name: value for name, value in table.items() if name not in rows_from}
            for table in one.summary["tables"]
        ] == tables
    assert len({one.peak for one in result.outcomes}) == 3


def test_processes_change_nothing(tmp_path: Path) -> None:
    file = made_fleet(tmp_path)
    assert applier.fleet(file, jobs=2).outcomes == applier.fleet(file).outcomes


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_schema_that_sources_share_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    file, read = made_fleet(tmp_path, 4), list[str]()
    expected = applier.fleet(file).outcomes
    with (tmp_path / "shop-004" / "schema.sql").open("a") as own:
        own.write("-- its own\n")

    def counted(path: str, **given: Any) -> dict[str, TableFacts]:
        read.append(Path(path).parent.name)
        return facts_of_file(path, **given)

    monkeypatch.setattr("applier.fleets.schemas.facts_of_file", counted)
    assert [one.summary for one in applier.fleet(file, jobs=jobs).outcomes] == [
        one.summary for one in expected
    ]
    # with jobs, another process reads what one source has
    assert read == ["shop-001", "shop-004"][: 2 if jobs == 1 else 1]


def test_a_shared_schema_that_cannot_be_read_costs_each_source_under_its_name(
    tmp_path: Path,
) -> None:
    file = made_fleet(tmp_path)
    for at in (1, 2):
        (tmp_path / f"shop-{at:03}" / "schema.sql").write_text("CREATE TABLE")
    failed = applier.fleet(file).failed
    assert [(one.source, Path((one.error or {})["file"]).parent.name) for one in failed] == [
        ("shop-001",) * 2,
        ("shop-002",) * 2,
    ]
    assert [one.error for one in applier.fleet(file, jobs=2).failed] == [
        one.error for one in failed
    ]


def test_tables_and_parquet(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    result = applier.fleet(made_fleet(tmp_path), output=tmp_path / "out")
    for name, columns, rows in (
        ("sources", SOURCES, result.sources),
        ("tables", TABLES, result.tables),
        ("curve", CURVE, result.curve),
    ):
        table = pq.read_table(tmp_path / "out" / f"{name}.parquet")
        assert table.column_names == list(columns)
        assert table.to_pylist() == rows
        assert all(list(row) == list(columns) for row in rows)
    assert [row["peak_lag_seconds"] for row in result.sources] == sorted(
        (one.peak for one in result.outcomes), reverse=True
    )
    assert {row["table"] for row in result.tables} == {"d.plain", "d.keyed", "d.twice"}
    fixed = [row for row in result.tables if row["fix"]]
    assert fixed
    assert all(
        row["fix"].startswith("ALTER TABLE") and row["fix_gain_seconds"] > 0 for row in fixed
    )


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    file, done = made_fleet(tmp_path), list[str]()

    def stop(outcome: Any) -> None:
        done.append(outcome.source)
        if len(done) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        applier.fleet(file, output=tmp_path / "out", tick=stop)
    kept = {
        path.name: path.stat().st_mtime_ns for path in (tmp_path / "out" / "finished").iterdir()
    }
    assert sorted(kept) == ["shop-001.json", "shop-002.json"]
    again = applier.fleet(file, output=tmp_path / "out")
    after = {
        path.name: path.stat().st_mtime_ns for path in (tmp_path / "out" / "finished").iterdir()
    }
    assert {name: after[name] for name in kept} == kept
    assert again.outcomes == applier.fleet(file).outcomes
    made_source(tmp_path / "shop-001", 1, transactions=31)  # another log
    (tmp_path / "out" / "finished" / "shop-002.json").write_text("{")
    assert applier.fleet(file, output=tmp_path / "out").outcomes == applier.fleet(file).outcomes


def damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def foreign(folder: Path) -> None:
    (folder / "binlog.000003").write_bytes(log(server_id=2))


def twice(folder: Path) -> None:
    (folder / "binlog.000001.gz").write_bytes(
        gzip.compress((folder / "binlog.000001").read_bytes())
    )


BAD: dict[str, tuple[Any, str]] = {
    "a damaged log": (lambda folder: damaged(folder / "binlog.000002"), "the checksum of"),
    "no log": (lambda folder: (folder / "binlog.000001").write_bytes(b"SELECT 1"),
               "not a binary log"),
    "another server's": (foreign, "was written by server id 2, binlog.000002 by 1"),
    "a gap": (lambda folder: (folder / "binlog.000002").rename(folder / "binlog.000003"),
              "is followed by binlog.000002"),
    "the same twice": (twice, "is a log of the same name and positions"),
    "a schema that does not fit": (
        lambda folder: (folder / "schema.sql").write_text(
            "CREATE DATABASE e; USE e; CREATE TABLE x (a INT);"
        ),
        "it has none of the",
    ),
    "no schema": (lambda folder: (folder / "schema.sql").unlink(), "cannot read"),
    "counts of another server": (
        lambda folder: (folder / "rows.csv").write_text(
            "table_schema,table_name,table_rows\nx,y,1\n"
        ),
        "it has none of the schema's tables",
    ),
    "no counts": (lambda folder: (folder / "rows.csv").write_text("a,b\n1,2\n"),
                  "line 1: the head line names no column table_schema"),
    "a count that is none": (
        lambda folder: (folder / "rows.csv").write_text(
            "table_schema,table_name,table_rows\nd,plain,many\n"
        ),
        "line 2: table_rows is 'many', which is not a number",
    ),
}  # fmt: skip


def test_an_index_vouches_for_a_changed_server_id(tmp_path: Path) -> None:
    file, shop = made_fleet(tmp_path), tmp_path / "shop-002"
    foreign(shop)
    (shop / "binlog.index").write_text("".join(f"./binlog.00000{n}\n" for n in (1, 2, 3)))
    assert [one.error for one in applier.fleet(file).outcomes] == [None, None, None]


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_read_costs_its_source(tmp_path: Path, what: str) -> None:
    file = made_fleet(tmp_path)
    whole = applier.fleet(file).outcomes
    harm, said = BAD[what]
    harm(tmp_path / "shop-002")
    result = applier.fleet(file, output=tmp_path / "out")
    assert [one for one in result.outcomes if one.source != "shop-002"] == [whole[0], whole[2]]
    error = result.outcomes[1].error
    assert error is not None
    assert said in error["message"]
    last = result.sources[-1]
    assert (last["source"], last["error"], last["error_code"]) == (
        "shop-002",
        error["message"],
        error["code"],
    )
    with pytest.raises(BinlagError, match=f"source shop-002: .*{re.escape(said)}"):
        applier.fleet(file, on_error="fail")
    called = run(str(file), "--json")
    assert called.return_value == 2
    assert f"source shop-002 is left out: error {error['code']}: " in called.stderr
    assert f". Next: {error['hint']}\n" in called.stderr
    assert json.loads(called.stdout)["failed"] == ["shop-002"]


def test_what_to_do_on_an_error_is_one_of_two(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="on_error: 'ignore' is not known"):
        applier.fleet(str(tmp_path / "fleet.yaml"), on_error="ignore")


def test_a_log_that_is_cut_off_is_a_note(tmp_path: Path) -> None:
    file = made_fleet(tmp_path)
    path = tmp_path / "shop-002" / "binlog.000002"
    path.write_bytes(path.read_bytes()[:-10])
    one = applier.fleet(file).outcomes[1]
    assert one.summary is not None
    assert [
        note for note in one.summary["notes"] if note.startswith("binlog.000002 is cut off at ")
    ]


def test_the_gate(tmp_path: Path) -> None:
    file = made_fleet(tmp_path)
    second, first = sorted(applier.fleet(file).outcomes, key=lambda one: one.peak)[1:]
    limit = f"{(first.peak + second.peak) / 2}s"
    called = run(str(file), "--max-lag", limit, "--json")
    assert called.return_value == 3
    assert json.loads(called.stdout)["over"] == [first.source]
    assert run(str(file), "--max-lag", "9d").return_value == 0


def test_the_fleet_on_a_store(tmp_path: Path, bucket: Bucket) -> None:
    expected = applier.fleet(made_fleet(tmp_path))
    for at in range(1, 4):
        bucket.put_folder(f"fleet/shop-{at:03}", tmp_path / f"shop-{at:03}")
    root = f"s3://{bucket.name}/fleet/{{source}}"
    text = FLEET.replace('"{source}/', f'"{root}/')
    (tmp_path / "store.yaml").write_text(text)
    found = applier.fleet(tmp_path / "store.yaml")
    assert [(one.source, one.summary) for one in found.outcomes] == [
        (one.source, one.summary) for one in expected.outcomes
    ]
    (tmp_path / "none.yaml").write_text(text.replace("/fleet/", "/nothing-*/"))
    assert run(str(tmp_path / "none.yaml")).return_value == 2


def test_a_folder_with_an_index_and_statistics_of_keys(tmp_path: Path) -> None:
    made_fleet(tmp_path)
    (tmp_path / "shop-002" / "binlog.index").write_text("./binlog.000001\n")
    (tmp_path / "keys.tsv").write_text(
        "table_schema\ttable_name\ttable_rows\tindex_name\tcardinality\nd\ttwice\t9000\tk\t90\n"
    )
    entry = {
        "name": "one",
        "logs": str(tmp_path / "shop-002"),
        "schema": str(tmp_path / "shop-002" / "schema.sql"),
    }
    plain = applier.fleet({"sources": [entry]}).outcomes[0]
    counted = applier.fleet({"sources": [{**entry, "rows": str(tmp_path / "keys.tsv")}]}).outcomes[
        0
    ]
    assert plain.files == 1
    assert plain.summary is not None
    assert counted.summary is not None
    assert counted.summary["replica"]["apply_seconds"] > plain.summary["replica"]["apply_seconds"]


def test_a_live_server_is_asked_in_each_run(tmp_path: Path) -> None:
    made_fleet(tmp_path)
    source = FleetSource(
        "one", (str(tmp_path / "shop-002" / "binlog.0*"),), "mysql://u@127.0.0.1:1"
    )
    assert find(source).files == find(source).files != ()
    assert find(source).fingerprint != find(source).fingerprint, (
        "its tables may have changed, and nothing tells"
    )


def test_versions_within_a_source_are_named(tmp_path: Path) -> None:
    file = made_fleet(tmp_path)
    folder = tmp_path / "shop-002"
    (folder / "binlog.000003").write_bytes(log(version="5.7.29"))
    one = applier.fleet(file).outcomes[1]
    assert one.summary is not None
    assert (
        "binlog.000003 is the first log of 5.7.29, those before it are of 8.0.36"
        in one.summary["notes"]
    )


def test_a_long_name_is_kept_as_any_other(tmp_path: Path) -> None:
    made_fleet(tmp_path, 1)
    names = ["ж" * 120 + end for end in "ab"]  # six letters each in the name of a file
    entry = {
        "logs": str(tmp_path / "shop-001" / "binlog.0*"),
        "schema": str(tmp_path / "shop-001" / "schema.sql"),
    }
    fleet = {"sources": [{"name": name, **entry} for name in names]}
    first = applier.fleet(fleet, output=tmp_path / "out")
    kept = sorted(
        (path.name, path.stat().st_mtime_ns) for path in (tmp_path / "out" / "finished").iterdir()
    )
    assert len(kept) == 2
    assert applier.fleet(fleet, output=tmp_path / "out") == first
    assert (
        sorted(
            (path.name, path.stat().st_mtime_ns)
            for path in (tmp_path / "out" / "finished").iterdir()
        )
        == kept
    )


def test_the_terminal_has_the_notes_of_all_sources(tmp_path: Path) -> None:
    file = made_fleet(tmp_path, 5)
    path = tmp_path / "shop-002" / "binlog.000002"
    path.write_bytes(path.read_bytes()[:-10])
    file.write_text(FLEET.replace("calibration: prices.json", ""))
    shown = run(str(file)).stdout.splitlines()
    assert [
        line for line in shown if line.startswith("note: shop-002: binlog.000002 is cut off at ")
    ]
    assert [
        line for line in shown if line.startswith("note: shop-001, shop-002, shop-003 and 2 more: ")
    ]


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_all_logs_are_worth_is_compiled_before_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    """Each log may be too short for that by itself."""
    file, compiled = made_fleet(tmp_path), list[str]()
    size = sum(sum(find(source).sizes) for source in read_fleet(file))
    plan = "applier.forecast.plan"
    monkeypatch.setattr(f"{plan}.compiled_loads", lambda: compiled.append("loads") or 1)
    monkeypatch.setattr(f"{plan}.compiled_steps", lambda: compiled.append("steps"))
    for worth, expected in ((size + 1, []), (size, ["loads", "steps"])):
        monkeypatch.setattr(f"{plan}.WORTH_COMPILING_BYTES", worth)
        applier.fleet(file, jobs=jobs)
        assert compiled == expected


def test_the_report_needs_nothing_else_and_escapes_names(tmp_path: Path) -> None:
    made_fleet(tmp_path)
    shutil.copytree(tmp_path / "shop-001", tmp_path / "<b>&'")
    (tmp_path / "shop-002" / "schema.sql").unlink()
    assert (
        run(
            str(tmp_path / "fleet.yaml"), "--output", str(tmp_path / "out"), "--max-lag", "1ms"
        ).return_value
        == 3
    )
    text = (tmp_path / "out" / "report.html").read_text()
    assert not re.findall(
        r"""\bsrc=|href="?(?!["#]|data:)|href="(?!#|data:)|https?://|@import|url\(""", text
    )
    assert "<b>&'" not in text
    assert "&lt;b&gt;&amp;&#x27;" in text
    headings = [
        "Left out, since it could not be read",
        "Who will be late",
        "Where the time goes",
        "What to do, in order",
        "Lag over time",
    ]
    assert [heading for heading in headings if heading not in text] == []
    assert text.count("<details") == 3


def test_a_report_of_nothing() -> None:
    assert "No source could be read." in fleet_page(FleetResult([]))


def test_where_nobody_may_write(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    called = run(str(made_fleet(tmp_path)), "--output", str(tmp_path / "file" / "out"))
    assert "--output: cannot write" in str(called.exception)


def test_transactions_travel_in_batches_and_give_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Spark's tasks hand on, through pickle: plain transactions as columns, from ranges whose
    readers number shapes on their own."""
    from applier.fleets import spark as fleet_spark
    from applier.fleets.prepare import forecast, prepare
    from applier.forecast.workload.load_batch import LoadBatch
    from applier.forecast.workload.ranges import ranges

    monkeypatch.setattr(load_module, "smallest_log_bytes", lambda: 0)
    monkeypatch.setattr(load_module, "MOST_FRUITLESS", 0)
    tables, kinds = (b"plain", b"keyed"), (WRITE, UPDATE)
    parts = [
        transaction(at, tables[at > 100], kinds[at % 2], *range(at % 4 + 1), seconds=at / 5)
        for at in range(1, 201)
    ]
    fleet = made_fleet(tmp_path, 1, files=1)
    (tmp_path / "shop-001" / "binlog.000001").write_bytes(
        log(*(event for one in parts for event in one))
    )
    for source in read_fleet(fleet):
        one = prepare(find(source))
        payloads = [
            payload
            for path in one.files
            for part in ranges([path], 6000)
            for payload in fleet_spark._payloads(one, path, part.start, part.stop)
        ]
        batches = [payload for payload in payloads if isinstance(payload, LoadBatch)]
        assert sum(map(len, batches)) > 60 and len(batches) > 4
        rows, notes = [{"payload": pickle.dumps(payload)} for payload in payloads], list[str]()
        assert forecast(one, fleet_spark._transactions(rows, notes), notes) == forecast(one)
