"""The replica as it is, and as it could be: one scenario for each row of the what-if table.

A what-if changes the shape of tables, the server's options, or how the source cuts and fills events. It never changes the log's
traffic: the same rows are changed at the same times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from applier.error_codes import Code
from applier.errors import UsageError
from lookup.shape import NO_KEY, OTHER, PRIMARY, UNIQUE, TableShape
from lookup.versions import ServerRules, parse_row_search

WHAT_IFS = {
    "primary-key": "every table without a primary or NOT NULL unique key gets a primary key",
    "gipk": "the same by sql_generate_invisible_primary_key on the source (8.0.30 and later), so that the log carries it",
    "index": "index=200: such tables get a secondary index, 200 rows for each of its values",
    "row-search": "row-search=INDEX_SCAN,HASH_SCAN: another slave_rows_search_algorithms (up to 8.0)",
    "minimal-image": "binlog_row_image=MINIMAL on the source",
    "event-size": "event-size=65536: another binlog_row_event_max_size on the source, in bytes",
    "workers": "workers=8: another number of applier workers",
    "rows": "rows=10: tables hold ten times as many rows",
}
"""Name -> what it does, as in --help."""


@dataclass(frozen=True)
class Scenario:
    """One replica. `key` is the kind of key that tables without a unique one get (None: as they are), on `tables` only if given.

    `found_at_once`: finding rows costs nothing, which leaves what large transactions take by themselves. `factor` multiplies all times.
    """

    name: str
    rules: ServerRules
    row_search: frozenset[str] | None = None
    workers: int = 1
    preserve_order: bool = True
    key: str | None = None
    rows_per_value: float = 1.0
    tables: frozenset[str] | None = None
    row_factor: float = 1.0
    minimal_image: bool = False
    event_bytes: int | None = None
    found_at_once: bool = False
    factor: float = 1.0

    def changed(self, table: str, shape: TableShape) -> TableShape:
        """The shape of a table in this scenario."""
        if self.row_factor != 1:
            shape = replace(shape, rows=shape.rows * self.row_factor, rows_per_value=max(shape.rows_per_value * self.row_factor, 1.0))
        if self.key is None or shape.key in (PRIMARY, UNIQUE) or (self.tables is not None and table not in self.tables):
            return shape
        if self.key == OTHER and shape.key != NO_KEY and shape.rows_per_value <= self.rows_per_value:
            return shape
        return replace(shape, key=self.key, rows_per_value=self.rows_per_value if self.key == OTHER else 1.0, null_share=0.0)

    @property
    def same_events(self) -> bool:
        """Whether the source writes the events as they stand in the log."""
        return self.event_bytes is None and not self.minimal_image


def what_if(text: str, base: Scenario) -> Scenario:
    """A scenario from "primary-key", "index=200", "row-search=INDEX_SCAN,HASH_SCAN", several joined by "+"; see WHAT_IFS.

    "primary-key:shop.orders" changes that table only. Raises UsageError.
    """
    scenario = base
    for part in text.split("+"):
        word, _, value = part.strip().partition("=")
        word, _, table = word.partition(":")
        scenario = _one(scenario, word, value, table)
    return replace(scenario, name=_title(text))


def _one(scenario: Scenario, word: str, value: str, table: str) -> Scenario:
    tables = frozenset({table}) if table else scenario.tables
    try:
        if word in ("primary-key", "gipk"):
            return replace(scenario, key=PRIMARY, tables=tables)
        if word == "index":
            return replace(scenario, key=OTHER, rows_per_value=_number(value or "1", 1), tables=tables)
        if word == "row-search":
            if not scenario.rules.row_search_selectable:
                raise UsageError(
                    f"--what-if {word}: {scenario.rules.name} has no slave_rows_search_algorithms",
                    code=Code.VERSION_LACKS,
                    hint="see --server",
                )
            return replace(scenario, row_search=parse_row_search(value))
        if word == "minimal-image":
            return replace(scenario, minimal_image=True)
        if word == "event-size":
            return replace(scenario, event_bytes=int(_number(value, 256)))
        if word == "workers":
            return replace(scenario, workers=int(_number(value, 1)))
        if word == "rows":
            return replace(scenario, row_factor=_number(value, 0))
    except ValueError as error:
        raise UsageError(f"--what-if {word}: {error}", code=Code.OPTION_VALUE) from None
    raise UsageError(f"--what-if: {word!r} is unknown", code=Code.OPTION_VALUE, hint=f"one of {', '.join(WHAT_IFS)}")


def _number(text: str, least: float) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None
    if not value >= least or value == float("inf"):
        raise ValueError(f"{text!r} is not at least {least}")
    return value


def _title(text: str) -> str:
    words: Mapping[str, str] = {
        "primary-key": "add a primary key", "gipk": "generated invisible primary key", "minimal-image": "minimal row image",
        "index": "secondary index, rows per value", "event-size": "binlog_row_event_max_size", "workers": "workers",
        "rows": "rows, times", "row-search": "row search",
    }  # fmt: skip
    titles = []
    for part in text.split("+"):
        word, _, value = part.strip().partition("=")
        word, _, table = word.partition(":")
        titles.append(" ".join(piece for piece in (words.get(word, word), value, f"on {table}" if table else "") if piece))
    return ", ".join(titles)
