"""A measured cell: what it asked for in units, and the seconds it took; the table of them, as
Parquet that a run can go on with."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

from applier.error_codes import Code
from applier.errors import InputError
from applier.forecast.inventory.facts import TableFacts
from applier.forecast.measurement.cell_log import make_log
from applier.forecast.measurement.measurement_grid import DATABASE, VALUE, Cell
from applier.forecast.prices.pricing import Pricer, part_of
from applier.forecast.prices.scenario import Scenario
from applier.forecast.prices.table_state import TableState
from applier.forecast.prices.units import PLACE, UNITS, Amounts, Prices
from applier.forecast.workload.loads import LoadReader
from applier.forecast.workload.transaction_load import TransactionLoad
from applier.logs import logger
from applier.whole_file import whole_file
from lookup.versions import NEWEST, parse_row_search, rules_for

_LOG = logger("measure")

COUNTERS = (
    "read_first",
    "read_key",
    "read_next",
    "read_rnd",
    "read_rnd_next",
    "write",
    "update",
    "delete",
)

HELD_UP = 2.5
"""Times the median that a run takes which something held up: a flush, another program."""


class Repeats(NamedTuple):
    """How often a cell is applied on a server: a short one; at least, one of several workers or
    syncs and the cell beside it, whose ratio counts."""

    short: int = 5
    beside: int = 3


REPEATS = Repeats()


@dataclass(frozen=True)
class Measured:
    """One cell, applied. `counters` are handler calls, where the target tells them; `log_bytes` the
    size of its log."""

    cell: Cell
    target: str
    server_version: str
    seconds: float
    log_bytes: int
    amounts: Amounts
    counters: Mapping[str, int] = field(default_factory=dict)
    beside_seconds: float = 0.0
    """Of the same cell with one worker and no syncs, and a pool that holds its table, measured
    right before it; 0 for a cell that is so itself."""
    page_reads: float = 0.0
    """Pages that the server read meanwhile, counted for a cell with a `pool`."""
    page_writes: float = 0.0
    """Pages that it wrote."""
    round: int = 0
    """A grid is gone through several times: a machine's speed may change for minutes."""

    @property
    def alone(self) -> Measured:
        """What was measured beside it, which says as much of unit prices as any other cell."""
        cell, seconds = self.cell.alone, self.beside_seconds
        return replace(self, cell=cell, seconds=seconds, beside_seconds=0.0)

    @property
    def place(self) -> tuple[str, str, Cell, int]:
        """What makes it one and the same measurement."""
        return self.target, self.server_version, self.cell, self.round

    def as_row(self) -> dict[str, Any]:
        """A flat row: the cell's fields, the measurement, a column for each unit and counter."""
        return (
            asdict(self.cell)
            | {
                "target": self.target,
                "server_version": self.server_version,
                "seconds": self.seconds,
                "log_bytes": self.log_bytes,
            }
            | {"beside_seconds": self.beside_seconds}
            | {"page_reads": self.page_reads, "page_writes": self.page_writes}
            | {"round": self.round}
            | {
                _column("unit", name): amount
                for name, amount in zip(UNITS, self.amounts, strict=True)
            }
            | {_column("handler", name): self.counters.get(name) for name in COUNTERS}
        )

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Measured:
        """From a row of a table of measurements."""
        cell = Cell(**{one.name: row[one.name] for one in fields(Cell) if one.name in row})
        told = {name: row.get(_column("unit", name), 0.0) for name in UNITS}
        if _column("unit", "history") not in row and cell.kind != "write":
            told["history"] = told["transaction"]  # a file from before it was a unit of its own
        amounts = tuple(float(told[name]) for name in UNITS)
        calls = {name: row.get(_column("handler", name)) for name in COUNTERS}
        # Spark makes NULL a NaN
        counters = {
            name: int(value)
            for name, value in calls.items()
            if value is not None and value == value
        }
        head = row["target"], row["server_version"], float(row["seconds"]), int(row["log_bytes"])
        beside, reads, writes = (
            float(row.get(name, 0.0)) for name in ("beside_seconds", "page_reads", "page_writes")
        )
        return cls(cell, *head, amounts, counters, beside, reads, writes, int(row["round"]))


