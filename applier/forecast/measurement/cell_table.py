"""The statements that make a cell's tables on a server and fill them."""

from __future__ import annotations

from collections.abc import Iterator

from applier.forecast.measurement.measurement_grid import MARK, SCATTER, SPREAD, TABLE, Cell
from lookup.table_shape import NO_KEY, NULLABLE_UNIQUE, OTHER, PRIMARY, UNIQUE

MARK_SQL = f"CREATE TABLE {MARK} (id INT NOT NULL PRIMARY KEY) ENGINE=InnoDB"
_KEYS = {
    PRIMARY: "PRIMARY KEY (id)",
    UNIQUE: "UNIQUE KEY k (k)",
    NULLABLE_UNIQUE: "UNIQUE KEY k (k)",
    OTHER: "KEY k (k)",
    NO_KEY: "",
}


def fill_statements(cell: Cell) -> Iterator[str]:
    """In the database at hand. Rows are doubled until there are enough: ids ascend in the order of
    insertion, so places in a table without a key do."""
    yield f"DROP TABLE IF EXISTS {TABLE}, {MARK}"
    yield _create_sql(cell)
    yield MARK_SQL
    k = (
        "{id}"
        if cell.rows_per_value == 1
        else f"({{id}}) % {max(cell.rows // cell.rows_per_value, 1)}"
    )
    values = (
        f"{{id}}, {k}, REPEAT('f', {cell.filler})"
        + f", ({{id}}) * {SCATTER} % {SPREAD}" * cell.indexes
        + ", 'value'" * cell.columns
    )
    yield f"INSERT INTO {TABLE} VALUES ({values.format(id='1')})"
    filled = 1
    while filled < cell.rows:
        more = min(filled, cell.rows - filled)
        limit = "" if more == filled else f" WHERE id <= {more}"
        yield (
            f"INSERT INTO {TABLE} SELECT {values.format(id=f'id + {filled}')} FROM"
            f" {TABLE}{limit} ORDER BY id"
        )
        filled += more
    if cell.full and cell.indexes:
        yield f"ALTER TABLE {TABLE} {', '.join(f'ADD {key}' for key in _further_keys(cell))}"


def _create_sql(cell: Cell) -> str:
    null = "" if cell.key == NULLABLE_UNIQUE else " NOT NULL"
    filler = "LONGBLOB" if cell.is_blob else f"CHAR({cell.filler})"
    parts = ["id INT NOT NULL", f"k INT{null}", f"filler {filler} NOT NULL"]
    parts += [f"i{number} INT NOT NULL" for number in range(cell.indexes)]
    parts += [f"v{number} VARCHAR(20) NULL" for number in range(cell.columns)]
    parts += [_KEYS[cell.key]] if _KEYS[cell.key] else []
    parts += [] if cell.full else _further_keys(cell)
    return f"CREATE TABLE {TABLE} ({', '.join(parts)}) ENGINE=InnoDB DEFAULT CHARSET=latin1"


def _further_keys(cell: Cell) -> list[str]:
    return [f"KEY i{number} (i{number})" for number in range(cell.indexes)]
