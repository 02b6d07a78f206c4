"""What is measured: cells ask for what the exact engine counts; prices come out of made-up seconds;
tables of cells go on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from applier.cli.commands.measure import calibrate, command
from applier.errors import InputError
from applier.forecast.measurement.cell_log import SERVER_ID, make_log
from applier.forecast.measurement.fit import fit, relative_errors, solve
from applier.forecast.measurement.measured import (
    Measured,
    MeasurementTarget,
    Memory,
    mean_of,
    means,
    measure_all,
    read_parquet,
    work_of_cell,
    write_parquet,
)
from applier.forecast.measurement.measurement_grid import (
    LOOKUP_ROWS,
    TABLE,
    Cell,
    Spent,
    grid,
    statements_of,
)
from applier.forecast.measurement.pool_reads import pool_cells
from applier.forecast.measurement.scale_up import scale_up_cells
from applier.forecast.prices.calibration import FORMAT, default_calibration, load_calibration
from applier.forecast.prices.units import PLACE, UNITS, Prices, amounts
from applier.forecast.workload.loads import LoadReader
from applier.replica.scheduling import NO_MARKS
from lookup.table_shape import NO_KEY, NULLABLE_UNIQUE, OTHER, PRIMARY, UNIQUE
from lookup.versions import RULES

CELLS = [
    Cell(NO_KEY, 1000, "delete", 1, 1, 100), Cell(NO_KEY, 1000, "update", 20, 1, 10),
    Cell(NO_KEY, 1000, "delete", 20, 10, 2), Cell(PRIMARY, 1000, "update", 10, 2, 5),
    Cell(UNIQUE, 1000, "delete", 1, 1, 20), Cell(NULLABLE_UNIQUE, 1000, "update", 25, 1, 8),
    Cell(OTHER, 1000, "update", 1, 1, 100, 40, 10), Cell(OTHER, 1000, "delete", 20, 1, 10, 40, 20),
    Cell(PRIMARY, 100, "write", 5, 2, 3, 40, 1, 2),
    Cell(NO_KEY, 1000, "update", 20, 1, 10, 40, 1, 2, 9),
]  # fmt: skip


def ids(cell: Cell, seed: int = 1, spent: Spent | None = None) -> list[int]:
    """The rows that a cell's log changes, in its order."""
    return [
        row
        for one in statements_of(cell, seed, spent)
        for events in one
        for event in events
        for row in event
    ]


def reads(measured: Measured) -> float:
    """Rows that the amounts say are read."""
    names = ("key read", "secondary read", "next", "scan row", "hash row")
    return sum(measured.amounts[PLACE[name]] for name in names)


@pytest.mark.parametrize("version", ["5.7", "9.7", "mariadb"])
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_a_cell_asks_for_what_the_engine_counts(cell: Cell, version: str) -> None:
    measured = Memory(version).measure(cell)
    counted = measured.counters
    read = max(counted["read_key"] - counted["read_rnd"] - counted["read_first"], 0)
    read += counted["read_next"] + counted["read_rnd"] + counted["read_rnd_next"]
    changed = counted["write"] + counted["update"] + counted["delete"]
    assert (
        changed
        == cell.changed
        == sum(measured.amounts[PLACE[name]] for name in ("insert", "update", "delete"))
    )
    assert measured.amounts[PLACE["transaction"]] == cell.transactions
    assert measured.amounts[PLACE["event"]] == cell.transactions * cell.events
    assert reads(measured) == pytest.approx(read if cell.kind != "write" else 0, rel=0.12)


def test_the_grid_lets_each_unit_weigh() -> None:
    for name, rules in RULES.items():
        searches = (
            ("INDEX_SCAN,TABLE_SCAN", "INDEX_SCAN,HASH_SCAN")
            if rules.row_search_selectable
            else ("",)
        )
        cells = grid(rules, row_searches=searches)
        assert len(cells) == len(set(cells)) > 60, name
        assert {cell.key for cell in cells} == {PRIMARY, UNIQUE, NULLABLE_UNIQUE, OTHER, NO_KEY}
        assert {cell.kind for cell in cells} == {"write", "update", "delete"}
        assert {cell.row_search for cell in cells} == set(searches)


def test_the_help_and_the_page_say_how_many_cells_there_are() -> None:
    both = ("INDEX_SCAN,TABLE_SCAN", "INDEX_SCAN,HASH_SCAN")
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "forecast.md").read_text()
    shared, quick_shared = (
        len([*scale_up_cells(LOOKUP_ROWS, workers=True, quick=quick), *pool_cells(workers=True)])
        for quick in (False, True)
    )
    for text in (command.help or "", page):
        assert f"{len(grid(RULES['9.7'])) + shared} cells" in text
    quick = len(grid(RULES["9.7"], quick=True)) + quick_shared
    assert f"--quick measures {quick} of them" in (command.help or "")
    assert f"up to 8.0 have {len(grid(RULES['8.0'], row_searches=both)) + shared} cells" in page