def _column(kind: str, name: str) -> str:
    return f"{kind}_{name.replace(' ', '_')}"


def repeats_of(searches: int, *, quick: bool) -> Repeats:
    """How often cells are applied so that a grid of so many row searches takes less than a quarter
    of an hour, a quick one less than three minutes."""
    return Repeats(2, 1) if quick else REPEATS if searches == 1 else Repeats(3, 3)


def mean_of(runs: Sequence[Measured]) -> Measured:
    """The mean of several runs of a cell, of their seconds as of their amounts: a table shrinks
    from one run of deletes to the next.

    Not the median: on a virtual machine runs are fast or slow, by no order, and the median of three
    is the one or the other (docs/design/forecast-accuracy.md has how far off either is). A run that
    something held up longer is left out, where there are enough to tell.
    """
    most = HELD_UP * median(one.seconds for one in runs)
    kept = [one for one in runs if one.seconds <= most]
    return replace(
        kept[0],
        seconds=fmean(one.seconds for one in kept),
        amounts=tuple(map(fmean, zip(*(one.amounts for one in kept), strict=True))),
        beside_seconds=fmean(one.beside_seconds for one in kept),
        page_reads=fmean(one.page_reads for one in kept),
        page_writes=fmean(one.page_writes for one in kept),
    )


def means(measured: Iterable[Measured]) -> list[Measured]:
    """One run of each cell: the mean of its rounds."""
    rounds: dict[tuple[str, str, Cell], list[Measured]] = {}
    for one in measured:
        rounds.setdefault(one.place[:3], []).append(one)
    return [mean_of(runs) for runs in rounds.values()]


class MeasurementTarget(Protocol):
    """Where cells are applied. `measure` makes the cell's table, applies its log and times that."""

    name: str
    server_version: str

    def measure(self, cell: Cell) -> Measured:
        """Applies one cell's log and times it. Raises BinlagError."""


def work_of(
    loads: Iterable[TransactionLoad],
    facts: Mapping[str, TableFacts],
    scenario: Scenario,
    skip: int = 0,
) -> Amounts:
    """The amounts of a log but for its first `skip` transactions, by the same way that a forecast
    works them out."""
    work_for = cache(Pricer(scenario, facts, Prices.of({})).work)
    states = {name: TableState(one.rows) for name, one in facts.items()}
    total = [0.0] * len(UNITS)
    for number, load in enumerate(loads):
        counts, leaves_history = number >= skip, False
        total[PLACE["transaction"]] += counts
        for target, applied in load.applied.items():
            state = states.setdefault(target.table, TableState(None))
            state.note(applied, 2 if target.kind == "update" else 1)
            if counts:
                work = work_for(part_of(applied, state))
                leaves_history |= work.leaves_history
                for place, amount in enumerate(work.amounts):
                    total[place] += amount
                total[PLACE["byte"]] += applied.row_bytes
                total[PLACE["long byte"]] += applied.row_bytes * work.long_share
            state.change(target.kind, applied.rows)
        total[PLACE["history"]] += leaves_history
    return tuple(total)


def work_of_cell(
    cell: Cell,
    log: str | os.PathLike[str],
    server_version: str,
    *,
    skip: int = 0,
    database: str = DATABASE,
    rows: float | None = None,
) -> Amounts:
    """The amounts of a cell's log but for its first `skip` transactions; `rows` of the table before
    it."""
    return work_of(
        LoadReader([log]), cell.all_facts(database, rows), scenario_of(cell, server_version), skip
    )


def scenario_of(cell: Cell, server_version: str) -> Scenario:
    """The scenario that a cell was measured in."""
    return Scenario(
        "measured",
        rules_for(server_version),
        parse_row_search(cell.row_search) if cell.row_search else None,
    )


