"""Odd tables for suggestions: how each is made, rows for it, and what is to be suggested on which
server."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

NEW, EXISTING, TEXT, NOTHING = "new column", "existing columns", "no statement", "nothing"
"""A column is added; a key on columns that are there; a sentence without a statement; no suggestion
at all."""


@dataclass(frozen=True)
class OddTable:
    """`create` and `rows` have {t} for the quoted name. `key` is the one that rows are found by
    afterwards."""

    label: str
    create: str
    rows: tuple[str, ...]
    outcome: str = NEW
    servers: tuple[str, ...] = ("5.7", "9.7", "mariadb")
    name: str = "t"
    key: str = "PRIMARY"


def _read() -> tuple[OddTable, ...]:
    found = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["table"]
    return tuple(
        OddTable(
            **{
                name: tuple(value) if isinstance(value, list) else value
                for name, value in one.items()
            }
        )
        for one in found
    )


def _columns(count: int, outcome: str) -> OddTable:
    columns = ", ".join(f"c{number} TINYINT" for number in range(count))
    return OddTable(
        f"{count} columns",
        f"CREATE TABLE {{t}} ({columns})",
        ("INSERT INTO {t} (c0) VALUES (1), (1)",),
        outcome,
    )


def _keys(count: int, outcome: str) -> OddTable:
    keys = ", ".join(f"KEY k{number} (a)" for number in range(count))
    return OddTable(
        f"{count} keys",
        f"CREATE TABLE {{t}} (a INT, {keys})",
        ("INSERT INTO {t} VALUES (1), (1)",),
        outcome,
    )


TABLES = (*_read(), _columns(1017, TEXT), _columns(1016, NEW), _keys(64, TEXT), _keys(63, NEW))