def test_the_page_says_which_format_calibrations_have() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "formats.md"
    assert f"| `format` | {FORMAT}. Formats 2 to {FORMAT - 1} lack" in page.read_text()


def test_logs_of_one_table_never_share_a_row() -> None:
    cell, spent = Cell(NO_KEY, 1000, "delete", 10, 2, 12), Spent(1000)
    seen: list[int] = []
    for seed in range(4):
        seen += ids(cell, seed, spent)
    assert len(seen) == len(set(seen)) == 960
    assert (spent.rows, spent.left(cell)) == (40, False)


def test_a_table_that_lost_most_of_its_rows_is_not_used_again() -> None:
    spent, few = Spent(1000), Cell(NO_KEY, 1000, "update", 1, 1, 10)
    ids(Cell(NO_KEY, 1000, "delete", 1, 1, 390), 1, spent)
    assert spent.left(few)
    ids(Cell(NO_KEY, 1000, "delete", 1, 1, 20), 2, spent)
    assert not spent.left(few)
    assert spent.left(replace(few, kind="write"))


def test_the_events_of_a_transaction_are_those_of_its_statements() -> None:
    cell = Cell(PRIMARY, 1000, "update", 3, 6, 4, statements=2)
    found = list(statements_of(cell))
    assert [[[len(event) for event in events] for events in one] for one in found] == [
        [[3, 3, 3], [3, 3, 3]]
    ] * 4
    assert all(np.all(np.diff(np.ravel(events)) > 0) for one in found for events in one)
    measured = Memory("9.7").measure(cell)
    assert [
        measured.amounts[PLACE[name]] for name in ("transaction", "statement", "event", "update")
    ] == [4, 8, 24, 72]
    with pytest.raises(ValueError, match="equal statements"):
        Cell(PRIMARY, 1000, "update", 1, 5, 1, statements=2)


def test_rows_of_a_cell_stand_evenly() -> None:
    found = ids(Cell(NO_KEY, 10_000, "update", 1, 1, 500))
    assert np.mean(found) == pytest.approx(5000, rel=0.02)
    assert found != sorted(found)


def test_marks_stand_around_the_work() -> None:
    cell = CELLS[0]
    plain, marked = make_log(cell), make_log(cell, marks=True, gtids=True, database="other")
    assert marked.count(b"\4mark\0") == 2 and marked.count(b"\5other\0") == cell.transactions + 3
    assert plain.count(b"\4mark\0") == 0 and plain.count(TABLE.encode()) == cell.transactions


def test_transactions_of_a_cell_are_independent(tmp_path: Path) -> None:
    log = tmp_path / "binlog.000001"
    log.write_bytes(make_log(CELLS[0], gtids=True))
    clocks = [(load.last_committed, load.sequence_number) for load in LoadReader([log])]
    assert clocks == [
        (min(number - 1, 1), number) for number in range(1, CELLS[0].transactions + 1)
    ]


def test_a_log_of_mariadb_has_its_gtids(tmp_path: Path) -> None:
    """Each transaction may go beside any other, and none begins by a statement."""
    log, cell = tmp_path / "binlog.000001", CELLS[0]
    log.write_bytes(make_log(cell, mariadb=True))
    loads = list(LoadReader([log]))
    assert [load.gtid for load in loads] == [
        f"0-{SERVER_ID}-{number}" for number in range(1, cell.transactions + 1)
    ]
    assert {load.marks for load in loads} == {NO_MARKS}
    assert b"BEGIN" not in log.read_bytes()
    assert work_of_cell(cell, log, "mariadb")[PLACE["transaction"]] == cell.transactions


def made_up(count: int, noise: float, seed: int = 1) -> tuple[list[Measured], Prices]:
    """Cells whose seconds follow prices, but for some noise."""
    chance = np.random.default_rng(seed)
    prices = Prices.of(
        {"transaction": 1e-4, "event": 2e-5, "hash row": 5e-7, "delete": 8e-6, "key read": 3e-6}
    )
    cells = []
    for number in range(count):
        asked = amounts(
            transaction=float(chance.integers(1, 500)), event=float(chance.integers(1, 2000)),
            hash_row=float(chance.integers(0, 4)) * 1e5,
            delete=float(chance.integers(0, 20_000)), key_read=float(chance.integers(0, 20_000)),
        )  # fmt: skip
        seconds = prices.cost(asked)[0] * float(np.exp(chance.normal(0, noise)))
        cells.append(
            Measured(
                Cell(NO_KEY, 1000 + number, "delete", 1, 1, 1), "test", "9.7.4", seconds, 1, asked
            )
        )
    return cells, prices


def test_prices_are_found_again() -> None:
    cells, prices = made_up(60, 0.0)
    found = fit(cells, machine="m", date="d")
    for name in UNITS:
        assert found.low[name] <= found.prices[name] <= found.high[name]
        if prices[name]:
            assert found.prices[name] == pytest.approx(prices[name], rel=0.05)
    assert found.residuals.worst < 0.03
    assert (found.server_version, found.machine, found.date, found.target) == (
        "9.7.4",
        "m",
        "d",
        "test",
    )


