"""The loads of `page_reads.py`: sysbench's own (Debian's package) and some that are as common in
the field.

A load is a line of data: which tables it changes, and what runs on the source. `prepare` makes all
tables of all loads once.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from replication import Server

TABLES, ROWS = 4, 200_000
Transactions = Iterator[list[str]]


def sysbench(server: Server, script: str, command: str, *given: str) -> None:
    """A command of sysbench against a server, over its socket."""
    server.execute(
        "CREATE DATABASE IF NOT EXISTS sbtest",
        "CREATE USER IF NOT EXISTS bench@localhost IDENTIFIED BY 'bench'",
        "GRANT ALL ON *.* TO bench@localhost",
    )  # fmt: skip
    address = [f"--mysql-socket={server.socket}", "--mysql-user=bench", "--mysql-password=bench"]
    subprocess.run(
        ["sysbench", script, *address, *given, command], check=True, stdout=subprocess.DEVNULL
    )


def prepare(server: Server) -> None:
    """The tables of all loads."""
    sysbench(
        server,
        "oltp_write_only",
        "prepare",
        f"--tables={TABLES}",
        f"--table-size={ROWS}",
        "--threads=2",
    )
    server.execute("CREATE DATABASE field", "CREATE DATABASE trade")
    server.execute(*_NUMBERS, *_WAREHOUSES, *_SERIES, *_NAMED, database="field")
    for database, tables in server_tables(server).items():
        server.query(f"ANALYZE TABLE {', '.join(f'{database}.{table}' for table in tables)}")


def server_tables(server: Server) -> dict[str, list[str]]:
    """Database -> the tables of loads."""
    listed = server.query(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema IN "
        "('sbtest', 'trade', 'field') ORDER BY 1, 2"
    )
    found: dict[str, list[str]] = {}
    for database, table in listed:
        found.setdefault(database, []).append(table)
    return found


_NUMBERS = (
    "CREATE TABLE field.n (n INT NOT NULL PRIMARY KEY)",
    "INSERT INTO field.n VALUES (0)",
    *(f"INSERT INTO field.n SELECT n + {1 << power} FROM field.n" for power in range(19)),
)  # fmt: skip
_WAREHOUSES = (
    (
        "CREATE TABLE trade.stock (w INT NOT NULL, i INT NOT NULL, quantity INT NOT NULL, "
        "sold INT NOT NULL, d1 CHAR(24) NOT NULL, "
        "d2 CHAR(24) NOT NULL, d3 CHAR(24) NOT NULL, d4 CHAR(24) NOT NULL, data VARCHAR(50) "
        "NOT NULL, PRIMARY KEY (w, i))"
    ),
    (
        "INSERT INTO trade.stock SELECT n DIV 20000, n % 20000, 50, 0, 'a', 'b', 'c', 'd', "
        "REPEAT('s', 26 + n % 24) FROM field.n "
        "WHERE n < 200000"
    ),
    (
        "CREATE TABLE trade.customer (w INT NOT NULL, d INT NOT NULL, c INT NOT NULL, "
        "last VARCHAR(16) NOT NULL, balance DECIMAL(12,2) "
        "NOT NULL, payments INT NOT NULL, data VARCHAR(500) NOT NULL, PRIMARY KEY (w, d, c), "
        "KEY name (w, d, last))"
    ),
    (
        "INSERT INTO trade.customer SELECT n DIV 6000, n DIV 600 % 10, n % 600, CONCAT('name', "
        "n * 7919 % 300), 0, 0, "
        "REPEAT('c', 300 + n % 200) FROM field.n WHERE n < 60000"
    ),
    (
        "CREATE TABLE trade.district (w INT NOT NULL, d INT NOT NULL, taken DECIMAL(12,2) "
        "NOT NULL, next INT NOT NULL, PRIMARY KEY (w, d))"
    ),
    "INSERT INTO trade.district SELECT n DIV 10, n % 10, 0, 600 FROM field.n WHERE n < 100",
    (
        "CREATE TABLE trade.orders (w INT NOT NULL, d INT NOT NULL, o INT NOT NULL, "
        "c INT NOT NULL, carrier INT NULL, entered DATETIME "
        "NOT NULL, PRIMARY KEY (w, d, o), KEY customer (w, d, c, o))"
    ),
    (
        "INSERT INTO trade.orders SELECT n DIV 6000, n DIV 600 % 10, n % 600, n * 7919 % 600, "
        "NULL, NOW() FROM field.n WHERE n < 60000"
    ),
    (
        "CREATE TABLE trade.line (w INT NOT NULL, d INT NOT NULL, o INT NOT NULL, l INT NOT NULL, "
        "i INT NOT NULL, amount DECIMAL(6,2) "
        "NOT NULL, delivered DATETIME NULL, info CHAR(24) NOT NULL, PRIMARY KEY (w, d, o, l))"
    ),
    (
        "INSERT INTO trade.line SELECT n DIV 50000, n DIV 5000 % 10, n DIV 10 % 500, n % 10, "
        "n * 7919 % 20000, 1, NULL, 'i' FROM field.n "
        "WHERE n < 500000"
    ),
)
_SERIES = (
    (
        "CREATE TABLE field.series (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, "
        "device INT NOT NULL, at DATETIME(3) NOT NULL, "
        "value DOUBLE NOT NULL, note VARCHAR(120) NOT NULL, KEY device (device), KEY at (at))"
    ),
    (
        "INSERT INTO field.series SELECT n + 1, n * 48271 % 5003, '2025-01-01' + INTERVAL n "
        "SECOND, n / 7, REPEAT('n', 40 + n % 60) "
        "FROM field.n WHERE n < 400000"
    ),
)
_NAMED = (
    (
        "CREATE TABLE field.named (name CHAR(36) CHARACTER SET ascii NOT NULL PRIMARY KEY, "
        "owner INT NOT NULL, state INT NOT NULL, "
        "body VARCHAR(200) NOT NULL, KEY owner (owner))"
    ),
    (
        "INSERT INTO field.named SELECT INSERT(INSERT(LEFT(SHA2(n, 256), 32), 9, 0, '-'), 14, 0, "
        "'-'), n * 48271 % 30011, 0, "
        "REPEAT('b', 60 + n % 90) "
        "FROM field.n WHERE n < 300000 ORDER BY LEFT(SHA2(n, 256), 32)"
    ),
)


def trading(count: int) -> Transactions:
    """As TPC-C does: new orders, payments, deliveries over composite keys."""
    chance = random.Random("trading")
    following = {(w, d): 600 for w in range(10) for d in range(10)}
    delivered = {(w, d): 400 for w in range(10) for d in range(10)}
    for _ in range(count):
        w, d, kind = chance.randrange(10), chance.randrange(10), chance.random()
        customer = chance.randrange(600)
        if kind < 0.48:
            order, lines = following[w, d], chance.randint(5, 15)
            following[w, d] += 1
            yield [
                f"UPDATE trade.district SET next = next + 1 WHERE w = {w} AND d = {d}",
                f"INSERT INTO trade.orders VALUES ({w}, {d}, {order}, {customer}, NULL, NOW())",
                *(
                    statement
                    for line, item in enumerate(_items(chance, lines))
                    for statement in (
                        (
                            "UPDATE trade.stock SET quantity = quantity - 1, sold = sold + 1 "
                            f"WHERE w = {w} AND i = {item}"
                        ),
                        (
                            f"INSERT INTO trade.line VALUES ({w}, {d}, {order}, {line}, {item}, 2, "
                            "NULL, 'info')"
                        ),
                    )
                ),
            ]
        elif kind < 0.95:
            yield [
                f"UPDATE trade.district SET taken = taken + 5 WHERE w = {w} AND d = {d}",
                (
                    "UPDATE trade.customer SET balance = balance - 5, payments = payments + 1 "
                    f"WHERE w = {w} AND d = {d} AND c = {customer}"
                ),
            ]
        else:
            done = []
            for district in range(10):
                order = delivered[w, district]
                delivered[w, district] += order < following[w, district] - 1
                where = f"WHERE w = {w} AND d = {district} AND o = {order}"
                done += [
                    f"UPDATE trade.orders SET carrier = 1 {where}",
                    f"UPDATE trade.line SET delivered = NOW() {where}",
                ]
            yield done


def _items(chance: random.Random, count: int) -> list[int]:
    """Different items, in order, some more wanted than others (TPC-C's NURand)."""
    found: set[int] = set()
    while len(found) < count:
        found.add((chance.randrange(8192) | chance.randrange(20000)) % 20000)
    return sorted(found)


def series(count: int) -> Transactions:
    """Rows at the end in the order of time, old ones deleted."""
    chance = random.Random("series")
    oldest, newest = 1, 400_000
    for at in range(count):
        rows = ", ".join(
            (
                f"({newest + row + 1}, {chance.randrange(5003)}, '2025-01-01' + INTERVAL "
                f"{newest + row} SECOND, 1, REPEAT('m', 70))"
            )
            for row in range(20)
        )
        newest += 20
        yield [f"INSERT INTO field.series VALUES {rows}"]
        if at % 10 == 9:
            oldest += 200
            yield [f"DELETE FROM field.series WHERE id < {oldest} ORDER BY id LIMIT 200"]


def named(count: int) -> Transactions:
    """Rows by random names: new ones, changed ones, deleted ones."""
    chance = random.Random("named")
    for at in range(count):
        old = (
            f"name = INSERT(INSERT(LEFT(SHA2({chance.randrange(300_000)}, 256), 32), 9, 0, '-'), "
            "14, 0, '-')"
        )
        if at % 3 == 0:
            name = f"{chance.getrandbits(128):032x}"
            yield [
                (
                    f"INSERT INTO field.named VALUES ('{name[:8]}-{name[8:12]}-{name[12:]}', "
                    f"{chance.randrange(30011)}, 1, REPEAT('i', 100))"
                )
            ]
        elif at % 3 == 1:
            yield [f"UPDATE field.named SET state = state + 1 WHERE {old}"]
        else:
            yield [f"DELETE FROM field.named WHERE {old}"]


def zipfian(count: int) -> Transactions:
    """Updates of rows of which the first are changed most, at the exponent 0.9."""
    chance = random.Random("zipfian")
    weights = list(accumulate(1 / (rank + 1) ** 0.9 for rank in range(ROWS)))
    wanted = chance.choices(range(1, ROWS + 1), cum_weights=weights, k=count)
    for rank in wanted:  # a prime spreads the wanted ones over the table
        yield [
            (
                f"UPDATE sbtest.sbtest{rank % TABLES + 1} SET c = REPEAT('z', 100) "
                f"WHERE id = {rank * 48271 % ROWS + 1}"
            )
        ]


@dataclass(frozen=True)
class Load:
    """What runs on the source. `given` are sysbench's options, `transactions` a program of ours;
    `replica` changes its tables first."""

    script: str = ""
    count: int = 0
    given: tuple[str, ...] = ()
    transactions: Callable[[int], Transactions] | None = None
    replica: tuple[str, ...] = ()

    def run(self, source: Server) -> None:
        if self.transactions is None:
            tables = (
                ()
                if self.script == "bulk_insert"
                else (f"--tables={TABLES}", f"--table-size={ROWS}")
            )
            given = (*tables, "--threads=4", "--time=0", f"--events={self.count}", *self.given)
            if self.script == "bulk_insert":
                source.execute(*(f"DROP TABLE sbtest.sbtest{table + 1}" for table in range(TABLES)))
                sysbench(source, self.script, "prepare", *given)
            sysbench(source, self.script, "run", *given)
            return
        with source.connect(autocommit=False) as connection, connection.cursor() as cursor:
            for statements in self.transactions(self.count):
                for statement in statements:
                    cursor.execute(statement)
                connection.commit()


KEYLESS = tuple(
    f"ALTER TABLE sbtest.sbtest{at + 1} MODIFY id INT NOT NULL, DROP PRIMARY KEY"
    for at in range(TABLES)
)
LOADS = {
    "write_only special": Load("oltp_write_only", 8_000),
    "write_only uniform": Load("oltp_write_only", 8_000, ("--rand-type=uniform",)),
    "write_only pareto": Load("oltp_write_only", 8_000, ("--rand-type=pareto",)),
    "update_index uniform": Load("oltp_update_index", 20_000, ("--rand-type=uniform",)),
    "update_index special": Load("oltp_update_index", 20_000),
    "update_non_index uniform": Load("oltp_update_non_index", 20_000, ("--rand-type=uniform",)),
    "update_non_index pareto": Load("oltp_update_non_index", 20_000, ("--rand-type=pareto",)),
    "update_non_index zipfian": Load(count=20_000, transactions=zipfian),
    "insert uniform": Load("oltp_insert", 20_000, ("--rand-type=uniform",)),
    "insert special": Load("oltp_insert", 20_000),
    "delete uniform": Load("oltp_delete", 20_000, ("--rand-type=uniform",)),
    "bulk_insert": Load("bulk_insert", 400_000),
    "trading": Load(count=5_000, transactions=trading),
    "series": Load(count=3_000, transactions=series),
    "named": Load(count=12_000, transactions=named),
    "keyless update_non_index": Load(
        "oltp_update_non_index", 300, ("--rand-type=uniform",), replica=KEYLESS
    ),
}
