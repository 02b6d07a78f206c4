"""The triggers of a set of tables: known by name, table and event, and never run.

A statement in the log stands for what its triggers did, too. Rows events hold the triggers' rows
already, and a replica fires none for them (MariaDB: slave_run_triggers_for_rbr, NO unless set).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from applier.errors import ReplicationError
from applier.tables.sql.sql_text import Parser

EVENTS = ("INSERT", "UPDATE", "DELETE")


@dataclass(frozen=True, slots=True)
class Trigger:
    """`events`: those of EVENTS that fire it. `body`: the SQL behind the table's name. A trigger is
    in the database of its table."""

    database: str
    name: str
    table: str
    events: tuple[str, ...]
    body: str = ""


class Triggers:
    """All triggers, by database and name."""

    def __init__(self) -> None:
        self._by_name: dict[tuple[str, str], Trigger] = {}

    def create(self, parser: Parser, database: str) -> None:
        """Takes in CREATE … TRIGGER; the parser stands behind TRIGGER.

        Raises InputError for what cannot be read.
        """
        parser.accept("IF", "NOT", "EXISTS")
        own_database, name = parser.table_name(database)
        if not parser.accept_any("BEFORE", "AFTER"):
            raise parser.refuse("expected BEFORE or AFTER")
        events = [self._event(parser)]
        while parser.accept_any("OR", ","):
            events.append(self._event(parser))
        parser.expect("ON")
        table_database, table = parser.table_name(own_database)
        self._by_name[own_database, name] = Trigger(
            table_database, name, table, tuple(events), parser.rest()
        )

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
        for key, trigger in list(self._by_name.items()):
            if (trigger.database, trigger.table) == old:
                del self._by_name[key]
                self._by_name[new[0], trigger.name] = replace(
                    trigger, database=new[0], table=new[1]
                )

    def copy(self) -> Triggers:
        """An independent set."""
        twin = Triggers()
        twin._by_name = self._by_name.copy()
        return twin

    def bodies(self, database: str, table: str) -> list[str]:
        """What the triggers of a table do."""
        return [
            trigger.body
            for trigger in self._by_name.values()
            if (trigger.database, trigger.table) == (database, table)
        ]

    def refuse(self, database: str, table: str, *events: str) -> None:
        """Raises ReplicationError 1235 where a statement with these events fires a trigger of the
        table."""
        for trigger in self._by_name.values():
            fired = [event for event in trigger.events if event in events]
            if (trigger.database, trigger.table) == (database, table) and fired:
                full_name = f"{database}.{table}"
                raise ReplicationError(
                    1235,
                    f"{fired[0]} in statement format on `{full_name}` fires the trigger"
                    f" `{trigger.name}`, which is not run in memory",
                    table=full_name,
                    hint="skip the statement with --skip-errors 1235, or replay into a test DB",
                )

    def _event(self, parser: Parser) -> str:
        event = parser.accept_any(*EVENTS)
        if not event:
            raise parser.refuse("expected INSERT, UPDATE or DELETE")
        return event
