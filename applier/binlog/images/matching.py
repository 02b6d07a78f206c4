"""A table map against a local table: which source column lands where, and whether the types go
together.

`table_def::compatible_with` and `can_convert_field_to` (sql/rpl_utility.cc, 5.6 to 9.7). Columns
match by position, never by name. What does not fit is error 1677; a replica_type_conversions
setting lets more through.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from applier.binlog import wire
from applier.binlog.images.conversion import SAME_AS, converter, local_bytes, source_bytes
from applier.binlog.images.functional_columns import functional_columns
from applier.binlog.table_map import SourceColumn, TableMap
from applier.binlog.types.names import column_type
from applier.errors import ReplicationError
from lookup.table import Column, TableDefinition

ALL_LOSSY = "ALL_LOSSY"
ALL_NON_LOSSY = "ALL_NON_LOSSY"
ALL_UNSIGNED = "ALL_UNSIGNED"
ALL_SIGNED = "ALL_SIGNED"
CONVERSIONS = frozenset({ALL_LOSSY, ALL_NON_LOSSY, ALL_UNSIGNED, ALL_SIGNED})

WIRE_TYPES: dict[str, int] = {
    "tinyint": wire.TINY, "smallint": wire.SHORT, "mediumint": wire.INT24, "int": wire.LONG,
    "bigint": wire.LONGLONG,
    "decimal": wire.NEWDECIMAL, "float": wire.FLOAT, "double": wire.DOUBLE, "bit": wire.BIT,
    "year": wire.YEAR, "date": wire.DATE,
    "time": wire.TIME2, "datetime": wire.DATETIME2, "timestamp": wire.TIMESTAMP2,
    "char": wire.STRING, "binary": wire.STRING,
    "varchar": wire.VARCHAR, "varbinary": wire.VARCHAR, "enum": wire.ENUM, "set": wire.SET,
    "json": wire.JSON, "vector": wire.VECTOR,
    "uuid": wire.STRING, "inet4": wire.STRING, "inet6": wire.STRING,
    **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext"), wire.BLOB),
    **dict.fromkeys(("tinyblob", "blob", "mediumblob", "longblob"), wire.BLOB),
    **dict.fromkeys(
        (
            "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring",
            "multipolygon", "geometrycollection",
        ),
        wire.GEOMETRY,
    ),
}  # fmt: skip
"""SQL type -> the type code that a server writes for it."""

OLD_TEMPORAL = {
    wire.TIMESTAMP: wire.TIMESTAMP2,
    wire.DATETIME: wire.DATETIME2,
    wire.TIME: wire.TIME2,
}
INTEGERS = {wire.TINY: 4, wire.SHORT: 6, wire.INT24: 9, wire.LONG: 11, wire.LONGLONG: 20}
"""Display length of the source's type in the comparison; the local MEDIUMINT counts as 8."""
STRINGS = frozenset({wire.BLOB, wire.STRING, wire.VAR_STRING, wire.VARCHAR})
NO_METADATA = frozenset({*INTEGERS, wire.DATE, wire.YEAR})
TYPE_TEXT = {
    wire.TINY: "tinyint", wire.SHORT: "smallint", wire.INT24: "mediumint", wire.LONG: "int",
    wire.LONGLONG: "bigint",
    wire.FLOAT: "float", wire.DOUBLE: "double", wire.DATE: "date", wire.NEWDATE: "date",
    wire.YEAR: "year", wire.TIME: "time",
    wire.TIME2: "time", wire.DATETIME: "datetime", wire.DATETIME2: "datetime",
    wire.TIMESTAMP: "timestamp", wire.TIMESTAMP2: "timestamp",
    wire.ENUM: "enum", wire.SET: "set", wire.JSON: "json", wire.GEOMETRY: "geometry",
    wire.VECTOR: "vector",
}  # fmt: skip


@dataclass(frozen=True)
class TargetColumn:
    """Where one source column goes. `column` None: its bytes are read over."""

    column: int | None
    convert: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Matching:
    """All columns of a table map matched to a local table. `targets` stand in source order."""

    targets: tuple[TargetColumn, ...]

    def local(self, source_columns: tuple[int, ...]) -> tuple[int, ...]:
        """The local positions of the source columns that have one."""
        places = (self.targets[at].column for at in source_columns)
        return tuple(place for place in places if place is not None)


def match(
    table_map: TableMap,
    definition: TableDefinition,
    conversions: frozenset[str] = frozenset(),
    *,
    source_version: int = 0,
) -> Matching:
    """Raises ReplicationError 1677 naming the first column that cannot be converted.
    `source_version` as 80030; 0: not known."""
    offset = _hidden_key_offset(table_map, definition, source_version)
    allowed = partial(_fits, conversions=conversions)
    hidden = functional_columns(table_map, definition, source_version, allowed)
    targets = []
    for at, source in enumerate(table_map.columns):
        place = at + offset - sum(other < at for other in hidden)
        if at in hidden or not 0 <= place < len(definition.columns):
            targets.append(TargetColumn(None))
            continue
        local = definition.columns[place]
        if not allowed(source, local):
            raise ReplicationError(
                1677,
                f"Column {at} of table '{definition.full_name}' cannot be converted from type"
                f" '{source_type_text(source)}' to type '{_local_type_text(local)}'",
                table=definition.full_name,
                hint=(
                    "give the schema that the log was written for, or allow it with"
                    " --type-conversions ALL_NON_LOSSY"
                ),
            )
        targets.append(
            TargetColumn(
                place,
                converter(
                    source,
                    local,
                    unsigned=ALL_UNSIGNED in conversions and ALL_SIGNED not in conversions,
                ),
            )
        )
    return Matching(tuple(targets))


