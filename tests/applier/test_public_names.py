"""What the package offers: one function for each use, typed results, and logs named in every
way."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

import applier
from applier.errors import InputError, UsageError
from tests.forecast.logs import DELETE, UPDATE, WRITE, file, schema, transaction

DEMO = Path(__file__).parent.parent.parent / "demo"
NAMES = [
    "BinlagError", "InputError", "Replica", "ReplicationError", "Tables", "UsageError",
    "__version__",
    "crash_points", "events", "explain", "fleet", "forecast", "load_schema", "replay",
]  # fmt: skip


def test_exactly_the_public_names_are_listed() -> None:
    import applier.binlog.reader  # a submodule that was imported is no public name

    assert dir(applier) == NAMES
    assert all(getattr(applier, name) is not None for name in NAMES)


@pytest.mark.parametrize("first", ["", "import applier.forecast.plan"])
def test_forecast_is_a_function_whatever_was_imported_before(first: str) -> None:
    program = (
        "import sys, applier\n"
        "assert not any(name in sys.modules for name in ('pyarrow', 'numba', 'zstandard', "
        "'sqlglot'))\n"
        f"{first}\n"
        "done = applier.forecast(sys.argv[1], sys.argv[2], row_counts='*=1000000')\n"
        "from applier.forecast.plan import Forecasted\n"
        "assert isinstance(done, Forecasted) and done.summary()['tables']\n"
        "assert callable(applier.forecast)\n"
    )
    arguments = [
        sys.executable,
        "-c",
        program,
        str(DEMO / "binlog.000001"),
        str(DEMO / "before.sql"),
    ]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def named(folder: Path) -> dict[str, object]:
    """One log of three transactions, named in each way."""
    path = Path(file(folder, *(transaction(n, b"plain", WRITE, n) for n in (1, 2, 3))))
    packed = folder / "packed" / f"{path.name}.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(path.read_bytes()))
    index = folder / "binlog.index"
    index.write_text(f"./{path.name}\n")
    return {
        "text": str(path),
        "path": path,
        "list": [path],
        "pattern": f"{folder}/binlog.*",
        "patterns": iter([f"{folder}/binlog.0*"]),
        "index": index,
        "folder": folder,
        "compressed": packed,
    }


@pytest.mark.parametrize(
    "way", ["text", "path", "list", "pattern", "patterns", "index", "folder", "compressed"]
)
def test_logs_are_named_in_every_way(tmp_path: Path, way: str) -> None:
    files = named(tmp_path)[way]
    expected = list(applier.events(tmp_path / "binlog.000001"))
    found = list(applier.events(files))  # type: ignore[arg-type]
    assert [record.as_dict() for record in found] == [record.as_dict() for record in expected]
    tables = applier.load_schema("CREATE TABLE d.plain (a INT);")
    assert applier.replay(named_again(tmp_path, way), into=tables).transactions == 3  # type: ignore[arg-type]
    assert tables["d.plain"].rows() == [(1,), (2,), (3,)]


def named_again(folder: Path, way: str) -> object:
    return [f"{folder}/binlog.0*"] if way == "patterns" else {
        "text": f"{folder}/binlog.000001", "path": folder / "binlog.000001",
        "list": (folder / "binlog.000001",),
        "pattern": f"{folder}/binlog.*", "index": f"{folder}/binlog.index", "folder": f"{folder}",
        "compressed": [folder / "packed" / "binlog.000001.gz"],
    }[way]  # fmt: skip


def test_a_pattern_that_nothing_fits(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file fits"):
        applier.replay(f"{tmp_path}/nothing.*")


def test_events_as_a_table_and_as_frames(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        *(
            transaction(n, b"plain", kind, 1, 2)
            for n, kind in ((1, WRITE), (2, UPDATE), (3, DELETE))
        ),
    )
    events = applier.events(path)
    records = list(events)
    table = events.to_arrow()
    assert table.num_rows == len(records)
    assert table.column("type").to_pylist() == [record.event.name for record in records]
    assert [rows for rows in table.column("rows").to_pylist() if rows is not None] == [2, 2, 2]
    assert list(events.to_pandas()["position"]) == [record.event.position for record in records]
    frame = events.to_polars()
    assert frame.columns == table.column_names
    assert frame["end_log_pos"].to_list() == table.column("end_log_pos").to_pylist()


def test_events_of_one_table_with_values(tmp_path: Path) -> None:
    path = file(tmp_path, transaction(1, b"plain", WRITE, 1), transaction(2, b"keyed", WRITE, 2))
    found = [
        record.rows for record in applier.events(path, rows=True, table="d.keyed") if record.rows
    ]
    assert found == [[(None, {"@1": 2})]]


def test_a_log_that_ends_in_a_transaction_is_said(tmp_path: Path) -> None:
    path = file(
        tmp_path, transaction(1, b"plain", WRITE, 1), transaction(2, b"plain", WRITE, 2)[:-1]
    )
    events = applier.events(path)
    assert events.incomplete is None
    assert list(events)
    assert events.incomplete is not None
    assert "has no end" in events.incomplete


def test_explain(tmp_path: Path) -> None:
    found = applier.explain(schema(tmp_path), server="5.7")
    assert {one.definition.full_name for one in found} == {
        "d.plain",
        "d.keyed",
        "d.twice",
        "d.maybe",
    }
    assert found[-1].definition.full_name == "d.keyed"
    assert [rules.name for rules in found.servers] == ["5.7"]
    assert next(found.as_dicts())["table"] == "d.plain"
    with pytest.raises(UsageError, match="no such table"):
        applier.explain(schema(tmp_path), table="d.keyd")


def test_crash_points() -> None:
    cells = applier.crash_points(
        transactions=3, server="5.7", repository="TABLE", sync=1, recovery=True, auto_position=True,
        workers=0,
        engine="InnoDB", kinds=["process"], jobs=1,
    )  # fmt: skip
    assert [(cell.setup.repository, str(cell.kind), cell.safe) for cell in cells] == [
        ("TABLE", "process", True)
    ]
    assert cells[0].points > 10


def test_replica() -> None:
    from applier.replica.replica import Replica

    assert applier.Replica is Replica
