"""`binlag explain`: which tables make a replica read too much, why, and what mends them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from applier.cli.exit_codes import GATE_CROSSED
from applier.cli.notes import note
from applier.cli.parameters.options import DEFAULT_DATABASE_HELP, INPUT, name_options, rules_of
from applier.cli.parameters.server_options import server_options
from applier.error_codes import Code
from applier.errors import UsageError
from applier.forecast.inventory.table_verdicts import IMAGES, LEVELS, SHOWN, TableVerdict
from applier.spelling import did_you_mean

if TYPE_CHECKING:
    pass

NAMES_SHOWN = 10
"""Tables that the line of a crossed gate names."""
_LEVELS = "; ".join(f"{name}: {meaning}" for name, (_, meaning) in LEVELS.items())


def _levels(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> frozenset[str]:
    """Levels, repeated or with commas. Raises UsageError for one that is unknown."""
    chosen = [level.strip().lower() for text in given for level in text.split(",")]
    for level in chosen:
        if level not in LEVELS:
            hint = f"{did_you_mean(level, LEVELS) or ''} use one of {', '.join(LEVELS)}".strip()
            raise UsageError(
                f"--fail-on: {level!r} is not a level", code=Code.OPTION_VALUE, hint=hint
            )
    return frozenset(chosen)


@click.command(
    name="explain",
    short_help="List the tables that make a replica read too much, why, and the fix.",
)
@click.argument("schema", type=INPUT, metavar="SCHEMA|URL")
@click.option(
    "--server",
    metavar="VERSION",
    help=(
        "Only this version: 5.6, 5.7, 8.0, 8.4, 9.7 or mariadb. [default: a live server's; else"
        " all]"
    ),
)
@click.option(
    "--row-search",
    metavar="LIST",
    help="slave_rows_search_algorithms (up to 8.0). [default: the version's]",
)
@click.option(
    "--row-image",
    type=click.Choice(IMAGES, case_sensitive=False),
    help="Only this binlog_row_image.",
)
@click.option("--default-database", metavar="D", help=DEFAULT_DATABASE_HELP)
@name_options
@click.option(
    "--rows",
    "row_counts",
    multiple=True,
    metavar="D.T=N|@FILE",
    help="Rows of a table; *=N for the rest; D.T.KEY=N rows per value; @FILE a file of counts.",
)
@click.option("--all", "show_all", is_flag=True, help="List healthy tables, too.")
@click.option(
    "--details",
    is_flag=True,
    help="Show each version and row image, and what each ALTER TABLE locks and changes.",
)
@click.option(
    "--fail-on",
    "levels",
    multiple=True,
    metavar="LEVEL",
    callback=_levels,
    help=f"End with exit code 3 if a table fails (repeatable, or with commas). {_LEVELS}.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON lines: each table, version and row image."
)
@click.option("--csv", "as_csv", is_flag=True, help="Print all tables as CSV.")
@click.option("--markdown", is_flag=True, help="Print a Markdown table.")
@server_options
def command(
    schema: str,
    server: str | None,
    row_search: str | None,
    row_image: str | None,
    default_database: str | None,
    password_file: str | None,
    row_counts: tuple[str, ...],
    show_all: bool,
    details: bool,
    levels: frozenset[str],
    as_json: bool,
    as_csv: bool,
    markdown: bool,
    **names: Any,
) -> int:
    """List the tables of SCHEMA whose rows a replica finds slowly, with the reason and the ALTER
    TABLE.

    SCHEMA is a dump or a live server. The order is by rows read for one changed row, so rows count:
    a dump with rows, a live server's statistics, or --rows. Only UPDATE and DELETE look rows up.
    """
    from applier.cli.output.explain_output import (
        csv_lines,
        print_details,
        print_list,
        print_markdown,
    )
    from applier.forecast.schema_verdicts import explain

    if sum((as_json, as_csv, markdown, details)) > 1:
        raise UsageError(
            "--json, --csv, --markdown and --details exclude each other",
            code=Code.OPTIONS_CLASH,
            hint="give one of them",
        )
    if server is not None:
        rules_of(server)
    # any gives the same key
    images = [row_image.upper()] if row_image else list(IMAGES) if as_json or details else ["FULL"]
    found = explain(
        schema,
        server=server,
        row_search=row_search,
        row_images=images,
        every_version=as_json,
        row_counts=row_counts,
        default_database=default_database,
        password_file=password_file,
        note=note,
        **names,
    )
    everything = show_all or bool(names["table"])
    shown = [one for one in found if everything or one.levels & (levels | SHOWN)]
    healthy = sum(one.worst.is_healthy for one in found)
    if as_json:
        for case in found.as_dicts():
            click.echo(json.dumps(case, ensure_ascii=False))
    elif as_csv:
        click.echo(csv_lines(found), nl=False)
    elif markdown:
        print_markdown(shown, len(found) - len(shown))
    elif details:
        print_details(shown)
    else:
        print_list(shown, healthy, [rules.name for rules in found.servers], given_all=everything)
    return _gate(found, levels)


def _gate(found: Sequence[TableVerdict], levels: frozenset[str]) -> int:
    """The exit code; says on standard error which tables fail at each level."""
    code = 0
    for level in (name for name in LEVELS if name in levels):
        failed = [one.definition.full_name for one in found if level in one.levels]
        if failed:
            code = GATE_CROSSED
            more = f" and {len(failed) - NAMES_SHOWN:,} more" if len(failed) > NAMES_SHOWN else ""
            note(
                f"--fail-on {level}: {', '.join(failed[:NAMES_SHOWN])}{more}",
                level=level,
                tables=failed,
            )
    return code
