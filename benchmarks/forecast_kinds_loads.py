"""The loads of `forecast_kinds.py`: schemas of many kinds, each with the changes that are usual for
it.

A load is a row of LOADS. `{n}` stands for 0, 1, 2, … in the statements that fill a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

Transactions = Iterator[list[str]]
CLIENTS = 8
DIGITS = "SELECT 0 AS i" + "".join(f" UNION ALL SELECT {digit}" for digit in range(1, 10))
_PLACES = "abcde"
NUMBERS = (
    "(SELECT " + " + ".join(f"{place}.i * {10**at}" for at, place in enumerate(_PLACES)) + " AS n"
    " FROM " + ", ".join(f"({DIGITS}) {place}" for place in _PLACES) + ") numbers"
)
"""0 to 99,999."""


def text(value: object) -> str:
    """32 hexadecimal digits of a value; a 9.7 has no MD5."""
    return f"LEFT(SHA2({value}, 256), 32)"


def filled(table: str, values: str, rows: int) -> str:
    """The statement that fills a table with so many rows."""
    return f"INSERT INTO {table} SELECT {values.format(n='n')} FROM {NUMBERS} WHERE n < {rows}"


@dataclass(frozen=True)
class Kind:
    """`tables`: statements that make and fill them; {json} is the server's type. `run`: what a
    client does, by its number. `session`: settings of each client; `servers` that know them."""

    tables: Sequence[str]
    run: Callable[[int, Random], Transactions]
    clients: int = CLIENTS
    session: Sequence[str] = ()
    servers: Sequence[str] = ("9.7", "5.7", "mariadb")


def uuids(client: int, chance: Random) -> Transactions:
    for at in range(500):
        filler, new = chance.randrange(900), text(f"'{client}-{at}'")
        yield [
            (
                f"INSERT INTO t VALUES ({new}, {chance.randrange(1000)}, "
                f"JSON_OBJECT('a', {at}, 'b', REPEAT('y', {filler})), NOW())"
            )
        ]
        row = text(chance.randrange(30_000))
        yield [f"UPDATE t SET doc = JSON_SET(doc, '$.a', {at}) WHERE id = {row}"]
        yield [f"DELETE FROM t WHERE id = {text(chance.randrange(30_000))}"]


UUIDS = (
    (
        "CREATE TABLE t (id CHAR(32) NOT NULL PRIMARY KEY, user INT, doc {json}, at DATETIME, "
        "KEY (user), KEY (at))"
    ),
    filled(
        "t",
        f"{text('{n}')}, {{n}} % 1000, "
        "JSON_OBJECT('a', {n}, 'b', REPEAT('x', 500 + {n} % 700)), "
        "'2026-01-01' + INTERVAL {n} SECOND",
        30_000,
    ),
)


def family(client: int, chance: Random) -> Transactions:
    own = list(range(client, 10_000, CLIENTS))
    chance.shuffle(own)
    for at in range(300):
        new = 1_000_000 + client * 10_000 + at
        yield [f"DELETE FROM parent WHERE id = {own[at]}"]
        yield [
            f"INSERT INTO parent VALUES ({new}, 'new')",
            f"INSERT INTO child VALUES ({new}, {new}, 1), ({new + 500_000}, {new}, 2)",
        ]
        yield [f"UPDATE child SET q = q + 1 WHERE id = {chance.randrange(50_000)}"]
        first = chance.randrange(9_900)
        yield [f"UPDATE parent SET name = 'x{at}' WHERE id BETWEEN {first} AND {first + 20}"]


FAMILY = (
    "CREATE TABLE parent (id INT PRIMARY KEY, name VARCHAR(20))",
    *(
        f"CREATE TABLE {table} (id INT PRIMARY KEY, p INT NOT NULL, q INT, "
        "FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)"
        for table in ("child", "note", "visit")
    ),
    filled("parent", "{n}, CONCAT('p', {n})", 10_000),
    filled("child", "{n}, {n} DIV 5, {n}", 50_000),
)


def tenants(_client: int, chance: Random) -> Transactions:
    for at in range(800):
        first, second, third = (chance.randrange(TENANTS) for _ in range(3))
        yield [
            f"INSERT INTO t{first} (a, b) VALUES ({at}, 'x{at}')",
            f"UPDATE t{second} SET a = a + 1 WHERE id = 1",
            f"INSERT INTO t{third} (a, b) VALUES ({at}, 'x{at}')",
        ]


TENANTS = 300
TENANT_TABLES = tuple(
    statement
    for number in range(TENANTS)
    for statement in (
        f"CREATE TABLE t{number} (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(9), KEY (a))",
        f"INSERT INTO t{number} VALUES (1, 1, 'first')",
    )
)


def partitions(client: int, chance: Random) -> Transactions:
    for at in range(800):
        row = chance.randrange(60_000)
        yield [f"UPDATE t SET v = 'u{row}-{at}' WHERE id = {row}"]
        yield [f"INSERT INTO t VALUES ({1_000_000 + client * 10_000 + at}, {at}, 'new{at}')"]


PARTITIONS = (
    (
        "CREATE TABLE t (id INT NOT NULL, at INT NOT NULL, v VARCHAR(60), PRIMARY KEY (id, at), "
        "KEY (v)) PARTITION BY HASH (id) PARTITIONS 16"
    ),
    filled("t", "{n}, {n}, CONCAT('v', {n})", 60_000),
)


def indexes(_client: int, chance: Random) -> Transactions:
    def numbers() -> str:
        return ", ".join(str(chance.randrange(60_000)) for _ in range(4))

    for _ in range(500):
        words = ", ".join(text(chance.random()) for _ in range(2))
        yield [f"INSERT INTO t (a, b, c, d, e, f, g) VALUES ({numbers()}, {words}, NOW())"]
        row = chance.randrange(60_000) + 1
        yield [
            (
                f"UPDATE t SET a = {chance.randrange(60_000)}, e = {text(chance.random())} "
                f"WHERE id = {row}"
            )
        ]
        yield [f"DELETE FROM t WHERE id = {chance.randrange(60_000) + 1}"]


INDEXES = (
    (
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b INT, c INT, d INT, "
        "e VARCHAR(40), f VARCHAR(40), g DATETIME, KEY (a), KEY (b), KEY (c), KEY (d), KEY (e), "
        "KEY (f), KEY (g), "
        "KEY (a, b, c))"
    ),
    filled(
        "t",
        "{n} + 1, {n} * 7919 % 60000, {n} * 6007 % 60000, {n} * 31 % 60000, {n} % 100, "
        f"{text('{n}')}, {text('{n} * 3')}, '2026-01-01' + INTERVAL {{n}} MINUTE",
        60_000,
    ),
)


def bulk(_client: int, _chance: Random) -> Transactions:
    yield ["INSERT INTO u SELECT * FROM t WHERE id < 50000"]
    yield ["UPDATE t SET b = CONCAT('c', SUBSTRING(b, 2)) WHERE id BETWEEN 20000 AND 60000"]
    yield ["UPDATE t SET a = a + 1 WHERE id < 30000"]
    yield ["DELETE FROM u WHERE a < 200"]
    yield ["DELETE FROM t WHERE id > 70000"]
    for at in range(20):
        yield [f"UPDATE u SET at = NOW(), b = 'zz' WHERE a = {200 + at}"]


BULK = (
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(80), at DATETIME, KEY (a))",
    "CREATE TABLE u LIKE t",
    filled("t", "{n}, {n} % 500, REPEAT('b', {n} % 80), NOW()", 100_000),
)


def blobs(client: int, chance: Random) -> Transactions:
    for at in range(240):
        length, row = 1_500 + chance.randrange(3_000), chance.randrange(3_000)
        yield [f"UPDATE t SET data = REPEAT('{at % 10}bcdefgh', {length}) WHERE id = {row}"]
        yield [f"INSERT INTO t VALUES ({10_000 + client * 1_000 + at}, 'x', REPEAT('q', 20000))"]
        yield [f"UPDATE t SET name = 'other{at}' WHERE id = {chance.randrange(3_000)}"]


BLOBS = (
    "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(40), data LONGBLOB)",
    filled("t", "{n}, CONCAT('n', {n}), REPEAT('abcdefgh', 1500 + {n} % 3000)", 3_000),
)


def generated(_client: int, chance: Random) -> Transactions:
    for _ in range(1_200):
        doc = f"CONCAT('doc-', {text(chance.random())}, REPEAT('y', {chance.randrange(100)}))"
        yield [f"UPDATE t SET doc = {doc} WHERE id = {chance.randrange(40_000)}"]


GENERATED = (
    (
        "CREATE TABLE t (id INT PRIMARY KEY, doc VARCHAR(200), "
        "v VARCHAR(20) AS (SUBSTRING(doc, 5, 10)) VIRTUAL, s INT AS (LENGTH(doc)) STORED, "
        "KEY (v), KEY (s))"
    ),
    filled(
        "t (id, doc)", f"{{n}}, CONCAT('doc-', {text('{n}')}, REPEAT('z', {{n}} % 100))", 40_000
    ),
)


def upserts(_client: int, chance: Random) -> Transactions:
    for at in range(1_500):
        page = int(chance.paretovariate(0.7)) % 3_000
        yield [
            (
                f"INSERT INTO t VALUES ('/page/{page}', '2026-01-0{1 + at // 300}', 1) "
                "ON DUPLICATE KEY UPDATE hits = hits + 1"
            )
        ]


def replaces(_client: int, chance: Random) -> Transactions:
    for at in range(1_500):
        page, day = chance.randrange(2_000), 1 + at // 300
        yield [f"REPLACE INTO t VALUES ('/page/{page}', '2026-01-0{day}', {at})"]


PAGES = (
    (
        "CREATE TABLE t (page VARCHAR(100) NOT NULL, day DATE NOT NULL, hits INT NOT NULL, "
        "PRIMARY KEY (page, day))"
    ),
)


def hot_rows(client: int, chance: Random) -> Transactions:
    for _ in range(1_000):
        yield [
            f"UPDATE t SET n = n + 1 WHERE id = {chance.choice([1, 1, 1, 2, 3])}",
            f"INSERT INTO l (t, at) VALUES ({client}, NOW())",
        ]


HOT_ROWS = (
    "CREATE TABLE t (id INT PRIMARY KEY, n BIGINT)",
    "CREATE TABLE l (id INT AUTO_INCREMENT PRIMARY KEY, t INT, at TIMESTAMP)",
    "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)",
)


def long_transactions(client: int, chance: Random) -> Transactions:
    for _ in range(12):
        rows = (client * 20_000 + chance.randrange(20_000) for _ in range(1_000))
        yield [f"UPDATE t SET b = {text(chance.random())} WHERE id = {row}" for row in rows]


LONG = (
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(80), KEY (a))",
    filled("t", f"{{n}}, {{n}} % 5000, {text('{n}')}", 80_000),
)


def collations(client: int, chance: Random) -> Transactions:
    for at in range(900):
        city, row = chance.randrange(300), chance.randrange(40_000)
        yield [f"UPDATE t SET city = 'Città {city}' WHERE email = 'üser.{row}@example.org'"]
        new = f"'new.{client}.{at}@example.org'"
        yield [f"INSERT INTO t VALUES ({new}, 'N {chance.random()}', 'Città 1')"]


COLLATIONS = (
    (
        "CREATE TABLE t (email VARCHAR(120) NOT NULL PRIMARY KEY, name VARCHAR(200), "
        "city VARCHAR(100), KEY (name(100)), KEY (city)) DEFAULT CHARSET=utf8mb4"
    ),
    filled(
        "t",
        f"CONCAT('Üser.', {{n}}, '@example.org'), CONCAT('Näme ', {text('{n}')}), "
        "CONCAT('Città ', {n} % 300)",
        40_000,
    ),
)


def queue(client: int, chance: Random) -> Transactions:
    for at in range(600):
        job = at * CLIENTS + client
        yield [f"INSERT INTO t (state, payload) VALUES (0, REPEAT('p', {chance.randrange(1_500)}))"]
        yield [f"UPDATE t SET state = 1 WHERE id = {job + 1}"]
        yield [f"DELETE FROM t WHERE id = {job - 400}"]


QUEUE = (
    (
        "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, state TINYINT, payload TEXT, "
        "KEY (state))"
    ),
)


def wide(_client: int, chance: Random) -> Transactions:
    for at in range(900):
        row = chance.randrange(10_000)
        yield [f"UPDATE t SET n3 = n3 + 1, c7 = 'changed{at}' WHERE id = {row}"]


WIDE = (
    "CREATE TABLE t (id INT PRIMARY KEY, "
    + ", ".join(f"c{at} VARCHAR(30), n{at} INT, d{at} DATETIME" for at in range(40))
    + ")",
    filled(
        "t",
        "{n}, "
        + ", ".join(
            f"CONCAT('c{at}-', {{n}}), {{n}} * {at + 1}, '2026-01-01' + INTERVAL {{n}} SECOND"
            for at in range(40)
        ),
        10_000,
    ),
)


def no_unique_key(client: int, chance: Random) -> Transactions:
    for _ in range(700):
        value = client * 250 + chance.randrange(250)
        yield [f"UPDATE t SET b = {text(chance.random())} WHERE a = {value} LIMIT 1"]


NO_UNIQUE_KEY = (
    "CREATE TABLE t (a INT, b VARCHAR(40), c DATETIME, KEY (a))",
    filled("t", f"{{n}} % 2000, {text('{n}')}, NOW()", 20_000),
)


def prose(words: int, chance: Random) -> str:
    """A text with words as often as in one that a person wrote: the n-th one in 1 of n."""
    return " ".join(f"word{int(VOCABULARY ** chance.random()):x}" for _ in range(words))


def articles(client: int, chance: Random) -> Transactions:
    for at in range(120):
        new, old = 10_000 + client * 1_000 + at, chance.randrange(2_000)
        yield [f"INSERT INTO t VALUES ({new}, 0, 'a title', '{prose(300, chance)}')"]
        yield [f"UPDATE t SET seen = seen + 1 WHERE id = {old}"]
        yield [f"UPDATE t SET body = '{prose(300, chance)}' WHERE id = {old}"]


VOCABULARY = 50_000
ARTICLES = (
    (
        "CREATE TABLE t (id INT PRIMARY KEY, seen INT, title VARCHAR(80), body TEXT, "
        "FULLTEXT (title, body))"
    ),
    filled("t", "{n}, 0, 'a title', 'some words of an article'", 2_000),
)

LOADS = {
    "uuids": Kind(UUIDS, uuids),
    "uuids, minimal images": Kind(
        UUIDS, uuids, session=("SET SESSION binlog_row_image = MINIMAL",)
    ),
    "uuids, compressed": Kind(
        UUIDS, uuids, session=("SET SESSION binlog_transaction_compression = ON",), servers=("9.7",)
    ),
    "foreign keys": Kind(FAMILY, family),
    "tenants": Kind(TENANT_TABLES, tenants),
    "partitions": Kind(PARTITIONS, partitions),
    "indexes": Kind(INDEXES, indexes),
    "bulk": Kind(BULK, bulk, clients=1),
    "blobs": Kind(BLOBS, blobs),
    "generated columns": Kind(GENERATED, generated),
    "upserts": Kind(PAGES, upserts),
    "replaces": Kind(PAGES, replaces),
    "hot rows": Kind(HOT_ROWS, hot_rows),
    "long transactions": Kind(LONG, long_transactions, clients=4),
    "collations": Kind(COLLATIONS, collations),
    "queue": Kind(QUEUE, queue),
    "wide rows": Kind(WIDE, wide),
    "no unique key": Kind(NO_UNIQUE_KEY, no_unique_key),
    "articles": Kind(ARTICLES, articles),
}
