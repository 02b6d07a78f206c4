"""Statements on their way to the server: one text of many at a time, the next one made while the
server works on it.

A text is joined from several statements so that their round trips cost one. The server carries it
out statement by statement and stops at the first that fails; what failed is then known by how many
answers came before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from applier.binlog.header import Event
from applier.errors import ReplicationError
from applier.mysql.client.connection import HINTS, Row, Server

SEPARATOR = b"\n;"
"""On a line of its own: a statement of the log may end in a comment."""

UNKNOWN_ERROR = 1105
PACKET_TOO_LARGE = 1153
HEADER_BYTES = 1024
"""Of max_allowed_packet, left for what is not the text."""


@dataclass(slots=True)
class PipelineStatement:
    """One statement of a text. `event` is the first that it carries out, which an error is located
    at.

    `allowed` are the errors that leave the replay going: the statement failed on the source in the
    same way, or the user skips it. `check` gets the number of rows matched and raises
    ReplicationError when they are not what they should be.
    """

    sql: bytes
    event: Event | None = None
    table: str | None = None
    allowed: frozenset[int] = frozenset()
    check: Callable[[int], None] | None = None
    on_error: Callable[[ReplicationError], None] | None = None
    """Told of an error that was allowed."""
    ends_text: bool = False
    """Nothing may stand behind it in its text: MySQL takes all up to the semicolon for the body of
    a routine, trigger or event (seen on 5.6.24, 5.7.29 and 9.7.4; MariaDB does not)."""
    explain: Callable[[ReplicationError], None] | None = None
    """Adds to an error that is not allowed what the statement knows of it."""


class Pipeline:
    """What goes to one server. Raises ReplicationError, located, from whichever call learns of the
    failure."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._sent: list[PipelineStatement] = []

    def send(self, statements: Iterable[PipelineStatement]) -> None:
        """Hands over the statements once those before are answered; in several texts where one is
        more than the server takes at a time."""
        for text in self._texts(statements):
            self.settle()
            self._start(text)

    def settle(self) -> None:
        """Waits until all that was sent is carried out."""
        while self._sent:
            sent, self._sent = self._sent, []
            try:
                counts = self.server.receive(len(sent))
            except ReplicationError as error:
                self._failed(sent, error)
                continue
            _check(sent, counts)

    def query(self, sql: str | bytes) -> list[Row]:
        """Rows of one statement, behind all that was sent."""
        self.settle()
        return self.server.query(sql)

    def execute(self, sql: str | bytes) -> int:
        """One statement, behind all that was sent; the rows it matched."""
        self.settle()
        return self.server.execute(sql)

    def abandon(self) -> None:
        """Rolls back, whatever the answer to what is under way is. Raises only when the connection
        is lost."""
        sent, self._sent = self._sent, []
        if sent:
            with suppress(ReplicationError):  # rolled back all the same
                self.server.receive(len(sent))
        self.server.execute(b"ROLLBACK")

    def _texts(self, statements: Iterable[PipelineStatement]) -> Iterator[list[PipelineStatement]]:
        most = self.server.packet_bytes - HEADER_BYTES
        text: list[PipelineStatement] = []
        size = 0
        for statement in statements:
            length = len(statement.sql) + len(SEPARATOR)
            if length > most:
                raise _too_big(statement, self.server.packet_bytes)
            if size + length > most:
                yield text
                text, size = [], 0
            text.append(statement)
            size += length
            if statement.ends_text:
                yield text
                text, size = [], 0
        yield text

    def _start(self, statements: list[PipelineStatement]) -> None:
        if statements:
            self._sent = statements
            self.server.send(SEPARATOR.join([statement.sql for statement in statements]))

    def _first_error(self, error: ReplicationError) -> ReplicationError:
        """A BINLOG statement says "unknown error" behind the error that it met."""
        for level, number, message in self.server.texts("SHOW WARNINGS"):
            if level == "Error" and number not in (None, str(UNKNOWN_ERROR)):
                return ReplicationError(
                    int(number or 0), message or "", hint=HINTS.get(int(number or 0))
                )
        return error

    def _failed(self, sent: list[PipelineStatement], error: ReplicationError) -> None:
        """The statement that failed, and those behind it, which the server did not look at."""
        place = self.server.answered
        failed = sent[min(place, len(sent) - 1)]
        if error.number == UNKNOWN_ERROR:
            error = self._first_error(error)
        _check(sent[:place], self.server.counts)
        if failed.event is not None:
            error.locate(file=failed.event.file, position=failed.event.position, table=failed.table)
        if error.number not in failed.allowed:
            if failed.explain is not None:
                failed.explain(error)
            raise error
        if failed.on_error is not None:
            failed.on_error(error)
        self._start(sent[place + 1 :])


def _too_big(statement: PipelineStatement, packet_bytes: int) -> ReplicationError:
    needed = len(statement.sql) + HEADER_BYTES
    error = ReplicationError(
        PACKET_TOO_LARGE,
        f"a statement of {needed:,} bytes is needed, and the target's max_allowed_packet is"
        f" {packet_bytes:,}",
        hint=(
            f"SET GLOBAL max_allowed_packet = {1 << needed.bit_length()} on the target, then start"
            " again"
        ),
    )
    if statement.event is not None:
        error.locate(
            file=statement.event.file, position=statement.event.position, table=statement.table
        )
    return error


def _check(statements: list[PipelineStatement], counts: list[int]) -> None:
    for statement, count in zip(statements, counts, strict=False):
        if statement.check is None:
            continue
        try:
            statement.check(count)
        except ReplicationError as error:
            if statement.event is not None:
                error.locate(
                    file=statement.event.file,
                    position=statement.event.position,
                    table=statement.table,
                )
            raise
