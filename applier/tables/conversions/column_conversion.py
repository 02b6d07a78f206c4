"""Values of one column type as those of another, as ALTER TABLE copies rows (`Copy_field`,
sql/field_conv.cc).

The server reads the old column as one kind of value (a route: number, text, time, …) and stores
that into the new column, cut to what it holds where the SQL mode lets it pass. `ROUTES` is the
table of pairs; each has been held against 5.7.29, 9.7.4 and MariaDB 10.11.18
(tests/tables/test_conversion_servers.py). A pair without a route is refused, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from applier.binlog.types.temporal_parse import moment_of
from applier.binlog.types.texts import MAX_BYTES
from applier.errors import ReplicationError
from applier.tables.conversions.conversion_reads import READS
from applier.tables.conversions.conversion_rules import FAMILIES, GEOMETRIES, ConversionRules
from applier.tables.conversions.conversion_stores import STORES
from applier.tables.expressions.defaults import implicit_default
from applier.tables.sql.sql_mode_flags import NO_MODES
from lookup.table import Column

Convert = Callable[[Any], Any]
_TARGETS = (
    "integer real decimal bit year date time datetime timestamp text binary enum set json".split()
)
_MYSQL = """
integer   integer integer integer integer integer text text text text text text text text text
real      integer real decimal integer integer text text text text text text text text text
decimal   integer real decimal integer integer text text text text text text text text -
bit       integer integer integer integer integer integer integer integer integer number number
          integer integer -
year      integer integer integer integer integer text text text text text text text text text
date      integer real decimal integer integer moment time moment moment text text text text text
time      integer real decimal integer integer moment time moment moment text text text text text
datetime  integer real decimal integer integer moment time moment moment text text text text text
timestamp integer real decimal integer integer moment time moment moment text text text text text
text      text text text integer text text text text text text text text text text
binary    text text text integer text text text text text text text text text -
enum      integer integer integer integer integer text text text text text text text text text
set       integer integer integer integer integer text text text text text text text text text
json      text text decimal integer text text text text text text text text text -
"""
"""A line per old type, a word per new one, in the order of `_TARGETS`; a line that begins with
blanks goes on. "number" is the text of an integer."""
_MARIADB = """
integer   integer integer integer integer integer integer - integer integer text text integer
          integer -
real      integer real decimal integer real text text text text text text integer integer -
decimal   integer real decimal bits integer decimal - decimal decimal text text integer integer -
bit       integer signed integer integer integer integer - integer integer number number integer
          integer -
year      integer integer integer integer integer text text text text text text integer integer -
date      integer real decimal integer moment moment time moment moment text text text text -
time      integer real decimal integer - moment time moment moment text text text text -
datetime  integer real decimal integer moment moment time moment moment text text text text -
timestamp integer real decimal integer moment moment time moment moment text text text text -
text      integer text text integer text text text text text text text text text -
binary    integer text text integer text text text text text text text text text -
enum      integer integer integer integer integer text text text text text text text text -
set       integer integer integer integer integer text text text text text text text text -
"""
_LOBS = {("bit", "clob"): "text", ("bit", "blob"): "text"}
"""Where TEXT and BLOB differ from VARCHAR and VARBINARY."""


def _grid(text: str) -> dict[tuple[str, str], str]:
    rows = [line.split() for line in text.strip().replace("\n ", " ").splitlines()]
    grid = {
        (old, new): route
        for old, *routes in rows
        for new, route in zip(_TARGETS, routes, strict=True)
        if route != "-"
    }
    for plain, large in (("text", "clob"), ("binary", "blob")):
        grid |= {(old, large): route for (old, new), route in grid.items() if new == plain}
        grid |= {(large, new): route for (old, new), route in grid.items() if old == plain}
    return grid | _LOBS


ROUTES: dict[str, dict[tuple[str, str], str]] = {
    "5.x": _grid(_MYSQL),
    "8.0+": _grid(_MYSQL),
    "mariadb": _grid(_MARIADB),
}
"""Flavour -> (family of the old type, family of the new one) -> route."""
_SAME = ("type", "length", "scale", "unsigned", "charset", "labels")


def same(old: Column, new: Column) -> bool:
    """Whether values of one are values of the other as they stand."""
    return all(getattr(old, name) == getattr(new, name) for name in _SAME)


def same_form(old: Column, new: Column) -> bool:
    """A number that another (M,D) or display width is said of: its bytes need no change
    (`Field_num::is_equal`)."""
    return (
        old.type == new.type
        and FAMILIES.get(old.type) in ("integer", "real")
        and old.unsigned == new.unsigned
    )


def conversion(old: Column, new: Column, rules: ConversionRules) -> Convert | None:
    """A function on stored values that are not NULL; None when they stay as they are.

    Raises ReplicationError 1235 for a pair of types that the table does not have.
    """
    if same(old, new) or (not rules.copies and same_form(old, new)):
        return None
    if new.type in GEOMETRIES and (old.type in GEOMETRIES or FAMILIES.get(old.type) == "blob"):
        return None  # bytes that are no such shape are an error of the statement
    if rules.flavour != "mariadb" and _same_large_object(old, new):
        return _cut_as_copied(MAX_BYTES[new.type], rules)
    if old.type in GEOMETRIES and FAMILIES.get(new.type) == "blob":
        return _shape_bytes(old, new)
    pair = FAMILIES.get(old.type, old.type), FAMILIES.get(new.type, new.type)
    route = ROUTES[rules.flavour].get(pair)
    if route is None or pair[1] not in STORES[route] or pair[0] not in READS[route]:
        raise _not_supported(old, new)
    read, store = READS[route][pair[0]](old, rules), STORES[route][pair[1]](old, new, rules)
    if pair == ("enum", "enum"):
        # no label stays none, where there is a label without letters, too (`do_field_enum`)
        return lambda value: store(read(value)) if value else 0
    return lambda value: store(read(value))


def _not_supported(old: Column, new: Column) -> ReplicationError:
    return ReplicationError(
        1235,
        f"rows with values of {old.type} that become {new.type} (column `{new.name}`) are not"
        " supported in memory",
        hint="skip the statement with --skip-errors 1235, or replay into a test DB",
    )


def _shape_bytes(old: Column, new: Column) -> Convert:
    """A shape in a BLOB is its bytes, SRID and WKB; one that is too long is refused (1235)."""

    def convert(value: bytes) -> bytes:
        if len(value) > MAX_BYTES[new.type]:
            raise _not_supported(old, new)
        return value

    return convert


def _same_large_object(old: Column, new: Column) -> bool:
    """TEXT or BLOB of one collation, which MySQL copies as bytes (`do_copy_blob`, sql/field_conv.cc
    of 5.6 and later)."""
    large = all(FAMILIES.get(column.type) in ("clob", "blob") for column in (old, new))
    return large and (old.charset, old.collation) == (new.charset, new.collation)


def _cut_as_copied(most: int, rules: ConversionRules) -> Convert:
    """What is too long loses its end, in the middle of a character, too.

    In 5.x its length loses the bytes that the new type has none for.
    """
    if rules.flavour == "5.x":
        return lambda value: value[: len(value) & most]
    return lambda value: value[:most]


def instead_of_null(new: Column, rules: ConversionRules) -> Any:
    """What a NULL becomes in a column that is NOT NULL: the moment, no label, zero or nothing."""
    if new.type == "timestamp":
        return STORES["moment"]["timestamp"](new, new, replace(rules, sql_mode=NO_MODES))(
            moment_of(rules.now)
        )
    return 0 if new.type == "enum" else implicit_default(new)
