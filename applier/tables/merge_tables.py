"""The options of MERGE tables, as the server keeps them (storage/myisammrg of 5.6 to 9.7 and
MariaDB): which tables stand in the UNION, and which of them takes new rows."""

from __future__ import annotations

from dataclasses import replace

from applier.tables.sql.quoting import quoted
from applier.tables.sql.sql_text import DEFAULT_LEXIS, Lexis, Parser
from lookup.handler import engine_traits
from lookup.table import Column, TableDefinition

UNION, INSERT_METHOD = "UNION", "INSERT_METHOD"
ALIKE = ("type", "unsigned", "nullable", "charset", "labels", "generated")
"""What a column of the MERGE table and the one of a table below have in common. The server compares
less, and reads the one's bytes as the other's."""
SHOWN_WIDTHS = frozenset("tinyint smallint mediumint int bigint year float double".split())
"""Types whose length and scale say how a number is shown, not how it is stored."""
INSERT_PLACES = {"FIRST": 0, "LAST": -1}
"""INSERT_METHOD -> the place in the UNION of the table that takes new rows."""


def is_merge(definition: TableDefinition) -> bool:
    """Whether the table's rows stand in other tables."""
    return engine_traits(definition.engine).shows_others


def qualify_union(options: dict[str, str], database: str, lexis: Lexis) -> None:
    """Writes the database of each table into UNION=; without one in the statement it is that of the
    session. Raises InputError."""
    if UNION in options:
        options[UNION] = _union_text(_names(options[UNION], database, lexis))


def _union_text(names: list[tuple[str, str]]) -> str:
    return ",".join(f"{quoted(base)}.{quoted(name)}" for base, name in names)


def with_union(definition: TableDefinition, database: str, lexis: Lexis) -> TableDefinition:
    """The definition with `qualify_union`."""
    options = dict(definition.options)
    qualify_union(options, database, lexis)
    return replace(definition, options=options)


def union_tables(definition: TableDefinition) -> list[tuple[str, str]]:
    """(database, name) of the tables below, in their order."""
    text = definition.options.get(UNION, "")
    return _names(text, definition.database, DEFAULT_LEXIS)


def _names(text: str, database: str, lexis: Lexis) -> list[tuple[str, str]]:
    parser, found = Parser(text, lexis), []
    while not parser.done:
        found.append(parser.table_name(database))
        if not parser.done:
            parser.expect(",")
    return found


def moved_union(definition: TableDefinition, before: str) -> TableDefinition:
    """The definition behind a move from the database `before`: tables below that stood in the same
    database are then looked for in the new one (seen on 5.7.29, 9.7.4, 10.11.18)."""
    if definition.database == before or UNION not in definition.options:
        return definition
    moved = [
        (definition.database if base == before else base, name)
        for base, name in union_tables(definition)
    ]
    return replace(definition, options={**definition.options, UNION: _union_text(moved)})


def altered_merge(old: TableDefinition, new: TableDefinition) -> TableDefinition:
    """What ALTER TABLE makes of the options: another engine does not keep them (seen on 5.7.29,
    10.11.18)."""
    if is_merge(new) or not is_merge(old):
        return new
    kept = new.options.keys() - {UNION, INSERT_METHOD}
    options = {name: text for name, text in new.options.items() if name in kept}
    return replace(new, options=options)


def insert_place(definition: TableDefinition) -> int | None:
    """Where in the UNION the table stands that takes new rows; None: the table is read only."""
    return INSERT_PLACES.get(definition.options.get(INSERT_METHOD, "").upper())


def defined_alike(merge: TableDefinition, below: TableDefinition) -> bool:
    """Whether a MERGE table may show the rows of a table: MyISAM, the same columns, and the same
    keys in the same order; the table below may have more of them behind
    (`ha_myisammrg::attach_children`). A table whose CREATE names no engine was MyISAM on the source
    if rows came through the MERGE table; the log does not have default_storage_engine."""
    said_other = "ENGINE" in below.options and below.engine.lower() != "myisam"
    if said_other or len(below.columns) != len(merge.columns):
        return False
    if len(below.sorted_keys) < len(merge.sorted_keys):
        return False
    pairs = zip(merge.columns, below.columns, strict=True)
    keys = zip(merge.sorted_keys, below.sorted_keys, strict=False)
    return all(map(_alike, *zip(*pairs, strict=True))) and all(
        own.parts == other.parts and own.kind == other.kind for own, other in keys
    )


def _alike(own: Column, other: Column) -> bool:
    width = own.type in SHOWN_WIDTHS or (own.length, own.scale) == (other.length, other.scale)
    return width and all(getattr(own, name) == getattr(other, name) for name in ALIKE)
