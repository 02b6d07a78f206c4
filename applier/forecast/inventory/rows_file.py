"""Row counts from a file: what information_schema says of a server's tables, as `--rows @FILE`
takes it.

One query gives the file, on 5.6 to 9.7 and MariaDB; any client that writes its result with a head
line
and commas or tabs will do. A table has one line for each of its keys, or one for all:

    SELECT t.table_schema, t.table_name, t.table_rows, t.auto_increment, s.index_name,
           MAX(s.cardinality) AS cardinality
    FROM information_schema.tables t LEFT JOIN information_schema.statistics s
         ON s.table_schema = t.table_schema AND s.table_name = t.table_name
    WHERE t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')
    GROUP BY t.table_schema, t.table_name, t.table_rows, t.auto_increment, s.index_name

8.0 and later keep such numbers for a day unless information_schema_stats_expiry is 0.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from applier.binlog.selection.table_filter import SYSTEM_SCHEMAS
from applier.error_codes import Code
from applier.errors import InputError
from applier.forecast.inventory.facts import STATISTICS, TableFacts, with_rows
from applier.forecast.inventory.server_facts import judged
from applier.sources import open_source
from lookup.versions import ServerRules

NEEDED = ("table_schema", "table_name", "table_rows")
OPTIONAL = ("auto_increment", "index_name", "cardinality")
NULL = ("", "NULL", "\\N")
HINT = "docs/how-to/forecast.md has the query that makes it"


@dataclass(slots=True)
class TableCount:
    """What a file says of one table. `following` is the next AUTO_INCREMENT value, 0 for none.

    `cardinalities`: key name -> distinct values, as far as the server knows them.
    """

    rows: float
    following: float = 0.0
    cardinalities: dict[str, float] = field(default_factory=dict)


def with_counts(
    facts: Mapping[str, TableFacts], given: Sequence[str], rules: ServerRules
) -> tuple[dict[str, TableFacts], list[str]]:
    """The tables with the numbers of --rows, those of its files (@FILE) first; and what is to be
    said of the files. `rules` of the server that the files are of. Raises InputError,
    UsageError."""
    found, said = dict(facts), list[str]()
    for text in given:
        if text.startswith("@"):
            found, notes = with_rows_file(found, text[1:], rules)
            said += notes
    return with_rows(found, [text for text in given if not text.startswith("@")]), said


def with_rows_file(
    facts: Mapping[str, TableFacts], path: str, rules: ServerRules
) -> tuple[dict[str, TableFacts], list[str]]:
    """The tables with the numbers of a file of a server with these rules, and what is to be said of
    it. Raises InputError.

    Tables that the schema does not have are passed over; one that has none of the schema's is
    refused.
    """
    counts = read_rows(path)
    found = dict(facts)
    for name, one in counts.items():
        if name in found:
            known = replace(found[name], rows=one.rows, rows_from=STATISTICS)
            found[name] = judged(known, one.cardinalities, one.following, rules)
    unknown = [
        name
        for name in counts
        if name not in facts and name.partition(".")[0] not in SYSTEM_SCHEMAS
    ]
    if facts and not facts.keys() & counts.keys():
        what = f"it has none of the schema's tables, {min(facts)} for one"
        raise InputError(f"--rows: {what}", code=Code.ROW_COUNTS, file=path, hint=HINT)
    notes = []
    if unknown:
        notes.append(
            f"{path} has {len(unknown)} tables that the schema lacks, {min(unknown)} for one"
        )
    return found, notes


def read_rows(path: str) -> dict[str, TableCount]:
    """Full name of a table -> its numbers. Raises InputError naming the file and the line."""
    try:
        with open_source(path) as file:
            return _counts(path, file.read().decode("utf-8-sig"))
    except OSError as error:
        what = f"--rows: cannot read the row counts: {error.strerror}"
        raise InputError(what, code=Code.CANNOT_READ, file=path) from None
    except UnicodeDecodeError:
        raise InputError(
            "--rows: it is not text in UTF-8", code=Code.ROW_COUNTS, file=path, hint=HINT
        ) from None


def _counts(path: str, text: str) -> dict[str, TableCount]:
    head, _, _ = text.partition("\n")
    body = io.StringIO(text, newline="")
    tabs = "\t" in head  # as the mysql client writes: nothing is quoted
    lines = csv.reader(body, delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(body)
    names = _head(path, [name.strip().lower() for name in next(lines, [])])
    found: dict[str, TableCount] = {}
    for line in lines:
        number = lines.line_num
        if not line:
            continue
        if len(line) != len(names):
            raise _wrong(path, number, f"{len(line)} values for {len(names)} columns")
        _take(found, dict(zip(names, line, strict=True)), path, number)
    if not found:
        raise _wrong(path, 1, "no table follows the head line")
    return found


def _head(path: str, names: list[str]) -> list[str]:
    lacking = [name for name in NEEDED if name not in names]
    unknown = [name for name in names if name not in (*NEEDED, *OPTIONAL)]
    if lacking:
        raise _wrong(path, 1, f"the head line names no column {lacking[0]}")
    if unknown:
        raise _wrong(path, 1, f"the head line names an unknown column {unknown[0]!r}")
    if len(set(names)) < len(names):
        raise _wrong(path, 1, "the head line names a column twice")
    if ("index_name" in names) != ("cardinality" in names):
        raise _wrong(path, 1, "index_name and cardinality belong together")
    return names


def _take(found: dict[str, TableCount], line: Mapping[str, str], path: str, number: int) -> None:
    name = f"{line['table_schema'].strip()}.{line['table_name'].strip()}"
    if name.startswith(".") or name.endswith("."):
        raise _wrong(path, number, "a table without a name")
    values = {}
    for column in ("table_rows", "auto_increment", "cardinality"):
        values[column] = _number(line.get(column, ""), column, path, number)
    if values["table_rows"] is None:  # a view, or a table that the server could not open
        return
    one = TableCount(values["table_rows"], values["auto_increment"] or 0.0)
    known = found.setdefault(name, one)
    if known.rows != one.rows:
        raise _wrong(path, number, f"{name} has {one.rows:,.0f} rows here, {known.rows:,.0f} above")
    if line.get("index_name", "") not in NULL and values["cardinality"]:
        known.cardinalities[line["index_name"]] = values["cardinality"]


def _number(text: str, column: str, path: str, line: int) -> float | None:
    if text.strip() in NULL:
        return None
    if not text.strip().isdecimal():
        raise _wrong(path, line, f"{column} is {text!r}, which is not a number")
    return float(text)


def _wrong(path: str, line: int, what: str) -> InputError:
    return InputError(f"--rows: line {line}: {what}", code=Code.ROW_COUNTS, file=path, hint=HINT)
