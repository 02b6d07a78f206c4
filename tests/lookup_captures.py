"""The transactions that real 5.6.24 and 5.7.29 replicas applied under every setting, and what each
of them cost.

They are committed as one archive, tests/captures/lookup.tar.xz, unpacked for a run; BINLAG_CAPTURES
names a folder that holds lookup/ instead.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import json
import os
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import applier
from applier import Tables
from applier.binlog.types import to_python
from applier.tables.dml.row_writer import StatementSession
from applier.tables.dml.statements import execute_statement
from applier.tables.engine import MemoryTable
from applier.tables.expressions.row_expressions import Session
from lookup.table import Column
from tests.captures_support import CAPTURES

ARCHIVE = Path(__file__).parent / "captures" / "lookup.tar.xz"
SERVERS = {"my56": "5.6", "my57": "5.7"}
STEP = 5
"""Option sets and exec modes come in groups of six and two, so a fifth of the cases meets all of
them."""
COUNTERS = {
    "read_first": "read_first",
    "read_key": "read_key",
    "read_next": "read_next",
    "read_rnd": "read_rnd",
    "read_rnd_next": "read_rnd_next",
    "write": "write",
    "update": "update",
    "delete": "delete",
}
"""Counter of ours -> column of the cases."""


@dataclass(frozen=True)
class Shape:
    """One table definition with its rows and the log of all statements on it, as one server saw
    them."""

    folder: str
    name: str

    @property
    def server(self) -> str:
        return SERVERS[self.folder]

    @property
    def log(self) -> Path:
        return lookup_folder() / self.folder / f"{self.name}.binlog"

    def tables(self) -> Tables:
        """The replica's table with its initial rows."""
        sql = (lookup_folder() / self.folder / f"{self.name}.init.sql").read_text()
        description = json.loads((lookup_folder() / self.folder / f"{self.name}.json").read_text())
        lines = [
            description["ddl_replica"] + ";" if line.startswith("CREATE TABLE") else line
            for line in sql.split("\n")
        ]
        tables = applier.load_schema("\n".join(lines), server=self.server)
        tables.commit()
        return tables

    def cases(self) -> list[dict[str, str]]:
        """All cases with BINLAG_ALL_CASES=1 or BINLAG_CAPTURES, else each fifth."""
        everything = _cases(self.folder)[self.name]
        thorough = os.environ.get("BINLAG_ALL_CASES") == "1" or "BINLAG_CAPTURES" in os.environ
        return everything if thorough else everything[::STEP]


@functools.cache
def lookup_folder() -> Path:
    """Where the files are; unpacked once a process."""
    if (CAPTURES / "lookup").is_dir():
        return CAPTURES / "lookup"
    folder = tempfile.TemporaryDirectory(prefix="binlag-lookup-")
    _UNPACKED.append(folder)
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                target = Path(folder.name) / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())
    return Path(folder.name) / "lookup"


_UNPACKED: list[tempfile.TemporaryDirectory[str]] = []
"""Keeps the unpacked folder until the process ends."""


@functools.cache
def _cases(folder: str) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    with (lookup_folder() / f"cases_{folder}.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["shape"], []).append(row)
    return found


def shapes() -> Iterator[Shape]:
    for folder in SERVERS:
        yield from (Shape(folder, name) for name in _cases(folder))


def disagreement(case: dict[str, str], shape: Shape, tables: Tables) -> dict[str, tuple[Any, Any]]:
    """What one case gives here and what it gave there, by name, where the two differ. `tables` are
    used up."""
    if case["replica_change_before"]:
        execute_statement(tables, case["replica_change_before"], "lk", StatementSession(Session()))
        tables.commit()
    result = applier.replay(
        [shape.log],
        into=tables,
        server=shape.server,
        row_search=case["slave_rows_search_algorithms"],
        exec_mode=case["slave_exec_mode"].lower(),
        start_position=int(case["start_pos"]),
        stop_position=int(case["stop_pos"]),
    )
    texts = _row_texts(tables[f"lk.{case['shape']}"])
    got: dict[str, Any] = {name: result.counters[name] for name in COUNTERS}
    want: dict[str, Any] = {name: int(case[column]) for name, column in COUNTERS.items()}
    got["errno"], want["errno"] = (result.error.number if result.error else 0), int(case["errno"])
    got["rows"], want["rows"] = len(texts), int(case["final_rows"])
    got["crc32_sum"], want["crc32_sum"] = sum(map(zlib.crc32, texts)), int(case["final_crc32_sum"])
    got["scan_md5"], want["scan_md5"] = (
        hashlib.md5(b"\n".join(texts)).hexdigest(),
        case["final_scan_md5"],
    )
    return {name: (got[name], want[name]) for name in got if got[name] != want[name]}


_KNOWN_TEXTS: dict[tuple[Column, ...], dict[tuple[Any, ...], bytes]] = {}
"""The cases of a shape share most of their rows."""


def _row_texts(table: MemoryTable) -> list[bytes]:
    """The rows in scan order, as the captures write them."""
    definition = table.definition
    if definition.columns not in _KNOWN_TEXTS:
        _KNOWN_TEXTS.clear()
    known = _KNOWN_TEXTS.setdefault(definition.columns, {})
    converters = [to_python(column) for column in definition.columns]
    texts = []
    for row in table.stored_rows():
        text = known.get(row)
        if text is None:
            values = (convert(value) for convert, value in zip(converters, row, strict=True))
            text = known[row] = b"|".join(map(_value_text, values))
        texts.append(text)
    return texts


def _value_text(value: Any) -> bytes:
    if value is None:
        return b"\\N"
    return value.hex().upper().encode() if isinstance(value, bytes) else str(value).encode()
