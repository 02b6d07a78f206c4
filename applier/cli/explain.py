"""`binlag explain`: which key and algorithm each table of a schema gets, and why not the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from applier.cli.options import rules_of
from applier.error_codes import Code
from applier.errors import UsageError
from applier.options import row_search_of
from lookup.decision import BY_INDEX, BY_TABLE, HASH_OVER_INDEX, HASH_OVER_TABLE, Explanation, explain
from lookup.table import BLOB_TYPES, TableDefinition
from lookup.versions import NEWEST, RULES, ServerRules

if TYPE_CHECKING:
    from applier.tables.engine import MemoryTable

IMAGES = ("FULL", "MINIMAL", "NOBLOB")
READS = {
    BY_TABLE: "up to the row, from the top, for each row",
    HASH_OVER_TABLE: "up to the last row, once per event",
    HASH_OVER_INDEX: "all rows with the key's values, once per event",
}


def before_columns(definition: TableDefinition, image: str) -> tuple[int, ...]:
    """The columns of the before image that a source with the same table writes (`mark_columns_per_binlog_row_image`, 9.7)."""
    everything = tuple(range(len(definition.columns)))
    if image == "FULL" or definition.primary is None:
        return everything
    key = set(definition.primary.columns)
    if image == "MINIMAL":
        return tuple(sorted(key))
    return tuple(at for at in everything if at in key or definition.columns[at].type not in BLOB_TYPES)


@dataclass(frozen=True)
class Case:
    """One table under one server version and row image; UPDATE and DELETE are decided alike."""

    definition: TableDefinition
    server: str
    image: str
    explanation: Explanation

    def reads(self) -> str:
        """What one row of an event costs to find, in words."""
        decision = self.explanation.decision
        if decision.algorithm == BY_INDEX:
            return "1 row" if decision.key_class in ("primary", "unique") else "rows with the key's value, up to the row"
        return READS[decision.algorithm]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        decision = self.explanation.decision
        return {
            "table": self.definition.full_name,
            "server": self.server,
            "row_image": self.image,
            "statements": {"insert": "not needed", "update": decision.algorithm, "delete": decision.algorithm},
            "algorithm": decision.algorithm,
            "key": decision.key.name if decision.key else None,
            "reads": self.reads(),
            "not_used": {rejection.key.name: rejection.reason for rejection in self.explanation.rejections},
        }


@click.command(name="explain", short_help="Say which key and algorithm each table of a schema gets, and why.")
@click.argument("schema", type=click.Path(dir_okay=False))
@click.option("--server", metavar="VERSION", help="Only this version: 5.6, 5.7, 8.0, 8.4, 9.7 or mariadb.")
@click.option("--row-search", metavar="LIST", help="slave_rows_search_algorithms (up to 8.0). [default: the version's]")
@click.option("--row-image", type=click.Choice(IMAGES, case_sensitive=False), help="Only this binlog_row_image.")
@click.option("--table", "wanted", multiple=True, metavar="D.T", help="Only this table (repeatable).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
def command(schema: str, server: str | None, row_search: str | None, row_image: str | None, wanted: tuple[str, ...], as_json: bool) -> None:
    """For each table of SCHEMA (a mysqldump): how a replica finds the rows of an UPDATE or DELETE event.

    An INSERT looks nothing up. Primary and unique keys beat other keys, hashing beats scanning; --row-search changes that
    where the server lets it.

    \b
    binlag explain demo/before.sql
    binlag explain demo/before.sql --server 8.0 --row-image MINIMAL --json
    """
    from applier.tables.load import load_schema

    servers = list(RULES.values()) if server is None else [rules_of(server)]
    options = row_search_of(row_search, server)
    tables = load_schema(schema, server=server or NEWEST)
    if not len(tables):
        raise UsageError(f"{schema} holds no table", code=Code.NO_TABLES)
    unknown = [name for name in wanted if name not in tables]
    if unknown:
        raise UsageError(f"--table: the schema has no table {unknown[0]!r}", code=Code.UNKNOWN_TABLE)
    chosen = [table for table in tables if not wanted or table.definition.full_name in wanted]
    images = [row_image.upper()] if row_image else list(IMAGES)
    if as_json:
        for table in chosen:
            for case in cases(table.definition, servers, images, options):
                click.echo(json.dumps(case.as_dict(), ensure_ascii=False))
        return
    for table in chosen:
        _print(table, list(cases(table.definition, servers, images, options)))


def cases(definition: TableDefinition, servers: list[ServerRules], images: list[str], options: frozenset[str] | None) -> Iterator[Case]:
    """A table under each server version and row image."""
    for rules in servers:
        for image in images:
            yield Case(definition, rules.name, image, explain(definition, before_columns(definition, image), rules, options))


def _print(explained: MemoryTable, found: list[Case]) -> None:
    """One block a table: versions and images with the same answer share a line."""
    from rich import box
    from rich.table import Table

    from applier.cli.advice import cure
    from applier.cli.summary import wide_console

    console = wide_console()
    definition = explained.definition
    key = definition.primary
    promoted = key is not None and not key.is_primary
    what = "no primary key" if key is None else f"`{key.name}` promoted to primary key" if promoted else "primary key"
    console.print(f"[bold]{definition.full_name}[/bold]  {definition.engine}, {what}", highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("server", "row image", "UPDATE, DELETE", "key", "reads"):
        table.add_column(name)
    groups: dict[tuple[str, str, str], list[Case]] = {}
    for case in found:
        decision = case.explanation.decision
        answer = (decision.algorithm, decision.key.name if decision.key else "-", case.reads())
        groups.setdefault(answer, []).append(case)
    for answer, members in groups.items():
        servers = list(dict.fromkeys(case.server for case in members))
        images = list(dict.fromkeys(case.image for case in members))
        table.add_row(", ".join(servers), ", ".join(images), *answer)
    console.print(table)
    for reason in dict.fromkeys(
        f"  `{rejection.key.name}` is not used: {rejection.reason}" for case in found for rejection in case.explanation.rejections
    ):
        console.print(reason, highlight=False)
    if key is None:
        console.print("  " + cure(definition, explained), highlight=False)
    console.print()