FLAGS_HIDDEN_KEYS = 80030
"""The first version whose table maps say whether the table has a generated invisible primary
key."""


def _hidden_key_offset(
    table_map: TableMap, definition: TableDefinition, source_version: int
) -> int:
    """How far columns shift when one side has a generated invisible primary key."""
    return int(definition.generated_invisible_key) - int(
        _source_has_hidden_key(table_map, definition, source_version)
    )


def _source_has_hidden_key(
    table_map: TableMap, definition: TableDefinition, source_version: int
) -> bool:
    """`compute_source_table_gipk_info` (sql/rpl_utility.cc 9.7): an older source has the key when
    the columns are as many."""
    if source_version >= FLAGS_HIDDEN_KEYS or not definition.generated_invisible_key:
        return table_map.has_generated_invisible_key
    more = len(definition.columns) - len(table_map.columns)
    if more not in (0, 1):
        raise ReplicationError(
            13964,
            f"Failed to apply row event with {len(table_map.columns)} columns, originating from a"
            f" server of unknown version on table '{definition.full_name}', which has"
            f" {len(definition.columns)} columns, one of which is a generated implicit primary key",
            table=definition.full_name,
            hint=(
                "replication is unsupported when the source is older than 8.0.30, the replica's"
                " table has a generated invisible primary key, and the numbers of columns differ by"
                " more: make the tables alike"
            ),
        )
    return more == 0


def _fits(source: SourceColumn, local: Column, conversions: frozenset[str]) -> bool:
    order = conversion_order(source, local)
    return order is not None and _permitted(order, conversions, source, local)


def _permitted(
    order: int, conversions: frozenset[str], source: SourceColumn, local: Column
) -> bool:
    if order == 0 or _free_temporal(source, local):
        return True
    return (ALL_NON_LOSSY if order < 0 else ALL_LOSSY) in conversions


def _free_temporal(source: SourceColumn, local: Column) -> bool:
    """Old and new temporal formats go into each other without any permission."""
    return OLD_TEMPORAL.get(source.real_type) == WIRE_TYPES[local.type]


def conversion_order(source: SourceColumn, local: Column) -> int | None:
    """0 alike, -1 the source is smaller (no loss), +1 it is larger (lossy), None: never."""
    theirs, own = source.real_type, WIRE_TYPES[local.type]
    theirs = SAME_AS.get(theirs, theirs)
    if theirs == own:
        return _same_type_order(source, local, own)
    if _free_temporal(source, local):
        return -1
    if theirs in (wire.DECIMAL, wire.NEWDECIMAL, wire.FLOAT, wire.DOUBLE):
        return _number_order(theirs, own)
    if theirs in INTEGERS and own in INTEGERS:
        length = 8 if own == wire.INT24 else INTEGERS[own]
        return _sign(INTEGERS[theirs] - length)
    if theirs in STRINGS and own in STRINGS:
        return _sign(source_bytes(source) - local_bytes(local)) or -1
    return None


def _same_type_order(source: SourceColumn, local: Column, own: int) -> int | None:
    if own in NO_METADATA or own in (wire.JSON, wire.GEOMETRY, wire.BLOB):
        return 0
    if own in (wire.TIME2, wire.DATETIME2, wire.TIMESTAMP2):
        return (
            0
            if source.metadata == 0
            else _sign((source.metadata + 1) // 2 - (local.scale + 1) // 2)
        )
    if own == wire.NEWDECIMAL:
        precision, scale = source.metadata >> 8, source.metadata & 0xFF
        return _sign(precision - (local.length or 10)) or _sign(scale - local.scale)
    if own in (wire.ENUM, wire.SET):
        return _sign((source.metadata & 0xFF) - _label_bytes(local))
    if own == wire.BIT:
        return _sign((source.metadata & 0xFF) * 8 + (source.metadata >> 8) - (local.length or 1))
    if own == wire.VECTOR:
        return 0 if source.dimensions in (None, local.length) else None
    if own in STRINGS:
        return _sign(source_bytes(source) - local_bytes(local))
    return 0


def _number_order(theirs: int, own: int) -> int | None:
    if own == wire.NEWDECIMAL:
        return 1
    if theirs in (wire.DECIMAL, wire.NEWDECIMAL):
        return 1 if own in (wire.FLOAT, wire.DOUBLE) else None
    lengths = {wire.FLOAT: 12, wire.DOUBLE: 22}
    return _sign(lengths[theirs] - lengths[own]) if own in lengths else None


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _label_bytes(local: Column) -> int:
    count = len(local.labels)
    if local.type == "enum":
        return 1 if count < 256 else 2
    size = (count + 7) // 8
    return 8 if size > 4 else size


def source_type_text(source: SourceColumn) -> str:
    """The source's type as the server names it in error 1677."""
    kind = source.real_type
    if kind == wire.NEWDECIMAL:
        return f"decimal({source.metadata >> 8},{source.metadata & 0xFF})"
    if kind == wire.BIT:
        return f"bit({(source.metadata & 0xFF) * 8 + (source.metadata >> 8)})"
    if kind == wire.STRING:
        return f"char({source_bytes(source)})"
    if kind in (wire.VARCHAR, wire.VAR_STRING, wire.MARIADB_VARCHAR_COMPRESSED):
        return f"varchar({source.metadata})"
    if SAME_AS.get(kind, kind) == wire.BLOB:
        return {1: "tinyblob", 2: "blob", 3: "mediumblob", 4: "longblob"}.get(
            source.metadata, "blob"
        )
    return TYPE_TEXT.get(kind, f"type {kind}")


def _local_type_text(local: Column) -> str:
    text = column_type(local)
    if local.type in ("char", "varchar") and local.charset:
        return f"{local.type}({local_bytes(local)}) {local.charset}"
    return text
