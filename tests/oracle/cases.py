"""Random tables, rows and rows events, small enough that everything happens to everything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st

from applier.tables.engine import MemoryTable
from lookup.batch import ApplyOptions, RowsShape
from lookup.handler import Counters, DuplicateKey, Image, Row
from lookup.rows import RowsPlan
from lookup.table import Column, Key, KeyPart, TableDefinition
from lookup.versions import OPTIONS, RULES, rules_for
from tests.oracle.apply import NaiveApplier
from tests.oracle.engine import Duplicate, NaiveTable

OPTION_SETS = (
    None,
    *(
        frozenset(option for at, option in enumerate(OPTIONS) if mask >> at & 1)
        for mask in range(1, 8)
    ),
)
SKIPS: tuple[frozenset[int] | None, ...] = (frozenset(), frozenset({1032}), frozenset({1062}), None)
INTEGERS = (0, 1, 2, 3)
TEXTS = (b"", b"a", b"A", b"b", b"aB", b"a1")
VARIABLE_TEXTS = (*TEXTS, b"a ")


@dataclass(frozen=True)
class Event:
    """One rows event: its shape and its rows."""

    shape: RowsShape
    rows: list[Any]

    def __repr__(self) -> str:
        shape = self.shape
        full = "full" if shape.bitmap_full else "part"
        return f"{shape.kind} {shape.before_columns} -> {shape.after_columns} {full}: {self.rows}"


def _shown(part: KeyPart) -> str:
    prefix = f"({part.prefix})" if part.prefix else ""
    return f"c{part.column}{prefix}{' desc' if part.descending else ''}"


@dataclass(frozen=True)
class Case:
    """A table with rows, the ones that were deleted again, and the events to apply to it."""

    definition: TableDefinition
    rows: list[Row]
    deleted: list[int]
    events: list[Event]
    options: ApplyOptions

    def __repr__(self) -> str:
        """As a statement and the calls, so that a failing example can be read."""
        columns = ", ".join(
            f"{c.name} {c.type}{'' if c.nullable else ' not null'} {c.collation or ''}".strip()
            for c in self.definition.columns
        )
        keys = [
            f"{'unique ' if key.unique else ''}{key.kind} "
            f"{key.name}{'' if key.visible else ' invisible'}"
            f"({', '.join(_shown(part) for part in key.parts)})"
            for key in self.definition.keys
        ]
        options = self.options
        search = "default" if options.row_search is None else ",".join(sorted(options.row_search))
        lines = [
            f"{self.definition.engine} ({columns}; {'; '.join(keys)})",
            f"rows {self.rows} without {self.deleted}",
            *map(repr, self.events),
            (
                f"{options.rules.name} {search} {'idempotent' if options.idempotent else 'strict'} "
                f"skip {options.skip_errors}"
            ),
        ]
        return "\n" + "\n".join(lines) + "\n"


def columns() -> st.SearchStrategy[Column]:
    kind = st.sampled_from(("int", "int", "int", "char", "varchar"))
    return st.builds(
        _column, kind, st.booleans(), st.sampled_from(("latin1_swedish_ci", "latin1_bin"))
    )


def _column(kind: str, nullable: bool, collation: str) -> Column:
    if kind == "int":
        return Column("", kind, nullable=nullable)
    return Column("", kind, length=4, nullable=nullable, charset="latin1", collation=collation)


@st.composite
def definitions(draw: st.DrawFn) -> TableDefinition:
    drawn = draw(st.lists(columns(), min_size=1, max_size=4))
    named = tuple(
        Column(
            f"c{at}",
            c.type,
            c.length,
            nullable=c.nullable,
            charset=c.charset,
            collation=c.collation,
        )
        for at, c in enumerate(drawn)
    )
    keys: list[Key] = []
    parts: list[int]
    not_null = [at for at, column in enumerate(named) if not column.nullable]
    if len(not_null) > 0 and draw(st.booleans()):
        parts = draw(st.lists(st.sampled_from(not_null), min_size=1, max_size=2, unique=True))
        keys.append(Key("PRIMARY", tuple(KeyPart(at) for at in parts), unique=True))
    for number in range(draw(st.integers(0, 3))):
        parts = draw(st.lists(st.integers(0, len(named) - 1), min_size=1, max_size=2, unique=True))
        flags = draw(st.integers(0, 11))
        key = Key(
            f"k{number}",
            tuple(draw(_part(named[at], at)) for at in parts),
            unique=flags % 3 == 0,
            visible=flags != 10,
            kind="fulltext"
            if flags == 11 and all(named[at].type != "int" for at in parts)
            else "btree",
        )
        if key.kind == "fulltext":
            key = Key(key.name, tuple(KeyPart(at) for at in parts), kind="fulltext")
        keys.append(key)
    engine = draw(st.sampled_from(("InnoDB", "InnoDB", "InnoDB", "MyISAM")))
    return TableDefinition(
        "d", "t", named, tuple(keys), engine=engine, charset="latin1", collation="latin1_swedish_ci"
    )


def _part(column: Column, at: int) -> st.SearchStrategy[KeyPart]:
    prefix = st.just(None) if column.type == "int" else st.sampled_from((None, None, 1))
    return st.builds(KeyPart, st.just(at), prefix, st.sampled_from((False, False, False, True)))


def rows_of(definition: TableDefinition) -> st.SearchStrategy[Row]:
    values: list[st.SearchStrategy[Any]] = []
    for column in definition.columns:
        domain: tuple[Any, ...] = {"int": INTEGERS, "char": TEXTS, "varchar": VARIABLE_TEXTS}[
            column.type
        ]
        values.append(st.sampled_from((*domain, None) if column.nullable else domain))
    return st.tuples(*values)


def defaults_of(definition: TableDefinition) -> Row:
    return tuple(
        None if column.nullable else 0 if column.type.endswith("int") else b""
        for column in definition.columns
    )


@st.composite
def events(draw: st.DrawFn, definition: TableDefinition, pool: list[Row]) -> Event:
    kind = draw(st.sampled_from(("write", "update", "update", "update", "delete", "delete")))
    width = len(definition.columns)
    everything = tuple(range(width))
    before, after, full = everything, everything, True
    form = draw(st.integers(0, 3))
    if form == 1:
        before = after = everything[: draw(st.integers(1, width))]
    elif form == 2:
        before = tuple(sorted(draw(st.sets(st.sampled_from(everything), min_size=1))))
        after = tuple(sorted(draw(st.sets(st.sampled_from(everything), min_size=1))))
        full = before == everything
    if kind == "write":
        after = before
    row = st.sampled_from(pool)
    rows: list[Any] = []
    for _ in range(draw(st.one_of(st.integers(1, 6), st.integers(7, 24)))):
        first = cut(draw(row), before)
        rows.append((first, cut(draw(row), after)) if kind == "update" else first)
    complete = len(after) == width
    stored = RowsShape(
        kind,
        () if kind == "write" else before,
        () if kind == "delete" else after,
        None if complete else overlay(defaults_of(definition), after),
        complete,
        full,
        defaults_of(definition),
    )
    return Event(stored, rows)


def cut(row: Row, columns: tuple[int, ...]) -> Image:
    return tuple(row[column] for column in columns)


def overlay(defaults: Row, columns: tuple[int, ...]) -> Any:
    """How an image of `columns` becomes a row: over the row found, or over the defaults."""

    def make(found: Row | None, image: Image) -> Row:
        row = list(defaults if found is None else found)
        for column, value in zip(columns, image, strict=True):
            row[column] = value
        return tuple(row)

    return make


@st.composite
def tables(draw: st.DrawFn) -> tuple[TableDefinition, list[Row]]:
    """A table and the rows that may come up in it."""
    definition = draw(definitions())
    return definition, draw(st.lists(rows_of(definition), min_size=1, max_size=8))


BIGINT_PAIRS = ((0xA8E8EE744CED7CA8, 0x6850119E455EE4ED), (0x135CD25C170DB910, 0x6916C5057592C796))
"""Two rows of two BIGINT UNSIGNED columns with the same CRC32 (those of bug #101828)."""
SAME_CHECKSUM = tuple(one ^ other for one, other in zip(*BIGINT_PAIRS, strict=True))
"""What turns any two such columns into two others with the same checksum: a CRC is linear, and this
has none."""


@st.composite
def tables_of_twins(draw: st.DrawFn) -> tuple[TableDefinition, list[Row]]:
    """A table whose rows have the same checksum in pairs, and sometimes the same key value as
    well."""
    width = draw(st.integers(2, 4))
    wide = (
        Column("a", "bigint", unsigned=True, nullable=False),
        Column("b", "bigint", unsigned=True, nullable=False),
    )
    narrow = tuple(Column(name, "int", nullable=name == "d") for name in "cd"[: width - 2])
    parts = draw(st.sampled_from(((), *((at,) for at in range(width)))))
    keys = (
        (
            Key(
                "k",
                tuple(KeyPart(at) for at in parts),
                unique=draw(st.sampled_from((False, False, True))),
            ),
        )
        if parts
        else ()
    )
    engine = draw(st.sampled_from(("InnoDB", "MyISAM")))
    definition = TableDefinition(
        "d",
        "t",
        wide + narrow,
        keys,
        engine=engine,
        charset="latin1",
        collation="latin1_swedish_ci",
    )
    small = st.integers(0, 1)
    rests = st.tuples(
        *(st.one_of(small, st.none()) if column.nullable else small for column in narrow)
    )
    pool = []
    for (a, b), rest, twin in draw(
        st.lists(st.tuples(st.tuples(small, small), rests, rests), min_size=1, max_size=3)
    ):
        pool += [
            (a, b, *rest),
            (
                a ^ SAME_CHECKSUM[0],
                b ^ SAME_CHECKSUM[1],
                *draw(st.sampled_from((rest, rest, twin))),
            ),
        ]
    return definition, pool


@st.composite
def cases(
    draw: st.DrawFn,
    versions: tuple[str, ...] = tuple(RULES),
    drawn: st.SearchStrategy[tuple[TableDefinition, list[Row]]] | None = None,
) -> Case:
    definition, pool = draw(tables() if drawn is None else drawn)
    rows = draw(st.lists(st.sampled_from(pool), max_size=10))
    deleted = draw(st.lists(st.integers(0, 9), max_size=3))
    options = ApplyOptions(
        rules_for(draw(st.sampled_from(versions))),
        draw(st.sampled_from(OPTION_SETS)),
        draw(st.booleans()),
        draw(st.sampled_from((SKIPS[0], SKIPS[0], *SKIPS))),
    )
    return Case(
        definition,
        rows,
        deleted,
        draw(st.lists(events(definition, pool), min_size=1, max_size=3)),
        options,
    )


def tables_of(case: Case) -> tuple[MemoryTable, NaiveTable]:
    """The same rows in both engines."""
    fast, naive = MemoryTable(case.definition), NaiveTable(case.definition)
    placed = []
    for row in case.rows:
        try:
            record = naive.insert(row)
        except Duplicate as duplicate:
            with pytest.raises(DuplicateKey) as refused:
                fast.insert(row)
            assert refused.value.key is duplicate.key
        else:
            placed.append((fast.insert(row), record))
    for at in case.deleted:
        if at < len(placed):
            ref, record = placed.pop(at)
            fast.delete(ref)
            naive.delete(record)
    return fast, naive


def _read(statistics: dict[str, float]) -> Callable[[Key], float]:
    return lambda key: statistics[key.name]


def outcomes(case: Case) -> tuple[list[Any], list[Any]]:
    """What the fast and what the naive engine make of a case, event by event."""
    fast, naive = tables_of(case)
    found: tuple[list[Any], list[Any]] = ([], [])
    for event in case.events:
        plan = RowsPlan(fast, event.shape, case.options)
        statistics = {
            key.name: fast.rows_per_value(key)
            for key in case.definition.keys
            if key.kind == "btree"
        }
        counters, naive_counters = Counters(), Counters()
        outcome = plan.apply(event.rows, counters)
        applier = NaiveApplier(
            naive, event.shape, case.options, defaults_of(case.definition), _read(statistics)
        )
        done = applier.apply(event.rows, naive_counters)
        error = (
            None
            if outcome.error is None
            else (outcome.error.number, outcome.error.handler_error, outcome.error.row)
        )
        found[0].append((error, outcome.rows_changed, counters.as_dict(), fast.stored_rows()))
        found[1].append((done.error, done.rows_changed, naive_counters.as_dict(), naive.rows()))
    return found
