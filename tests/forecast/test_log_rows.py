"""A log as a table: the same transactions however the files are cut, the same sums as the
workload's."""

from __future__ import annotations

from pathlib import Path

import pytest

from applier.errors import InputError
from applier.forecast.inventory.facts import facts_of_file
from applier.forecast.log_rows import COLUMNS, arrow_schema, batches, profile_table, read_table
from applier.forecast.workload.loads import LoadReader
from applier.forecast.workload.ranges import FileRange, expand, ranges
from applier.forecast.workload.schema import Schema
from lookup.versions import RULES
from tests.captures_support import captures, logs
from tests.forecast.logs import DELETE, UPDATE, WRITE, file, schema, transaction
from tests.forecast.workload import profile


def log(folder: Path, count: int = 60) -> str:
    kinds = (WRITE, UPDATE, DELETE)
    return file(
        folder,
        *(
            transaction(n, b"twice", kinds[n % 3], n % 7, n % 5, seconds=n)
            for n in range(1, count + 1)
        ),
    )


def cut_rows(path: str, size: int) -> list[dict[str, object]]:
    return [
        row for part in ranges([path], size) for batch in batches(part) for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("size", [200, 333, 1000, 5000, 1 << 20])
def test_cut_into_ranges_it_is_the_same_log(tmp_path: Path, size: int) -> None:
    path = log(tmp_path)
    assert cut_rows(path, size) == read_table(path).to_pylist()
    assert len(ranges([path], size)) >= min(10_000 // size, 60) // 2 + 1 if size < 5000 else True


@pytest.mark.parametrize("capture", captures(), ids=lambda capture: capture.name)
def test_captures_cut_into_ranges(capture: Path) -> None:
    for path in logs(capture):
        whole = [row for batch in batches(FileRange(str(path))) for row in batch.to_pylist()]
        parts = ranges([str(path)], 4000)
        assert [
            row for part in parts for batch in batches(part) for row in batch.to_pylist()
        ] == whole
        starts = {load.position for load in LoadReader([path])}
        assert {part.start for part in parts[1:]} <= starts


def test_a_range_is_cut_where_a_transaction_begins(tmp_path: Path) -> None:
    path = log(tmp_path)
    starts = {load.position for load in LoadReader([path])}
    cuts = [part.start for part in ranges([path], 300)][1:]
    assert len(cuts) > 10
    assert set(cuts) <= starts


def test_the_sums_are_those_of_the_workload(tmp_path: Path) -> None:
    path = log(tmp_path)
    known = Schema(facts_of_file(schema(tmp_path)), RULES["9.7"])
    lines = profile_table(read_table(path, known).to_pylist())
    workload = profile([path], schema=known)
    assert len(lines) == len(workload.tables) == 3
    for line in lines:
        load = workload.tables[f"{line['database']}.{line['table']}", line["type"]]
        assert (line["transactions"], line["events"], line["rows"], line["row_bytes"],
                line["statements"]) == (
            load.transactions, load.events, load.rows, load.row_bytes, load.statements,
        )  # fmt: skip
        assert line["distinct_keys"] == (load.distinct_values or 0)


def test_some_columns_only(tmp_path: Path) -> None:
    path = log(tmp_path)
    some = next(batches(FileRange(path), None, ["table", "rows"]))
    assert some.schema == arrow_schema(["table", "rows"])
    assert some.to_pylist()[0] == {"table": "twice", "rows": 2}
    assert list(arrow_schema().names) == list(COLUMNS)


def test_paths_are_files_folders_and_globs(tmp_path: Path) -> None:
    path = log(tmp_path)
    (tmp_path / "other.txt").write_text("no log")
    assert (
        expand(path)
        == expand(str(tmp_path))
        == expand(f"{tmp_path}/binlog.*")
        == expand(f"file://{path}")
        == [path]
    )
    assert expand(f"{path},{path}") == [path, path]
    with pytest.raises(InputError, match="no such binlog"):
        expand(str(tmp_path / "nothing*"))
