"""Logs of small transactions whose order matters, made byte by byte at random, and what is known of
each transaction.

Tables of database w: `t` (id, n), `pair` (id, u unique), `bag` (v, n; without a key), and
`journal`, where each transaction writes its number.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.binlog.build import (
    MAGIC,
    UUID_TEXT,
    event,
    format_description,
    gtid,
    query,
    rows,
    table_map,
    write,
    xid,
)
from tests.mysql.simulated_sessions import Values

Events = list[tuple[int, bytes]]
NUMBERS = {"t": 1, "pair": 2, "bag": 3, "journal": 4}
COLUMNS = {"t": ("id", "n"), "pair": ("id", "u"), "bag": ("v", "n"), "journal": ("id", "n")}
UNIQUE: dict[str, tuple[int, ...]] = {"t": (0,), "pair": (0, 1), "bag": (), "journal": (0,)}
IDS = 6
CLOCKS = ("write set", "commit order", "none")


def create(name: str) -> str:
    """As SHOW CREATE TABLE says it."""
    first, second = COLUMNS[name]
    keys = ("" if not UNIQUE[name] else f",\n  PRIMARY KEY (`{first}`)") + (
        f",\n  UNIQUE KEY `u` (`{second}`)" if name == "pair" else ""
    )
    return (
        f"CREATE TABLE `{name}` (\n  `{first}` int NOT NULL,\n  `{second}` int NOT NULL{keys}\n"
        ") ENGINE=InnoDB"
    )


@dataclass(frozen=True)
class Logged:
    """A transaction: where it stands, and what it is. `applies` is the number that it leaves in the
    journal, None for none.

    The rows of an XA transaction are carried out by its XA COMMIT, which has another number than
    they.
    """

    number: int
    file: str
    start: int
    end: int
    is_ddl: bool
    left_out: bool
    applies: int | None

    @property
    def gtid(self) -> str:
        return f"{UUID_TEXT}:{self.number}"


@dataclass
class SimulatedLog:
    """`before` and `after` are the rows of the tables at its ends."""

    files: list[Path] = field(default_factory=list)
    transactions: list[Logged] = field(default_factory=list)
    before: dict[str, list[Values]] = field(default_factory=dict)
    after: dict[str, list[Values]] = field(default_factory=dict)


class Source:
    """The server that writes the log."""

    def __init__(self, chance: Random, clock: str) -> None:
        self.chance = chance
        self.clock = clock
        self.tables: dict[str, list[Values]] = {
            "t": [(number, 0) for number in range(IDS)],
            "pair": [(number, number) for number in range(IDS)],
            "bag": [(0, 0), (0, 0), (1, 0)],
            "journal": [],
        }
        self.made: list[str] = []
        self.prepared: list[int] = []
        """Numbers of XA transactions."""
        self.applies: int | None = None
        """What the last transaction wrote into the journal."""
        self.touched: set[object] = set()
        self._last: dict[object, int] = {}
        self._barrier = 0

    # changes, each as the events of one statement

    def change(self, name: str, before: Values | None, after: Values | None) -> Events:
        table = self.tables[name]
        images = b""
        for row in (before, after):
            if row is not None:
                images += b"\0" + struct.pack("<2i", *row)
                self.touched |= {(name, place, row[place]) for place in UNIQUE[name]} or {name}
        if before is not None:
            table.remove(before)
        if after is not None:
            table.append(after)
        kind = 30 if before is None else 32 if after is None else 31
        return [
            table_map(NUMBERS[name], b"w", name.encode(), b"\3\3"),
            rows(kind, images, NUMBERS[name], 2),
        ]

    def at_random(self) -> Events:
        """One statement of rows."""
        chance = self.chance
        name = chance.choice(("t", "t", "pair", "bag"))
        if name == "bag":
            if chance.random() < 0.5 or not self.tables["bag"]:
                return self.change("bag", None, (chance.randrange(3), chance.randrange(2)))
            return self.change("bag", chance.choice(self.tables["bag"]), None)
        key = chance.randrange(IDS)
        found = next((row for row in self.tables[name] if row[0] == key), None)
        value = chance.randrange(1000) if name == "t" else chance.randrange(2 * IDS)
        if name == "pair" and any(row[1] == value for row in self.tables[name] if row is not found):
            return self.change("t", *self._count_up(key))
        if found is None:
            return self.change(name, None, (key, value))
        return self.change(name, found, None if chance.random() < 0.3 else (key, value))

    def _count_up(self, key: int) -> tuple[Values | None, Values]:
        found = next((row for row in self.tables["t"] if row[0] == key), None)
        return found, (key, 0 if found is None else found[1] + 1)

    # transactions

    def xa(self, number: int) -> Events:
        """One half of an XA transaction, which inserts a row that nobody else knows."""
        begin = not self.prepared or self.chance.random() < 0.5
        xid_number = (
            number if begin else self.prepared.pop(self.chance.randrange(len(self.prepared)))
        )
        name = f"X'{xid_number:04x}',X'',1".encode()
        row = (100 + xid_number, 0)
        self.touched |= {("t", 0, row[0]), ("xa", xid_number)}
        if begin:
            self.prepared.append(number)
            self.applies = None
            rows_events = [*self.change("t", None, row), *self.change("journal", None, (number, 0))]
            self.tables["t"].remove(row)
            self.tables["journal"].remove((number, 0))
            prepare = struct.pack("<BIII2s", 0, 1, 2, 0, number.to_bytes(2, "big"))
            return [
                query(b"XA START " + name, b"w"),
                *rows_events,
                query(b"XA END " + name, b"w"),
                (38, prepare),
            ]
        verb = self.chance.choice((b"COMMIT ", b"COMMIT ", b"ROLLBACK "))
        if verb == b"COMMIT ":
            self.tables["t"].append(row)
            self.tables["journal"].append((xid_number, 0))
        self.applies = xid_number if verb == b"COMMIT " else None
        return [query(b"XA " + verb + name, b"w")]

    def rows_transaction(self, number: int) -> Events:
        statements = [self.at_random() for _ in range(self.chance.choice((1, 1, 2, 3)))]
        statements.insert(
            self.chance.randrange(len(statements) + 1), self.change("journal", None, (number, 0))
        )
        return [
            query(b"BEGIN", b"w"),
            *(one for statement in statements for one in statement),
            xid(number),
        ]

    def journal_only(self, number: int) -> Events:
        return [query(b"BEGIN", b"w"), *self.change("journal", None, (number, 0)), xid(number)]

    def statements(self, number: int) -> Events:
        """Not rows, but what must not be carried out twice."""
        key = self.chance.randrange(IDS)
        self.touched.add(("t", 0, key))
        self.change("journal", None, (number, 0))
        self.tables["t"] = [(row[0], row[1] + (row[0] == key)) for row in self.tables["t"]]
        texts = (
            f"INSERT INTO w.journal VALUES ({number}, 0)",
            f"UPDATE w.t SET n = n + 1 WHERE id = {key}",
        )
        return [query(b"BEGIN", b"w"), *(query(text.encode(), b"w") for text in texts), xid(number)]

    def ddl(self, number: int) -> Events:
        kind = self.chance.randrange(4)
        if kind == 0 and self.made:
            name = self.made.pop(self.chance.randrange(len(self.made)))
            del self.tables[name]
            sql = f"DROP TABLE w.{name}"
        elif kind == 1:
            sql = f"ALTER TABLE w.t COMMENT 'of {number}'"
        elif kind == 2:
            self.tables["bag"] = []
            sql = "TRUNCATE TABLE w.bag"
        else:
            self.made.append(f"made{number}")
            self.tables[f"made{number}"] = []
            sql = f"CREATE TABLE w.made{number} (id INT NOT NULL PRIMARY KEY)"
        self.touched.add("ddl")
        return [query(f"{sql} /* {number} */".encode(), b"w")]

    def last_committed(self, sequence: int) -> int:
        """By what it touches; `commit order` says less than could be."""
        touched, self.touched = self.touched, set()
        last = max((self._last.get(key, 0) for key in touched), default=0)
        if "ddl" in touched:
            last = sequence - 1
            self._barrier = sequence
        else:
            last = max(last, self._barrier)
        self._last.update(dict.fromkeys(touched, sequence))
        return last if self.clock == "write set" else self.chance.randrange(last, sequence)

    def new_file(self) -> None:
        self._last.clear()
        self._barrier = 0


def make_log(
    chance: Random, folder: Path, transactions: int, *, leave_out: bool = False
) -> SimulatedLog:
    """A log of one or two files. `leave_out`: some transactions are such that others do without
    them."""
    clock = chance.choice(CLOCKS)
    source, log = Source(chance, clock), SimulatedLog()
    log.before = {name: list(table) for name, table in source.tables.items()}
    cut = (
        chance.randrange(1, transactions)
        if transactions > 1 and chance.random() < 0.4
        else transactions
    )
    kinds = [source.rows_transaction] * 8 + [source.statements, source.ddl, source.xa]
    number = 0
    for at, count in enumerate(filter(None, (cut, transactions - cut)), 1):
        name = f"binlog.{at:06}"
        content = MAGIC + format_description()
        source.new_file()
        for sequence in range(1, count + 1):
            number += 1
            left_out = leave_out and chance.random() < 0.15
            kind = source.journal_only if left_out else chance.choice(kinds)
            source.applies = None if left_out else number
            events = kind(number)
            if left_out:
                source.tables["journal"].remove((number, 0))
            last = source.last_committed(sequence)
            head = (
                gtid(number, last=last, sequence=sequence)
                if clock != "none"
                else gtid(number, last=0, sequence=0)
            )
            start = len(content)
            content = _written(content, [head, *events])
            log.transactions.append(
                Logged(
                    number, name, start, len(content), kind == source.ddl, left_out, source.applies
                )
            )
        if at == 1 and cut < transactions:
            content = _written(content, [(4, struct.pack("<Q", 4) + b"binlog.000002")])
        log.files.append(write(folder, content, name))
    log.after = source.tables
    return log


def log_of(
    folder: Path, *transactions: Events, clock: Iterable[tuple[int, int]] | None = None
) -> SimulatedLog:
    """These and no others; `clock` are their last_committed and sequence_number: all independent
    unless it is given."""
    log, content = SimulatedLog(), MAGIC + format_description()
    for number, (events, (last, sequence)) in enumerate(
        zip(transactions, clock or ((0, at) for at in range(1, 1000)), strict=False), 1
    ):
        start = len(content)
        content = _written(content, [gtid(number, last=last, sequence=sequence), *events])
        log.transactions.append(
            Logged(
                number,
                "binlog.000001",
                start,
                len(content),
                events[0][1].endswith(b"*/"),
                False,
                number,
            )
        )
    log.files.append(write(folder, content, "binlog.000001"))
    return log


def _written(content: bytes, events: Iterable[tuple[int, bytes]]) -> bytes:
    for kind, body in events:
        content += event(kind, body, at=len(content))
    return content
