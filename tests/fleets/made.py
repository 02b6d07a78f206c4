"""A fleet for tests: sources with logs of different weight, schemas and row counts, in folders of
their names."""

from __future__ import annotations

from pathlib import Path

from tests.binlog.build import log
from tests.forecast.logs import DELETE, SCHEMA, UPDATE, WRITE, calibration, transaction

TABLES, KINDS = (b"plain", b"keyed", b"twice"), (WRITE, UPDATE, DELETE)
FLEET = """
calibration: prices.json
sources:
  - logs: "{source}/binlog.*"
    schema: "{source}/schema.sql"
    rows: "{source}/rows.csv"
    replica: {workers: 2}
"""


def made_fleet(folder: Path, sources: int = 3, *, files: int = 2, transactions: int = 30) -> Path:
    """Writes it, and gives its YAML file. Source 3 has three times the rows of source 1 in an
    event."""
    for at in range(1, sources + 1):
        made_source(folder / f"shop-{at:03}", at, files=files, transactions=transactions)
    calibration().save(folder / "prices.json")
    (folder / "fleet.yaml").write_text(FLEET)
    return folder / "fleet.yaml"


def made_source(folder: Path, weight: int, *, files: int = 2, transactions: int = 30) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    for at in range(1, files + 1):
        events = []
        for _ in range(transactions):
            number += 1
            values = range(number, number + 4 * weight)
            events += transaction(
                number,
                TABLES[number % 3],
                KINDS[(number + weight) % 3],
                *values,
                seconds=number * 0.5,
                events=2,
            )
        rotate = [] if at == files else [(4, b"\4\0\0\0\0\0\0\0binlog.%06d" % (at + 1))]
        (folder / f"binlog.{at:06}").write_bytes(log(*events, *rotate, version="8.0.36"))
    (folder / "schema.sql").write_text(SCHEMA)
    (folder / "rows.csv").write_text(
        f"TABLE_SCHEMA,TABLE_NAME,TABLE_ROWS\nd,plain,{1000 * weight}\nd,twice,9000\n"
        "other,view,NULL\n"
    )
