"""A log in which the order matters: counters, values that move between unique keys, rows without a
key, foreign keys, DDL in between."""

from __future__ import annotations

import random
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
from servers.server import Server

from applier.mysql.feed import Feed
from applier.options import parse_options

TABLES = (
    "CREATE TABLE w.counter (id INT PRIMARY KEY, n INT NOT NULL) ENGINE=InnoDB",
    "CREATE TABLE w.pair (id INT PRIMARY KEY, u INT UNIQUE) ENGINE=InnoDB",
    "CREATE TABLE w.bag (v INT, n INT) ENGINE=InnoDB",
    (
        "CREATE TABLE w.name (k VARCHAR(20) CHARACTER SET utf8 COLLATE utf8_general_ci PRIMARY "
        "KEY, n INT NOT NULL) ENGINE=InnoDB"
    ),
    "CREATE TABLE w.parent (id INT PRIMARY KEY, n INT) ENGINE=InnoDB",
    (
        "CREATE TABLE w.child (id INT AUTO_INCREMENT PRIMARY KEY, p INT, FOREIGN KEY (p) "
        "REFERENCES w.parent (id) ON DELETE CASCADE)"
    ),
)
COUNTERS, CLIENTS = 40, 4
NAMES = ("a", "A", "e", "\u00e9", "o", "\u00d6", "zz", "ZZ")
Rows = dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Workload:
    """A log and the rows that it leaves behind, from nothing."""

    log: Path
    rows: Rows
    transactions: int


def statements(chance: random.Random) -> list[str]:
    """One transaction. None of it leaves the same behind when it is carried out twice or not at
    all."""
    a, b = sorted(chance.sample(range(COUNTERS), 2))
    kind = chance.randrange(6)
    if kind <= 1:
        return [
            f"UPDATE w.counter SET n = n + 1 WHERE id = {a}",
            f"UPDATE w.counter SET n = n * 3 + 1 WHERE id = {b} AND n < 100000",
        ]
    if kind == 2:
        return [f"UPDATE IGNORE w.pair SET u = {chance.randrange(60)} WHERE id IN ({a}, {b})"]
    if kind == 3:
        return [
            f"INSERT INTO w.bag VALUES ({a % 4}, {a % 3}), ({a % 4}, {a % 3})",
            f"DELETE FROM w.bag WHERE v = {b % 4} LIMIT 1",
        ]
    if kind == 4:
        return [
            (
                f"INSERT INTO w.name VALUES ('{chance.choice(NAMES)}', 1) ON DUPLICATE KEY UPDATE "
                "n = n + 1"
            )
        ]
    change = f"INSERT INTO w.parent VALUES ({a}, 1) ON DUPLICATE KEY UPDATE n = n + 1"
    return [change, f"INSERT INTO w.child (p) VALUES ({a})", f"DELETE FROM w.parent WHERE id = {b}"]


def client(server: Server, seed: int, transactions: int) -> None:
    chance = random.Random(seed)
    connection = server.connect(charset="utf8")
    with connection.cursor() as cursor:
        for _ in range(transactions):
            try:
                cursor.execute("BEGIN")
                for sql in statements(chance):
                    cursor.execute(sql)
                cursor.execute("COMMIT")
            except pymysql.err.OperationalError:  # a deadlock
                cursor.execute("ROLLBACK")
    connection.close()


def make(server: Server, folder: Path, transactions: int) -> Workload:
    """Runs the workload on the server, with a DDL statement in each quarter of it."""
    server.execute("DROP DATABASE IF EXISTS w", "FLUSH LOGS")
    server.execute("CREATE DATABASE w", *TABLES)
    server.execute(
        "INSERT INTO w.counter VALUES " + ",".join(f"({number}, 0)" for number in range(COUNTERS)),
        "INSERT INTO w.pair VALUES "
        + ",".join(f"({number}, {number})" for number in range(COUNTERS)),
    )
    for quarter in range(4):
        threads = [
            threading.Thread(
                target=client,
                args=(server, quarter * CLIENTS + number, transactions // CLIENTS // 4),
            )
            for number in range(CLIENTS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.execute(
            f"ALTER TABLE w.counter ADD COLUMN c{quarter} INT NOT NULL DEFAULT {quarter}"
        )
        server.execute(f"CREATE TABLE w.copy{quarter} (id INT PRIMARY KEY, n INT) ENGINE=InnoDB")
        server.execute(f"INSERT INTO w.copy{quarter} SELECT id, n FROM w.counter")
        server.execute(f"RENAME TABLE w.copy{quarter} TO w.kept{quarter}")
    log = folder / f"{server.installed.recipe.name}-bin.000001"
    shutil.copyfile(server.binlog_files()[-1], log)
    return Workload(log, rows(server), sum(1 for _ in Feed([str(log)], parse_options())))


def rows(server: Server) -> Rows:
    """All rows of all tables, sorted."""
    names = [row[0] for row in server.query("SHOW TABLES FROM w")]
    return {name: sorted(server.query(f"SELECT * FROM w.{name}"), key=repr) for name in names}
