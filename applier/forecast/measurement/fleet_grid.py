"""The cells that a fleet's work comes to: what `binlag measure --from` measures, the dearest first.

A shape of the table `shapes` becomes a cell whose table has a key of the same kind, rows as long
and as many, and whose transactions have as many statements, events and rows. Its columns are those
of `measurement_grid`, and numbers have two significant digits, so that equal shapes of many sources
are one cell.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from applier.error_codes import Code
from applier.errors import InputError
from applier.forecast.lag.part_kinds import COLUMNS, PARTIAL, two_digits
from applier.forecast.measurement.measurement_grid import (
    FEWEST_SCANS,
    MOST_READS,
    SINGLES,
    VALUE,
    Cell,
    transactions_of_scans,
)
from lookup.table_shape import NO_KEY, NULLABLE_UNIQUE, OTHER, PRIMARY
from lookup.versions import HASH_SCAN, ServerRules, parse_row_search

FILE = "shapes.parquet"
COVERED = 0.99
"""The share of the fleet's seconds whose shapes are measured; the rest are many and cheap."""
LEAST_ROWS = 1_000
OWN_COLUMNS, OWN_BYTES = 3, 9
"""Columns of a cell's table besides those that are asked for: id, k, filler; their bytes in an
image but for the filler."""
MOST_FILLER, MOST_COLUMNS = 250, 200


@dataclass(frozen=True)
class FleetGrid:
    """`cells`: the dearest first; `notes`: how they differ from the fleet's own shapes."""

    cells: Sequence[Cell]
    notes: Sequence[str]


def read_shapes(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The rows of what `binlag fleet --output` wrote there. Raises InputError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(folder) / FILE
    try:
        return list(pq.read_table(path, columns=list(COLUMNS)).to_pylist())
    except (OSError, pa.ArrowInvalid, KeyError) as error:
        reason = error if path.is_file() else "there is no such file"
        raise InputError(
            f"--from: cannot read the fleet's shapes: {reason}",
            code=Code.CANNOT_READ,
            file=os.fspath(path),
            hint="binlag fleet FLEET.yaml --output DIR writes them",
        ) from None


def fleet_grid(
    shapes: Iterable[Mapping[str, Any]], rules: ServerRules, *, largest: int, row_search: str = ""
) -> FleetGrid:
    """The cells of these shapes for a server with these rules; no table has more than `largest`
    rows. Raises InputError where no shape took any time."""
    every = list(shapes)
    total = sum(one["seconds"] for one in every)
    if not total:
        raise InputError(
            "--from: the fleet's table of shapes has no work", code=Code.NOTHING_TO_READ, file=FILE
        )
    maker, seconds = _CellMaker(rules, largest, row_search), dict[Cell, float]()
    measured = 0.0
    for one in sorted(every, key=lambda one: -one["seconds"]):
        if measured >= COVERED * total:
            break
        cell = maker.cell(one)
        seconds[cell] = seconds.get(cell, 0.0) + one["seconds"]
        measured += one["seconds"]
    cells = sorted(seconds, key=lambda cell: (-seconds[cell], cell))
    covered = f"cells of the fleet: {len(cells)}, for {measured / total:.1%} of its seconds"
    return FleetGrid(cells, [covered, *maker.notes(total)])


class _CellMaker:
    """Makes cells of shapes, and remembers the seconds of those that are not measured as they
    are."""

    def __init__(self, rules: ServerRules, largest: int, row_search: str) -> None:
        self.largest, self.row_search = largest, row_search
        options = parse_row_search(row_search) if row_search else rules.row_search
        self.hashes = HASH_SCAN in options and not rules.find_row
        self._differing: dict[str, float] = {}

    def notes(self, total: float) -> list[str]:
        """What differs, and of what share of the seconds."""
        return [
            f"{what} ({part / total:.0%} of the seconds)" for what, part in self._differing.items()
        ]

    def _differs(self, what: str, shape: Mapping[str, Any]) -> None:
        self._differing[what] = self._differing.get(what, 0.0) + shape["seconds"]

    def cell(self, shape: Mapping[str, Any]) -> Cell:
        """The cell of a shape."""
        key, kind = shape["key"], shape["kind"]
        if shape["image"] == PARTIAL:
            self._differs("images of some columns are measured as whole ones as long", shape)
        rows = two_digits(max(round(shape["table_rows"]), LEAST_ROWS))
        if rows > self.largest:
            self._differs(f"larger tables are measured with {self.largest:,} rows", shape)
            rows = self.largest
        per_event, events, statements = self._transaction(shape, rows)
        scans = (1 if self.hashes else per_event) * events
        if key == NO_KEY and kind != "write" and scans * rows > MOST_READS:
            self._differs("scans that would take minutes are measured in smaller tables", shape)
            rows = max(two_digits(MOST_READS // scans), 2 * per_event * events, LEAST_ROWS)
        filler, columns, indexes = self._widths(shape)
        count = self._count(key if kind != "write" else PRIMARY, rows, per_event * events, scans)
        return Cell(
            key, rows, kind, per_event, events, count, filler,
            max(two_digits(round(shape["rows_per_value"])), 2) if key == OTHER else 1,
            indexes, columns, self.row_search, statements,
        )  # fmt: skip

    def _transaction(self, shape: Mapping[str, Any], rows: int) -> tuple[int, int, int]:
        """(Rows of an event, events, statements) of a transaction, which changes half of the table
        at most."""
        per_event = two_digits(max(round(shape["rows_per_event"]), 1))
        events = two_digits(max(round(shape["events_per_transaction"]), 1))
        if per_event * events > rows // 2:
            self._differs("transactions that change most of a table are measured smaller", shape)
            per_event = min(per_event, rows // 2)
            events = max(rows // 2 // per_event, 1)
        statements = min(max(round(shape["statements_per_transaction"]), 1), events)
        return per_event, events // statements * statements, statements

    @staticmethod
    def _count(key: str, rows: int, changed: int, scans: int) -> int:
        """Transactions: so many that they can be timed, and change half of the table at most."""
        most = max(rows // (2 * changed), 1)
        if key != NO_KEY:
            return min(max(SINGLES // changed, 1), most)
        return max(min(transactions_of_scans(rows, scans), most), min(FEWEST_SCANS, most))

    def _widths(self, shape: Mapping[str, Any]) -> tuple[int, int, int]:
        """(Bytes of filler, further columns, secondary indexes) of a cell whose image is as long.

        Further indexes beside a key that is not unique would be chosen in its place, so there are
        none; a cell's updates change all of them, and those of a fleet seldom do.
        """
        key = shape["key"]
        own = key not in (PRIMARY, NO_KEY)
        kind = shape["kind"]
        may = key not in (OTHER, NULLABLE_UNIQUE) and (key != NO_KEY or kind == "write")
        may = may and kind != "update"
        indexes = max(shape["indexes"] - own, 0) if may else 0
        room = max(round(shape["row_bytes"]) - OWN_BYTES - 4 * indexes, 0)
        further = max(shape["columns"] - OWN_COLUMNS - indexes, 0)
        columns = min(further, room // len(VALUE), MOST_COLUMNS)
        filler = max(room - columns * len(VALUE), 1)
        if filler > MOST_FILLER:
            self._differs("long rows are measured shorter", shape)
        return two_digits(min(filler, MOST_FILLER)), columns, indexes