class Memory:
    """Tables in memory under the rules of a server version. Implements `MeasurementTarget`.

    The handler calls are exact, the seconds are the emulator's own.
    """

    def __init__(self, server_version: str = NEWEST) -> None:
        self.name = "memory"
        self.server_version = server_version

    def measure(self, cell: Cell) -> Measured:
        from applier.replay_loop import replay
        from applier.tables.catalog import Tables

        tables = Tables()
        table = tables.create(cell.definition)
        rows = range(1, cell.rows + 1)
        table.load(
            (
                row,
                cell.value_of(row),
                b"f" * cell.filler,
                *([cell.entry_of(row)] * cell.indexes),
                *([VALUE[1:]] * cell.columns),
            )
            for row in rows
        )
        tables.commit()
        with TemporaryDirectory(prefix="binlag-cell-") as folder:
            log = Path(folder) / "binlog.000001"
            log.write_bytes(make_log(cell))
            began = time.perf_counter()
            result = replay(
                [str(log)],
                into=tables,
                server=self.server_version,
                row_search=cell.row_search or None,
            )
            seconds = time.perf_counter() - began
            if result.error is not None:
                raise result.error
            work = work_of_cell(cell, log, self.server_version)
            return Measured(
                cell,
                self.name,
                self.server_version,
                seconds,
                log.stat().st_size,
                work,
                dict(result.counters),
            )


def measure_all(
    cells: Iterable[Cell],
    target: MeasurementTarget,
    done: Iterable[Measured] = (),
    tick: Callable[[Measured], None] | None = None,
    number: int = 0,
) -> Iterator[Measured]:
    """Measures what is not `done` yet in the round of that number, in one process."""
    known = {one.place for one in done}
    for cell in cells:
        if (target.name, target.server_version, cell, number) in known:
            continue
        measured = replace(target.measure(cell), round=number)
        if tick is not None:
            tick(measured)
        log_measured(measured)
        yield measured


def log_measured(one: Measured) -> None:
    """A record in the log."""
    said = {
        "target": one.target,
        "server": one.server_version,
        "cell": str(one.cell),
        "seconds": one.seconds,
        "round": one.round,
    }
    _LOG.info("a cell is measured", extra=said)


class MeasurementFile:
    """All measurements so far; in the file at `path`, if there is one, as soon as they are made.

    A file of a thousand takes 30 ms to write, a cell on a server seconds to measure. `save` again
    when an interrupt ends the measuring: it may have come while the last cell was written.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = path
        self.all: list[Measured] = (
            read_parquet(path) if path is not None and Path(path).exists() else []
        )

    def add(self, one: Measured) -> None:
        """Raises OSError."""
        self.all.append(one)
        self.save()

    def save(self) -> None:
        """Raises OSError."""
        if self.path is not None:
            write_parquet(self.all, self.path)


def write_parquet(measured: Iterable[Measured], path: str | os.PathLike[str]) -> None:
    """Writes all rows, in the order of cells; a file that is there is replaced at once or not at
    all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [one.as_row() for one in sorted(measured, key=lambda one: one.place)]
    with whole_file(path) as partial:
        pq.write_table(pa.Table.from_pylist(rows, schema=arrow_schema()), partial)


def read_parquet(path: str | os.PathLike[str]) -> list[Measured]:
    """What `write_parquet` wrote. Raises InputError for any other file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return [Measured.of_row(row) for row in pq.read_table(path).to_pylist()]
    except (OSError, pa.ArrowInvalid, KeyError, TypeError) as error:
        raise InputError(
            f"no measurements: {error}",
            code=Code.MEASUREMENTS,
            file=os.fspath(path),
            hint="binlag measure writes them again",
        ) from None


def arrow_schema() -> Any:
    """The columns of the table of measurements."""
    import pyarrow as pa

    kinds = {"str": pa.string(), "int": pa.int64()}
    columns = [(one.name, kinds[str(one.type)]) for one in fields(Cell)]
    columns += [
        ("target", pa.string()),
        ("server_version", pa.string()),
        ("seconds", pa.float64()),
        ("log_bytes", pa.int64()),
    ]
    columns += [(name, pa.float64()) for name in ("beside_seconds", "page_reads", "page_writes")]
    columns += [("round", pa.int64())]
    columns += [(_column("unit", name), pa.float64()) for name in UNITS]
    columns += [(_column("handler", name), pa.int64()) for name in COUNTERS]
    return pa.schema(columns)
