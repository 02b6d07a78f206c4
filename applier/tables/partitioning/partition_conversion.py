"""MariaDB's ALTER TABLE … CONVERT PARTITION p TO TABLE u, and CONVERT TABLE u TO PARTITION p: the
statements that leave the same (seen on 10.11.18)."""

from __future__ import annotations

from applier.tables.sql.quoting import quoted
from applier.tables.sql.sql_text import Parser

Name = tuple[str, str]


def converts(parser: Parser) -> bool:
    """Whether one of the two stands at the cursor."""
    return (
        parser.lexis.mariadb
        and parser.word() == "CONVERT"
        and parser.word(1) in ("PARTITION", "TABLE")
    )


def conversion(parser: Parser, table: Name, database: str) -> list[str]:
    """The statements that do it, in their order. Raises InputError for what cannot be read."""
    parser.expect("CONVERT")
    own = _written(table)
    if parser.accept("PARTITION"):
        partition = parser.raw_name()
        parser.expect("TO", "TABLE")
        other = _written(parser.table_name(database))
        return [
            f"CREATE TABLE {other} LIKE {own}",
            f"ALTER TABLE {other} REMOVE PARTITIONING",
            f"ALTER TABLE {own} EXCHANGE PARTITION {partition} WITH TABLE {other}",
            f"ALTER TABLE {own} DROP PARTITION {partition}",
        ]
    parser.expect("TABLE")
    other = _written(parser.table_name(database))
    parser.expect("TO", "PARTITION")
    described = parser.rest()
    partition = parser.raw_name()
    return [
        f"ALTER TABLE {own} ADD PARTITION (PARTITION {described})",
        f"ALTER TABLE {own} EXCHANGE PARTITION {partition} WITH TABLE {other}",
        f"DROP TABLE {other}",
    ]


def _written(name: Name) -> str:
    return ".".join(map(quoted, name))
