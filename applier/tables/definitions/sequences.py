"""MariaDB's sequences: tables of one row, which each rows event puts a new one in the place of
(sql/sql_sequence.cc, 10.11)."""

from __future__ import annotations

from applier.tables.definitions.table_draft import SchemaRules, TableParts
from applier.tables.definitions.table_options import option_ahead, read_option
from applier.tables.sql.sql_text import Parser
from lookup.handler import Row
from lookup.table import Column, TableDefinition

_COLUMNS = (
    ("next_not_cached_value", "bigint", False), ("minimum_value", "bigint", False),
    ("maximum_value", "bigint", False),
    ("start_value", "bigint", False), ("increment", "bigint", False),
    ("cache_size", "bigint", True),
    ("cycle_option", "tinyint", True), ("cycle_count", "bigint", False),
)  # fmt: skip
NEXT, MINIMUM, MAXIMUM, START, INCREMENT, CACHE, CYCLE, ROUNDS = range(len(_COLUMNS))
VALUED = {
    "START": START,
    "INCREMENT": INCREMENT,
    "MINVALUE": MINIMUM,
    "MAXVALUE": MAXIMUM,
    "CACHE": CACHE,
    "RESTART": NEXT,
}
SWITCHES = {
    "NOCACHE": (CACHE, 0),
    "CYCLE": (CYCLE, 1),
    "NOCYCLE": (CYCLE, 0),
    "NOMINVALUE": (MINIMUM, None),
    "NOMAXVALUE": (MAXIMUM, None),
}
"""One word, or NO and the rest of it. None: the limit that goes with the direction."""
LARGEST = (1 << 63) - 2


def sequence_definition(database: str, name: str) -> TableDefinition:
    """The table that CREATE SEQUENCE makes."""
    columns = tuple(
        Column(column, kind, unsigned=unsigned, nullable=False)
        for column, kind, unsigned in _COLUMNS
    )
    return TableDefinition(database, name, columns, options={"SEQUENCE": "1"})


def read_sequence(parser: Parser, rules: SchemaRules, old: Row | None = None) -> Row:
    """The row after the options of CREATE SEQUENCE, or of ALTER SEQUENCE where there is a row
    already.

    Raises InputError for an option that is not known.
    """
    said = _read_options(parser, rules)
    values: list[int | None] = [None, None, None, None, 1, 1000, 0, 0] if old is None else list(old)
    for place, value in said.items():
        values[place] = value
    upwards = (values[INCREMENT] or 0) >= 0
    limits = {MINIMUM: 1 if upwards else -LARGEST - 1, MAXIMUM: LARGEST if upwards else -1}
    for place, limit in limits.items():
        values[place] = limit if values[place] is None else values[place]
    if values[START] is None:
        values[START] = values[MINIMUM] if upwards else values[MAXIMUM]
    if values[NEXT] is None:
        values[NEXT] = values[START]
    return tuple(values)


def _read_options(parser: Parser, rules: SchemaRules) -> dict[int, int | None]:
    said: dict[int, int | None] = {}
    while not parser.done:
        word = ("NO" if parser.accept("NO") else "") + parser.word()
        if word in SWITCHES:
            parser.at += 1
            place, value = SWITCHES[word]
            said[place] = value
        elif word in VALUED:
            parser.at += 1
            said[VALUED[word]] = _number(parser) if word != "RESTART" or not _ends(parser) else None
        elif option_ahead(parser, rules):
            read_option(parser, rules, TableParts())
        else:
            raise parser.refuse("unknown option of a sequence")
    return said


def _ends(parser: Parser) -> bool:
    """RESTART alone: the next value is the start value."""
    return (
        parser.done or parser.word() in VALUED or parser.word() in SWITCHES or parser.word() == "NO"
    )


def _number(parser: Parser) -> int:
    parser.accept_any("WITH", "BY", "=")
    sign = -1 if parser.accept("-") else 1
    return sign * parser.integer()
