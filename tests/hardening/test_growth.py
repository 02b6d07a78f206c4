"""Long runs do not grow: the same log fifty times in one process, by every way of reading it."""

from __future__ import annotations

import gc
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hardening.runner import ROOT

TIMES, WARM_UP = 50, 10
MORE_BYTES = 4 << 20
"""What the process may be larger after the last run than after the warm-up. The log alone has 160
kB: kept once a run it shows."""
WAYS = (
    "replay",
    "kernels",
    "follow",
    *(("events", "columns", "transactions") if os.environ.get("BINLAG_ALL_CASES") == "1" else ()),
)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("way", WAYS)
def test_the_same_log_fifty_times(way: str, tmp_path: Path) -> None:
    """In a process of its own, so that what other tests left behind neither hides nor makes
    growth."""
    command = [sys.executable, "-m", "tests.hardening.test_growth", way, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, last, count = map(int, done.stdout.split())
    assert count == 500 * TIMES
    assert last - first < MORE_BYTES, (
        f"{first:,} bytes after {WARM_UP} runs, {last:,} after {TIMES}"
    )


def test_decoders_of_wide_tables_are_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table map of 6 kB makes a decoder of 10 MB; a log may have any number of them."""
    from applier.binlog.images import row_values
    from applier.binlog.listing import Listing
    from tests.binlog import build

    monkeypatch.setattr(row_values, "MOST_COLUMNS", 1_000)
    events = []
    for number in range(1, 12):
        body = (
            struct.pack("<IHH", number, 0, 1)
            + b"\x01d\0\x01t\0"
            + build.packed(256)
            + b"\x01" * 255
            + bytes([number % 3 + 1])
        )
        head = struct.pack("<IHHH", number, 0, 1, 2) + build.packed(256) + b"\xff" * 32
        events += [(19, body + b"\0" + bytes(32)), (30, head + b"\xff" * 32)]
    listing = Listing(
        [str(build.write(tmp_path, build.log(build.gtid(1), *events)))], with_rows=True
    )
    assert sum(listed.row_count or 0 for listed in listing) == 11
    assert sum(len(plan.sources) for plan in listing._values._plans.values()) <= 1_000


def test_plans_of_table_ids_of_the_past_are_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has the same table under 50 ids."""
    from applier.replay_loop import ReplayLoop
    from applier.tables import target

    kept = []
    monkeypatch.setattr(target, "MOST_PLANS", 10)
    monkeypatch.setattr(
        ReplayLoop, "_finish", lambda self, *given: kept.append(len(self.rows_applier._plans))
    )
    assert replay(made_log(tmp_path)) == 500
    assert kept == [10]


def made_log(folder: Path) -> Path:
    """160 kB: a table that comes again and again under new ids, as after each DDL statement, and
    rows of text."""
    from tests.binlog import build

    events = []
    for number in range(1, 51):
        rows = b"".join(
            b"\0" + struct.pack("<iH", number * 10 + at, 300) + bytes([65 + at]) * 300
            for at in range(10)
        )
        table = build.table_map(number, types=b"\x03\x0f", metadata=struct.pack("<H", 400))
        events += [
            build.gtid(number),
            build.query(b"BEGIN"),
            table,
            build.rows(30, rows, number, width=2),
            build.xid(),
        ]
    return build.write(folder, build.log(*events))


def replay(path: Path) -> int:
    import applier

    tables = applier.load_schema(
        "CREATE DATABASE d; CREATE TABLE d.t (i INT PRIMARY KEY, v VARBINARY(400))"
    )
    result = applier.replay([path], into=tables)
    assert result.error is None
    return len(tables["d.t"])


def events(path: Path) -> int:
    from applier.binlog.listing import Listing

    return sum(listed.row_count or 0 for listed in Listing([str(path)], with_rows=True))


def columns(path: Path) -> int:
    return _batches(path, compiled=False)


def kernels(path: Path) -> int:
    return _batches(path, compiled=True)


def _batches(path: Path, *, compiled: bool) -> int:
    from applier.binlog.columnar import read_batches

    return sum(batch.data.num_rows for batch in read_batches([path], compiled=compiled))


def follow(path: Path) -> int:
    """As `replay --follow` reads a folder: until there is no more."""
    import applier
    from applier.binlog.follow import IndexedLogs

    index = path.with_name("binlog.index")
    index.write_text(f"./{path.name}\n")
    idle = False

    def stop() -> None:
        nonlocal idle
        idle = True

    logs = IndexedLogs(index, follow=True, stopped=lambda: idle)
    logs.on_idle = stop
    tables = applier.load_schema(
        "CREATE DATABASE d; CREATE TABLE d.t (i INT PRIMARY KEY, v VARBINARY(400))"
    )
    assert applier.replay(logs, into=tables, keep_events=False).error is None
    return len(tables["d.t"])


def transactions(path: Path) -> int:
    from applier.binlog.reader import LogReader
    from applier.binlog.transactions import group

    return 10 * sum(1 for _ in group(LogReader([path])))


def main(way: str, folder: Path) -> None:
    from tests.hardening.runner import resident, without_huge_pages

    without_huge_pages()
    run: Callable[[Path], int] = {
        "replay": replay,
        "events": events,
        "columns": columns,
        "kernels": kernels,
        "follow": follow,
    }.get(way, transactions)
    path = made_log(folder)
    first = count = 0
    for number in range(TIMES):
        count += run(path)
        gc.collect()
        if number + 1 == WARM_UP:
            first = resident()
    print(first, resident(), count)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