def test_what_was_measured_and_costs_nothing_is_kept(tmp_path: Path) -> None:
    """Such as full indexes of MariaDB; a unit that no cell asks for is not among them."""
    cells, _ = made_up(60, 0.0)
    free = [
        replace(
            one, amounts=tuple(map(sum, zip(one.amounts, amounts(leaf_split=1.0), strict=True)))
        )
        for one in cells
    ]
    nothing = Prices.of({})
    found = replace(fit(free), low=nothing, high=nothing)
    found.save(tmp_path / "own.json")
    shown = load_calibration(tmp_path / "own.json").shown
    assert {"leaf split", "hash row"} <= shown
    assert "leaf split" not in fit(cells).shown


@pytest.mark.parametrize(("noise", "says"), [(0.02, False), (0.4, True)])
def test_a_machine_that_was_not_steady_is_said(
    noise: float, says: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells, _ = made_up(60, noise)
    server = SimpleNamespace(name="test", server_version="9.7.4", relay_folder=tmp_path)
    calibrate(cells, cast("MeasurementTarget", server), str(tmp_path / "own.json"))
    told = capsys.readouterr().err
    assert "60 cells of 9.7.4" in told
    assert ("not steady" in told) == says


def test_a_disturbed_cell_does_not_bend_the_prices() -> None:
    cells, prices = made_up(80, 0.03)
    cells[7] = replace(cells[7], seconds=cells[7].seconds * 20)
    found = fit(cells)
    assert found.prices["hash row"] == pytest.approx(prices["hash row"], rel=0.1)
    assert found.residuals.unseen_median < 0.06
    assert found.residuals.cells == 80


def test_what_no_cell_tells_apart_keeps_to_the_prices_that_ship() -> None:
    """Each transaction has an event and a statement, on a machine half as fast: without the prices
    that ship, one of the three takes all."""
    ships = default_calibration("9.7")
    usual = Prices(tuple(map(float, (np.array(ships.low.seconds) + ships.high.seconds) / 2)))
    cells = []
    for number in range(1, 20):
        asked = amounts(transaction=number, event=number, statement=number, hash_row=1e5 / number)
        seconds = 2 * usual.cost(asked)[0]
        cell = Cell(NO_KEY, 1000 + number, "delete", 1, 1, 1)
        cells.append(Measured(cell, "test", "9.7.4", seconds, 1, asked))
    found = fit(cells)
    for name in ("transaction", "event", "statement", "hash row"):
        assert found.prices[name] == pytest.approx(2 * usual[name], rel=0.05)
    for name in ("next", "ghost", "word"):  # no cell asks for them
        told, ship = ((one.low[name], one.prices[name], one.high[name]) for one in (found, ships))
        assert told == pytest.approx([2 * price for price in ship], rel=0.05)


def test_no_price_is_below_zero() -> None:
    chance = np.random.default_rng(3)
    asked = chance.random((30, len(UNITS)))
    seconds = asked[:, 0] - 0.5 * asked[:, 1] + 1
    prices = solve(asked, seconds, np.full(len(UNITS), 0.1))
    assert prices.min() >= 0
    assert relative_errors(asked, seconds, prices).shape == (30,)


def test_nothing_to_fit() -> None:
    with pytest.raises(InputError, match="nothing to fit"):
        fit([])
    cells, _ = made_up(2, 0.0)
    with pytest.raises(InputError, match="several targets"):
        fit([cells[0], replace(cells[1], server_version="5.7.29")])


def test_a_table_of_cells_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "cells.parquet"
    first = list(measure_all(CELLS[:2], Memory()))
    write_parquet(first, path)
    assert read_parquet(path) == sorted(first, key=lambda one: one.place)
    rest = list(measure_all(CELLS[:3], Memory(), read_parquet(path)))
    assert [one.cell for one in rest] == [CELLS[2]]
    (tmp_path / "none").write_bytes(b"no parquet")
    with pytest.raises(InputError, match="no measurements"):
        read_parquet(tmp_path / "none")


def test_the_mean_of_several_runs_is_that_of_time_and_amounts() -> None:
    cells, _ = made_up(1, 0.0)
    runs = [replace(cells[0], seconds=seconds, amounts=amounts(delete=rows),
                    round=number) for number, (seconds, rows) in enumerate(
        ((3.0, 30.0), (1.0, 10.0), (2.0, 20.0), (9.0, 90.0))
    )]  # fmt: skip
    assert (mean_of(runs[:2]).seconds, mean_of(runs[:2]).amounts) == (2.0, amounts(delete=20))
    assert (mean_of(runs[:3]).seconds, mean_of(runs[:3]).amounts) == (2.0, amounts(delete=20))
    assert mean_of(runs).seconds == 2.0  # something held the last one up
    other = replace(runs[0], cell=replace(cells[0].cell, rows=5))
    assert [one.seconds for one in means([*runs, other])] == [2.0, 3.0]
