"""Many transactions at once, by compiled code, beside one after the other in plain Python: the same
numbers to the last digit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applier.errors import UsageError
from applier.forecast.inventory.facts import TableFacts, facts_of_file
from applier.forecast.lag import batch_parts, compiled, costs
from applier.forecast.live.progress import ReplicaProgress
from applier.forecast.plan import ForecastPlan, run
from applier.forecast.prices.units import Prices
from applier.forecast.workload import bulk_loads, load_sample, loads
from applier.forecast.workload.load_batch import LoadBatch
from checkpoints.gtid import GtidSet
from tests.forecast.logs import (
    DELETE,
    SECONDS,
    UPDATE,
    WRITE,
    calibration,
    file,
    schema,
    transaction,
)
from tests.forecast.test_table_fates import ddl

CAPTURES = Path(__file__).resolve().parents[1] / "captures/open"
WHAT_IFS = ["primary-key", "minimal-image", "rows=10"]
PRICED = replace(calibration(), prices=Prices.of(SECONDS | {"history": 0.002, "leaf split": 0.003}))


class CountedBatches(batch_parts.BatchReader):
    """Counts the transactions that came many at a time."""

    taken = 0

    def read(self, batch: LoadBatch) -> batch_parts.BatchParts | None:
        found = super().read(batch)
        CountedBatches.taken += 0 if found is None else len(batch)
        return found


def with_full_indexes(facts: dict[str, TableFacts]) -> dict[str, TableFacts]:
    """Large tables whose updates split leaves."""
    return {
        name: replace(
            one,
            rows=100_000.0,
            index_stays={key.name: 1.0 for key in one.definition.secondary_keys},
            leaf_pages={key.name: 30.0 for key in one.definition.secondary_keys},
        )
        for name, one in facts.items()
    }


def forecast(log: str, text: str | None, at_once: bool, **given: Any) -> dict[str, Any]:
    """The summary; with `at_once` every transaction that can be taken with others is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loads, "smallest_log_bytes", lambda: 0)
        patch.setattr(loads, "MOST_FRUITLESS", 0)
        patch.setattr(bulk_loads, "TRANSACTIONS", 7)
        patch.setattr(batch_parts, "BatchReader", CountedBatches)
        patch.setattr(compiled, "WORTH_LOADING", 0)
        patch.setattr(compiled, "WORTH_COMPILING", 0)
        if not at_once:
            patch.setattr(loads, "compiled_loads", lambda: None)
            patch.setattr(
                "applier.forecast.lag.run.steps_for", lambda transactions, **_: compiled.PYTHON
            )
        facts = None if text is None else with_full_indexes(facts_of_file(text))
        plan = ForecastPlan(
            files=[log], facts=facts, calibration=PRICED, what_ifs=WHAT_IFS, **given
        )
        try:
            done = run(plan)
            return done.summary() | {"shapes": done.shapes()}
        except UsageError as error:  # a dump of other tables
            return {"error": str(error)}


def taken(log: str, text: str | None, **given: Any) -> int:
    """Both ways are the same; how many transactions came many at a time."""
    before = CountedBatches.taken
    assert forecast(log, text, True, **given) == forecast(log, text, False, **given)
    return CountedBatches.taken - before


def test_captures_have_the_same_forecast() -> None:
    count = 0
    for folder in sorted(CAPTURES.iterdir()):
        for log in sorted(folder.glob("*binlog.0*")):
            if log.suffix[1:].isdigit():
                count += taken(str(log), None) + taken(str(log), str(folder / "before.sql"))
    assert count > 20


STATEMENTS = (
    b"ALTER TABLE plain ADD PRIMARY KEY (a)", b"ALTER TABLE plain DROP PRIMARY KEY",
    b"DROP INDEX k ON twice", b"CREATE INDEX k ON twice (a)", b"TRUNCATE keyed",
    b"RENAME TABLE plain TO other, keyed TO plain, other TO keyed",
    b"CREATE TABLE maybe LIKE twice", b"DROP TABLE maybe",
)  # fmt: skip
ONE = st.tuples(
    st.sampled_from([b"plain", b"keyed", b"twice", b"maybe"]),
    st.sampled_from([WRITE, UPDATE, DELETE]),
    st.integers(1, 12),
)


@settings(max_examples=60, deadline=None)
@given(
    parts=st.lists(
        st.lists(ONE, min_size=1, max_size=3) | st.sampled_from(STATEMENTS),
        min_size=1,
        max_size=60,
    ),
    with_schema=st.booleans(),
    counts=st.sampled_from([(), ("d.plain=5",), ("d.plain=2000", "d.twice=100")]),
    workers=st.sampled_from([1, 4]),
    gap=st.sampled_from([0.0, 0.0005, 0.5]),
)
def test_any_log_has_the_same_forecast(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[list[tuple[bytes, int, int]] | bytes],
    with_schema: bool,
    counts: tuple[str, ...],
    workers: int,
    gap: float,
) -> None:
    """Tables that grow and shrink, some of them below nothing, and change their keys."""
    folder = tmp_path_factory.mktemp("log")
    transactions = []
    for number, part in enumerate(parts, 1):
        if isinstance(part, bytes):
            transactions.append(ddl(number, part))
            continue
        bodies = [
            transaction(number, table, kind, *range(rows), seconds=gap * number)
            for table, kind, rows in part
        ]
        transactions.append(
            [*bodies[0][:2], *(event for one in bodies for event in one[2:-1]), bodies[0][-1]]
        )
    log = file(folder, *transactions)
    text = schema(folder) if with_schema else None
    taken(log, text, row_counts=counts if with_schema else (), workers=workers)


