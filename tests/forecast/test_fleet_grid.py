"""The shapes that a fleet has, and the cells that measure them: from the log's own events to what
the server is given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import applier
from applier.cli.main import cli
from applier.errors import InputError, UsageError
from applier.fleets.results import SHAPES
from applier.forecast.lag.part_kinds import part_kind, two_digits
from applier.forecast.measurement.cell_log import make_log
from applier.forecast.measurement.fleet_grid import COVERED, LEAST_ROWS, fleet_grid, read_shapes
from applier.forecast.measurement.measured import read_parquet
from applier.forecast.measurement.measurement_grid import MOST_READS, Cell, grid
from applier.forecast.workload.loads import LoadReader
from applier.forecast.workload.transaction_load import LoadShape
from lookup.table_shape import KEY_KINDS, NO_KEY, OTHER, PRIMARY, UNIQUE
from lookup.versions import rules_for
from tests.fleets.made import made_fleet

SHAPE: dict[str, Any] = {
    "source": "shop", "server": "9.7", "table": "d.t", "kind": "update", "image": "full",
    "key": PRIMARY, "rows_per_value": 1.0, "indexes": 1, "columns": 6, "table_rows": 54_321.0,
    "row_bytes": 99.6, "rows_per_event": 2.4, "events_per_transaction": 4.0,
    "statements_per_transaction": 2.0, "transactions": 100, "events": 400, "rows": 960,
    "algorithm": "index scan", "seconds": 1.0,
}  # fmt: skip
RULES = rules_for("9.7")


def cell_of(largest: int = 100_000, **changed: Any) -> tuple[Cell, list[str]]:
    """The cell of SHAPE but for what is given, and what is said besides the first line."""
    found = fleet_grid([SHAPE | changed], RULES, largest=largest)
    return found.cells[0], list(found.notes[1:])


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["measure", *map(str, arguments)], standalone_mode=False)


def test_a_cell_is_its_shape(tmp_path: Path) -> None:
    cell, said = cell_of()
    assert said == []
    assert (cell.key, cell.kind, cell.rows, cell.rows_per_event, cell.events, cell.statements) == (
        PRIMARY,
        "update",
        54_000,
        2,
        4,
        2,
    )
    assert len(cell.definition.keys) == 1 and len(cell.definition.columns) == 6
    (tmp_path / "log").write_bytes(make_log(cell))
    loads = list(LoadReader([tmp_path / "log"]))
    (applied,) = loads[-1].applied.values()
    assert (applied.events, applied.rows, applied.statements) == (4, 8, 2)
    assert 98 <= applied.row_bytes / (2 * applied.rows) <= 102


@pytest.mark.parametrize("server", ["5.7", "8.0", "9.7", "mariadb"])
@pytest.mark.parametrize("kind", ["write", "update", "delete"])
@pytest.mark.parametrize("key", KEY_KINDS)
def test_every_shape_has_a_cell_that_changes_half_of_its_table_at_most(
    key: str, kind: str, server: str
) -> None:
    sizes = [
        (1.0, 1.0, 1.0),
        (1.4, 7.0, 3.0),
        (180.0, 1.0, 1.0),
        (60.0, 40.0, 2.0),
        (0.2, 3e5, 1e5),
        (1e6, 1.0, 0.0),
    ]
    for table_rows in (0.0, 1_500.0, 1e9):
        for rows, events, statements in sizes:
            shape = SHAPE | {
                "key": key,
                "kind": kind,
                "rows_per_value": 33.3,
                "table_rows": table_rows,
                "rows_per_event": rows,
            }
            shape |= {
                "events_per_transaction": events,
                "statements_per_transaction": statements,
                "columns": 300,
                "row_bytes": 5_000.0,
            }
            (cell,) = fleet_grid([shape], rules_for(server), largest=20_000).cells
            assert cell.changed * 2 <= cell.rows <= 20_000
            assert cell.rows_per_value == (33 if key == OTHER else 1)
            scans = cell.events * (1 if server in ("8.0", "9.7") else cell.rows_per_event)
            smallest = max(2 * cell.rows_per_event * cell.events, LEAST_ROWS)
            assert (
                key != NO_KEY
                or kind == "write"
                or cell.rows * scans <= MOST_READS * 1.05
                or cell.rows == smallest
            )


def test_what_differs_from_the_fleet_is_said_with_its_share() -> None:
    smaller = ["larger tables are measured with 10,000 rows (100% of the seconds)"]
    assert cell_of(largest=10_000) == (cell_of(table_rows=10_000.0)[0], smaller)
    assert cell_of(image="partial")[1] == [
        "images of some columns are measured as whole ones as long (100% of the seconds)"
    ]
    assert cell_of(row_bytes=4_000.0)[1] == ["long rows are measured shorter (100% of the seconds)"]
    assert cell_of(rows_per_event=40_000.0)[1] == [
        "transactions that change most of a table are measured smaller (100% of the seconds)"
    ]
    shapes = [SHAPE | {"key": NO_KEY, "rows_per_event": 180.0, "seconds": 3.0}, SHAPE]
    assert fleet_grid(shapes, rules_for("5.7"), largest=100_000,
                      row_search="INDEX_SCAN,TABLE_SCAN").notes == [
        "cells of the fleet: 2, for 100.0% of its seconds",
        "scans that would take minutes are measured in smaller tables (75% of the seconds)",
    ]  # fmt: skip


def test_the_dearest_come_first_and_equal_ones_are_one() -> None:
    shapes = [
        SHAPE
        | {"source": f"s{at}", "table": f"d.t{at}", "table_rows": 54_000.0 + at, "seconds": 2.0}
        for at in range(3)
    ]
    shapes += [
        SHAPE | {"key": UNIQUE, "seconds": 5.0},
        SHAPE | {"kind": "delete", "seconds": 11 * (1 - COVERED) / 2},
    ]
    found = fleet_grid(reversed(shapes), RULES, largest=100_000)
    assert [(cell.key, cell.kind) for cell in found.cells] == [
        (PRIMARY, "update"),
        (UNIQUE, "update"),
    ]
    assert found.notes == ["cells of the fleet: 2, for 99.5% of its seconds"]
    with pytest.raises(InputError, match="has no work"):
        fleet_grid([], RULES, largest=1000)


def test_kinds_of_parts() -> None:
    assert [two_digits(value) for value in (0, 7, 99, 104, 105, 994, 995, 12_345)] == [
        0,
        7,
        99,
        100,
        110,
        990,
        1000,
        12_000,
    ]
    target = LoadShape("d.t", "write", 1, (), (0,))
    assert part_kind(target, 3, 1001, 2) == (target, 330, 3, 2)
    assert part_kind(target, 0, 0, 0)[1:] == (0, 0, 0)


def test_the_fleet_writes_its_shapes_and_measure_reads_them(tmp_path: Path) -> None:
    result = applier.fleet(made_fleet(tmp_path), output=tmp_path / "out")
    shapes = read_shapes(tmp_path / "out")
    assert shapes == result.shapes and all(list(one) == list(SHAPES) for one in shapes)
    for outcome in result.outcomes:
        summary, mine = (
            outcome.summary or {},
            [one for one in shapes if one["source"] == outcome.source],
        )
        assert sum(one["rows"] for one in mine) == summary["rows"] > 0
        for table in summary["tables"]:
            of_table = [one for one in mine if one["table"] == table["table"]]
            assert (
                sum(one["events"] for one in of_table),
                sum(one["rows"] for one in of_table),
            ) == (table["events"], table["rows"])
            assert sum(one["seconds"] for one in of_table) == pytest.approx(
                table["seconds"], rel=0.1
            )
    told = run(
        "--from", tmp_path / "out", "--table", tmp_path / "cells.parquet", "--largest", "1000"
    )
    assert told.exit_code == 0, told.exception
    measured, theirs = (
        {one.cell for one in read_parquet(tmp_path / "cells.parquet")},
        fleet_grid(shapes, RULES, largest=1000).cells,
    )
    assert measured == {*theirs, *grid(RULES, largest=1000, quick=True)}
    assert f"cells of the fleet: {len(theirs)}, for " in told.stderr


def test_minutes_end_the_cells_of_the_fleet_only(tmp_path: Path) -> None:
    applier.fleet(made_fleet(tmp_path), output=tmp_path / "out")
    theirs = fleet_grid(read_shapes(tmp_path / "out"), RULES, largest=1000).cells
    limited = run(
        "--from",
        tmp_path / "out",
        "--table",
        tmp_path / "cells.parquet",
        "--largest",
        "1000",
        "--minutes",
        "0.0001",
    )
    measured = {one.cell for one in read_parquet(tmp_path / "cells.parquet")}
    assert measured == {theirs[0], *grid(RULES, largest=1000, quick=True)}
    assert f"--minutes: {len(theirs) - 1} cells of the fleet are not measured" in limited.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--minutes", "1"], "--minutes: it limits the cells of a fleet"),
        (
            ["--minutes", "1", "--from", ".", "--master", "local[1]"],
            "--minutes: a Spark job measures all cells",
        ),
        (["--quick", "--from", "."], "--quick: --from measures these cells and those of the fleet"),
        (["--from", "."], "--from: cannot read the fleet's shapes: there is no such file"),
    ],
)
def test_wrong_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    error = run("--table", "cells.parquet", *given).exception
    assert isinstance(error, UsageError | InputError) and said in str(error)
    assert error.hint


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shapes.parquet").write_text(json.dumps({}))
    with pytest.raises(InputError, match="--from: cannot read the fleet's shapes"):
        read_shapes(tmp_path)
