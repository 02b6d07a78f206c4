"""Folders that hold a dump: which files, in which order, for which database.

A row of FORMATS is a program that writes folders: how its folder is known, and its parts. All parts
of a folder become one stream of SQL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from applier.dumps.delimited import Delimiters, insert_statements
from applier.dumps.split import RawStatement, split_statements
from applier.dumps.statement import about
from applier.error_codes import Code
from applier.errors import InputError, cannot_read
from applier.sources import open_source
from applier.tables.sql.sql_text import Parser

PACKED = (".gz", ".zst", ".xz", ".bz2")
SESSION = ("SET FOREIGN_KEY_CHECKS=0, SQL_MODE='NO_AUTO_VALUE_ON_ZERO'",)
"""What the programs that load such a folder set first."""


@dataclass(frozen=True)
class DumpFile:
    """One file. `database`: its tables' own. `head`: SQL before it. `rows`: of a file that holds
    delimited rows."""

    path: Path
    database: str | None = None
    head: tuple[str, ...] = ()
    rows: RowsFileLayout | None = None

    @property
    def name(self) -> str:
        """How messages call it."""
        return str(self.path)

    def statements(self) -> Iterator[RawStatement]:
        """The SQL of the file. Raises InputError that names it."""
        yield from (RawStatement(sql.encode(), 1) for sql in self.head)
        try:
            with open_source(self.path) as file:
                if self.rows is None:
                    yield from self._sql(split_statements(file))
                else:
                    rows = self.rows
                    for sql in insert_statements(
                        file, self.name, rows.table, rows.columns, rows.decoded, rows.delimiters
                    ):
                        yield RawStatement(sql, 1)
        except OSError as error:
            raise cannot_read(error, self.name, "schema") from None

    def _sql(self, statements: Iterator[RawStatement]) -> Iterator[RawStatement]:
        for raw in statements:
            loads = None if raw.sql[:4].upper() != b"LOAD" else loaded_file(raw.sql)
            if loads is None:
                yield raw
                continue
            name, rows, names = loads
            path = next(
                (path for path in self._beside(name) if path.exists()), self.path.parent / name
            )
            yield from DumpFile(path, self.database, names, rows).statements()

    def _beside(self, name: str) -> Iterator[Path]:
        """The file that a LOAD DATA names: in this folder, whatever folder the dump was taken in;
        packed or not."""
        for suffix in ("", *PACKED):
            yield self.path.parent / (Path(name).name + suffix)


@dataclass(frozen=True)
class RowsFileLayout:
    """What is in a file of delimited rows."""

    table: str
    columns: tuple[str, ...]
    decoded: dict[str, str]
    delimiters: Delimiters


def loaded_file(sql: bytes) -> tuple[str, RowsFileLayout, tuple[str, ...]] | None:
    """(File, its rows, SET NAMES) of a LOAD DATA that a folder carries the file of; None for any
    other. As mydumper writes it."""
    parser = Parser(sql.decode("utf-8", "surrogateescape"))
    parser.expect("LOAD")
    if not parser.accept("DATA"):
        return None
    parser.accept_any("LOW_PRIORITY", "CONCURRENT")
    parser.accept("LOCAL")
    parser.expect("INFILE")
    name = parser.text()
    parser.accept_any("REPLACE", "IGNORE")
    parser.expect("INTO", "TABLE")
    _, table = parser.table_name("")
    names: tuple[str, ...] = ()
    found = dict[str, bytes]()
    if parser.accept("CHARACTER", "SET") or parser.accept("CHARSET"):
        names = (f"SET NAMES {parser.name()}",)
    words = {"TERMINATED": "fields", "ENCLOSED": "enclosed", "ESCAPED": "escaped"}
    if parser.accept_any("FIELDS", "COLUMNS"):
        while word := parser.accept_any("TERMINATED", "OPTIONALLY", "ENCLOSED", "ESCAPED"):
            if word != "OPTIONALLY":
                parser.expect("BY")
                found[words[word]] = parser.text().encode()
    if parser.accept("LINES"):
        while word := parser.accept_any("STARTING", "TERMINATED"):
            parser.expect("BY")
            found["lines" if word == "TERMINATED" else "starting"] = parser.text().encode()
    columns, decoded = _columns(parser)
    if not parser.done:
        raise parser.refuse("a clause of LOAD DATA that is not read here")
    return name, RowsFileLayout(table, columns, decoded, Delimiters(**found)), names


def _columns(parser: Parser) -> tuple[tuple[str, ...], dict[str, str]]:
    """(a, @b) SET b = UNHEX(@b)"""
    columns, decoded = [], dict[str, str]()
    if parser.accept("("):
        while True:
            parser.accept("@")
            columns.append(parser.name().removeprefix("@"))
            if not parser.accept(","):
                break
        parser.expect(")")
    if parser.accept("SET"):
        while True:
            column = parser.name()
            parser.expect("=")
            decoded[column] = parser.name().upper()
            if decoded[column] not in ("UNHEX", "FROM_BASE64"):
                raise parser.refuse("expected UNHEX or FROM_BASE64")
            parser.parenthesized()
            if not parser.accept(","):
                break
    return tuple(columns), decoded


# mydumper


_MYDUMPER_ROLES = (
    ("database", re.compile(r"(?P<database>[^.]+)-schema-create\.sql$")),
    ("sequence", re.compile(r"(?P<database>[^.]+)\.(?P<table>.+)-schema-sequence\.sql$")),
    ("table", re.compile(r"(?P<database>[^.]+)\.(?P<table>.+)-schema\.sql$")),
    ("view", re.compile(r"(?P<database>[^.]+)\.(?P<table>.+)-schema-view\.sql$")),
    ("trigger", re.compile(r"(?P<database>[^.]+)(?:\.(?P<table>.+))?-schema-triggers\.sql$")),
    ("post", re.compile(r"(?P<database>[^.]+)-schema-post\.sql$")),
    ("rows", re.compile(r"(?P<database>[^.]+)\.(?P<table>.+?)(?:\.\d+)*\.sql$")),
)
_MYDUMPER_ORDER = ("database", "sequence", "table", "rows", "view", "post", "trigger")


def _mydumper(folder: Path) -> Iterator[DumpFile]:
    found: dict[str, list[tuple[Path, str]]] = {role: [] for role in _MYDUMPER_ORDER}
    for path in sorted(folder.iterdir()):
        name = _unpacked(path.name)
        match = next(
            ((role, hit) for role, one in _MYDUMPER_ROLES if (hit := one.match(name))), None
        )
        if match is not None:
            found[match[0]].append((path, match[1]["database"]))
    real = {name: _database_of(path) or name for path, name in found["database"]}
    yield from (DumpFile(path) for path, _ in found["database"])
    for role in _MYDUMPER_ORDER[1:]:
        yield from (DumpFile(path, real.get(name, name), SESSION) for path, name in found[role])


def _database_of(path: Path) -> str | None:
    """The database that a file's CREATE DATABASE makes: file names stand for odd ones by a
    number."""
    for raw in DumpFile(path).statements():
        said = about(raw.sql.decode("utf-8", "surrogateescape"))
        if said.kind == "database":
            return said.names[0].name
    return None


def _is_mydumper(folder: Path) -> bool:
    return (
        any((folder / name).is_file() for name in ("metadata", "metadata.partial"))
        and not (folder / "@.json").is_file()
    )


# MySQL Shell


def _shell(folder: Path) -> Iterator[DumpFile]:
    """util.dumpInstance, dumpSchemas, dumpTables (modules/util/dump/dumper.cc): names of schemas
    and tables are escaped in file names."""
    whole = _json(folder / "@.json")
    if not (folder / "@.done.json").is_file():
        raise InputError(
            "the dump was not finished: it has no @.done.json",
            code=Code.DUMP_CUT_OFF,
            file=str(folder),
            hint="take the dump again",
        )
    zone = ("SET TIME_ZONE='+00:00'",) if whole.get("tzUtc", True) else ()
    head = (f"SET NAMES {whole.get('defaultCharacterSet', 'utf8mb4')}", *SESSION, *zone)
    last: list[DumpFile] = []
    for schema, base in whole.get("basenames", {}).items():
        own = _json(folder / f"{base}.json")
        if (folder / f"{base}.sql").is_file():
            yield DumpFile(folder / f"{base}.sql", schema, SESSION)
        views = set(own.get("views", ()))
        for table, name in own.get("basenames", {}).items():
            if table in views:
                last += [
                    DumpFile(path, schema)
                    for path in (folder / f"{name}.pre.sql", folder / f"{name}.sql")
                    if path.is_file()
                ]
                continue
            if (folder / f"{name}.sql").is_file():
                yield DumpFile(folder / f"{name}.sql", schema, SESSION)
            about_table = _json(folder / f"{name}.json")
            if about_table.get("includesData", True) and own.get("includesData", True):
                yield from _shell_rows(folder, schema, name, about_table, head)
            if (folder / f"{name}.triggers.sql").is_file():
                last.append(DumpFile(folder / f"{name}.triggers.sql", schema))
    yield from last


def _shell_rows(
    folder: Path, schema: str, base: str, said: dict[str, Any], head: tuple[str, ...]
) -> Iterator[DumpFile]:
    options = said.get("options", {})
    wanted = {
        "fields": "fieldsTerminatedBy",
        "enclosed": "fieldsEnclosedBy",
        "escaped": "fieldsEscapedBy",
        "lines": "linesTerminatedBy",
    }
    delimiters = Delimiters(
        **{own: str(options[name]).encode() for own, name in wanted.items() if name in options}
    )
    columns, decoded = tuple(options.get("columns", ())), dict(options.get("decodeColumns", {}))
    rows = RowsFileLayout(str(options.get("table", "")), columns, decoded, delimiters)
    suffix = "." + str(said.get("extension", "tsv.zst"))
    bases = [base, *said.get("basenames", {}).values()]
    chunks = [path for one in bases for path in _chunks(folder, one, suffix)]
    yield from (DumpFile(path, schema, head, rows) for path in chunks)


def _chunks(folder: Path, base: str, suffix: str) -> list[Path]:
    """basename.ext, or basename@0.ext to basename@@N.ext, which is the last one. Raises InputError
    where one is missing."""
    numbered = {}
    for path in folder.iterdir():
        if path.name.startswith(base + "@") and path.name.endswith(suffix):
            place = path.name[len(base) + 1 : -len(suffix)]
            if place.removeprefix("@").isdigit():
                numbered[int(place.removeprefix("@"))] = path
    last = next(
        (number for number, path in numbered.items() if path.name.startswith(base + "@@")), None
    )
    missing = [
        number
        for number in range((last if last is not None else max(numbered, default=-1)) + 1)
        if number not in numbered
    ]
    if missing or (numbered and last is None):
        raise InputError(
            "a chunk of rows is missing:"
            f" {base}@{missing[0] if missing else len(numbered)}{suffix}",
            code=Code.DUMP_CUT_OFF,
            file=str(folder),
        )
    whole = folder / f"{base}{suffix}"
    return [whole] * whole.is_file() + [numbered[number] for number in sorted(numbered)]


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise cannot_read(error, path, "schema") from None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError("no JSON object", code=Code.SCHEMA_SQL, file=str(path))
    return found


# skeema, and plain folders of SQL


def _skeema(folder: Path) -> Iterator[DumpFile]:
    """A file per table, a folder per schema; .skeema says schema= (skeema.io/docs/options)."""
    for place in (folder, *sorted(path for path in folder.rglob("*") if path.is_dir())):
        files = [
            path
            for path in sorted(place.iterdir())
            if path.is_file() and _unpacked(path.name).endswith(".sql")
        ]
        if files:
            said = _skeema_option(place, folder, "schema")
            yield from (DumpFile(path, said, SESSION) for path in files)


def _skeema_option(place: Path, top: Path, name: str) -> str | None:
    """The option in .skeema of the folder, or of the nearest one above it; only the lines outside
    of [environments] count."""
    for folder in (place, *place.parents):
        config = folder / ".skeema"
        if config.is_file():
            parser = ConfigParser(allow_no_value=True, strict=False, interpolation=None)
            try:
                parser.read_string("[top]\n" + config.read_text(encoding="utf-8", errors="replace"))
            except ConfigError as error:
                raise InputError(
                    f"cannot be read: {str(error).splitlines()[0]}",
                    code=Code.SCHEMA_SQL,
                    file=str(config),
                ) from None
            said = parser.get("top", name, fallback=None)
            if said:
                return said.strip("\"'`")
        if folder == top:
            break
    return None


def _has_sql(folder: Path) -> bool:
    if any(
        path.suffix == ".txt" and path.with_suffix(".sql").is_file()
        for path in folder.glob("*.txt")
    ):
        raise InputError(
            "a folder of mysqldump --tab is not read",
            code=Code.SCHEMA_SQL,
            file=str(folder),
            hint="take the dump without --tab",
        )
    return any(_unpacked(path.name).endswith(".sql") for path in folder.rglob("*"))


def _unpacked(name: str) -> str:
    """The name without what packed files end with."""
    return name.removesuffix(next((suffix for suffix in PACKED if name.endswith(suffix)), ""))


FORMATS: tuple[tuple[str, Callable[[Path], bool], Callable[[Path], Iterator[DumpFile]]], ...] = (
    ("MySQL Shell", lambda folder: (folder / "@.json").is_file(), _shell),
    ("mydumper", _is_mydumper, _mydumper),
    ("skeema", _has_sql, _skeema),
)


def parts_of(folder: Path) -> Iterator[DumpFile]:
    """The files of a dump that is a folder. Raises InputError for any other folder."""
    try:
        for _, is_such, parts in FORMATS:
            if is_such(folder):
                return parts(folder)
    except OSError as error:
        raise cannot_read(error, folder, "schema") from None
    raise InputError(
        "the folder holds no dump",
        code=Code.SCHEMA_SQL,
        file=str(folder),
        hint=(
            "give a folder of mydumper, of MySQL Shell's util.dumpInstance, or of skeema, or a file"
            " of mysqldump"
        ),
    )
