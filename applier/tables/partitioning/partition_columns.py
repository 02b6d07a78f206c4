"""The columns that decide which partition a row stands in, from the text of PARTITION BY.

Each unique key of a partitioned table must contain all of them (error 1503).
"""

from __future__ import annotations

from applier.tables.sql.sql_text import Parser
from lookup.table import TableDefinition

_METHODS = frozenset({"HASH", "KEY", "RANGE", "LIST"})


def partition_columns(definition: TableDefinition) -> tuple[int, ...] | None:
    """Positions of the columns that PARTITION BY and SUBPARTITION BY name, each once, in the order
    of the text.

    Empty for a table without partitions and for partitions by SYSTEM_TIME; None when the text is
    not known.
    """
    if not definition.partitioned:
        return ()
    text = definition.options.get("PARTITION")
    if text is None:
        return None
    parser = Parser(text)
    found: dict[int, None] = {}
    while parser.at < len(parser.tokens):
        if parser.accept_any("PARTITION", "SUBPARTITION") and parser.accept("BY"):
            parser.accept("LINEAR")
            if parser.accept_any(*_METHODS):
                _read_columns(parser, definition, found)
        else:
            parser.at += 1
    return tuple(found)


def _read_columns(parser: Parser, definition: TableDefinition, found: dict[int, None]) -> None:
    """Reads [ALGORITHM = n] [COLUMNS] ( an expression or a list of columns )."""
    while parser.at < len(parser.tokens) and parser.op() != "(":
        parser.at += 1
    depth = 0
    while parser.at < len(parser.tokens):
        token = parser.next()
        depth += {"(": 1, ")": -1}.get(token.value, 0) if token.kind == "op" else 0
        if not depth:
            return
        is_name = token.kind == "quoted" or (token.kind == "word" and parser.op() != "(")
        at = definition.positions.get(token.value.lower()) if is_name else None
        if at is not None:
            found[at] = None
