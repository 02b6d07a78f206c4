"""`binlag demo`: one real log, replayed under each way to find rows, and what a primary key would
change.

The log was written by a MySQL 5.7.29 (scripts/make_demo.py); a real replica of that version that
applied it counted the same handler calls under every setting.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from rich import box
from rich.table import Table
from rich.text import Text

import applier
from applier import Tables
from applier.cli.output.summary import wide_console
from applier.error_codes import Code
from applier.errors import UsageError
from applier.result import ReplayResult, sum_counters
from applier.whole_file import write_whole

FILES = ("binlog.000001", "before.sql")
DEFAULT_5, DEFAULT_8 = "INDEX_SCAN,TABLE_SCAN", "INDEX_SCAN,HASH_SCAN"
NO_KEY, SECONDARY_KEY = "shop.cart_item", "shop.parcel"
RUNS = (
    (NO_KEY, "no key", DEFAULT_5, "default of 5.6 and 5.7"),
    (NO_KEY, "no key", DEFAULT_8, "default of 8.0, always since 8.4"),
    (SECONDARY_KEY, "KEY (order_no)", "TABLE_SCAN", "only if set"),
    (SECONDARY_KEY, "KEY (order_no)", DEFAULT_5, "default of 5.6 and 5.7"),
    (SECONDARY_KEY, "KEY (order_no)", DEFAULT_8, "default of 8.0, always since 8.4"),
)
CURE = (
    "ALTER TABLE shop.cart_item ADD PRIMARY KEY (id);",
    "ALTER TABLE shop.parcel ADD PRIMARY KEY (id);",
)


def replay(before: Tables, setting: str) -> ReplayResult:
    """The log under one setting. Raises what stops it."""
    result = applier.replay(
        [_folder() / "binlog.000001"], into=before.copy(), server="5.7", row_search=setting
    )
    if result.error is not None:
        raise result.error
    return result


def cells(result: ReplayResult, table: str) -> tuple[str, str, str, str]:
    """How the rows of a table were found, with which key, and how many were read in all and for
    each one changed."""
    costs = [cost for cost in result.costs.values() if cost.table == table and cost.kind != "write"]
    changed = sum(cost.rows_changed for cost in costs)
    read = sum_counters(cost.counters for cost in costs).rows_read
    return costs[0].algorithm, costs[0].key or "-", f"{read:,}", f"{read / changed:,.1f}"


def comparison(before: Tables, cured: Tables) -> Table:
    """Each table under each setting, and both with a primary key."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in (
        "table",
        "keys",
        "slave_rows_search_algorithms",
        "algorithm",
        "key",
        "rows read",
        "per row",
    ):
        table.add_column(
            title, justify="right" if title in ("rows read", "per row") else "left", no_wrap=True
        )
    for name, keys, setting, note in RUNS:
        said = Text.assemble(f"{setting} ", (note, "dim"))
        table.add_row(name, keys, said, *cells(replay(before, setting), name))
    table.add_section()
    for name in (NO_KEY, SECONDARY_KEY):
        table.add_row(
            name,
            "PRIMARY KEY (id)",
            "any with INDEX_SCAN",
            *cells(replay(cured, DEFAULT_5), name),
            style="bold",
        )
    return table


@click.command(
    name="demo",
    short_help="Replay a real log under each way to find rows, and show what a key changes.",
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Also write the log and the dump to DIR.",
)
def command(folder: str | None) -> int:
    """Replay a log of a real MySQL 5.7 under each way to find rows, and show what a primary key
    changes.

    It needs no server and no file: the log and the dump are part of the package.
    """
    before = applier.load_schema(_text("before.sql"), server="5.7")
    cured = applier.load_schema("\n".join([_text("before.sql"), *CURE]) + "\n", server="5.7")
    console = wide_console()
    rows = replay(before, DEFAULT_5).rows
    sizes = " and ".join(f"{name} ({len(before[name]):,} rows)" for name in (NO_KEY, SECONDARY_KEY))
    console.print(
        f"One log of a real MySQL 5.7 that changes {rows:,} rows of {sizes}, replayed under each"
        " setting:",
    )
    console.print(comparison(before, cured))
    console.print("What fixes it:  " + "\n                ".join(CURE))
    console.print("\nThe same from the command line, or with your own log:")
    place = _written(folder) if folder is not None else "DIR"
    if folder is None:
        console.print("  binlag demo --dir DIR")
    log, dump = shlex.quote(f"{place}/binlog.000001"), shlex.quote(f"{place}/before.sql")
    console.print(
        f"  binlag replay {log} --schema {dump} --row-search {DEFAULT_8}",
        soft_wrap=True,
    )
    console.print(f"  binlag explain {dump}", soft_wrap=True)
    return 0


def _text(name: str) -> str:
    return (_folder() / name).read_text()


def _folder() -> Path:
    """In the wheel beside the commands (pyproject.toml puts it there), in a checkout at the top."""
    packaged = Path(__file__).parents[1] / "demo_files"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "demo"


def _written(folder: str) -> str:
    """Copies the files. Raises UsageError where that cannot be."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name in FILES:
            place, content = Path(folder) / name, (_folder() / name).read_bytes()
            if place.exists() and place.read_bytes() != content:
                raise UsageError(
                    f"--dir: {place} exists and is not a file of the demo",
                    code=Code.CANNOT_WRITE,
                    hint="give a new folder",
                )
            write_whole(place, content)
    except OSError as error:
        raise UsageError(
            f"--dir: cannot write {folder}: {error.strerror}", code=Code.CANNOT_WRITE
        ) from None
    return folder
