"""How a replica finds the rows of each table of a schema: a dump's or a live server's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

from applier.arguments import checked, one_of
from applier.binlog.selection.table_filter import EVERYTHING, TableFilter
from applier.error_codes import Code
from applier.errors import UsageError
from applier.forecast.inventory.facts import STATISTICS, TableFacts, facts_of_tables
from applier.forecast.inventory.rows_file import with_counts
from applier.forecast.inventory.table_verdicts import IMAGES, TableVerdict, number, verdicts
from applier.mysql.contents.live_schema import is_url
from applier.options import parse_options, row_search_of
from applier.schema_source import Selection, tables_of
from applier.server_versions import asked_rules, found_rules, remark
from applier.sources import STANDARD_INPUT
from applier.spelling import did_you_mean
from applier.tables.catalog import Tables
from applier.tables.suggestion import duplicates_in
from lookup.versions import NEWEST, RULES, ServerRules

Note = Callable[[str], None]
PasswordFile = str | os.PathLike[str] | None


MOST_SHOWN = 15
"""Tables in a text of one screen."""


@dataclass(frozen=True, repr=False)
class SchemaVerdicts(Sequence[TableVerdict]):
    """The tables of a schema, the most dangerous one first; `names` are they in the schema's
    order."""

    tables: tuple[TableVerdict, ...]
    servers: tuple[ServerRules, ...]
    names: tuple[str, ...]

    @overload
    def __getitem__(self, at: int) -> TableVerdict: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[TableVerdict]: ...
    def __getitem__(self, at: int | slice) -> TableVerdict | Sequence[TableVerdict]:
        return self.tables[at]

    def __len__(self) -> int:
        return len(self.tables)

    def __repr__(self) -> str:
        """One screen: each table with what one change reads, and why."""
        tables = f"{len(self):,} {'table' if len(self) == 1 else 'tables'}"
        rules = ", ".join(rules.name for rules in self.servers)
        lines = [
            f"  {one.definition.full_name}: rows read for one change:"
            f" {number(one.worst.reads_per_change())}. {one.why}"
            for one in self.tables[:MOST_SHOWN]
        ]
        more = len(self) - MOST_SHOWN
        head = f"SchemaVerdicts: {tables}, rules of {rules}"
        return "\n".join([head, *lines] + [f"  … and {more:,} more tables"] * (more > 0))

    def as_dicts(self) -> Iterator[dict[str, Any]]:
        """The lines of `binlag explain --json`: each table in the schema's order, in every version
        and row image."""
        order = {name: at for at, name in enumerate(self.names)}
        for one in sorted(self.tables, key=lambda one: order[one.definition.full_name]):
            for case in one.cases:
                yield case.as_dict()


@checked(TableFilter.of)
def explain(
    schema: str | os.PathLike[str],
    *,
    server: str | None = None,
    row_search: str | None = None,
    row_images: str | Iterable[str] = "FULL",
    every_version: bool = False,
    row_counts: str | Iterable[str] = (),
    default_database: str | None = None,
    password_file: PasswordFile = None,
    note: Note | None = None,
    **chosen: Any,
) -> SchemaVerdicts:
    """Which key and algorithm each table of a schema gets, what one change reads, and what mends
    it.

    `schema` is what `applier.load_schema` takes. Without `server` a live server's own version
    counts, else (and with `every_version`) all versions. `row_counts` are "D.T=N" or "@FILE" as for
    --rows; `chosen` are database, table, exclude_database, exclude_table. `note` is told what was
    left out or assumed. Raises UsageError for a wrong option, InputError for a schema that cannot
    be read.
    """
    asked = None if server is None else asked_rules(server)
    options = row_search_of(row_search, server)
    selection = Selection.of(parse_options(**chosen), default_database, needs_database=False)
    counts = [row_counts] if isinstance(row_counts, str) else list(row_counts)
    asked_images = [row_images] if isinstance(row_images, str) else row_images
    images = [one_of("row_images", image, IMAGES) for image in asked_images]
    facts, tables, version = _tables(
        os.fspath(schema), server, selection, password_file, counts, note
    )
    live = None if version is None or every_version else _rules_of_server(version, note)
    servers = [rules for rules in (asked or live,) if rules] or list(RULES.values())
    duplicated = {
        table.definition.full_name: duplicates_in(table) for table in tables if len(table)
    }
    found = verdicts(facts, servers, images, options, duplicated)
    return SchemaVerdicts(
        tuple(found), tuple(servers), tuple(table.definition.full_name for table in tables)
    )


def _tables(
    schema: str,
    server: str | None,
    selection: Selection,
    password_file: PasswordFile,
    row_counts: Sequence[str],
    note: Note | None,
) -> tuple[list[TableFacts], Tables, str | None]:
    """What is known of each table; the tables with a dump's rows; a live server's version. Raises
    UsageError, InputError."""
    tables = tables_of(
        schema,
        server=server or NEWEST,
        selection=selection,
        password_file=password_file,
        rows=False,
        note=note,
    )
    names = [table.definition for table in tables]
    for wanted in selection.only.tables:
        if not any(wanted.names(one.database, one.name) for one in names):
            there = _names(schema, selection, password_file)
            if any(wanted.names(*name.split(".", 1)) for name in there):
                raise UsageError(
                    f"{wanted}: what one option chooses another leaves out",
                    code=Code.NOTHING_CHOSEN,
                    hint="remove one of them",
                )
            hint = did_you_mean(wanted.text, there)
            raise UsageError(
                f"{wanted}: the schema has no such table", code=Code.UNKNOWN_TABLE, hint=hint
            )
    if not names:
        raise _nothing_in(schema, selection, password_file)
    facts, version = facts_of_tables(tables), None
    if is_url(schema):
        facts, version = _with_statistics(facts, schema, password_file)
    rules = asked_rules(server or NEWEST) if version is None else found_rules(version, "SCHEMA")
    facts, said = with_counts(facts, row_counts, rules)
    if note is not None:
        for text in (*said, *_unmatched(tables, schema, selection, password_file)):
            note(text)
    return list(facts.values()), tables, version


def _unmatched(
    tables: Tables,
    schema: str,
    selection: Selection,
    password_file: PasswordFile,
) -> list[str]:
    """A text for each --database that the schema does not have. (A --table is an error, and what
    --exclude-… names may be gone.)"""
    found = {table.definition.database for table in tables}
    wanted = [
        one
        for one in dict.fromkeys(selection.only.databases)
        if not any(one.names(database, None) for database in found)
    ]
    there = _names(schema, selection, password_file) if wanted else []
    return [
        f"{one} names nothing in the schema"
        for one in wanted
        if not any(one.names(name.partition(".")[0], None) for name in there)
    ]


def _nothing_in(schema: str, selection: Selection, password_file: PasswordFile) -> UsageError:
    there = _names(schema, selection, password_file) if selection.only else []
    if not there:
        return UsageError(
            f"{schema} holds no table",
            code=Code.NO_TABLES,
            hint="name a server or a dump that has tables; the system schemas do not count",
        )
    databases = sorted({name.partition(".")[0] for name in there})
    meant = next(
        filter(None, (did_you_mean(one.text, databases) for one in selection.only.databases)), ""
    )
    named = ", ".join(map(str, selection.only.patterns))
    hint = f"{meant} the schema has {', '.join(databases)}".strip()
    return UsageError(
        f"{named}: no table of the schema is left", code=Code.NOTHING_CHOSEN, hint=hint
    )


def _names(schema: str, selection: Selection, password_file: PasswordFile) -> list[str]:
    """All tables of the schema, whatever is selected. Standard input cannot be read twice."""
    if schema == STANDARD_INPUT:
        return []
    everything = replace(selection, only=EVERYTHING)
    tables = tables_of(
        schema, server=NEWEST, selection=everything, password_file=password_file, rows=False
    )
    return [table.definition.full_name for table in tables]


def _with_statistics(
    facts: dict[str, TableFacts], url: str, password_file: PasswordFile
) -> tuple[dict[str, TableFacts], str]:
    """The numbers of a live server, as far as they can be."""
    from applier.forecast.inventory.server_facts import judged
    from applier.mysql.client.url import find_password, parse_url
    from applier.mysql.contents.live_statistics import live_statistics

    numbers, version = live_statistics(
        parse_url(url, "SCHEMA").with_password(find_password(password_file))
    )
    rules = found_rules(version, "the server of SCHEMA")
    for name, one in facts.items():
        if name in numbers:
            known = numbers[name]
            counted = replace(one, rows=known.rows, rows_from=STATISTICS, row_bytes=known.row_bytes)
            facts[name] = judged(counted, known.cardinalities, known.auto_increment, rules)
    return facts, version


def _rules_of_server(version: str, note: Note | None) -> ServerRules:
    told = remark(version, "the server of SCHEMA")
    if told is not None and note is not None:
        note(told)
    return found_rules(version, "the server of SCHEMA")
