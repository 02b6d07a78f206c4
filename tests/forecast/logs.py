"""Small logs for the tests of the forecast."""

from __future__ import annotations

import struct
from pathlib import Path

from applier.forecast.prices.calibration import SHARED, Calibration, Residuals, TimePrice
from applier.forecast.prices.units import Prices
from tests.binlog.build import gtid, int_image, log, query, rows, table_map, write, xid

BEGIN = query(b"BEGIN")
WRITE, UPDATE, DELETE = 30, 31, 32
SCHEMA = """
CREATE DATABASE d; USE d;
CREATE TABLE plain (a INT);
CREATE TABLE keyed (a INT NOT NULL PRIMARY KEY);
CREATE TABLE twice (a INT, KEY k (a));
CREATE TABLE maybe (a INT, UNIQUE KEY u (a));
"""
SECONDS = {"transaction": 0.001, "event": 0.0001, "delete": 0.00001, "update": 0.00001,
           "insert": 0.00001, "key read": 0.0001,
           "secondary read": 0.0001, "next": 0.0001, "hash row": 0.001,
           "scan row": 0.001}  # fmt: skip


def calibration(spread: float = 0.5, version: str = "8.0.36") -> Calibration:
    prices = Prices.of(SECONDS)
    residuals = Residuals(9, 0.1, 0.2, 0.3, 0.1, spread)
    free = {name: TimePrice(0.0) for name in SHARED}
    return Calibration(
        version,
        prices,
        prices,
        prices,
        residuals,
        "test",
        "a machine",
        "2026-01-01",
        {},
        "test",
        free,
    )


def transaction(
    number: int, table: bytes, kind: int, *values: int, seconds: float = 0.0, events: int = 1
) -> list[tuple[int, bytes]]:
    """One transaction of INT rows, committed `seconds` after the first; its rows in that many
    events of one statement."""
    stamp = struct.pack("<Q", 1_700_000_000_000_000 + int(seconds * 1e6))[:7]
    per = len(values) // events
    found = [
        gtid(number, last=number - 1, sequence=number, rest=stamp),
        BEGIN,
        table_map(table=table),
    ]
    for at in range(events):
        mine = values[at * per : (at + 1) * per]
        images = b"".join(int_image(one) * (2 if kind == UPDATE else 1) for one in mine)
        found.append(rows(kind, images, flags=int(at == events - 1)))
    return [*found, xid(number)]


def file(folder: Path, *transactions: list[tuple[int, bytes]], version: str = "8.0.36") -> str:
    return str(
        write(folder, log(*(event for one in transactions for event in one), version=version))
    )


def schema(folder: Path, text: str = SCHEMA) -> str:
    path = folder / "schema.sql"
    path.write_text(text)
    return str(path)
