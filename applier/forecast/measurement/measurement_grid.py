"""What is measured: cells, each a table shape and a kind of event, and which rows of its table each
event of a cell names.

A cell's table has an id, a column k that carries the key, and filler. Its rows are found in a
random but fixed order: a statement of one event changes rows from anywhere, one of several events
goes through the table once, as a large UPDATE does on a source.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice, product

from applier.forecast.inventory.facts import GIVEN, LEAF_BYTES, TableFacts, entry_bytes
from applier.forecast.workload.long_rows import MOST_BYTES
from lookup.table import Column, Key, KeyPart, TableDefinition
from lookup.table_shape import NO_KEY, NULLABLE_UNIQUE, OTHER, PRIMARY, UNIQUE
from lookup.versions import HASH_SCAN, ServerRules, parse_row_search

DATABASE, TABLE, MARK = "binlag_measure", "cell", "mark"
EVENT_BODY_BYTES = 8192
LOOKUP_ROWS, FAR_ROWS = 100_000, 1_000_000
"""Of tables with a key: one that the processor's caches hold about, and one that they do not."""
MANY_LEAVES = 4
"""So many times as large as the others is the table of a full index whose leaves are seldom met
twice."""
FULL = 0
SCANNED = {
    1_000: (1, 10),
    3_000: (1, 10),
    10_000: (1, FULL),
    100_000: (1, FULL, 2_000),
    1_000_000: (1, 2_000),
}
"""Rows of tables without a key -> rows per event; FULL is what a source puts into one by
default."""
LONG_ROWS = {20_000: 1_000, 60_000: 400}
"""Bytes of filler that do not fit a page -> rows of such a table."""
MOST_CHAR = 255
"""Bytes of the longest CHAR; a longer filler is a LONGBLOB."""
VALUE = b"\5value"
"""What stands in each further column."""
WIDTHS = ((40, 0), (200, 0), (40, 10))
"""Bytes of filler, and further columns, of the tables that are measured."""
SPLIT_ROWS = 10_000
"""Of tables without a key where a statement has several events."""
SCATTER, SPREAD = 2_654_435_761, 1 << 31
"""Id times the one, modulo the other: values in no order, each once."""
MOST_READS = 10_000_000
"""Rows that one event of a cell may read."""
MOST_OF_TABLE = 0.6
"""The share of its rows that a table still has when another cell uses it."""
SINGLES = 10_000
"""Rows that cells of small transactions change. Their first tenth of a second is slower than the
rest (1,500 transactions took 100 µs each, 20,000 took 86), and a replica that is behind is long
past that."""
CHANGED_PART, MOST_SCANS = 2, 600
"""Cells without a key change that part of the table, in so many transactions at most."""
QUICK_STEP = 6
"""With --quick, one of so many cells is measured, besides the usual ones."""
FEWEST_SCANS = 6
"""Of single rows: where in the table they stand is drawn, and the mean of a few is taken for the
half of it."""


