"""Column types as the server shows them."""

from __future__ import annotations

from lookup.table import Column

DISPLAY_WIDTHS = {
    "tinyint": (4, 3),
    "smallint": (6, 5),
    "mediumint": (9, 8),
    "int": (11, 10),
    "bigint": (20, 20),
}
"""Integer type -> default display width, signed and unsigned (5.x and MariaDB; 8.0.19 dropped
them)."""
_FULL_WIDTHS = {
    "float": 12,
    "double": 22,
    **{name: unsigned for name, (_, unsigned) in DISPLAY_WIDTHS.items()},
}
_LABEL_ESCAPES = str.maketrans({"\\": "\\\\", "\0": "\\0", "'": "''", "\n": "\\n", "\r": "\\r"})
"""`append_unescaped`, sql/sql_show.cc."""
WITH_LENGTH = frozenset({"char", "varchar", "binary", "varbinary", "bit", "vector"})
WITH_FRACTION = frozenset({"time", "datetime", "timestamp"})


def column_type(column: Column, *, display_widths: bool = False) -> str:
    """COLUMN_TYPE of INFORMATION_SCHEMA.COLUMNS. `display_widths`: as 5.x and MariaDB write
    integers."""
    name = column.type
    text = name
    if name in DISPLAY_WIDTHS:
        default = DISPLAY_WIDTHS[name][column.unsigned]
        if (
            display_widths
            or column.zerofill
            or (name == "tinyint" and column.length == 1 and not column.unsigned)
        ):
            text = f"{name}({column.length if column.length is not None else default})"
    elif name == "year" and display_widths:
        text = f"year({column.length or 4})"
    elif name == "decimal":
        text = f"decimal({column.length or 10},{column.scale})"
    elif name in WITH_LENGTH:
        text = f"{name}({column.length if column.length is not None else 1})"
    elif name in WITH_FRACTION and column.scale:
        text = f"{name}({column.scale})"
    elif name in ("enum", "set"):
        labels = ",".join("'" + label.translate(_LABEL_ESCAPES) + "'" for label in column.labels)
        text = f"{name}({labels})"
    elif name in ("float", "double") and column.length is not None:
        text = f"{name}({column.length},{column.scale})"
    attributes = (
        (column.unsigned, " unsigned"),
        (column.zerofill, " zerofill"),
        (column.compressed, " /*M!100301 COMPRESSED*/"),
    )
    return text + "".join(words for said, words in attributes if said)


def zerofill_width(column: Column) -> int:
    """Characters that a ZEROFILL column fills with zeros, as it is shown; 0 for any other
    column."""
    if not column.zerofill:
        return 0
    if column.type == "decimal":
        return (column.length or 10) + bool(column.scale)
    return column.length if column.length is not None else _FULL_WIDTHS[column.type]
