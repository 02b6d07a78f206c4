"""Traffic without a log: a YAML file that says what is changed how often, made into the
transactions of such a log.

    hours: 24
    tables:
      shop.events: {rows: 1000000, key: none, row_bytes: 120}
    traffic:
      - {table: shop.events, type: delete, rows_per_statement: 1000, statements_per_hour: 6}

`key`: primary, unique, nullable unique, index (with rows_per_value), none; a table that the schema
file defines needs none of this but `rows`. Optional for traffic: statements_per_transaction (1),
parallel (1: how many transactions the replica may apply at once).
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from applier.error_codes import Code
from applier.errors import InputError, cannot_read
from applier.forecast.inventory.facts import GIVEN, TableFacts
from applier.forecast.workload.transaction_load import Applied, LoadShape, TransactionLoad
from lookup.table import Column, Key, KeyPart, TableDefinition
from lookup.table_shape import (
    NO_KEY,
    NULLABLE_UNIQUE,
    OTHER,
    PRIMARY,
    UNIQUE,
    EventShape,
    TableShape,
    cut,
)

T = TypeVar("T")
START = 1_700_000_000.0
_SHOWN = "docs/how-to/forecast.md shows one"
KEYS = {
    "primary": PRIMARY, "unique": UNIQUE, "nullable unique": NULLABLE_UNIQUE, "index": OTHER,
    "none": NO_KEY,
}  # fmt: skip
_TABLE = {"rows": 0.0, "key": "none", "row_bytes": 100.0, "rows_per_value": 1.0}
_TRAFFIC = {
    "table": "", "type": "", "rows_per_statement": 1.0, "statements_per_hour": 0.0,
    "statements_per_transaction": 1.0, "parallel": 1.0,
}  # fmt: skip


@dataclass(frozen=True)
class TrafficLine:
    """One line of traffic: equal transactions at equal distances."""

    target: LoadShape
    rows: float
    per_transaction: int
    every_seconds: float
    row_bytes: float
    parallel: int


@dataclass(frozen=True)
class Traffic:
    """A described workload; iterate over it for its transactions."""

    name: str
    seconds: float
    facts: Mapping[str, TableFacts]
    streams: tuple[TrafficLine, ...]

    def __iter__(self) -> Iterator[TransactionLoad]:
        for number, (time, at) in enumerate(
            heapq.merge(*(self._times(at) for at in range(len(self.streams)))), 1
        ):
            yield self._transaction(self.streams[at], number, time)

    def _times(self, at: int) -> Iterator[tuple[float, int]]:
        every = self.streams[at].every_seconds
        count = max(int(self.seconds / every + 1e-9), 1)
        return ((START + (number + 0.5) * every, at) for number in range(count))

    def _transaction(self, stream: TrafficLine, number: int, time: float) -> TransactionLoad:
        target = stream.target
        shape = TableShape(0, row_bytes=stream.row_bytes, columns=target.columns)
        event, count = cut(shape, EventShape(target.kind, stream.rows))
        most, events = int(-(-event.rows // 1)), int(count) * stream.per_transaction
        rows = int(stream.rows) * stream.per_transaction
        images = 2 if target.kind == "update" else 1
        sizes = {(most, 0): events}
        if most * events != rows:
            fewer = most * events - rows
            even = most > 1 and fewer < events
            sizes = (
                {(most, 0): events - fewer, (most - 1, 0): fewer}
                if even
                else {(max(rows // events, 1), 0): events}
            )
        row_bytes = int(rows * stream.row_bytes * images)
        applied = Applied(target, events, rows, row_bytes, stream.per_transaction, 0, sizes)
        load = TransactionLoad(self.name, number, self.name, number, None)
        load.commit_time = time
        load.rows = rows
        load.rows_events = events
        load.log_bytes = row_bytes
        load.sequence_number, load.last_committed = number, max(number - stream.parallel, 0)
        load.applied[target] = applied
        return load


def read_described(
    path: str | os.PathLike[str], schema: Mapping[str, TableFacts] | None = None
) -> Traffic:
    """Raises InputError naming the file, and the place in it."""
    import yaml

    from applier import strict_yaml

    name = os.fspath(path)
    try:
        data = strict_yaml.load(Path(path).read_text())
        return _described(data, Path(name).name, schema or {})
    except OSError as error:
        raise cannot_read(error, name, "workload") from None
    except UnicodeDecodeError:
        raise InputError(
            "the workload is not text in UTF-8", code=Code.WORKLOAD, file=name, hint=_SHOWN
        ) from None
    except (yaml.YAMLError, ValueError, TypeError, AttributeError) as error:
        told = " ".join(str(error).split())
        raise InputError(
            f"the workload is not as it should be: {told}",
            code=Code.WORKLOAD,
            file=name,
            hint=_SHOWN,
        ) from None


def _described(data: Any, name: str, schema: Mapping[str, TableFacts]) -> Traffic:
    if not isinstance(data, dict):
        raise ValueError("it holds no keys")
    unknown = set(data) - {"hours", "tables", "traffic"}
    if unknown:
        raise ValueError(f"unknown key {sorted(map(str, unknown))[0]!r}")
    facts = dict(schema)
    widths: dict[str, float] = {}
    for table, line in _held(data, "tables", dict, "names and values").items():
        fields = _fields(line, _TABLE, f"tables, {table}")
        widths[table] = fields["row_bytes"]
        known = facts.get(table)
        facts[table] = (
            replace(known, rows=fields["rows"], rows_from=GIVEN)
            if known is not None
            else _facts(table, fields)
        )
    lines = _held(data, "traffic", list, "a list")
    streams = [
        _stream(line, f"traffic, line {number}", facts, widths)
        for number, line in enumerate(lines, 1)
    ]
    if not streams:
        raise ValueError("there is no traffic")
    return Traffic(name, 3600 * _positive(data.get("hours", 24), "hours"), facts, tuple(streams))


def _held(data: Mapping[str, Any], key: str, kind: type[T], what: str) -> T:
    found = data.get(key) or kind()
    if not isinstance(found, kind):
        raise ValueError(f"`{key}` should be {what}")
    return found


def _stream(
    line: Any, place: str, facts: Mapping[str, TableFacts], widths: Mapping[str, float]
) -> TrafficLine:
    fields = _fields(line, _TRAFFIC, place)
    table, kind = fields["table"], {"insert": "write"}.get(fields["type"], fields["type"])
    if table not in facts:
        raise ValueError(f"{place}: table {table!r} is neither in `tables` nor in the schema")
    if kind not in ("write", "update", "delete"):
        raise ValueError(f"{place}: type must be insert, update or delete, not {fields['type']!r}")
    width = len(facts[table].definition.columns)
    everything = tuple(range(width))
    target = LoadShape(
        table,
        kind,
        width,
        () if kind == "write" else everything,
        () if kind == "delete" else everything,
    )
    per_hour = _positive(fields["statements_per_hour"], f"{place}: statements_per_hour")
    per_transaction = int(
        _positive(fields["statements_per_transaction"], f"{place}: statements_per_transaction")
    )
    rows = float(int(_positive(fields["rows_per_statement"], f"{place}: rows_per_statement")))
    if rows < 1 or per_transaction < 1:
        raise ValueError(
            f"{place}: a statement has at least one row, a transaction at least one statement"
        )
    every = 3600 * per_transaction / per_hour
    return TrafficLine(
        target,
        rows,
        per_transaction,
        every,
        widths.get(table, 100.0),
        max(int(fields["parallel"]), 1),
    )


def _fields(line: Any, known: Mapping[str, Any], place: str) -> dict[str, Any]:
    if not isinstance(line, dict):
        raise ValueError(f"{place}: should be keys and values")
    unknown = [key for key in line if key not in known]
    if unknown:
        raise ValueError(f"{place}: unknown key {unknown[0]!r}; known are {', '.join(known)}")
    fields = {**known, **line}
    for key, default in known.items():
        fields[key] = str(fields[key]) if isinstance(default, str) else float(fields[key])
    return fields


def _positive(value: Any, what: str) -> float:
    number = float(value)
    if not 0 < number < float("inf"):
        raise ValueError(f"{what} must be above 0, not {value}")
    return number


def _facts(table: str, fields: dict[str, Any]) -> TableFacts:
    """A table that is described only: an id, a column k that carries the key, and the rest of the
    bytes."""
    kind = fields["key"]
    if kind not in KEYS:
        raise ValueError(f"tables, {table}: key must be one of {', '.join(KEYS)}, not {kind!r}")
    database, dot, name = table.partition(".")
    if not dot:
        raise ValueError(f"tables, {table}: write it as database.table")
    nullable = kind == "nullable unique"
    columns = (
        Column("id", "int", nullable=kind != "primary"),
        Column("k", "int", nullable=nullable),
        Column("rest", "blob"),  # outside of the row, where another column still fits
    )
    keys = {
        "primary": (Key("PRIMARY", (KeyPart(0),), unique=True),), "none": (),
        "index": (Key("k", (KeyPart(1),)),),
        "unique": (Key("k", (KeyPart(1),), unique=True),),
        "nullable unique": (Key("k", (KeyPart(1),), unique=True),),
    }[kind]  # fmt: skip
    duplicates = {"k": max(fields["rows_per_value"], 1.0)} if kind == "index" else {}
    return TableFacts(
        TableDefinition(database, name, columns, keys),
        fields["rows"],
        GIVEN,
        duplicates,
        fields["row_bytes"],
    )
