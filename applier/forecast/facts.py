"""What is known of the replica's tables: definition, rows, rows per key value; and where each number comes from.

Numbers come from --rows, from a live server's information_schema, from INSERTs in the schema file, or are taken from the log for
want of better: then they are a lower bound, and the forecast says that it was assumed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from applier.error_codes import Code
from applier.errors import UsageError
from lookup.table import Key, TableDefinition
from lookup.versions import NEWEST

GIVEN, COUNTED, STATISTICS, ASSUMED = "given", "counted in the schema file", "statistics of the server", "assumed"


@dataclass(frozen=True)
class TableFacts:
    """One table. `rows` None: nobody said. `rows_per_value`: key name -> rows that share a value, None where nobody said."""

    definition: TableDefinition
    rows: float | None = None
    rows_from: str = ASSUMED
    duplicates: Mapping[str, float] = field(default_factory=dict)
    row_bytes: float | None = None

    def rows_per_value(self, key: Key) -> float:
        """1 where nothing is known: `known` tells."""
        return max(self.duplicates.get(key.name, 1.0), 1.0)

    def known(self, key: Key) -> bool:
        """Whether somebody said how many rows share a value of the key."""
        return key.name in self.duplicates

    @property
    def statistics(self) -> Callable[[Key], float]:
        """Key -> rows that share a value of it, as `lookup` asks for."""
        return partial(_rows_per_value, self)


def _rows_per_value(facts: TableFacts, key: Key) -> float:
    return facts.rows_per_value(key)


def facts_of_file(path: str | os.PathLike[str], *, server: str = NEWEST) -> dict[str, TableFacts]:
    """The tables of a SQL file, by full name. Rows that its INSERTs make are counted; a file without any leaves them unknown."""
    from applier.tables.load import load_schema

    tables = load_schema(path, server=server)
    filled = any(len(table) for table in tables)
    found = {}
    for table in tables:
        definition = table.definition
        usable = [key for key in definition.keys if not key.is_functional and not key.multi_valued and key.kind == "btree"]
        duplicates = {key.name: table.rows_per_value(key) for key in usable if len(table)}
        rows = float(len(table)) if filled else None
        found[definition.full_name] = TableFacts(definition, rows, COUNTED if filled else ASSUMED, duplicates)
    return found


def with_rows(facts: dict[str, TableFacts], given: Iterable[str]) -> dict[str, TableFacts]:
    """`given` are texts such as "shop.orders=1000000", "*=50000" for tables that nobody counted, "shop.orders.k_status=200" for a key.

    Raises UsageError for one that is none of these.
    """
    changed = dict(facts)
    for text in given:
        name, sign, number = text.rpartition("=")
        try:
            value = float(number.replace("_", ""))
        except ValueError:
            value = -1.0
        if not sign or value < 0:
            raise UsageError(
                f"--rows: {text!r} is no number of rows",
                code=Code.OPTION_VALUE,
                hint="write it as db.table=1000000, or *=1000000 for the rest",
            )
        if name == "*":
            changed |= {at: replace(one, rows=value, rows_from=GIVEN) for at, one in changed.items() if one.rows is None}
        elif name in changed:
            changed[name] = replace(changed[name], rows=value, rows_from=GIVEN)
        else:
            table, _, key = name.rpartition(".")
            if table not in changed or key not in {one.name for one in changed[table].definition.keys}:
                raise UsageError(f"--rows: the schema has no table {name!r}", code=Code.UNKNOWN_TABLE)
            changed[table] = replace(changed[table], duplicates={**changed[table].duplicates, key: value})
    return changed
