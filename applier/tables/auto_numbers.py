"""AUTO_INCREMENT numbers under auto_increment_increment and auto_increment_offset.

The server's handler and InnoDB count on their own, and differ where a number is below the offset
and where the offset is above the increment (seen on 5.7.29, 9.7.4, MariaDB 10.11.18).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from applier.binlog.types import ValueRefused, from_sql
from applier.errors import ReplicationError
from lookup.table import Column

_WRAP = 1 << 64
"""The server's arithmetic is unsigned."""
NO_NUMBER = _WRAP - 1
"""ULLONG_MAX: the server takes it for an error and not for a number."""


@dataclass(frozen=True, slots=True)
class NumberSteps:
    """The two variables of a session."""

    increment: int = 1
    offset: int = 1

    def after(self, number: int) -> int:
        """The number behind `number` (`compute_next_insert_id`, sql/handler.cc); `NO_NUMBER` behind
        the last one."""
        if self.increment == 1:
            return min(number + 1, NO_NUMBER)
        steps = (number + self.increment - self.offset) % _WRAP // self.increment
        found = (steps * self.increment + self.offset) % _WRAP
        return found if found > number else NO_NUMBER

    def in_place(self, start: int) -> Iterator[int]:
        """The numbers of a column that is added in place; `start`: the table option AUTO_INCREMENT,
        0 without it (`ib_sequence_t`, row/row0merge.cc)."""
        number = start or 1
        if self.increment > 1 or self.offset > 1:
            number = self._engine_after(start)
        while True:
            yield number
            number = self._engine_after(number)

    def _engine_after(self, number: int) -> int:
        """The same as InnoDB counts (`innobase_next_autoinc`, handler/ha_innodb.cc)."""
        offset = self.offset if self.offset <= self.increment else 0
        return abs(number - offset) // self.increment * self.increment + offset + self.increment


ONE_BY_ONE = NumberSteps()


def refuse_no_number(number: int, *, mariadb: bool, from_event: bool) -> None:
    """Raises ReplicationError where the numbers are used up: 1467 where the engine says so, 1264
    (in MariaDB 167) where they end within the statement, whose first number an event gives (seen
    on 5.7.29, 9.7.4, 10.11.18)."""
    if number < NO_NUMBER:
        return
    if not from_event:
        raise ReplicationError(1467, "Failed to read auto-increment value from storage engine")
    message = "Out of range value for an AUTO_INCREMENT column"
    if mariadb:
        raise ReplicationError(167, message)
    raise ReplicationError(1264, message)


def stored_number(column: Column, number: int, *, mariadb: bool, ignoring: bool, cuts: bool) -> Any:
    """The number as the column stores it. One beyond its type is the largest where the engine
    leaves that to the server (`cuts`: MyISAM and others of MySQL without transactions), and with
    MariaDB's INSERT IGNORE. Otherwise raises ReplicationError 1467, in MariaDB 167 (seen on 5.7.29,
    9.7.4, 10.11.18)."""
    try:
        return from_sql(column)(number)
    except ValueRefused as refused:
        if ignoring if mariadb else cuts:
            return refused.closest
        if mariadb:
            raise ReplicationError(167, refused.message) from None
        raise ReplicationError(
            1467, "Failed to read auto-increment value from storage engine"
        ) from None
