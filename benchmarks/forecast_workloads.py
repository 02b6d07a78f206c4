"""The workloads of `forecast_accuracy.py`: sets of ten, each from 1,000 to a million rows and from 1 to 10,000 rows per event.

`development` is what the cost model was looked at with while it was made. `first` was written to judge it and is spent: one of its keys
turned out to have its duplicates side by side, where a forecast takes them to stand anywhere. `judge` was written after the model was
done, with other tables, row counts and events.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Transactions = Callable[[], Sequence[Sequence[str]]]
"""The SQL statements of each transaction."""


@dataclass(frozen=True)
class TableKind:
    """Columns, the values of a row ({0} is its id, {1} the value of column a, which carries the replica's key), what an update sets."""

    columns: str
    row: str
    change: str
    value: str = "{0}"
    """The value of column a from a number."""
    charset: str = "latin1"


MIXED = TableKind(
    "id INT NOT NULL, a INT NULL, b BIGINT NOT NULL, c DECIMAL(12,2) NULL, d DATETIME NOT NULL, e VARCHAR(80) NOT NULL",
    "{0}, {1}, {0} * 3, {0} / 7, '2024-01-01' + INTERVAL {0} SECOND, CONCAT('r', REPEAT('e', {0} % 40))",
    "b = b + 1, e = CONCAT('u', SUBSTRING(e, 2))",
)
NARROW = TableKind(
    "id INT NOT NULL, a INT NULL, b SMALLINT NOT NULL, c DATE NOT NULL",
    "{0}, {1}, {0} % 1000, '2020-01-01' + INTERVAL {0} % 3000 DAY",
    "b = (b + 7) % 1000",
)
WIDE = TableKind(
    "id BIGINT NOT NULL, a BIGINT NULL, b DOUBLE NOT NULL, c CHAR(36) NOT NULL, d VARCHAR(400) NOT NULL",
    "{0}, {1}, {0} / 3, LPAD(HEX({0} * 2654435761), 36, '7'), CONCAT('n', REPEAT('ö', 60 + {0} % 120))",
    "b = b + 0.5, d = CONCAT('m', SUBSTRING(d, 2))",
    charset="utf8mb4",
)
MANY = TableKind(
    "id INT NOT NULL, a INT NULL, "
    + ", ".join(f"i{n} INT NULL, v{n} VARCHAR(16) NOT NULL, t{n} TIMESTAMP NOT NULL, m{n} DECIMAL(10,3) NULL" for n in range(4)),
    "{0}, {1}" + ", {0} % 97, CONCAT('v', {0} % 1000), '2023-05-05' + INTERVAL {0} MINUTE, {0} / 9" * 4,
    "i2 = i2 + 1, m3 = m3 + 1",
)
NAMED = TableKind(
    "id INT NOT NULL, a VARCHAR(24) NULL, b INT NOT NULL, c VARCHAR(120) NOT NULL",
    "{0}, {1}, {0} % 50, REPEAT('x', {0} % 100)",
    "b = b + 1",
    value="CONCAT('customer-', {0})",
    charset="utf8mb4",
)

SHORT = TableKind(
    "id INT NOT NULL, a INT NULL, b INT UNSIGNED NOT NULL, c CHAR(20) NOT NULL, d DATETIME(3) NULL, e VARBINARY(60) NOT NULL, f FLOAT NULL",
    "{0}, {1}, {0} % 7919, CONCAT('c', {0}), '2025-01-01' + INTERVAL {0} SECOND, REPEAT('e', 5 + {0} % 50), {0} / 11",
    "b = b + 1, f = f + 1",
)
LEAN = TableKind("id BIGINT NOT NULL, a BIGINT NULL, b DOUBLE NOT NULL", "{0}, {1}, {0} / 13", "b = b + 1")


@dataclass(frozen=True)
class Workload:
    """`key` is the replica's, `duplicates` rows have one value of column a, `scattered` as by chance or at equal distances."""

    name: str
    rows: int
    key: str
    duplicates: int
    transactions: Transactions
    kind: TableKind = MIXED
    scattered: bool = False

    def fill(self) -> list[str]:
        """Statements that double the rows until there are enough, ids ascending."""
        statements, filled = [self._insert("1")], 1
        while filled < self.rows:
            more = min(filled, self.rows - filled)
            statements.append(f"{self._insert(f'(id + {filled})')} FROM t WHERE id <= {more} ORDER BY id")
            filled += more
        return statements

    def _insert(self, identity: str) -> str:
        values = self.rows // self.duplicates
        number = identity if self.duplicates == 1 else f"({identity} % {values})"
        if self.scattered:  # each stretch of as many rows as there are values has them in another order
            values = next(one for one in range(values, 1, -1) if all(one % factor for factor in range(2, int(one**0.5) + 1)))
            stretch = f"({identity} DIV {values})"
            number = f"(({identity} % {values} * (1 + {stretch} * 7919 % {values - 1}) + {stretch} * 104729) % {values})"
        return f"INSERT INTO t SELECT {self.kind.row.format(identity, self.kind.value.format(number))}"


def single(kind: str, table: TableKind, rows: int, count: int) -> Transactions:
    """Transactions of one row each, anywhere in the table; a delete never twice the same."""
    chance = random.Random(count)
    ids = chance.sample(range(1, rows + 1), count) if kind == "delete" else chance.choices(range(1, rows + 1), k=count)
    return lambda: [[_change(kind, table, f"id = {number}")] for number in ids]


def spread(kind: str, table: TableKind, rows: int, per_statement: int, count: int) -> Transactions:
    """Statements that change every n-th row."""
    every = rows // per_statement
    return lambda: [[_change(kind, table, f"id % {every} = {number % every} LIMIT {per_statement}")] for number in range(count)]


def _change(kind: str, table: TableKind, where: str) -> str:
    return f"DELETE FROM t WHERE {where}" if kind == "delete" else f"UPDATE t SET {table.change} WHERE {where}"


def _mixed() -> Sequence[Sequence[str]]:
    """Three statements a transaction: ten rows in, ten changed, ten out, anywhere in the table."""
    return [
        [
            f"INSERT INTO t SELECT id + {20_000 * (number + 1)}, a, b, c, d, e FROM t WHERE id <= 20000 AND id % 2000 = {number}",
            _change("update", MIXED, f"id <= 20000 AND id % 2000 = {number + 100}"),
            _change("delete", MIXED, f"id <= 20000 AND id % 2000 = {number + 200}"),
        ]
        for number in range(60)
    ]


def _orders() -> Sequence[Sequence[str]]:
    """Two statements a transaction: twenty rows in, five others changed."""
    return [
        [
            f"INSERT INTO t SELECT id + {60_000 * (number + 1)}, a + 1, b, c, d FROM t WHERE id <= 60000 AND id % 3000 = {number}",
            _change("update", WIDE, f"id <= 60000 AND id % 12000 = {number + 700}"),
        ]
        for number in range(1_000)
    ]


def _tens() -> Sequence[Sequence[str]]:
    """Ten statements of one row a transaction: four rows in, four changed, two out."""
    chance, transactions = random.Random(10), []
    gone = iter(chance.sample(range(1, 20_001), 800))
    for number in range(400):
        row = NAMED.row.format(f"({20_001 + number * 4} + n)", NAMED.value.format(f"({20_001 + number * 4} + n)"))
        rows = [f"INSERT INTO t SELECT {row.replace('n)', f'{at})')}" for at in range(4)]
        changed = [_change("update", NAMED, f"id = {chance.randint(20_001, 20_001 + number * 4)}") for _ in range(4)]
        transactions.append([*rows, *changed, *(_change("delete", NAMED, f"id = {next(gone)}") for _ in range(2))])
    return transactions


DEVELOPMENT = (
    Workload("no key, 1k rows, single deletes", 1_000, "", 1, single("delete", MIXED, 1_000, 400)),
    Workload("no key, 100k rows, single updates", 100_000, "", 1, single("update", MIXED, 100_000, 40)),
    Workload("no key, 1M rows, deletes of 10,000 rows", 1_000_000, "", 1, spread("delete", MIXED, 1_000_000, 10_000, 2)),
    Workload("no key, 20k rows, mixed transactions of 30 rows", 20_000, "", 1, _mixed),
    Workload("nullable unique, 100k rows, updates of 500 rows", 100_000, "UNIQUE KEY k (a)", 1, spread("update", MIXED, 100_000, 500, 30)),
    Workload("nullable unique, 1M rows, single deletes", 1_000_000, "UNIQUE KEY k (a)", 1, single("delete", MIXED, 1_000_000, 2_000)),
    Workload("key with 50 duplicates, 100k rows, single updates", 100_000, "KEY k (a)", 50, single("update", MIXED, 100_000, 1_500)),
    Workload("key with 400 duplicates, 100k rows, deletes of 1,000", 100_000, "KEY k (a)", 400, spread("delete", MIXED, 100_000, 1_000, 8)),
    Workload("primary key, 1M rows, single updates", 1_000_000, "PRIMARY KEY (id)", 1, single("update", MIXED, 1_000_000, 3_000)),
    Workload("primary key and an index, 100k rows, deletes of 5,000", 100_000, "PRIMARY KEY (id), KEY k (a)", 20,
             spread("delete", MIXED, 100_000, 5_000, 10)),
)  # fmt: skip
FIRST = (
    Workload("no key, 1k rows of 18 columns, single updates", 1_000, "", 1, single("update", MANY, 1_000, 1_500), MANY),
    Workload("no key, 3k narrow rows, updates of 40", 3_000, "", 1, spread("update", NARROW, 3_000, 40, 300), NARROW),
    Workload("no key, 40k wide rows, single deletes", 40_000, "", 1, single("delete", WIDE, 40_000, 60), WIDE),
    Workload("no key, 400k narrow rows, updates of 10,000", 400_000, "", 1, spread("update", NARROW, 400_000, 10_000, 6), NARROW),
    Workload("nullable unique name, 8k rows, single updates", 8_000, "UNIQUE KEY k (a)", 1, single("update", NAMED, 8_000, 5_000), NAMED),
    Workload("nullable unique, 600k wide rows, deletes of 250", 600_000, "UNIQUE KEY k (a)", 1,
             spread("delete", WIDE, 600_000, 250, 200), WIDE),
    Workload("key with 12 duplicates, 250k rows of 18 columns, updates of 60", 250_000, "KEY k (a)", 12,
             spread("update", MANY, 250_000, 60, 300), MANY),
    Workload("key with 100 duplicates, 20k narrow rows, single deletes", 20_000, "KEY k (a)", 100,
             single("delete", NARROW, 20_000, 3_000), NARROW),
    Workload("primary key, 1M narrow rows, deletes of 10,000", 1_000_000, "PRIMARY KEY (id)", 1,
             spread("delete", NARROW, 1_000_000, 10_000, 10), NARROW),
    Workload("primary key and two indexes, 60k wide rows, 20 in and 5 changed", 60_000, "PRIMARY KEY (id), KEY k (a), KEY c (c)", 1,
             _orders, WIDE),
)  # fmt: skip
JUDGE = (
    Workload("no key, 1k rows of 7 columns, single deletes", 1_000, "", 1, single("delete", SHORT, 1_000, 600), SHORT),
    Workload("no key, 6k rows with names, updates of 25", 6_000, "", 1, spread("update", NAMED, 6_000, 25, 200), NAMED),
    Workload("no key, 50k lean rows, single updates", 50_000, "", 1, single("update", LEAN, 50_000, 60), LEAN),
    Workload("no key, 1M rows of 7 columns, deletes of 1,000", 1_000_000, "", 1, spread("delete", SHORT, 1_000_000, 1_000, 3), SHORT),
    Workload("nullable unique, 30k rows of 7 columns, deletes of 100", 30_000, "UNIQUE KEY k (a)", 1,
             spread("delete", SHORT, 30_000, 100, 150), SHORT),
    Workload("nullable unique, 500k lean rows, single updates", 500_000, "UNIQUE KEY k (a)", 1,
             single("update", LEAN, 500_000, 4_000), LEAN),
    Workload("key with 5 duplicates, 400k rows of 7 columns, deletes of 30", 400_000, "KEY k (a)", 5,
             spread("delete", SHORT, 400_000, 30, 300), SHORT, scattered=True),
    Workload("key with 150 duplicates, 60k lean rows, updates of 400", 60_000, "KEY k (a)", 150,
             spread("update", LEAN, 60_000, 400, 20), LEAN, scattered=True),
    Workload("primary key, 800k rows of 7 columns, updates of 10,000", 800_000, "PRIMARY KEY (id)", 1,
             spread("update", SHORT, 800_000, 10_000, 8), SHORT),
    Workload("primary key and an index, 20k rows with names, 10 statements each", 20_000, "PRIMARY KEY (id), KEY k (a)", 1,
             _tens, NAMED),
)  # fmt: skip
SETS = {"development": DEVELOPMENT, "first": FIRST, "judge": JUDGE}
