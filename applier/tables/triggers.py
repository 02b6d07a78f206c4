"""The triggers of a set of tables: by name, table, time and event, in the order in which they fire.

A statement in the log stands for what its triggers did, too (`dml.trigger_programs` runs them).
Rows events hold the triggers' rows already, and a replica fires none for them (MariaDB:
slave_run_triggers_for_rbr, NO unless set).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from applier.errors import ReplicationError
from applier.tables.expressions.operands import Dialect
from applier.tables.sql.sql_text import Parser

EVENTS = ("INSERT", "UPDATE", "DELETE")


@dataclass(frozen=True, slots=True)
class Trigger:
    """`time`: BEFORE or AFTER; `events`: those of EVENTS that fire it. `body`: the SQL behind the
    table's name; `dialect`: how the session that made it read SQL, which a server keeps with it. A
    trigger is in the database of its table."""

    database: str
    name: str
    table: str
    time: str
    events: tuple[str, ...]
    body: str
    dialect: Dialect


class Triggers:
    """All triggers, by database and name, in the order in which they fire."""

    def __init__(self) -> None:
        self._by_name: dict[tuple[str, str], Trigger] = {}

    def create(self, parser: Parser, database: str, dialect: Dialect) -> None:
        """Takes in CREATE … TRIGGER; the parser stands behind TRIGGER.

        Raises InputError for what cannot be read.
        """
        parser.accept("IF", "NOT", "EXISTS")
        key = own_database, name = parser.table_name(database)
        time = parser.accept_any("BEFORE", "AFTER")
        if not time:
            raise parser.refuse("expected BEFORE or AFTER")
        events = [self._event(parser)]
        while parser.accept_any("OR", ","):
            events.append(self._event(parser))
        parser.expect("ON")
        table_database, table = parser.table_name(own_database)
        parser.accept("FOR", "EACH", "ROW")
        side = parser.accept_any("FOLLOWS", "PRECEDES")
        other = parser.table_name(own_database) if side else None
        trigger = Trigger(table_database, name, table, time, tuple(events), parser.rest(), dialect)
        self._by_name.pop(key, None)
        others = list(self._by_name.items())
        at = list(self._by_name).index(other) if other in self._by_name else len(others)
        others.insert(at + (side == "FOLLOWS"), (key, trigger))
        self._by_name = dict(others)

    def drop(self, parser: Parser, database: str) -> None:
        """DROP TRIGGER; one that is not known changes nothing."""
        parser.accept("IF", "EXISTS")
        self._by_name.pop(parser.table_name(database), None)

    def forget(self, database: str, table: str) -> None:
        """The table went away, and its triggers with it."""
        for key, trigger in list(self._by_name.items()):
            if (trigger.database, trigger.table) == (database, table):
                del self._by_name[key]

    def rename(self, old: tuple[str, str], new: tuple[str, str]) -> None:
        """The table has another name; its triggers come along."""
        self._by_name = dict(
            ((new[0], trigger.name), replace(trigger, database=new[0], table=new[1]))
            if (trigger.database, trigger.table) == old
            else (key, trigger)
            for key, trigger in self._by_name.items()
        )

    def copy(self) -> Triggers:
        """An independent set."""
        twin = Triggers()
        twin._by_name = self._by_name.copy()
        return twin

    def bodies(self, database: str, table: str) -> list[str]:
        """What the triggers of a table do."""
        return [trigger.body for trigger in self._of_table(database, table)]

    def fired(self, database: str, table: str, event: str) -> list[Trigger]:
        """Those that a row of the table fires, in their order; BEFORE and AFTER together."""
        return [one for one in self._of_table(database, table) if event in one.events]

    def has_before(self, database: str, table: str) -> bool:
        """Whether the table has a BEFORE trigger."""
        return any(one.time == "BEFORE" for one in self._of_table(database, table))

    def refuse(self, database: str, table: str, *events: str) -> None:
        """Raises ReplicationError 1235 where a statement with these events fires a trigger of the
        table."""
        for event in events:
            for trigger in self.fired(database, table, event):
                raise not_run(trigger, event, "which is not run in memory by such a statement")

    def _of_table(self, database: str, table: str) -> Iterator[Trigger]:
        for trigger in self._by_name.values():
            if (trigger.database, trigger.table) == (database, table):
                yield trigger

    def _event(self, parser: Parser) -> str:
        event = parser.accept_any(*EVENTS)
        if not event:
            raise parser.refuse("expected INSERT, UPDATE or DELETE")
        return event


def not_run(trigger: Trigger, event: str, why: str) -> ReplicationError:
    """The error 1235 of a statement that fires a trigger. `why`: a clause about the trigger."""
    full_name = f"{trigger.database}.{trigger.table}"
    return ReplicationError(
        1235,
        f"{event} in statement format on `{full_name}` fires the trigger `{trigger.name}`, {why}",
        table=full_name,
        hint="skip the statement with --skip-errors 1235, or replay into a test DB",
    )