@dataclass(frozen=True, order=True)
class Cell:
    """`rows` of the table; `rows_per_event` in each of `events` of a transaction, `transactions` of
    them; `filler` bytes of a row.

    `indexes` are further secondary indexes, `columns` further columns. `row_search` "" stands for
    the server's default. The events of a transaction are those of so many `statements`. `workers` 0
    is what unit prices are made of: one worker, no syncs; more are for `scale_up`, with `durable`
    commits for 1. `full` 1: the further indexes are built behind the rows, so that their pages are
    full, and updates move their entries within a page. `pool`: MiB of the server's buffer pool, 0
    for as much as it has.
    """

    key: str
    rows: int
    kind: str
    rows_per_event: int
    events: int
    transactions: int
    filler: int = 40
    rows_per_value: int = 1
    indexes: int = 0
    columns: int = 0
    row_search: str = ""
    statements: int = 1
    workers: int = 0
    durable: int = 0
    full: int = 0
    pool: int = 0

    @property
    def changed(self) -> int:
        """Rows that its log changes."""
        return self.rows_per_event * self.events * self.transactions

    @property
    def alone(self) -> Cell:
        """The same with one worker and no syncs."""
        return replace(self, workers=0, durable=0)

    @property
    def name(self) -> str:
        """Its values, joined to a name that a file may have."""
        return "-".join(str(value).replace(" ", "_") for value in asdict(self).values())

    @property
    def is_usual(self) -> bool:
        """Single rows by the primary key in narrow rows: what most transactions of applications
        are made of."""
        is_narrow = (self.filler, self.columns) == WIDTHS[0]
        return self.key == PRIMARY and self.rows_per_event == 1 and is_narrow

    @property
    def definition(self) -> TableDefinition:
        """Its table."""
        nullable = self.key == NULLABLE_UNIQUE
        columns = (
            Column("id", "int", nullable=False),
            Column("k", "int", nullable=nullable),
            self._filler,
            *(Column(f"i{number}", "int", nullable=False) for number in range(self.indexes)),
            *(
                Column(f"v{number}", "varchar", 20, charset="latin1", collation="latin1_swedish_ci")
                for number in range(self.columns)
            ),
        )
        by_k = (KeyPart(1),)
        key = {
            PRIMARY: (Key("PRIMARY", (KeyPart(0),), unique=True),),
            UNIQUE: (Key("k", by_k, unique=True),),
            NULLABLE_UNIQUE: (Key("k", by_k, unique=True),),
            OTHER: (Key("k", by_k),),
            NO_KEY: (),
        }[self.key]
        more = tuple(Key(f"i{number}", (KeyPart(3 + number),)) for number in range(self.indexes))
        return TableDefinition(
            DATABASE, TABLE, columns, key + more, charset="latin1", collation="latin1_swedish_ci"
        )

    @property
    def is_blob(self) -> bool:
        """Whether filler is longer than a CHAR."""
        return self.filler > MOST_CHAR

    @property
    def _filler(self) -> Column:
        if self.is_blob:
            return Column("filler", "longblob", nullable=False)
        return Column(
            "filler", "char", self.filler, nullable=False, charset="latin1",
            collation="latin1_swedish_ci",
        )  # fmt: skip

    @property
    def table(self) -> tuple[str | int, ...]:
        """What cells have in common that can use one table after another."""
        shape = self.key, self.rows, self.filler, self.rows_per_value
        return *shape, self.indexes, self.columns, self.full

    def facts(self, rows: float) -> TableFacts:
        """What is known of its table when it has so many rows."""
        definition, further = self.definition, [f"i{number}" for number in range(self.indexes)]
        widths = {
            key.name: entry_bytes(definition, key) or 0.0 for key in definition.secondary_keys
        }
        return TableFacts(
            definition,
            rows,
            GIVEN,
            {"k": float(self.rows_per_value), **dict.fromkeys(further, 1.0)},
            index_changes=dict.fromkeys(further, 1.0),
            index_stays=dict.fromkeys(further * self.full, 1.0),
            log_updates=float(self.changed),
            long_shares={"write": 1.0, "update": 0.5} if self.filler > MOST_BYTES else {},
            leaf_pages={name: rows * widths[name] / LEAF_BYTES for name in further * self.full},
        )

    def entry_of(self, row: int, *, updated: bool = False) -> int:
        """What the further indexes hold of the row with this id: its place in them has nothing to
        do with its place in the table, as in most tables. An update moves it elsewhere, or
        to the next place where indexes are `full`."""
        place = row * SCATTER % SPREAD
        if self.full:
            return place + updated
        return SPREAD - 1 - place if updated else place

    def value_of(self, row: int) -> int:
        """k of the row with this id: values stand evenly through the table."""
        return row if self.rows_per_value == 1 else row % max(self.rows // self.rows_per_value, 1)

    def all_facts(
        self, database: str = DATABASE, rows: float | None = None
    ) -> dict[str, TableFacts]:
        """The tables of the cell's log; `rows` where its table has not those that it began with."""
        mark = TableDefinition(
            database,
            MARK,
            (Column("id", "int", nullable=False),),
            (Key("PRIMARY", (KeyPart(0),), unique=True),),
        )
        own = self.facts(float(self.rows if rows is None else rows))
        return {f"{database}.{TABLE}": own, f"{database}.{MARK}": TableFacts(mark, 0.0, GIVEN)}

    def __post_init__(self) -> None:
        if self.kind != "write" and self.changed > self.rows:
            raise ValueError(
                f"{self.changed} rows cannot be changed, each once, in a table of {self.rows}"
            )
        if self.events % self.statements:
            raise ValueError(
                f"{self.events} events are not those of {self.statements} equal statements"
            )


class Spent:
    """Which rows of a cell's table were changed already: several logs may use one table, none of
    them a row that another had."""

    def __init__(self, rows: int) -> None:
        self.used = bytearray(rows)
        self.rows = rows
        """Rows of the table now."""
        self.next_id = rows + 1

    def pick(self, chance: random.Random, start: int, end: int) -> int:
        """An unused place in a stretch, or behind it."""
        at = chance.randrange(start, end)
        if self.used[at]:
            found = self.used.find(0, at)
            at = found if found >= 0 else self.used.find(0)
        self.used[at] = 1
        return at

    def left(self, cell: Cell) -> bool:
        """Whether there are enough rows for a cell: half of the unused ones, so that they still
        stand evenly; and most of the table's.

        Where most were deleted, those that are left stand in as many pages as before, and a scan
        costs more than their number says. An index that was changed is not full any more.
        """
        if cell.full:
            return not any(self.used)
        enough = (
            self.used.count(0) >= min(2 * cell.changed, cell.rows)
            and self.rows >= cell.rows * MOST_OF_TABLE
        )
        return cell.kind == "write" or enough


def statements_of(
    cell: Cell, seed: int = 1, spent: Spent | None = None
) -> Iterator[list[list[list[int]]]]:
    """For each transaction its statements, for each of those its events, each a list of ids, spread
    evenly over the table."""
    chance = random.Random(seed)
    spent = spent or Spent(cell.rows)
    total, per = cell.changed, cell.rows_per_event * cell.events // cell.statements
    if cell.kind == "write":
        ids = list(range(spent.next_id, spent.next_id + total))
        spent.next_id += total
    else:
        ids = [
            spent.pick(chance, at * cell.rows // total, (at + 1) * cell.rows // total) + 1
            for at in range(total)
        ]
        chance.shuffle(ids)
    spent.rows += {"write": total, "delete": -total}.get(cell.kind, 0)
    found = (sorted(ids[start : start + per]) for start in range(0, total, per))
    for _ in range(cell.transactions):
        statements = islice(found, cell.statements)
        yield [
            [mine[at : at + cell.rows_per_event] for at in range(0, per, cell.rows_per_event)]
            for mine in statements
        ]


def rows_in_event(filler: int, columns: int, kind: str) -> int:
    """How many rows of a cell's table a source puts into one event by default."""
    return int(
        (EVENT_BODY_BYTES - 16)
        // ((11 + filler + columns * len(VALUE)) * (2 if kind == "update" else 1))
    )


def grid(
    rules: ServerRules,
    *,
    largest: int = 100_000,
    row_searches: tuple[str, ...] = ("",),
    quick: bool = False,
) -> list[Cell]:
    """The cells of `binlag measure`: each unit of cost weighs in some of them, from 1,000 rows to
    `largest`.

    Cells that can share a table stand together.
    """
    sizes = [size for size in SCANNED if size <= largest]
    keyed = min(sizes[-1], LOOKUP_ROWS)
    cells = [
        cell
        for row_search in row_searches
        for cell in (*_scans(sizes, row_search, rules), *_lookups(keyed, row_search))
    ]
    if largest >= FAR_ROWS:
        cells += _far_lookups(row_searches[0])
        cells.append(_full_index(FAR_ROWS, row_searches[0]))
    cells += _writes(keyed, row_searches[0])
    cells += _full_indexes(keyed, row_searches[0])
    cells += _small_statements(keyed, row_searches[0])
    cells += _long_rows(row_searches[0])
    if not quick:
        cells += _beyond_caches(keyed, row_searches[0])
    chosen = sorted(set(cells), key=lambda cell: (cell.row_search, cell.table, cell))
    step = QUICK_STEP if quick else 1
    return [cell for at, cell in enumerate(chosen) if cell.is_usual or at % step == 0]


def _scans(sizes: list[int], row_search: str, rules: ServerRules) -> Iterator[Cell]:
    """Tables without a key. Where events are not hashed each row is a scan, and large events on
    large tables would take hours."""
    options = parse_row_search(row_search) if row_search else rules.row_search
    hashed = HASH_SCAN in options and not rules.find_row
    for kind, (filler, more) in product(("update", "delete"), WIDTHS):
        full = rows_in_event(filler, more, kind)
        for rows in sizes:
            for per_event in (given or full for given in SCANNED[rows]):
                scans = 1 if hashed else per_event
                if scans * rows <= MOST_READS:
                    yield Cell(
                        NO_KEY,
                        rows,
                        kind,
                        per_event,
                        1,
                        _count(rows, per_event, scans),
                        filler,
                        1,
                        0,
                        more,
                        row_search,
                    )
        middle = max(size for size in sizes if size <= SPLIT_ROWS)
        if full * 20 <= middle and (hashed or full * 10 * middle <= MOST_READS):
            yield Cell(NO_KEY, middle, kind, full, 10, 2, filler, 1, 0, more, row_search)
    for filler, more in WIDTHS[:2]:  # statements that step over what they have deleted
        yield Cell(NO_KEY, middle, "delete", 10, middle // 25, 1, filler, 1, 0, more, row_search)


def _lookups(rows: int, row_search: str) -> Iterator[Cell]:
    """Tables with a key of each kind, large enough that rows do not lie beside each other."""
    for kind, (filler, more) in product(("update", "delete"), WIDTHS):
        full = rows_in_event(filler, more, kind)
        many = rows // 4
        shapes = [
            (full, 1, many // full),
            (full, 10, many // (full * 10)),
            (2000, 1, many // 2000),
            (1, 1, min(SINGLES, many)),
        ]
        for key, (per_event, events, count) in product((PRIMARY, UNIQUE, NULLABLE_UNIQUE), shapes):
            if count and (key == PRIMARY or (filler, more) == WIDTHS[key == NULLABLE_UNIQUE]):
                yield Cell(
                    key, rows, kind, per_event, events, count, filler, 1, 0, more, row_search
                )
        for duplicates, (per_event, _, count) in product(
            (10, 200), (shape for shape in shapes if shape[1] == 1)
        ):
            if count and (duplicates == 10 or (filler, more) == WIDTHS[0]):
                fewer = max(count // (2 if duplicates == 10 else 8), 1)
                yield Cell(
                    OTHER, rows, kind, per_event, 1, fewer, filler, duplicates, 0, more, row_search
                )


def _far_lookups(row_search: str) -> Iterator[Cell]:
    """A few of them in large tables."""
    for kind, (key, duplicates) in product(
        ("update", "delete"), ((PRIMARY, 1), (NULLABLE_UNIQUE, 1), (OTHER, 10))
    ):
        for per_event, count in ((1, SINGLES), (100, 200), (2000, 12)):
            yield Cell(
                key,
                FAR_ROWS,
                kind,
                per_event,
                1,
                count // (1 if duplicates == 1 else 2),
                40,
                duplicates,
                0,
                0,
                row_search,
            )


def _beyond_caches(rows: int, row_search: str) -> Iterator[Cell]:
    """Steps in an index of a table that the processor's caches do not hold, and the smallest buffer
    pool of a server as it comes does."""
    for kind in ("update", "delete"):
        yield Cell(OTHER, MANY_LEAVES * rows, kind, 1, 1, 600, 100, 200, row_search=row_search)


def _writes(rows: int, row_search: str) -> Iterator[Cell]:
    """Inserts, and what secondary indexes add to them, to deletes, and to updates that change all
    of their columns."""
    for indexes, (per_event, events, count) in product(
        (0, 3), ((1, 1, SINGLES), (100, 1, 250), (1, 20, SINGLES // 20), (100, 20, 12))
    ):
        yield Cell(PRIMARY, rows, "write", per_event, events, count, 40, 1, indexes, 0, row_search)
        if indexes and per_event * events * count * 2 <= rows:
            for kind in ("delete", "update"):
                yield Cell(
                    PRIMARY, rows, kind, per_event, events, count, 40, 1, indexes, 0, row_search
                )


def _full_indexes(rows: int, row_search: str) -> Iterator[Cell]:
    """Updates of an index that is full: pages are split and merged again. Where it has many leaves
    nearly every other update splits one, where it has few hardly any does: so the price of an entry
    and that of a split come apart."""
    yield _full_index(MANY_LEAVES * rows, row_search)
    for per_event, statements in ((1, 1), (1, 10), (100, 1)):
        yield _full_index(rows, row_search, per_event, statements)


def _full_index(rows: int, row_search: str, per_event: int = 1, statements: int = 1) -> Cell:
    count = min(SINGLES, rows // 4) // (per_event * statements)
    return Cell(
        PRIMARY, rows, "update", per_event, statements, count, 40, 1, 1, 0, row_search,
        statements, full=1,
    )  # fmt: skip


def _small_statements(rows: int, row_search: str) -> Iterator[Cell]:
    """Transactions of several statements of a row: each names its table, and the server opens,
    locks and closes it."""
    for key, kind in (
        (PRIMARY, "write"),
        (PRIMARY, "update"),
        (PRIMARY, "delete"),
        (UNIQUE, "update"),
        (NULLABLE_UNIQUE, "delete"),
    ):
        for statements in (5, 20):
            count = min(SINGLES, rows // 4) // statements
            yield Cell(
                key, rows, kind, 1, statements, count, row_search=row_search, statements=statements
            )


def _long_rows(row_search: str) -> Iterator[Cell]:
    """Rows that do not fit a page."""
    for (filler, rows), kind in product(LONG_ROWS.items(), ("write", "update", "delete")):
        yield Cell(PRIMARY, rows, kind, 1, 1, rows // 4, filler, row_search=row_search)


def _count(rows: int, per_event: int, scans: int) -> int:
    """Transactions so that a cell takes a fair time, neither too short to be timed nor endless."""
    return max(
        min(transactions_of_scans(rows, scans), rows // (CHANGED_PART * per_event)),
        FEWEST_SCANS if per_event == 1 else 1,
    )


def transactions_of_scans(rows: int, scans: int) -> int:
    """How many transactions of so many scans over so many rows take a fair time; 0 where one takes
    longer."""
    return min(2_000_000 // (rows * scans), MOST_SCANS)
