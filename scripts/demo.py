"""The demo: one real log, replayed under each way to find rows, and what a primary key would change.

The log was written by a MySQL 5.7.29 (scripts/make_demo.py); a real replica of that version that applied it counted the same
handler calls under every setting.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

import applier
from applier import Tables
from applier.result import ReplayResult, sum_counters

FOLDER = Path(__file__).parent.parent / "demo"
DEFAULT_5, DEFAULT_8 = "INDEX_SCAN,TABLE_SCAN", "INDEX_SCAN,HASH_SCAN"
NO_KEY, SECONDARY_KEY = "shop.cart_item", "shop.parcel"
RUNS = (
    (NO_KEY, "no key", DEFAULT_5, "default of 5.6 and 5.7"),
    (NO_KEY, "no key", DEFAULT_8, "default of 8.0, fixed since 8.4"),
    (SECONDARY_KEY, "KEY (order_no)", "TABLE_SCAN", "a possible choice"),
    (SECONDARY_KEY, "KEY (order_no)", DEFAULT_5, "default of 5.6 and 5.7"),
    (SECONDARY_KEY, "KEY (order_no)", DEFAULT_8, "default of 8.0, fixed since 8.4"),
)
CURE = ("ALTER TABLE shop.cart_item ADD PRIMARY KEY (id);", "ALTER TABLE shop.parcel ADD PRIMARY KEY (id);")


def replay(before: Tables, setting: str) -> ReplayResult:
    result = applier.replay([FOLDER / "binlog.000001"], into=before.copy(), server="5.7", row_search=setting)
    if result.error is not None:
        sys.exit(str(result.error))
    return result


def cells(result: ReplayResult, table: str) -> tuple[str, str, str, str]:
    """How the rows of a table were found, with which key, and how many were read in all and for each one changed."""
    costs = [cost for cost in result.costs.values() if cost.table == table and cost.kind != "write"]
    changed, read = sum(cost.rows_changed for cost in costs), sum_counters(cost.counters for cost in costs).rows_read
    return costs[0].algorithm, costs[0].key or "-", f"{read:,}", f"{read / changed:,.1f}"


def comparison(before: Tables, cured: Tables) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("table", "keys", "slave_rows_search_algorithms", "algorithm", "key", "rows read", "per row"):
        table.add_column(title, justify="right" if title in ("rows read", "per row") else "left", no_wrap=True)
    for name, keys, setting, note in RUNS:
        table.add_row(name, keys, f"{setting} [dim]{note}[/dim]", *cells(replay(before, setting), name))
    table.add_section()
    for name in (NO_KEY, SECONDARY_KEY):
        table.add_row(name, "PRIMARY KEY (id)", "any with INDEX_SCAN", *cells(replay(cured, DEFAULT_5), name), style="bold")
    return table


def main() -> int:
    sql = (FOLDER / "before.sql").read_text()
    before = applier.load_schema(sql, server="5.7")
    cured = applier.load_schema("\n".join([sql, *CURE]) + "\n", server="5.7")
    console = Console(width=150)
    rows = replay(before, DEFAULT_5).rows
    sizes = " and ".join(f"{name} ({len(before[name]):,} rows)" for name in (NO_KEY, SECONDARY_KEY))
    console.print(f"One log of a real MySQL 5.7 that changes {rows:,} rows of {sizes}, replayed under each setting:", highlight=False)
    console.print(comparison(before, cured))
    console.print("What would mend it:  " + "\n                     ".join(CURE), highlight=False)
    console.print("\nThe same from the command line, with any log of yours:", highlight=False)
    command = "binlag replay demo/binlog.000001 --schema demo/before.sql --row-search"
    console.print(f"  .venv/bin/{command} {DEFAULT_8}", highlight=False)
    console.print("  .venv/bin/binlag explain demo/before.sql", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
