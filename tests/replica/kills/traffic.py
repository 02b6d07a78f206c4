"""Traffic of a source: each load is one step of a session that writes to a database of its own."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

SCHEMA = (
    "CREATE DATABASE {d}",
    "CREATE TABLE {d}.t (a INT PRIMARY KEY, b INT, c VARCHAR(60))",
    "CREATE TABLE {d}.n (a INT, b INT)",
)
DOMAINS = (1, 7)
"""Of MariaDB, beside domain 0."""
SCHEMA_OF_DOMAINS = tuple(
    f"CREATE TABLE {{d}}.{name}{domain} LIKE {{d}}.{name}" for domain in DOMAINS for name in "tn"
)
"""Which domain goes first is a matter of time, so a source must not write the same rows in two:
each has tables of its own."""
Load = Callable[[Any, str, int, random.Random], None]


def _plain(run: Any, d: str, n: int, rnd: random.Random, domain: int | str = "") -> None:
    run("BEGIN")
    run(f"INSERT INTO {d}.t{domain} VALUES ({n}, 0, 'x')")
    run(f"INSERT INTO {d}.n{domain} VALUES ({n}, 1)")
    run(
        f"UPDATE {d}.t{domain} SET b = b + 1, c = REPEAT('y', {rnd.randrange(50)}) WHERE a > "
        f"{n - rnd.randrange(1, 6)}"
    )
    run("COMMIT")


def _deletes(run: Any, d: str, n: int, _rnd: random.Random) -> None:
    run("BEGIN")
    run(f"INSERT INTO {d}.n VALUES ({n}, 7), ({n}, 7), ({n}, 8)")
    run(f"DELETE FROM {d}.n WHERE a = {n} AND b = 8")
    run(f"DELETE FROM {d}.t WHERE b > 3")
    run("COMMIT")


def _large(run: Any, d: str, n: int, _rnd: random.Random) -> None:
    run(f"INSERT INTO {d}.n VALUES " + ",".join(f"({n}, {b})" for b in range(1200)))


def _many_statements(run: Any, d: str, n: int, _rnd: random.Random) -> None:
    run("BEGIN")
    for b in range(40):
        run(f"INSERT INTO {d}.n VALUES ({n}, {b})")
    run("SAVEPOINT s")
    run(f"INSERT INTO {d}.n VALUES ({n}, 55)")
    run("ROLLBACK TO s")
    run("COMMIT")


def _ddl(run: Any, d: str, n: int, rnd: random.Random) -> None:
    run(f"CREATE TABLE {d}.x{n} (a INT PRIMARY KEY, b INT)")
    run(f"INSERT INTO {d}.x{n} VALUES (1, 1), (2, 2)")
    run(f"ALTER TABLE {d}.x{n} ADD COLUMN c INT NOT NULL DEFAULT 5")
    if rnd.random() < 0.6:
        run(f"DROP TABLE {d}.x{n}")


def _ctas(run: Any, d: str, n: int, rnd: random.Random) -> None:
    run(f"CREATE TABLE {d}.y{n} SELECT a, b FROM {d}.t ORDER BY a DESC LIMIT 5")
    if rnd.random() < 0.6:
        run(f"DROP TABLE {d}.y{n}")


def _truncate(run: Any, d: str, n: int, rnd: random.Random) -> None:
    if rnd.random() < 0.2:
        run(f"TRUNCATE TABLE {d}.n")
    else:
        _plain(run, d, n, rnd)


def _new_log(run: Any, d: str, n: int, rnd: random.Random) -> None:
    if rnd.random() < 0.1:
        run("FLUSH LOGS")
    _plain(run, d, n, rnd)


def _xa(run: Any, d: str, n: int, rnd: random.Random) -> None:
    run(f"XA START 'x{n}'")
    run(f"INSERT INTO {d}.t VALUES ({n}, 4, 'xa')")
    run(f"INSERT INTO {d}.n VALUES ({n}, 44)")
    run(f"XA END 'x{n}'")
    chance = rnd.random()
    if chance < 0.3:
        run(f"XA COMMIT 'x{n}' ONE PHASE")
    else:
        run(f"XA PREPARE 'x{n}'")
        run(f"XA {'COMMIT' if chance < 0.8 else 'ROLLBACK'} 'x{n}'")


def _held_xa(run: Any, d: str, n: int, rnd: random.Random) -> None:
    run(f"XA START 'h{n}'")
    run(f"INSERT INTO {d}.t VALUES ({n}, 4, 'xa')")
    run(f"INSERT INTO {d}.n VALUES ({n}, 44)")
    run(f"XA END 'h{n}'")
    run(f"XA PREPARE 'h{n}'")
    time.sleep(rnd.random() * 0.2)
    run(f"XA COMMIT 'h{n}'")


def _empty(run: Any, _d: str, n: int, _rnd: random.Random) -> None:
    """A transaction without content has a GTID all the same."""
    run(f"SET gtid_next = '{EMPTY_UUID}:{n + 1}'")
    run("BEGIN")
    run("COMMIT")
    run("SET gtid_next = AUTOMATIC")


def _across(run: Any, d: str, n: int, rnd: random.Random) -> None:
    run("BEGIN")
    run(f"INSERT INTO d1.n VALUES ({n}, 9)")
    run(f"INSERT INTO {d}.t VALUES ({n}, 9, 'across')")
    run("ROLLBACK" if rnd.random() < 0.2 else "COMMIT")


def _all_rows(run: Any, d: str, n: int, rnd: random.Random) -> None:
    if rnd.random() < 0.2:
        run(f"UPDATE {d}.t SET b = b + 1")
        run(f"UPDATE {d}.n SET b = b + 1 WHERE a % 3 = 0 ORDER BY a DESC LIMIT 40")
    else:
        _plain(run, d, n, rnd)


def _huge(run: Any, d: str, n: int, _rnd: random.Random) -> None:
    """Long enough that a kill comes inside of it, on either side."""
    run("BEGIN")
    for part in range(12):
        run(
            f"INSERT INTO {d}.n VALUES "
            + ",".join(f"({n}, {b})" for b in range(part * 1000, part * 1000 + 1000))
        )
    run("COMMIT")


def _renamed(run: Any, d: str, n: int, _rnd: random.Random) -> None:
    run(f"CREATE TABLE {d}.r{n} LIKE {d}.t")
    run(f"INSERT INTO {d}.r{n} SELECT a, 1, c FROM {d}.t ORDER BY a LIMIT 3")
    run(f"ALTER TABLE {d}.r{n} ADD INDEX (b)")
    run(f"RENAME TABLE {d}.r{n} TO {d}.s{n}")
    run(f"DROP TABLE IF EXISTS {d}.s{n - 1}, {d}.s{n + 1}")


def _domains(run: Any, d: str, n: int, rnd: random.Random) -> None:
    """Of MariaDB: each domain has a sequence and tables of its own."""
    domain = rnd.choice((0, *DOMAINS))
    run(f"SET SESSION gtid_domain_id = {domain}")
    _plain(run, d, n, rnd, domain or "")
    run("SET SESSION gtid_domain_id = 0")


EMPTY_UUID = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
LOADS: dict[str, Load] = {
    "plain": _plain,
    "deletes": _deletes,
    "large": _large,
    "many statements": _many_statements,
    "ddl": _ddl,
    "ctas": _ctas,
    "truncate": _truncate,
    "new log": _new_log,
    "xa": _xa,
    "held xa": _held_xa,
    "empty": _empty,
    "across": _across,
    "all rows": _all_rows,
    "huge": _huge,
    "renamed": _renamed,
    "domains": _domains,
}
