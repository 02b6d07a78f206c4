"""The types of CREATE TABLE: their names, their other names, and what stands in parentheses
(`type`, sql/sql_yacc.yy of 5.6 to 9.7; `field_type`, sql/sql_yacc.yy of MariaDB 10.11)."""

from __future__ import annotations

from collections.abc import Callable

from applier.tables.conversions.conversion_rules import GEOMETRIES
from applier.tables.definitions.table_draft import ColumnDraft, SchemaRules
from applier.tables.sql.quoting import hex_bytes
from applier.tables.sql.sql_mode_flags import SqlModeFlag
from applier.tables.sql.sql_text import Parser

PLAIN_TYPES = """
    tinyint smallint mediumint int bigint decimal float double bit year date time datetime timestamp
    char varchar binary
    varbinary tinytext text mediumtext longtext tinyblob blob mediumblob longblob enum set json
    geometry point linestring
    polygon multipoint multilinestring multipolygon geometrycollection vector uuid inet4 inet6
""".split()

OTHER_NAMES = {
    "int": "integer, int4",
    "tinyint": "int1",
    "smallint": "int2",
    "mediumint": "int3, middleint",
    "bigint": "int8",
    "decimal": "dec, numeric, fixed",
    "float": "float4",
    "double": "double precision, float8, real",
    "bool": "boolean",
    "char": "character",
    "varchar": "varcharacter, char varying, character varying",
    "nchar": "national char, national character",
    "nvarchar": (
        "national varchar, national varcharacter, nchar varchar, nchar varcharacter, nchar varying,"
        " national char varying, national character varying"
    ),
    "mediumblob": "long varbinary",
    "mediumtext": (
        "long, long varchar, long varcharacter, long char varying, long character varying"
    ),
    "geometrycollection": "geomcollection",
}
Names = dict[tuple[str, ...], str]

ORACLE_DATE: Names = {("date",): "datetime"}
ORACLE_NAMES: Names = {
    **ORACLE_DATE,
    ("blob",): "longblob",
    ("clob",): "longtext",
    ("raw",): "varbinary",
    ("varchar2",): "varchar",
    ("number",): "number",
}
"""sql_mode=ORACLE of MariaDB. NUMBER has its own rule for its size."""
MAXDB_NAMES: Names = {("timestamp",): "datetime"}
"""sql_mode=MAXDB (up to 5.7, MariaDB), and MariaDB's schema maxdb_schema."""
REAL_AS_FLOAT_NAMES: Names = {("real",): "float"}
SCHEMAS: dict[str, Names] = {
    "mariadb_schema": {},
    "oracle_schema": ORACLE_DATE,
    "maxdb_schema": MAXDB_NAMES,
}


_OWN_NAMES = {name: name for name in (*PLAIN_TYPES, "bool", "nchar", "nvarchar", "serial")}
NAMES: Names = {
    tuple(other.split()): name
    for names in (_OWN_NAMES, OTHER_NAMES)
    for name, others in names.items()
    for other in others.split(",")
}
LONGEST = max(map(len, NAMES))
PRESETS: dict[str, dict[str, object]] = {
    "bool": {"type": "tinyint", "length": 1},
    "serial": {
        "type": "bigint",
        "unsigned": True,
        "nullable": False,
        "said_null": True,
        "auto_increment": True,
        "unique": True,
    },
    "nchar": {"type": "char", "charset": "utf8mb3"},
    "nvarchar": {"type": "varchar", "charset": "utf8mb3"},
}


def read_type(parser: Parser, rules: SchemaRules, draft: ColumnDraft) -> None:
    """Reads a type with its size into the draft. Raises InputError for anything else."""
    names = _known_names(rules)
    if rules.mariadb and parser.op(1) == "." and parser.word().lower() in SCHEMAS:
        names = NAMES | SCHEMAS[parser.name().lower()]
        parser.expect(".")
    name = _type_name(parser, names)
    if (
        name == "longblob" and parser.op() == "("
    ):  # BLOB(n) of sql_mode=ORACLE; a LONGBLOB has no size
        name = "blob"
    draft.set(**PRESETS.get(name, {"type": name}))
    read_size = SIZES.get(str(draft.values["type"]), _no_size)
    if name == "number":
        read_size = _number
    read_size(parser, draft)