def test_a_plain_log_comes_many_at_a_time(tmp_path: Path) -> None:
    """All but the first, which teaches the reader the table: to the forecast, and again to its
    search for fixes."""
    log = file(
        tmp_path,
        *(
            transaction(number, b"keyed", WRITE, number, seconds=number / 50)
            for number in range(1, 400)
        ),
    )
    assert taken(log, schema(tmp_path)) == 2 * 398


def test_behind_ddl_a_plain_log_comes_many_at_a_time_again(tmp_path: Path) -> None:
    """All but the first in front of it and the first behind it."""
    log = file(
        tmp_path,
        *(transaction(n, b"plain", WRITE, n, seconds=n / 50) for n in range(1, 200)),
        ddl(200, b"ALTER TABLE plain ADD PRIMARY KEY (a)"),
        *(transaction(n, b"plain", DELETE, n - 200, seconds=n / 50) for n in range(201, 400)),
    )
    assert taken(log, schema(tmp_path), row_counts=["d.plain=1000"]) == 2 * (198 + 198)


def test_what_a_replica_has_left_comes_many_at_a_time(tmp_path: Path) -> None:
    """As the whole log does, and only what is left: 399 transactions, 100 of them executed."""
    log = file(
        tmp_path, *(transaction(n, b"keyed", WRITE, n, seconds=n / 50) for n in range(1, 400))
    )
    facts = facts_of_file(schema(tmp_path))
    sample = run(ForecastPlan([log], facts=facts, calibration=calibration())).sample
    end = sorted(load.end for one in sample.strata for load in one.loads)[99]
    at = ReplicaProgress(
        1_700_000_900.0, ("binlog.000001", end), ("", 0), ("binlog.000001", 0), GtidSet(), 9.0
    )
    assert taken(log, schema(tmp_path), progress=at) == 2 * 398 + 299


def test_a_table_that_loses_more_rows_than_it_has_comes_one_by_one(tmp_path: Path) -> None:
    log = file(
        tmp_path, *(transaction(number, b"keyed", DELETE, number) for number in range(1, 60))
    )
    assert 0 < taken(log, schema(tmp_path), row_counts=["d.keyed=30"]) < 2 * 50


def test_the_sample_of_a_long_log_makes_objects_of_its_dearest_transactions_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others stay columns, in the search for fixes too."""
    made = 0
    plain = LoadBatch._load

    def counted(self: LoadBatch, *rows: Any) -> Any:
        nonlocal made
        made += 1
        return plain(self, *rows)

    monkeypatch.setattr(LoadBatch, "_load", counted)
    for name, value in (("STRETCH", 8), ("MOST_STRETCHES", 4), ("DEAREST", 6)):
        monkeypatch.setattr(load_sample, name, value)
    log = file(
        tmp_path,
        *(
            transaction(number, b"keyed", UPDATE, *range(1 + (number == 50)))
            for number in range(1, 1000)
        ),
    )
    assert taken(log, schema(tmp_path)) > 998
    assert made <= 2 * (load_sample.DEAREST + costs.WORST)


@pytest.mark.in_ci
def test_compiled_steps_count_no_references(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They make no arrays: counting who holds those that they are given took most of their time."""
    monkeypatch.setattr(compiled, "_cache_directory", lambda: tmp_path)
    steps = compiled.compiled_steps.__wrapped__()
    for step in steps:
        function = step.__closure__[0].cell_contents
        assert all("NRT_" not in code for code in function.inspect_asm().values())


@pytest.mark.in_ci
def test_compiled_steps_serve_every_place_where_binlag_is_installed(tmp_path: Path) -> None:
    """Spark unpacks a package in a new folder for each job."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    ask = "from applier.forecast.lag import compiled as c; c.compiled_steps(); print(c.__file__)"
    kept = []
    for name in ("one", "two"):
        for package in ("applier", "checkpoints", "lookup"):
            home = Path(find_spec(package).origin).parent  # type: ignore[union-attr, arg-type]
            shutil.copytree(
                home, tmp_path / name / package, ignore=shutil.ignore_patterns("__pycache__")
            )
        shown = subprocess.check_output(
            [sys.executable, "-c", ask], env=environment, cwd=tmp_path / name, text=True
        )
        assert shown.startswith(str(tmp_path / name))
        files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
        kept.append(sorted((path, path.stat().st_mtime_ns) for path in files))
    assert kept[0] == kept[1] != []
