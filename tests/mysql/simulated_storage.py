"""A few tables of integers in sessions with row locks, rollback and commit, and the statements that
a replay sends to them.

A statement is carried out at once or not at all: one that needs a lock which another session holds
says so (`Waits`) and leaves nothing behind. Who waits, and for how long, is the simulated server's
to know.
"""

from __future__ import annotations

import re
import struct
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Never

from tests.mysql.simulated_sessions import NUMBERED, Found, Refused, Session, Table, Values, Waits


class Storage:
    """What all sessions see. `on_commit` is called behind each commit that changed something."""

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        self.sessions: list[Session] = []
        self.locks: dict[object, Session] = {}
        self.position: tuple[str, ...] | None = None
        """file, offset, gtids, transactions, state."""
        self.done: dict[int, tuple[str, str, str]] = {}
        self.workers: set[str] = set()
        """Those with a row."""
        self.applied: Counter[int] = Counter()
        self.gtids: set[str] = set()
        self.packet_bytes = 1_000_000
        self.on_commit: Callable[[], None] = lambda: None
        self._last_number = 0
        self._statements = [(re.compile(pattern, re.DOTALL), run) for pattern, run in self._rules()]

    def add_table(
        self, name: str, create: str, unique: tuple[int, ...] = (), rows: list[Values] | None = None
    ) -> None:
        self._last_number += 1
        self.tables[name] = Table(create, self._last_number, unique, list(rows or ()))

    # transactions

    def _undo(self, session: Session, mark: int) -> None:
        while len(session.undo) > mark:
            session.undo.pop()()

    def _roll_back(self, session: Session) -> None:
        self._undo(session, 0)
        session.writes.clear()
        session.gtid = ""
        self._over(session)

    def _commit(self, session: Session) -> None:
        changed = bool(session.undo or session.writes)
        for write in session.writes:
            write()
        self.applied.update(session.applied)
        if session.gtid and (session.open or changed):
            assert session.gtid not in self.gtids, "a GTID is used twice"
            self.gtids.add(session.gtid)
            session.gtid = ""
        session.undo.clear()
        session.writes.clear()
        self._over(session)
        if changed:
            self.on_commit()

    def _over(self, session: Session) -> None:
        session.applied.clear()
        session.open, session.position = False, None
        self.locks = {key: holder for key, holder in self.locks.items() if holder is not session}

    def _lock(self, session: Session, *keys: object) -> None:
        for key in keys:
            if self.locks.setdefault(key, session) is not session:
                raise Waits(key)

    # statements

    def _carry_out(self, session: Session, sql: bytes) -> tuple[int, Found | None]:
        text = sql.decode()
        for pattern, run in self._statements:
            found = pattern.match(text.replace("_latin1'", "'"))
            if found is not None:
                answer = run(session, *found.groups())
                return (
                    answer
                    if isinstance(answer, tuple)
                    else (0, answer)
                    if isinstance(answer, list)
                    else (answer or 0, None)
                )
        raise AssertionError(f"a statement that the simulated server does not know: {text}")

    def _rules(self) -> list[tuple[str, Callable[..., Any]]]:
        """Statement -> what it does. Gives rows matched, or a result."""
        return [
            (r"BINLOG '(.*)'", self._binlog),
            (r"UPDATE `binlag`.`slave_relay_log_info` SET `Number_of_workers`=", lambda session: 1),
            (r"UPDATE `binlag`.`slave_worker_info` .* AND `Id`=(\d+)", self._set_worker),
            (r"INSERT INTO `binlag`.`slave_worker_info` .* VALUES \((\d+),", self._add_worker),
            (r"DELETE FROM `binlag`.`slave_worker_info`", self._delete_workers),
            (r"DELETE FROM `binlag`.`slave_master_info`", lambda session: 0),
            (r"SELECT .* FROM `binlag`.`slave_worker_info`", self._get_workers),
            (r"SELECT .* FROM `binlag`.`slave_master_info`", lambda session: []),
            (r"CREATE TABLE IF NOT EXISTS binlag.slave_(?:worker|master)_info", lambda session: 0),
            (r"UPDATE `binlag`.`slave_relay_log_info` SET (.*) WHERE", self._set_position),
            (r"INSERT INTO `binlag`.`slave_relay_log_info` \((.*?)\) VALUES \((.*)\)",
             self._first_position),
            (r"SELECT `Relay_log_name`.* FROM `binlag`.`slave_relay_log_info`", self._get_position),
            (r"SELECT `file`, `offset`.* FROM `binlag`.`position`", lambda session: []),
            (r"CREATE TABLE IF NOT EXISTS binlag.slave_relay_log_info", lambda session: 0),
            (r"INSERT INTO `binlag`.`done` VALUES \('.*?',(\d+),'(.*)',(\d+),(\d+)\)",
             self._add_done),
            (r"DELETE FROM `binlag`.`done` WHERE .* IN \((.*)\)", self._delete_done),
            (r"SELECT `file`, `start`.* FROM `binlag`.`done`",
             lambda session: [_texts(*row, n) for n, row in self.done.items()]),
            (r"CREATE \w+ IF NOT EXISTS `binlag`", lambda session: 0),
            (r"START TRANSACTION", self._begin),
            (r"COMMIT", self._commit),
            (r"ROLLBACK", self._roll_back),
            (r"SET @@session.gtid_next='(.*)'", self._gtid_next),
            (r"SET @@session.rbr_exec_mode='(.*)'", lambda session,
             mode: setattr(session, "idempotent", mode == "IDEMPOTENT")),
            (r"SET ", lambda session: 0),
            (r"DO 0|USE ", lambda session: 0),
            (r"INSERT INTO `?w`?\.`?(\w+)`?(?: \(.*\))? VALUES \((.*)\)", self._insert),
            (r"REPLACE INTO `?w`?\.`?(\w+)`?(?: \(.*\))? VALUES \((.*)\)", self._replace),
            (r"UPDATE `?w`?\.`?(\w+)`?(?: FORCE INDEX \(.*?\))? SET (.*) WHERE (.*?)(?: LIMIT 1)?$",
             self._update),
            (r"DELETE FROM `?w`?\.`?(\w+)`? WHERE (.*?)(?: LIMIT 1)?$", self._delete),
            (r"(CREATE|DROP|ALTER|TRUNCATE) TABLE w\.(\w+)(.*)/\* (\d+) \*/", self._ddl),
            (r"SELECT GET_LOCK\('(.*)', ", self._get_lock),
            (r"SELECT (IS_FREE_LOCK.*)", self._are_free),
            (r"SELECT (IS_USED_LOCK.*)", self._holders),
            (r"KILL (\d+)", self._kill),
            (r"SHOW GLOBAL STATUS LIKE 'Uptime'", lambda session: [_texts("Uptime", 1_000_000)]),
            (r"SELECT @@max_allowed_packet", lambda session: [_texts(self.packet_bytes)]),
            (r"SELECT @@lower_case_table_names", lambda session: [_texts(0)]),
            (r"SELECT @@GLOBAL.gtid_executed",
             lambda session: [(_gtid_text(self.gtids).encode(),)]),
            (r"SHOW SESSION VARIABLES",
             lambda session: [_texts(*pair) for pair in VARIABLES.items()]),
            (r"SELECT ID, COLLATION_NAME",
             lambda session: [_texts(45, "utf8mb4_general_ci", "utf8mb4")]),
            (r"SHOW SESSION STATUS", lambda session: [(b"Handler_write", b"0")]),
            (r"SHOW CREATE TABLE `w`\.`(\w+)`", self._show_create),
            (r"(SELECT \d+ FROM information_schema.TABLES WHERE .*TABLE_NAME=CONVERT.*)",
             self._which_are_there),
            (r"SELECT E.TRANSACTIONS.*T.TABLE_NAME=CONVERT\(X'(\w+)'", self._traits),
            (r"SELECT NAME, TABLE_ID",
             lambda session: [_texts(f"w/{name}", table.number) for name,
                              table in sorted(self.tables.items())]),
            (r"SELECT .* FROM information_schema", lambda session: []),
        ]  # fmt: skip

    def _begin(self, session: Session) -> None:
        if session.open:
            self._commit(session)
        session.open = True

    def _gtid_next(self, session: Session, gtid: str) -> None:
        assert not session.open, "GTID_NEXT inside of a transaction"
        session.gtid = "" if gtid == "AUTOMATIC" else gtid

    def _ddl(self, session: Session, verb: str, name: str, rest: str, number: str) -> None:
        """Nobody else may be at work."""
        assert not session.open, "DDL ends a transaction"
        assert not any(one.undo or one.writes for one in self.sessions), "DDL beside a transaction"
        if (verb == "CREATE") == (name in self.tables):
            raise Refused(1050 if verb == "CREATE" else 1051)
        if verb == "DROP":
            del self.tables[name]
        elif verb == "TRUNCATE":
            self.add_table(name, self.tables[name].create, self.tables[name].unique)
        elif verb == "CREATE":
            self.add_table(
                name,
                f"CREATE TABLE `{name}` (\n  `id` int NOT NULL,\n  PRIMARY KEY (`id`)\n"
                ") ENGINE=InnoDB",
                (0,),
            )
        else:
            self.tables[name].create = (
                self.tables[name].create.partition(" COMMENT")[0] + rest.rstrip()
            )
        session.writes.append(lambda: self.applied.update([int(number)]))

    # locks of the user, and questions

    def _get_lock(self, session: Session, name: str) -> Found:
        if any(name in holder.user_locks for holder in self.sessions if holder is not session):
            raise Waits(name)
        session.user_locks.add(name)
        return [(b"1",)]

    def _are_free(self, session: Session, asked: str) -> Found:
        names = set(re.findall(r"IS_FREE_LOCK\('(.*?)'\)", asked))
        return [(b"0" if any(names & other.user_locks for other in self.sessions) else b"1",)]

    def _holders(self, session: Session, asked: str) -> Found:
        names = re.findall(r"IS_USED_LOCK\('(.*?)'\)", asked)
        holders = (
            next((one.number for one in self.sessions if name in one.user_locks), None)
            for name in names
        )
        return [tuple(None if number is None else str(number).encode() for number in holders)]

    def _kill(self, session: Session, number: str) -> None:
        victim = self.sessions[int(number) - 1]
        assert victim is not session
        self._end(victim)

    def _end(self, session: Session) -> None:
        """The server ends a session."""
        self._roll_back(session)
        session.texts.clear()
        session.answers.clear()
        session.user_locks.clear()
        session.waits_for, session.gone = None, True

    def _show_create(self, session: Session, name: str) -> Found:
        if name not in self.tables:
            raise Refused(1146)
        return [_texts(name, self.tables[name].create)]

    def _which_are_there(self, session: Session, sql: str) -> Found:
        """One SELECT of a number for each name."""
        asked = re.findall(r"SELECT (\d+) FROM .*?TABLE_NAME=CONVERT\(X'(\w+)'", sql)
        return [_texts(n) for n, name in asked if bytes.fromhex(name).decode() in self.tables]

    def _traits(self, session: Session, name: str) -> Found:
        table = self.tables.get(bytes.fromhex(name).decode())
        return [] if table is None else [(b"YES", b"1" if table.unique else None)]

    # the replay's own tables

    def _set_position(self, session: Session, assignments: str) -> int:
        if self.position is None:
            return 0
        self._lock(session, "position")
        found = ASSIGNED.fullmatch(assignments)
        assert found is not None, assignments
        assert found[1] == found[3], "the log is the source's"
        return self._write_position(session, (found[1], found[2], *found.groups()[4:]))

    def _first_position(self, session: Session, names: str, values: str) -> int:
        row = dict(
            zip(
                names.replace("`", "").split(","),
                re.findall(r"X?'[^']*'|[^,']+", values),
                strict=True,
            )
        )
        columns = (
            "Relay_log_name",
            "Relay_log_pos",
            "binlag_gtids",
            "binlag_transactions",
            "binlag_state",
        )
        *plain, state = (row[name] for name in columns)
        return self._write_position(session, (*(value.strip("'") for value in plain), state))

    def _write_position(self, session: Session, values: tuple[str, ...]) -> int:
        state = values[-1]
        row = (
            *values[:-1],
            bytes.fromhex(state[2:-1]).decode() if state.startswith("X") else state[1:-1],
        )
        session.position = row
        session.writes.append(lambda: setattr(self, "position", row))
        return 1

    def _get_position(self, session: Session) -> Found:
        row = session.position or self.position
        return [] if row is None else [_texts(*row[:2], *row[:2], *row[2:])]

    def _set_worker(self, session: Session, worker: str) -> int:
        self._lock(session, ("worker", worker))
        return int(worker in self.workers)

    def _add_worker(self, session: Session, worker: str) -> int:
        session.writes.append(lambda: self.workers.add(worker))
        return 1

    def _delete_workers(self, session: Session) -> int:
        session.writes.append(self.workers.clear)
        return len(self.workers)

    def _get_workers(self, session: Session) -> Found:
        place = ("", 0, "", 0)
        return [_texts(worker, *place, *place, 0, 0, "", "r") for worker in sorted(self.workers)]

    def _add_done(self, session: Session, number: str, *row: str) -> int:
        self._lock(session, ("done", int(number)))
        assert int(number) not in self.done, "a part of that number is there already"
        session.writes.append(lambda: self.done.__setitem__(int(number), (row[0], row[1], row[2])))
        return 1

    def _delete_done(self, session: Session, numbers: str) -> int:
        gone = [int(number) for number in numbers.split(",") if int(number) in self.done]
        self._lock(session, *(("done", number) for number in gone))
        session.writes += [lambda number=number: self.done.pop(number) for number in gone]  # type: ignore[misc]
        return len(gone)

    # rows

    def _binlog(self, session: Session, literal: str) -> None:
        maps: dict[int, str] = {}
        for kind, body in _events(b64decode(literal)):
            if kind == 15:
                assert not session.open, "a format description inside of a transaction"
            elif kind == 19:
                start = 8 + 2 + body[8]
                maps[body[0]] = body[start + 1 : start + 1 + body[start]].decode()
            else:
                self._rows_event(session, kind, maps[body[0]], body)

    def _rows_event(self, session: Session, kind: int, name: str, body: bytes) -> None:
        images = body[10 + 1 + (2 if kind == 31 else 1) :]
        width = 1 + 4 * body[10]
        rows = [
            struct.unpack_from(f"<x{body[10]}i", images, at) for at in range(0, len(images), width)
        ]
        if name not in self.tables:
            raise Refused(1146)
        if kind == 30:
            for row in rows:
                self._put(session, name, row)
        elif kind == 32:
            for row in rows:
                self._change(session, name, row, None)
        else:
            for before, after in zip(rows[::2], rows[1::2], strict=True):
                self._change(session, name, before, after)

    def _change(self, session: Session, name: str, before: Values, after: Values | None) -> None:
        if not self._move(session, name, before, after):
            assert not session.idempotent, f"{name} {before} is not there"
            raise Refused(1032)

    def _put(self, session: Session, name: str, row: Values) -> int:
        table = self.tables[name]
        self._lock(session, *self._keys(table, row))
        for place in table.unique:
            if any(other[place] == row[place] for other in table.rows):
                assert not session.idempotent, f"{name} {row} is there already"
                raise Refused(1062)
        table.rows.append(row)
        session.undo.append(lambda: table.rows.remove(row))
        if name == NUMBERED:
            session.applied.append(row[0])
            session.undo.append(session.applied.pop)
        return 1

    def _move(self, session: Session, name: str, before: Values, after: Values | None) -> int:
        """Replaces or deletes a row; 0 when it is not there."""
        table = self.tables[name]
        self._lock(session, *self._keys(table, before))
        if before not in table.rows:
            return 0
        table.rows.remove(before)
        session.undo.append(lambda: table.rows.append(before))
        if after is not None:
            self._put(session, name, after)
        return 1

    def _keys(self, table: Table, row: Values) -> list[object]:
        return [(table.number, place, row[place]) for place in table.unique] or [
            (table.number, "all")
        ]

    # the same as statements

    def _insert(self, session: Session, name: str, values: str) -> int:
        if name not in self.tables:
            raise Refused(1146)
        return self._put(session, name, tuple(int(value) for value in values.split(",")))

    def _replace(self, session: Session, name: str, values: str) -> Never:
        raise AssertionError(f"{name} ({values}) was there already")

    def _update(self, session: Session, name: str, assignments: str, condition: str) -> int:
        if name not in self.tables:
            raise Refused(1146)
        before = self._find(session, name, condition)
        if before is None:
            return 0
        columns, after = self._columns(name), list(before)
        for column, value in re.findall(r"`?(\w+)`? = ([^,]+)", assignments):
            added = re.fullmatch(r"\w+ \+ (\d+)", value)
            after[columns.index(column)] = (
                before[columns.index(column)] + int(added[1]) if added else int(value)
            )
        return self._move(session, name, before, tuple(after))

    def _delete(self, session: Session, name: str, condition: str) -> int:
        if name not in self.tables:
            raise Refused(1146)
        before = self._find(session, name, condition)
        return 0 if before is None else self._move(session, name, before, None)

    def _find(self, session: Session, name: str, condition: str) -> Values | None:
        if "ROW_COUNT() = 0" in condition and session.row_count:
            return None
        table, columns = self.tables[name], self._columns(name)
        wanted = {
            columns.index(column): int(value)
            for column, value in re.findall(r"`?(\w+)`? <?=>? (-?\d+)", condition)
        }
        assert wanted, condition
        keys: list[object] = [
            (table.number, place, value)
            for place, value in wanted.items()
            if place in table.unique[:1]
        ]
        self._lock(session, *(keys or [(table.number, "all")]))
        return next(
            (
                row
                for row in table.rows
                if all(row[place] == value for place, value in wanted.items())
            ),
            None,
        )

    def _columns(self, name: str) -> list[str]:
        return re.findall(r"^  `(\w+)` int", self.tables[name].create, re.MULTILINE)


ASSIGNED = re.compile(
    r"`Relay_log_name`='(.*)',`Relay_log_pos`=(\d+),`Master_log_name`='(.*)',`Master_log_pos`=(\d+),"
    r"`binlag_gtids`='(.*)',`binlag_transactions`=(\d+),`binlag_state`=(X?'.*')"
)
VARIABLES = {
    "gtid_next": "AUTOMATIC",
    "completion_type": "NO_CHAIN",
    "binlog_format": "ROW",
    "pseudo_slave_mode": "OFF",
    "sql_mode": "",
}


def _texts(*values: object) -> tuple[bytes | None, ...]:
    return tuple(str(value).encode() for value in values)


def _gtid_text(gtids: set[str]) -> str:
    """All are of one server."""
    numbers = sorted(int(gtid.partition(":")[2]) for gtid in gtids)
    return f"{next(iter(gtids)).partition(':')[0]}:{':'.join(map(str, numbers))}" if numbers else ""


def _events(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(type, body) of events with checksums."""
    while data:
        length = int.from_bytes(data[9:13], "little")
        yield data[4], data[19 : length - 4]
        data = data[length:]