def _known_names(rules: SchemaRules) -> Names:
    names = NAMES
    if rules.sql_mode & SqlModeFlag.REAL_AS_FLOAT:
        names = names | REAL_AS_FLOAT_NAMES
    if rules.sql_mode & SqlModeFlag.MAXDB:
        names = names | MAXDB_NAMES
    if rules.mariadb and rules.sql_mode & SqlModeFlag.ORACLE:
        names = names | ORACLE_NAMES
    return names


def _type_name(parser: Parser, names: Names) -> str:
    words = tuple(parser.word(ahead).lower() for ahead in range(LONGEST))
    for count in range(LONGEST, 0, -1):
        if words[:count] in names:
            parser.at += count
            return names[words[:count]]
    raise parser.refuse("unknown column type")


# what stands in parentheses


def _sizes(parser: Parser) -> list[int]:
    """(size) or (size, scale); [] where none stands."""
    if not parser.accept("("):
        return []
    sizes = [parser.size()]
    if parser.accept(","):
        sizes.append(parser.size())
    parser.expect(")")
    return sizes


def _no_size(parser: Parser, draft: ColumnDraft) -> None:
    return


def _length(parser: Parser, draft: ColumnDraft) -> None:
    if sizes := _sizes(parser):
        draft.set(length=sizes[0])


def _year(parser: Parser, draft: ColumnDraft) -> None:
    """YEAR(2) has a text of its own; any other size is 4."""
    if _sizes(parser) == [2]:
        draft.set(length=2)


def _fraction(parser: Parser, draft: ColumnDraft) -> None:
    if sizes := _sizes(parser):
        draft.set(scale=sizes[0])


def _digits(parser: Parser, draft: ColumnDraft) -> None:
    sizes = _sizes(parser)
    if sizes:
        length, scale = (*sizes, 0)[:2]
        draft.set(length=length or (0 if scale else 10), scale=scale)


def _real(parser: Parser, draft: ColumnDraft) -> None:
    sizes = _sizes(parser)
    if len(sizes) == 2:
        draft.set(length=sizes[0], scale=sizes[1])
    elif sizes and draft.values["type"] == "float":
        draft.set(type="float" if sizes[0] <= 24 else "double")


def _number(parser: Parser, draft: ColumnDraft) -> None:
    """NUMBER is DECIMAL where it has a size, DOUBLE where it has none."""
    draft.set(type="decimal" if parser.op() == "(" else "double")
    _digits(parser, draft)


def _bits(parser: Parser, draft: ColumnDraft) -> None:
    if sizes := _sizes(parser):
        draft.set(length=sizes[0] or 1)


def _large_object(parser: Parser, draft: ColumnDraft) -> None:
    """TEXT(n) and BLOB(n) are of the smallest type that holds n characters, which the character set
    decides."""
    if sizes := _sizes(parser):
        draft.set(holds=sizes[0])


def _labels(parser: Parser, draft: ColumnDraft) -> None:
    parser.expect("(")
    labels = []
    while True:
        labels.append(_label(parser))
        if not parser.accept(","):
            break
    parser.expect(")")
    draft.set(labels=tuple(labels))


def _label(parser: Parser) -> str | bytes:
    """Text, or the bytes of a label in the column's character set (`ColumnDraft.build` knows
    it)."""
    token = parser.next()
    if token.kind == "hex":
        return hex_bytes(token.value)
    if token.kind == "bit":
        digits = token.value[2:].rstrip("'")
        return int(digits or "0", 2).to_bytes((len(digits) + 7) // 8, "big")
    if token.kind != "string":
        parser.at -= 1
        raise parser.refuse("expected a label")
    return token.value


SIZES: dict[str, Callable[[Parser, ColumnDraft], object]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), _length),
    **dict.fromkeys(("char", "varchar", "binary", "varbinary", "vector"), _length),
    **dict.fromkeys(("time", "datetime", "timestamp"), _fraction),
    **dict.fromkeys(("float", "double"), _real),
    **dict.fromkeys(("text", "blob"), _large_object),
    **dict.fromkeys(("enum", "set"), _labels),
    "decimal": _digits,
    "year": _year,
    "bit": _bits,
    **dict.fromkeys(GEOMETRIES, lambda parser, draft: _sizes(parser)),
}
