"""The workloads of `forecast_accuracy.py`: sets of ten, each from 1,000 to a million rows and from
1 to 10,000 rows per event.

A workload is a line of data: a table of some kind, the key that the replica has, and how often a
transaction of some steps is repeated.

`development` is what the cost model was looked at with while it was made. `first` to `fourth` were
written to judge it, and are spent: what they showed has changed the model or the way it is
measured. The workloads of the first two take 0.15 to 1.7 seconds, too short for a machine whose
speed wavers. `fifth` was written when both were done, with other tables, row counts and events,
each to take some seconds, and judges them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat


@dataclass(frozen=True)
class TableKind:
    """Columns, the values of a row ({0} is its id, {1} the value of column a, which carries the
    replica's key), what an update sets."""

    columns: str
    row: str
    change: str
    value: str = "{0}"
    """The value of column a from a number."""
    charset: str = "latin1"


MIXED = TableKind(
    "id INT NOT NULL, a INT NULL, b BIGINT NOT NULL, c DECIMAL(12,2) NULL, d DATETIME NOT NULL, "
    "e VARCHAR(80) NOT NULL",
    "{0}, {1}, {0} * 3, {0} / 7, '2024-01-01' + INTERVAL {0} SECOND, CONCAT('r', REPEAT('e', "
    "{0} % 40))",
    "b = b + 1, e = CONCAT('u', SUBSTRING(e, 2))",
)
NARROW = TableKind(
    "id INT NOT NULL, a INT NULL, b SMALLINT NOT NULL, c DATE NOT NULL",
    "{0}, {1}, {0} % 1000, '2020-01-01' + INTERVAL {0} % 3000 DAY",
    "b = (b + 7) % 1000",
)
WIDE = TableKind(
    "id BIGINT NOT NULL, a BIGINT NULL, b DOUBLE NOT NULL, c CHAR(36) NOT NULL, d VARCHAR(400) "
    "NOT NULL",
    "{0}, {1}, {0} / 3, LPAD(HEX({0} * 2654435761), 36, '7'), CONCAT('n', REPEAT('ö', "
    "60 + {0} % 120))",
    "b = b + 0.5, d = CONCAT('m', SUBSTRING(d, 2))",
    charset="utf8mb4",
)
MANY = TableKind(
    "id INT NOT NULL, a INT NULL, "
    + ", ".join(
        (
            f"i{n} INT NULL, v{n} VARCHAR(16) NOT NULL, t{n} TIMESTAMP NOT NULL, m{n} "
            "DECIMAL(10,3) NULL"
        )
        for n in range(4)
    ),
    "{0}, {1}"
    + ", {0} % 97, CONCAT('v', {0} % 1000), '2023-05-05' + INTERVAL {0} MINUTE, {0} / 9" * 4,
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
    "id INT NOT NULL, a INT NULL, b INT UNSIGNED NOT NULL, c CHAR(20) NOT NULL, d DATETIME(3) "
    "NULL, e VARBINARY(60) NOT NULL, f FLOAT NULL",
    "{0}, {1}, {0} % 7919, CONCAT('c', {0}), '2025-01-01' + INTERVAL {0} SECOND, REPEAT('e', "
    "5 + {0} % 50), {0} / 11",
    "b = b + 1, f = f + 1",
)
LEAN = TableKind(
    "id BIGINT NOT NULL, a BIGINT NULL, b DOUBLE NOT NULL", "{0}, {1}, {0} / 13", "b = b + 1"
)

METER = TableKind(
    "id INT NOT NULL, a INT NULL, volts FLOAT NOT NULL, amperes FLOAT NOT NULL, "
    "read_at INT UNSIGNED NOT NULL",
    "{0}, {1}, 230 + {0} % 9, {0} % 400 / 16, 1700000000 + {0} * 5",
    "volts = volts + 1, amperes = amperes / 2",
)
LEDGER = TableKind(
    "id INT NOT NULL, a INT NULL, amount DECIMAL(16,4) NOT NULL, purpose VARCHAR(140) NOT NULL, "
    "booked DATE NOT NULL, "
    "state TINYINT UNSIGNED NOT NULL, reference BIGINT NOT NULL, currency CHAR(3) NOT NULL",
    "{0}, {1}, {0} * 1.0625, REPEAT('p', 10 + {0} * 7 % 60), '2022-02-02' + INTERVAL {0} % 1000 "
    "DAY, {0} % 5, {0} * 1000003, 'EUR'",
    "state = state ^ 1, amount = amount + 0.5",
)
VISIT = TableKind(
    "id BIGINT NOT NULL, a BIGINT NULL, at TIMESTAMP(6) NOT NULL, path VARCHAR(255) NOT NULL, "
    "status SMALLINT NOT NULL",
    "{0}, {1}, '2024-04-04' + INTERVAL {0} * 1500 MICROSECOND, CONCAT('/städte/', {0} % 5000, "
    "REPEAT('/x', {0} % 30)), 200",
    "status = IF(status = 200, 304, 200)",
    charset="utf8mb4",
)
ACCOUNT = TableKind(
    "id INT NOT NULL, a VARCHAR(40) NULL, mail VARCHAR(80) NOT NULL, born DATE NULL, "
    "logins INT NOT NULL, about TEXT NULL",
    "{0}, {1}, CONCAT('someone.', {0}, '@example.org'), '1970-01-01' + INTERVAL {0} % 15000 DAY, "
    "{0} % 300, REPEAT('w', {0} % 90)",
    "logins = logins + 1",
    value="CONCAT('user-', LPAD({0}, 9, '0'))",
    charset="utf8mb4",
)
BROAD = TableKind(
    "id INT NOT NULL, a INT NULL, "
    + ", ".join(
        f"n{n} INT NOT NULL, s{n} CHAR(6) NULL, d{n} DATETIME NOT NULL, f{n} DOUBLE NULL"
        for n in range(6)
    ),
    "{0}, {1}"
    + ", {0} % 1009, CONCAT('s', {0} % 100), '2021-06-01' + INTERVAL {0} MINUTE, {0} / 8" * 6,
    "n1 = n1 + 1, f4 = f4 + 1, s2 = 'done'",
)

SENSOR = TableKind(
    "id INT NOT NULL, a INT NULL, celsius DECIMAL(6,3) NOT NULL, taken DATETIME(3) NOT NULL, "
    "unit CHAR(4) NOT NULL",
    "{0}, {1}, {0} % 900 / 8, '2023-03-03' + INTERVAL {0} * 250 MICROSECOND, 'K'",
    "celsius = celsius + 0.125",
)
PARCEL = TableKind(
    "id BIGINT NOT NULL, a BIGINT NULL, grams MEDIUMINT UNSIGNED NOT NULL, street VARCHAR(100) "
    "NOT NULL, city CHAR(30) NOT NULL, "
    "sent DATETIME NULL, price DECIMAL(9,2) NOT NULL",
    "{0}, {1}, {0} % 30000, CONCAT({0} % 90, ' Long Street', REPEAT('t', {0} % 35)), "
    "CONCAT('city ', {0} % 400), "
    "'2024-09-09' + INTERVAL {0} MINUTE, {0} % 5000 / 4",
    "price = price + 1, grams = grams ^ 3",
)
LOGIN = TableKind(
    "id INT NOT NULL, a VARCHAR(32) NULL, token CHAR(40) NOT NULL, expires INT UNSIGNED NOT NULL, "
    "place VARBINARY(16) NULL",
    "{0}, {1}, LEFT(SHA2({0}, 256), 40), 1800000000 + {0}, UNHEX(LPAD(HEX({0}), 8, '0'))",
    "expires = expires + 60",
    value="CONCAT('login/', {0})",
    charset="utf8mb4",
)
SURVEY = TableKind(
    "id INT NOT NULL, a INT NULL, "
    + ", ".join(
        f"q{n} TINYINT NULL, w{n} VARCHAR(30) NOT NULL, p{n} FLOAT NOT NULL" for n in range(4)
    ),
    "{0}, {1}" + ", {0} % 5, CONCAT('word', {0} % 700), {0} / 16" * 4,
    "q1 = q1 + 1, p3 = p3 * 2, w0 = 'other'",
)

TICKET = TableKind(
    "id INT NOT NULL, a INT NULL, seat SMALLINT NOT NULL, hall CHAR(12) NOT NULL, "
    "begins DATETIME NOT NULL, paid DECIMAL(7,2) NOT NULL, "
    "note VARCHAR(50) NULL",
    "{0}, {1}, {0} % 800, CONCAT('hall ', {0} % 30), '2025-05-05' + INTERVAL {0} % 9000 HOUR, "
    "{0} % 400 / 2, REPEAT('n', {0} % 20)",
    "paid = paid + 2, seat = seat ^ 1",
)
PROBE = TableKind(
    "id BIGINT NOT NULL, a BIGINT NULL, x DOUBLE NOT NULL, y DOUBLE NOT NULL, z DOUBLE NULL, "
    "w INT NOT NULL, at TIMESTAMP(3) NOT NULL",
    "{0}, {1}, {0} / 3, {0} / 5, {0} / 7, {0} % 11, '2024-02-02' + INTERVAL {0} SECOND",
    "x = x + 1, w = w + 1",
)
CONTACT = TableKind(
    "id INT NOT NULL, a VARCHAR(60) NULL, phone CHAR(16) NOT NULL, city VARCHAR(40) NOT NULL, "
    "seen DATE NOT NULL",
    "{0}, {1}, LPAD({0}, 12, '0'), CONCAT('Köln ', {0} % 99, REPEAT('-', {0} % 15)), "
    "'2020-02-02' + INTERVAL {0} % 2000 DAY",
    "seen = seen + INTERVAL 1 DAY",
    value="CONCAT('name.', {0}, '@example.net')",
    charset="utf8mb4",
)
STOCK = TableKind(
    "id INT NOT NULL, a INT NULL, "
    + ", ".join(
        f"n{n} INT NOT NULL, s{n} CHAR(8) NULL, p{n} DECIMAL(8,2) NOT NULL" for n in range(6)
    ),
    "{0}, {1}" + ", {0} % 5003, CONCAT('s', {0} % 900), {0} % 1000 / 4" * 6,
    "n2 = n2 + 1, p5 = p5 + 1, s3 = 'sold'",
)


@dataclass(frozen=True)
class Step:
    """`times` statements of a transaction: each an insert, update or delete of so many rows,
    anywhere in the table."""

    kind: str
    rows: int = 1
    times: int = 1


@dataclass(frozen=True)
class Workload:
    """A table of `rows` rows and `count` transactions. `key` is the replica's, its column a has
    each value `duplicates` times.

    `scattered`: rows of one value stand anywhere, as by chance, and not at equal distances; values
    without duplicates in no order.
    """

    name: str
    kind: TableKind
    rows: int
    key: str
    count: int
    steps: tuple[Step, ...]
    duplicates: int = 1
    scattered: bool = False

    def fill(self) -> list[str]:
        """Statements that double the rows until there are enough, ids ascending."""
        statements, filled = [f"INSERT INTO t SELECT {self._row('1')}"], 1
        while filled < self.rows:
            more = min(filled, self.rows - filled)
            statements.append(
                f"INSERT INTO t SELECT {self._row(f'(id + {filled})')} FROM t WHERE id <= {more} "
                "ORDER BY id"
            )
            filled += more
        return statements

    def transactions(self) -> Iterator[list[str]]:
        """The SQL statements of each transaction, the same at each call. No row is deleted
        twice."""
        chance = random.Random(self.name)
        alive, next_id = list(range(1, self.rows + 1)), self.rows + 1
        for _ in range(self.count):
            statements = []
            for step in chain.from_iterable(repeat(one, one.times) for one in self.steps):
                if step.kind == "insert":
                    ids: Sequence[int] = range(next_id, next_id + step.rows)
                    next_id += step.rows
                    alive.extend(ids)
                else:
                    ids = _draw(alive, step, chance)
                statements.append(self._statement(step.kind, ids))
            yield statements

    def _statement(self, kind: str, ids: Sequence[int]) -> str:
        if kind == "insert":
            return "INSERT INTO t VALUES " + ", ".join(f"({self._row(str(one))})" for one in ids)
        where = f"WHERE id IN ({', '.join(map(str, ids))})"
        return (
            f"DELETE FROM t {where}"
            if kind == "delete"
            else f"UPDATE t SET {self.kind.change} {where}"
        )

    def _row(self, identity: str) -> str:
        return self.kind.row.format(identity, self.kind.value.format(self._number(identity)))

    def _number(self, identity: str) -> str:
        """What column a is made of."""
        values = self.rows // self.duplicates
        if not self.scattered:
            return identity if self.duplicates == 1 else f"({identity} % {values})"
        if self.duplicates == 1:  # a prime above all ids, so that none meets another
            return f"({identity} * 48271 % 2147483647)"
        prime = next(
            one
            for one in range(values, 1, -1)
            if all(one % factor for factor in range(2, int(one**0.5) + 1))
        )
        # each stretch of as many rows as there are values has them in another order
        stretch = f"({identity} DIV {prime})"
        return (
            f"(({identity} % {prime} * (1 + {stretch} * 7919 % {prime - 1}) + {stretch} * 104729) "
            f"% {prime})"
        )


def _draw(alive: list[int], step: Step, chance: random.Random) -> list[int]:
    """Rows that a statement changes, in the order of a scan; what it deletes leaves `alive`."""
    places = chance.sample(range(len(alive)), step.rows)
    ids = sorted(alive[place] for place in places)
    if step.kind == "delete":
        for place in sorted(places, reverse=True):
            alive[place] = alive[-1]
            alive.pop()
    return ids


UNIQUE_A, KEY_A, PRIMARY_ID = "UNIQUE KEY k (a)", "KEY k (a)", "PRIMARY KEY (id)"


def _of(kind: str, rows: int = 1) -> tuple[Step, ...]:
    return (Step(kind, rows),)


TENS = (Step("insert", times=4), Step("update", times=4), Step("delete", times=2))
DEVELOPMENT = (
    Workload("no key, 1k rows, single deletes", MIXED, 1_000, "", 400, _of("delete")),
    Workload("no key, 100k rows, single updates", MIXED, 100_000, "", 40, _of("update")),
    Workload("no key, 1M rows, deletes of 10,000 rows", MIXED, 1_000_000, "", 2,
             _of("delete", 10_000)),
    Workload("no key, 20k rows, mixed transactions of 30 rows", MIXED, 20_000, "", 60,
             (Step("insert", 10), Step("update", 10), Step("delete", 10))),
    Workload("nullable unique, 100k rows, updates of 500 rows", MIXED, 100_000, UNIQUE_A, 30,
             _of("update", 500)),
    Workload("nullable unique, 1M rows, single deletes", MIXED, 1_000_000, UNIQUE_A, 2_000,
             _of("delete")),
    Workload("key with 50 duplicates, 100k rows, single updates", MIXED, 100_000, KEY_A, 1_500,
             _of("update"), 50),
    Workload("key with 400 duplicates, 100k rows, deletes of 1,000", MIXED, 100_000, KEY_A, 8,
             _of("delete", 1_000), 400),
    Workload("primary key, 1M rows, single updates", MIXED, 1_000_000, PRIMARY_ID, 3_000,
             _of("update")),
    Workload("primary key and an index, 100k rows, deletes of 5,000", MIXED, 100_000,
             f"{PRIMARY_ID}, {KEY_A}", 10,
             _of("delete", 5_000), 20),
)  # fmt: skip
FIRST = (
    Workload("no key, 1k rows of 18 columns, single updates", MANY, 1_000, "", 1_500,
             _of("update")),
    Workload("no key, 3k narrow rows, updates of 40", NARROW, 3_000, "", 300, _of("update", 40)),
    Workload("no key, 40k wide rows, single deletes", WIDE, 40_000, "", 60, _of("delete")),
    Workload("no key, 400k narrow rows, updates of 10,000", NARROW, 400_000, "", 6,
             _of("update", 10_000)),
    Workload("nullable unique name, 8k rows, single updates", NAMED, 8_000, UNIQUE_A, 5_000,
             _of("update")),
    Workload("nullable unique, 600k wide rows, deletes of 250", WIDE, 600_000, UNIQUE_A, 200,
             _of("delete", 250)),
    Workload("key with 12 duplicates, 250k rows of 18 columns, updates of 60", MANY, 250_000, KEY_A,
             300, _of("update", 60), 12),
    Workload("key with 100 duplicates, 20k narrow rows, single deletes", NARROW, 20_000, KEY_A,
             3_000, _of("delete"), 100),
    Workload("primary key, 1M narrow rows, deletes of 10,000", NARROW, 1_000_000, PRIMARY_ID, 10,
             _of("delete", 10_000)),
    Workload("primary key and two indexes, 60k wide rows, 20 in and 5 changed", WIDE, 60_000,
             f"{PRIMARY_ID}, {KEY_A}, KEY c (c)", 1_000,
             (Step("insert", 20), Step("update", 5))),
)  # fmt: skip
SECOND = (
    Workload("no key, 1k rows of 7 columns, single deletes", SHORT, 1_000, "", 600, _of("delete")),
    Workload("no key, 6k rows with names, updates of 25", NAMED, 6_000, "", 200, _of("update", 25)),
    Workload("no key, 50k lean rows, single updates", LEAN, 50_000, "", 60, _of("update")),
    Workload("no key, 1M rows of 7 columns, deletes of 1,000", SHORT, 1_000_000, "", 3,
             _of("delete", 1_000)),
    Workload("nullable unique, 30k rows of 7 columns, deletes of 100", SHORT, 30_000, UNIQUE_A, 150,
             _of("delete", 100)),
    Workload("nullable unique, 500k lean rows, single updates", LEAN, 500_000, UNIQUE_A, 4_000,
             _of("update")),
    Workload("key with 5 duplicates, 400k rows of 7 columns, deletes of 30", SHORT, 400_000, KEY_A,
             300, _of("delete", 30), 5, True),
    Workload("key with 150 duplicates, 60k lean rows, updates of 400", LEAN, 60_000, KEY_A, 20,
             _of("update", 400), 150, True),
    Workload("primary key, 800k rows of 7 columns, updates of 10,000", SHORT, 800_000, PRIMARY_ID,
             8, _of("update", 10_000)),
    Workload("primary key and an index, 20k rows with names, 10 statements each", NAMED, 20_000,
             f"{PRIMARY_ID}, {KEY_A}", 400, TENS),
)  # fmt: skip
THIRD = (
    Workload("no key, 1k rows of 5 columns, single updates", METER, 1_000, "", 8_000,
             _of("update")),
    Workload("no key, 15k rows with names, updates of 60", ACCOUNT, 15_000, "", 400,
             _of("update", 60)),
    Workload("no key, 120k rows of 8 columns, single deletes", LEDGER, 120_000, "", 90,
             _of("delete")),
    Workload("no key, 1M rows of 5 columns, updates of 10,000", METER, 1_000_000, "", 6,
             _of("update", 10_000)),
    Workload("nullable unique, 200k rows of 5 columns, one in and one out", VISIT, 200_000,
             UNIQUE_A, 15_000,
             (Step("insert"), Step("delete"))),
    Workload("nullable unique in no order, 300k rows of 26 columns, updates of 300", BROAD, 300_000,
             UNIQUE_A, 500,
             _of("update", 300), scattered=True),
    Workload("key with 8 duplicates, 700k rows of 8 columns, deletes of 40", LEDGER, 700_000, KEY_A,
             1_400, _of("delete", 40), 8, True),
    Workload("key with 60 duplicates, 50k rows of 5 columns, 5 statements each", METER, 50_000,
             KEY_A, 4_000,
             (Step("update", times=5),), 60, True),
    Workload("primary key, 1M rows of 5 columns, deletes of 8,000", METER, 1_000_000, PRIMARY_ID,
             60, _of("delete", 8_000)),
    Workload("primary key and two indexes, 60k rows with names, 10 statements each", ACCOUNT,
             60_000,
             f"{PRIMARY_ID}, {KEY_A}, KEY m (mail)", 8_000, TENS),
)  # fmt: skip
FOURTH = (
    Workload("no key, 1k rows of 5 columns, one in and one out", SENSOR, 1_000, "", 7_000,
             (Step("insert"), Step("delete"))),
    Workload("no key, 5k rows of 7 columns, updates of 200", PARCEL, 5_000, "", 600,
             _of("update", 200)),
    Workload("no key, 60k rows with names, single updates", LOGIN, 60_000, "", 200, _of("update")),
    Workload("no key, 1M rows of 5 columns, deletes of 4,000", SENSOR, 1_000_000, "", 6,
             _of("delete", 4_000)),
    Workload("nullable unique, 400k rows of 7 columns, single updates", PARCEL, 400_000, UNIQUE_A,
             20_000, _of("update")),
    Workload("nullable unique in no order, 150k rows of 14 columns, deletes of 80", SURVEY, 150_000,
             UNIQUE_A, 1_200,
             _of("delete", 80), scattered=True),
    Workload("key with 25 duplicates, 300k rows of 5 columns, updates of 100", SENSOR, 300_000,
             KEY_A, 400, _of("update", 100), 25, True),
    Workload("key with 300 duplicates, 90k rows of 7 columns, single updates", PARCEL, 90_000,
             KEY_A, 5_000, _of("update"), 300, True),
    Workload("primary key, 700k rows of 14 columns, updates of 10,000", SURVEY, 700_000, PRIMARY_ID,
             30, _of("update", 10_000)),
    Workload("primary key and an index, 30k rows with names, 3 statements of 5 rows", LOGIN, 30_000,
             f"{PRIMARY_ID}, {KEY_A}", 8_000,
             (Step("insert", 5), Step("update", 5), Step("delete", 5))),
)  # fmt: skip
FIFTH = (
    Workload("no key, 1k rows of 7 columns, updates of 2", TICKET, 1_000, "", 7_000,
             _of("update", 2)),
    Workload("no key, 25k rows with names, deletes of 20", CONTACT, 25_000, "", 300,
             _of("delete", 20)),
    Workload("no key, 200k rows of 20 columns, single updates", STOCK, 200_000, "", 40,
             _of("update")),
    Workload("no key, 1M rows of 7 columns, updates of 6,000", TICKET, 1_000_000, "", 6,
             _of("update", 6_000)),
    Workload("nullable unique, 250k rows of 7 columns, single deletes", PROBE, 250_000, UNIQUE_A,
             22_000, _of("delete")),
    Workload("nullable unique name in no order, 120k rows, updates of 150", CONTACT, 120_000,
             UNIQUE_A, 1_500,
             _of("update", 150), scattered=True),
    Workload("key with 15 duplicates, 500k rows of 20 columns, deletes of 25", STOCK, 500_000,
             KEY_A, 1_200, _of("delete", 25), 15, True),
    Workload("key with 100 duplicates, 70k rows of 7 columns, 3 statements each", PROBE, 70_000,
             KEY_A, 6_000,
             (Step("update", times=3),), 100, True),
    Workload("primary key, 900k rows with names, deletes of 10,000", CONTACT, 900_000, PRIMARY_ID,
             35, _of("delete", 10_000)),
    Workload("primary key and three indexes, 50k rows of 20 columns, 6 statements each", STOCK,
             50_000,
             f"{PRIMARY_ID}, {KEY_A}, KEY n (n0), KEY s (s1)", 7_000,
             (Step("insert", times=3), Step("update", times=2), Step("delete"))),
)  # fmt: skip
SETS = {
    "development": DEVELOPMENT,
    "first": FIRST,
    "second": SECOND,
    "third": THIRD,
    "fourth": FOURTH,
    "fifth": FIFTH,
}
