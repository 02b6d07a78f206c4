"""The formulas tell what the engine counts: to the read where nothing is left to chance, on average
elsewhere."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lookup.chances import furthest
from lookup.cost import expected
from lookup.table_shape import (
    KEY_KINDS,
    NO_KEY,
    NULLABLE_UNIQUE,
    ORDERS,
    OTHER,
    PRIMARY,
    UNIQUE,
    EventShape,
    TableShape,
)
from lookup.versions import OPTIONS, RULES
from tests.lookup.cost_support import compare

OPTION_SETS = (
    None,
    *(
        frozenset(option for at, option in enumerate(OPTIONS) if mask >> at & 1)
        for mask in range(1, 8)
    ),
)
EXACT = settings(
    max_examples=max(40, settings().max_examples // 10), suppress_health_check=list(HealthCheck)
)
AVERAGES = settings(
    max_examples=max(12, settings().max_examples // 100), suppress_health_check=list(HealthCheck)
)
ENGINES = st.sampled_from(("InnoDB", "InnoDB", "MyISAM"))
LOOKUPS = st.sampled_from(("update", "delete"))
SEEDS = st.integers(0, 1 << 30)
ORDER = st.sampled_from(tuple(ORDERS))


@pytest.fixture(params=RULES)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@st.composite
def shapes(draw: st.DrawFn, keys: tuple[str, ...] = KEY_KINDS) -> TableShape:
    key = draw(st.sampled_from(keys))
    group = draw(st.sampled_from((1, 2, 5, 12))) if key == OTHER else 1
    rows = group * draw(st.integers(max(1, 12 // group), 48 // group))
    engine = draw(ENGINES)
    fixed = engine == "MyISAM" and key == NO_KEY and draw(st.booleans())
    return TableShape(
        rows,
        key,
        group,
        engine=engine,
        fixed=fixed,
        free_slots=draw(st.integers(0, 9)) if fixed else 0,
    )


def events(
    shape: TableShape, kind: st.SearchStrategy[str] = LOOKUPS
) -> st.SearchStrategy[EventShape]:
    rows = st.integers(1, int(shape.rows))
    return st.builds(EventShape, kind, rows, order=ORDER)


def test_keys_that_name_one_row_are_exact(version: str) -> None:
    @EXACT
    @given(
        shape=shapes((PRIMARY, UNIQUE)),
        missing=st.sampled_from((0, 1)),
        kind=LOOKUPS,
        rows=st.integers(1, 12),
        seed=SEEDS,
    )
    def check(shape: TableShape, missing: int, kind: str, rows: int, seed: int) -> None:
        formula = compare(shape, EventShape(kind, rows, missing), RULES[version], seed=seed)
        assert formula.exact or version == "5.6", "5.6 finds no second unique key"

    check()


def test_the_first_rows_the_last_rows_and_all_rows_are_exact(version: str) -> None:
    @EXACT
    @given(
        shape=shapes((NO_KEY,)),
        part=st.sampled_from((0, 1)),
        options=st.sampled_from(OPTION_SETS),
        data=st.data(),
        seed=SEEDS,
    )
    def check(
        shape: TableShape, part: int, options: frozenset[str] | None, data: st.DataObject, seed: int
    ) -> None:
        rows = data.draw(st.one_of(st.just(shape.rows), st.integers(1, int(shape.rows))))
        order = data.draw(st.sampled_from(("scan", "reverse")))
        event = EventShape(data.draw(LOOKUPS), rows, first=part, last=part, order=order)
        if not shape.free_slots:
            assert compare(shape, event, RULES[version], options, seed=seed).exact

    check()


def test_whole_key_values_are_exact_when_hashed(version: str) -> None:
    @EXACT
    @given(
        shape=shapes((OTHER, NULLABLE_UNIQUE)),
        kind=LOOKUPS,
        data=st.data(),
        order=ORDER,
        seed=SEEDS,
    )
    def check(shape: TableShape, kind: str, data: st.DataObject, order: str, seed: int) -> None:
        values = data.draw(st.integers(1, int(shape.rows / shape.rows_per_value)))
        event = EventShape(kind, values * shape.rows_per_value, distinct_values=values, order=order)
        formula = compare(
            shape, event, RULES[version], frozenset({"HASH_SCAN"}), seed=seed, trials=40
        )
        assert (
            formula.exact == (formula.algorithm == "hash over index")
            or shape.rows_per_value == 1
            or shape.key == NULLABLE_UNIQUE
        )

    check()


def test_rows_drawn_from_anywhere(version: str) -> None:
    @AVERAGES
    @given(shape=shapes(), options=st.sampled_from(OPTION_SETS), data=st.data(), seed=SEEDS)
    def check(
        shape: TableShape, options: frozenset[str] | None, data: st.DataObject, seed: int
    ) -> None:
        compare(shape, data.draw(events(shape)), RULES[version], options, seed=seed)

    check()


def test_rows_drawn_from_a_part(version: str) -> None:
    """From where in the table the rows come says how far a scan goes, and how far into the rows of
    a key value."""

    @AVERAGES
    @given(
        shape=shapes((NO_KEY, OTHER)),
        parts=st.tuples(*[st.sampled_from((0.0, 0.25, 0.5, 0.75, 1.0))] * 2),
        data=st.data(),
        seed=SEEDS,
    )
    def check(
        shape: TableShape, parts: tuple[float, float], data: st.DataObject, seed: int
    ) -> None:
        drawn = data.draw(events(shape))
        event = EventShape(
            drawn.kind, drawn.rows, first=min(parts), last=max(parts), order=drawn.order
        )
        if not shape.free_slots:
            compare(shape, event, RULES[version], seed=seed, tolerance=0.05)

    check()


@pytest.mark.parametrize(("rows", "is_exact"), [(12, True), (13, False)])
def test_a_part_that_begins_within_a_row_is_not_exact(
    version: str, rows: int, is_exact: bool
) -> None:
    """A quarter of 13 rows are ahead: three of them, or four."""
    event = EventShape("update", first=0.25, last=0.25)
    for option in ("TABLE_SCAN", "HASH_SCAN"):
        formula = compare(TableShape(rows), event, RULES[version], frozenset({option}))
        assert formula.exact == is_exact
        assert formula.counters.read_rnd_next == rows / 4 + 1


def test_rows_of_a_few_key_values(version: str) -> None:
    @AVERAGES
    @given(
        shape=shapes((OTHER,)),
        kind=LOOKUPS,
        order=ORDER,
        options=st.sampled_from(OPTION_SETS),
        data=st.data(),
        seed=SEEDS,
    )
    def check(
        shape: TableShape,
        kind: str,
        order: str,
        options: frozenset[str] | None,
        data: st.DataObject,
        seed: int,
    ) -> None:
        values = data.draw(st.integers(1, int(shape.rows / shape.rows_per_value)))
        each = data.draw(st.integers(1, int(shape.rows_per_value)))
        compare(
            shape,
            EventShape(kind, values * each, distinct_values=values, order=order),
            RULES[version],
            options,
            seed=seed,
        )

    check()


def test_missing_rows(version: str) -> None:
    """Forgiven ones, by exec mode IDEMPOTENT: what they cost besides."""

    @AVERAGES
    @given(
        shape=shapes(),
        missing=st.sampled_from((0.1, 0.3, 0.6)),
        options=st.sampled_from(OPTION_SETS),
        data=st.data(),
        seed=SEEDS,
    )
    def check(
        shape: TableShape,
        missing: float,
        options: frozenset[str] | None,
        data: st.DataObject,
        seed: int,
    ) -> None:
        rows = data.draw(st.integers(1, 10))
        total = shape.rows if shape.rows - rows * missing >= 1 else shape.rows + rows
        table = TableShape(
            total - rows * missing,
            shape.key,
            shape.rows_per_value,
            engine=shape.engine,
            fixed=shape.fixed,
        )
        event = EventShape(
            data.draw(LOOKUPS), min(rows, int(total)), missing, order=data.draw(ORDER)
        )
        compare(table, event, RULES[version], options, seed=seed, trials=300, tolerance=0.02)

    check()


def test_keys_with_nulls(version: str) -> None:
    """A nullable unique key may hold NULL in many rows; they are one value of the key."""

    @AVERAGES
    @given(
        key=st.sampled_from((NULLABLE_UNIQUE, OTHER)),
        nulls=st.sampled_from((0.25, 0.5, 1.0)),
        data=st.data(),
        seed=SEEDS,
    )
    def check(key: str, nulls: float, data: st.DataObject, seed: int) -> None:
        shape = TableShape(40, key, 5 if key == OTHER else 1, null_share=nulls)
        options = data.draw(st.sampled_from(OPTION_SETS))
        compare(shape, data.draw(events(shape)), RULES[version], options, seed=seed, tolerance=0.01)

    check()


def test_rows_that_are_alike(version: str) -> None:
    """A table without a key may hold the same row more than once; the first one in the scan is
    taken."""

    @AVERAGES
    @given(
        copies=st.sampled_from((2, 3)),
        key=st.sampled_from((NO_KEY, OTHER)),
        kind=LOOKUPS,
        data=st.data(),
        seed=SEEDS,
    )
    def check(copies: int, key: str, kind: str, data: st.DataObject, seed: int) -> None:
        shape = TableShape(36, key, 6 if key == OTHER else 1, identical_rows=copies)
        event = EventShape(kind, data.draw(st.integers(1, 36 // copies)), order=data.draw(ORDER))
        compare(
            shape,
            event,
            RULES[version],
            data.draw(st.sampled_from(OPTION_SETS)),
            seed=seed,
            tolerance=0.01,
        )

    check()


@pytest.mark.parametrize("engine", ["InnoDB", "MyISAM"])
def test_writes_look_nothing_up_unless_they_are_there(engine: str) -> None:
    for missing in (0.0, 0.4, 1.0):
        compare(
            TableShape(30, PRIMARY, engine=engine), EventShape("write", 8, missing), RULES["9.7"]
        )


def test_what_the_formulas_say_of_a_large_table() -> None:
    """A million rows: one by one, one event of a thousand, through an index with two thousand rows
    a value."""
    keyless, indexed = TableShape(1e6), TableShape(1e6, OTHER, 2000)
    one, thousand = EventShape("delete"), EventShape("delete", 1000)
    old = frozenset({"INDEX_SCAN", "TABLE_SCAN"})
    assert expected(keyless, one, RULES["9.7"]).counters.read_rnd_next == pytest.approx(500_000.5)
    assert expected(keyless, thousand, RULES["9.7"]).counters.read_rnd_next == pytest.approx(
        1e6 * 1000 / 1001, rel=1e-5
    )
    by_scan = expected(keyless, thousand, RULES["5.7"], old)
    assert by_scan.algorithm == "table scan"
    assert by_scan.counters.read_rnd_next == pytest.approx(500_000_500 - 499_500)
    by_key = expected(indexed, thousand, RULES["5.7"], old)
    assert (by_key.algorithm, by_key.counters.read_key) == ("index scan", 1000)
    hashed = expected(indexed, thousand, RULES["9.7"])
    assert hashed.algorithm == "hash over index"
    assert hashed.counters.read_key == pytest.approx(500 * (1 - 0.998**1000), rel=0.001)
    assert expected(keyless, thousand, RULES["9.7"]).algorithm == "hash over table"
    assert expected(keyless, thousand, RULES["mariadb"]).algorithm == "table scan"


def test_distinct_values_of_huge_tables_are_not_lost_in_rounding() -> None:
    for rows in (1e6, 1e9, 1e12):
        for drawn in (1, 100, 10_000):
            counters = expected(
                TableShape(rows, OTHER, 1), EventShape("update", drawn), RULES["9.7"]
            ).counters
            assert counters.read_key == pytest.approx(drawn, rel=1e-9)
            assert counters.read_next == pytest.approx(drawn - 1, rel=1e-9, abs=1e-6)


def test_a_blackhole_reads_nothing() -> None:
    formula = expected(TableShape(1000, engine="BLACKHOLE"), EventShape("delete", 10), RULES["9.7"])
    assert formula.algorithm == "table scan"
    assert formula.counters.rows_read == 0


def test_furthest_of_some_rows() -> None:
    assert furthest(1, 9) == 5
    assert furthest(9, 9) == 9
    assert furthest(0, 9) == 0
    assert furthest(1, 9, copies=4) == pytest.approx(2)
    assert furthest(1000, 9, copies=1.0000001) == pytest.approx(furthest(1000, 9), rel=1e-5)


def test_counters_add_up() -> None:
    once = expected(TableShape(100, PRIMARY), EventShape("update", 3), RULES["9.7"]).counters
    twice = once.plus(once)
    assert twice == once.times(2)
    assert (twice.rows_read, twice.rows_changed) == (6, 6)
    assert once.as_dict()["read_rnd"] == 3


def test_no_shape_costs_less_than_nothing(version: str) -> None:
    """Statistics of real tables are contradictory at times: more rows in an event than in the
    table, more per value than there are."""
    sizes = st.one_of(st.floats(1, 1e12), st.integers(1, 5))
    shares = st.sampled_from((0.0, 1e-6, 0.3, 1.0))

    @EXACT
    @given(
        st.sampled_from(OPTION_SETS), st.floats(0, 1e12), st.sampled_from(KEY_KINDS), sizes, shares,
        sizes, ENGINES,
        LOOKUPS, sizes, shares, st.booleans(),
    )  # fmt: skip
    def check(
        options: frozenset[str] | None, rows: float, key: str, group: float, nulls: float,
        copies: float, engine: str,
        kind: str, changed: float, missing: float, few: bool,
    ) -> None:  # fmt: skip
        table = TableShape(rows, key, group, null_share=nulls, identical_rows=copies, engine=engine)
        event = EventShape(
            kind, changed, missing, distinct_values=max(changed / 2, 1.0) if few else None
        )
        formula = expected(table, event, RULES[version], options)
        assert all(0 <= count < float("inf") for count in formula.counters.as_dict().values())

    check()
