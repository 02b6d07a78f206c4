"""What a server holds against the `after/` of a capture, which the server that wrote the log said
itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from pymysql.converters import encoders as ENCODERS  # noqa: N812
from servers.database import Database

SYSTEM = ("mysql", "sys", "information_schema", "performance_schema", "binlag")
_COLUMN = {
    "text": "CONVERT({} USING utf8mb4)",
    "hex": "HEX({})",
    "uint": "{} + 0",
    "double": "{} + 0e0",
}
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"}


def user_databases(server: Database) -> list[str]:
    return [row[0] for row in server.query("SHOW DATABASES") if row[0] not in SYSTEM]


def differences(server: Database, after: Path) -> list[str]:
    """One line per table that is not as `after` says; empty when all are."""
    expected = {
        re.sub("@([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), file.stem): file
        for file in after.glob("*.tsv")
    }
    found = dict(_tables(server))
    lines = [f"{name} is missing" for name in expected.keys() - found.keys()] + [
        f"{name} is too much" for name in found.keys() - expected.keys()
    ]
    for name in sorted(expected.keys() & found.keys()):
        header, *rows = (
            expected[name].read_bytes().decode("utf-8", "surrogateescape").split("\n")[:-1]
        )
        encodings = [column.rsplit(":", 1)[1] for column in header.split("\t")]
        names = [column.split(":")[0] for column in header.split("\t")]
        want = Counter(
            tuple(_value(text, kind) for text, kind in zip(row.split("\t"), encodings, strict=True))
            for row in rows
        )
        have = Counter(_rows(server, found[name], names, encodings))
        if want != have:
            missing, extra = want - have, have - want
            lines.append(
                f"{name}: {missing.total()} missing {list(missing)[:1]}, {extra.total()} extra "
                f"{list(extra)[:1]}"
            )
    return sorted(lines)


def _value(text: str, encoding: str) -> Any:
    return _rounded(text) if encoding == "double" and text != "\\N" else text


def _rounded(number: str) -> str:
    """To 13 digits: 9.7 says some doubles with 16, which do not read back to the same."""
    return f"{Decimal(number):.12e}"


def _tables(server: Database) -> Iterator[tuple[str, tuple[str, str]]]:
    """Full name of a table -> database and name."""
    names = server.query(
        "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES"
    )
    for schema, table, kind in names:
        if schema not in SYSTEM and kind in ("BASE TABLE", "SYSTEM VERSIONED"):
            yield f"{schema}.{table}", (schema, table)


def _rows(
    server: Database, table: tuple[str, str], names: list[str], encodings: list[str]
) -> Iterator[tuple[Any, ...]]:
    computed = dict(_COLUMN, double="CAST({} AS DOUBLE)") if _shows_all_digits(server) else _COLUMN
    columns = ", ".join(
        computed[kind].format(_quoted(name)) for name, kind in zip(names, encodings, strict=True)
    )
    with (
        server.connect(charset="utf8mb4", conv=dict(ENCODERS), use_unicode=False) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SET time_zone='+00:00', sql_mode=''")
        cursor.execute(f"SELECT {columns} FROM {_quoted(table[0])}.{_quoted(table[1])}")
        for row in cursor.fetchall():
            yield tuple(_shown(value, kind) for value, kind in zip(row, encodings, strict=True))


def _shows_all_digits(server: Database) -> bool:
    """From 8.0.17 on only a cast shows all digits of a double; before, a sum does."""
    version = server.query("SELECT VERSION()")[0][0]
    return "MariaDB" not in version and int(version.split(".")[0]) >= 8


def _shown(value: bytes | None, encoding: str) -> Any:
    if value is None:
        return "\\N"
    text = value.decode("utf-8", "surrogateescape")
    if encoding == "double":
        return _rounded(text)
    return "".join(_ESCAPES.get(char, char) for char in text) if encoding == "text" else text


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
