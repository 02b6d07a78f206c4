"""A server that is none: sessions, row locks, rollback and commit of a few tables of integers,
carried out step by step in a random order.

It stands behind the driver (`driver`, in the place of `DriverConnection`), so that all that is the
project's own is the real thing: texts of several statements, answers one after the other, BINLOG
literals decoded byte by byte. Nothing runs by itself. While the client waits for an answer, some
session carries out its next statement; which one is left to chance, and so is what goes wrong
(`Fault`).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import pymysql
from pymysql.constants import CR

from applier.mysql.client.pipeline import SEPARATOR
from tests.mysql.simulated_sessions import DEADLOCK, Found, Refused, Session, Waits
from tests.mysql.simulated_storage import Storage

WAIT = 1205


class Killed(BaseException):
    """The client is no more: kill -9."""


@dataclass
class Fault:
    """What goes wrong at the `countdown`th statement from now that it may happen to."""

    what: str
    """wait, deadlock: these errors. lost, lost after: the session ends before or behind the
    statement. crash, crash after: the server does. kill, kill after: the client does."""
    countdown: int
    sql: bytes = b""
    """The statement has this in it."""


class SimulatedServer(Storage):
    """All sessions of one server, one statement at a time."""

    def __init__(self, chance: Random) -> None:
        super().__init__()
        self.chance = chance
        self.faults: list[Fault] = []
        self.met: Counter[str] = Counter()
        self.down = 0
        """So many connections are refused before it is up again."""
        self.killed = False

    # the client's side

    def driver(self, **_: Any) -> Driver:
        """In the place of `DriverConnection`."""
        self._alive()
        if self.down:
            self.down -= 1
            raise pymysql.err.OperationalError(
                CR.CR_CONN_HOST_ERROR, "Can't connect to MySQL server"
            )
        session = Session(len(self.sessions) + 1)
        self.sessions.append(session)
        return Driver(self, session)

    def select(
        self, drivers: list[Driver], *_: Any
    ) -> tuple[list[Driver], list[Driver], list[Driver]]:
        """In the place of `select.select`."""
        self._work_a_little()
        while True:
            ready = [driver for driver in drivers if driver.session.answers or driver.session.gone]
            if ready:
                return [self.chance.choice(ready)], [], []
            self.step()

    def send(self, session: Session, text: bytes) -> None:
        self._alive()
        if session.gone:
            raise pymysql.err.OperationalError(
                CR.CR_SERVER_GONE_ERROR, "MySQL server has gone away"
            )
        assert not session.texts, "a text is sent only when the one before is answered"
        session.answers.clear()
        session.texts.extend(text.split(SEPARATOR))
        session.speed = self.chance.choice((1, 1, 0.1, 0.01))
        self._work_a_little()

    def receive(self, session: Session) -> tuple[int, Found | None, bool]:
        self._alive()
        while not session.answers:
            if session.gone:
                raise pymysql.err.OperationalError(
                    CR.CR_SERVER_LOST, "Lost connection to MySQL server during query"
                )
            assert session.texts, "the client waits for an answer that never comes"
            self.step()
        answer = session.answers.popleft()
        if isinstance(answer, int):
            raise pymysql.err.OperationalError(answer, f"error {answer}")
        return answer

    def hang_up(self, session: Session) -> None:
        """The client closes a connection, or is dead: what was sent may still be carried out."""
        session.ended = True
        if not session.texts:
            self._end(session)

    def bury_client(self) -> None:
        """After `Killed`: a new client may come."""
        for session in self.sessions:
            if not session.gone:
                self.hang_up(session)
        self.killed = False

    def _alive(self) -> None:
        if self.killed:
            raise Killed

    def _work_a_little(self) -> None:
        for _ in range(self.chance.choice((0, 0, 1, 3))):
            ready = [session for session in self._ready() if self.chance.random() < session.speed]
            if ready:
                self._next(self.chance.choice(ready))
        self._alive()

    # time

    def _ready(self) -> list[Session]:
        return [
            session
            for session in self.sessions
            if session.texts and self._in_the_way_of(session) is None
        ]

    def _in_the_way_of(self, session: Session) -> Session | None:
        """Who holds the lock that a session waits for."""
        key = session.waits_for
        if key is None:
            return None
        if isinstance(key, str):
            return next((holder for holder in self.sessions if key in holder.user_locks), None)
        holder = self.locks.get(key)
        return None if holder is session else holder

    def pass_time(self) -> None:
        """In the place of `time.sleep`."""
        if any(session.texts for session in self.sessions):
            self.step()

    def step(self) -> None:
        """One statement of some session. Where all wait for each other, or for a client that waits,
        one of them gives up."""
        ready = self._ready()
        if ready:
            self._next(self.chance.choices(ready, [session.speed for session in ready])[0])
            return
        waiting = [session for session in self.sessions if session.texts]
        assert waiting, "the client waits for a server that has nothing to do"
        victim = self.chance.choice(waiting)
        self.met["a lock was in the way"] += 1
        self._fail(victim, DEADLOCK if self._in_circle(victim) else WAIT)

    def _in_circle(self, session: Session) -> bool:
        at, seen = self._in_the_way_of(session), {session}
        while at is not None and at not in seen:
            seen.add(at)
            at = self._in_the_way_of(at)
        return at is session

    def _next(self, session: Session) -> None:
        sql = session.texts[0]
        fault = self._fault(session, sql)
        if session.ended and self.chance.random() < 0.2:
            self._end(session)  # the server noticed that nobody listens
            return
        if fault is not None and self._strike(fault, session):
            return
        mark, session.waits_for = len(session.undo), None
        try:
            matched, found = self._carry_out(session, sql)
        except Waits as wait:
            self._undo(session, mark)
            session.waits_for = wait.key
            return
        except Refused as refused:
            self.met["refused"] += 1
            self._undo(session, mark)
            self._fail(session, refused.number)
            return
        session.row_count = matched
        session.texts.popleft()
        session.answers.append((matched, found, bool(session.texts)))
        if not session.open:
            self._commit(session)
        if session.ended and not session.texts:
            self._end(session)
        if fault is not None and fault.what == "lost after":
            self._end(session)
        elif fault is not None and fault.what == "crash after":
            self._crash()
        elif fault is not None and fault.what == "kill after":
            self.killed = True

    def _fail(self, session: Session, number: int) -> None:
        session.waits_for = None
        session.texts.clear()
        session.answers.append(number)
        if number == DEADLOCK or not session.open:
            self._roll_back(session)
        if session.ended:
            self._end(session)

    def _fault(self, session: Session, sql: bytes) -> Fault | None:
        """What is due now."""
        if not self.faults or session.ended or not HIT.match(sql):
            return None
        fault = self.faults[0]
        if fault.sql not in sql:
            return None
        if fault.countdown > 0:
            fault.countdown -= 1
            return None
        if fault.what in ("wait", "deadlock") and not LOCKING.match(sql):
            return None
        self.faults.pop(0)
        self.met[fault.what] += 1
        return fault

    def _strike(self, fault: Fault, session: Session) -> bool:
        """What happens before the statement; False when it is carried out all the same."""
        if fault.what in ("wait", "deadlock"):
            self._fail(session, WAIT if fault.what == "wait" else DEADLOCK)
        elif fault.what == "lost":
            self._end(session)
        elif fault.what == "crash":
            self._crash()
        elif fault.what == "kill":
            self.killed = True
            return False
        else:
            return False
        return True

    def _crash(self) -> None:
        for session in self.sessions:
            self._end(session)
        self.down = self.chance.randrange(3)


class Driver:
    """What `applier.mysql.client.connection.Server` needs of the driver's connection."""

    def __init__(self, server: SimulatedServer, session: Session) -> None:
        self.server = server
        self.session = session
        self.socket = self
        self.rows: Found = []
        self.has_more_answers = False

    def get_server_info(self) -> str:
        return "8.0.36"

    def command(self, _: int, sql: bytes | str) -> None:
        self.server.send(self.session, sql.encode() if isinstance(sql, str) else sql)

    def next_result(self) -> int:
        matched, rows, self.has_more_answers = self.server.receive(self.session)
        self.rows = rows or []
        return matched

    def allow_files(self, allowed: bool) -> None:
        """It asks for none."""

    def setsockopt(self, *_: object) -> None:
        """Keep-alive."""

    def thread_id(self) -> int:
        return self.session.number

    def close(self) -> None:
        self.server.hang_up(self.session)


HIT = re.compile(
    rb"BINLOG|START TRANS|COMMIT|ROLLBACK|UPDATE|INSERT|DELETE|CREATE TABLE "
    rb"w|DROP|ALTER|TRUNCATE|SELECT `Relay|SHOW CREATE"
)
"""Statements that something happens to."""
LOCKING = re.compile(
    rb"BINLOG|UPDATE|INSERT INTO `?w|INSERT INTO `binlag`.`done|DELETE|CREATE TABLE "
    rb"w|DROP|ALTER|TRUNCATE"
)
