"""What DDL in a log makes of tables' columns and keys: carried out on tables without rows, as a
replay carries it out on its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from applier.binlog.events import Query
from applier.binlog.header import Event
from applier.errors import ReplicationError
from applier.forecast.inventory.facts import TableFacts
from applier.forecast.workload.table_fates import TableFate
from applier.tables.catalog import Tables
from applier.tables.ddl.execution import IGNORED_OBJECTS, OBJECTS
from applier.tables.session import StatementApplier
from applier.tables.sql.sql_text import UNREADABLE, Parser
from applier.tables.sql.statement_kind import executed_statement, is_temporary, statement_kind
from applier.tables.sql.statement_names import names_of, text_and_lexis
from lookup.table import TableDefinition

_VERBS = frozenset({"CREATE", "ALTER", "DROP", "RENAME"})
_TABLE_EXISTS = 1050
_MISSING = (1051, 1146)


class FollowedDefinitions:
    """The tables as the log's statements leave them; `facts` is up to date behind each.

    Begins with those of the replica. A table that the log makes while the replica has it already
    (its schema is younger than the log) is the log's from there on. `learned`: what a sample of the
    log says of tables that it makes (`made_tables`).
    """

    def __init__(
        self,
        facts: Mapping[str, TableFacts],
        server: str,
        learned: Mapping[str, TableFacts] | None = None,
    ) -> None:
        self.facts = dict(facts)
        self.last: dict[str, TableFacts] = {}
        """Each table that was made, changed or renamed, as it was before it was dropped, if so."""
        self._sampled = {**facts, **(learned or {})}
        self._server = server
        self._statements: StatementApplier | None = None
        self._times: dict[str, int] = {}
        self.changes = 0
        """Of definitions, so far."""

    def times_changed(self, table: str) -> int:
        """How often a table was made, changed or renamed so far."""
        return self._times.get(table, 0)

    def follow(self, event: Event, query: Query, fates: Iterable[TableFate]) -> str | None:
        """Takes a statement in; `fates` are what it makes of whole tables. What is to be said of
        one that cannot be carried out, after which its tables stay as far as it came. One that
        failed on the source, too, goes without saying, and so does one about tables that nobody
        knows, such as temporary ones."""
        what = _defined_object(query)
        if not what:
            return None
        named = {".".join(name): None for name in names_of(query).tables}
        is_about_others = self.facts.keys().isdisjoint(named)
        failure = self._carried_out(event, query, fates)
        for fate in fates:
            named.update(dict.fromkeys(filter(None, (fate.table, fate.renamed_to))))
            if fate.database:
                named.update(dict.fromkeys(filter(fate.is_in_database, self.facts)))
            if fate.renamed_to and fate.table in self.facts:
                self.facts[fate.renamed_to] = self.facts.pop(fate.table)
        for table in named:
            self._take(table)
        if failure is None or not named or what == "VIEW":
            return None
        if failure.number == query.error_code or (is_about_others and failure.number in _MISSING):
            return None
        told = f"a statement about the definition of {', '.join(named)} cannot be followed"
        return f"{told} (error {failure.number}: {failure.message}); they count as before it"

    def happened(self, fate: TableFate) -> bool:
        """Whether a statement that was taken in did this: one that fails drops some tables only."""
        return fate.exists or fate.table not in self.facts

    def _carried_out(
        self, event: Event, query: Query, fates: Iterable[TableFate]
    ) -> ReplicationError | None:
        """Does what the statement says; the error where that is not possible."""
        statements = self._statements = self._statements or self._begin()
        try:
            statements.execute(event, query)
        except ReplicationError as error:
            if error.number != _TABLE_EXISTS:
                return error
        else:
            return None
        for table in _made(fates):
            with suppress(KeyError):
                statements.tables.drop(*table.split(".", 1))
        try:
            statements.execute(event, query)
        except ReplicationError as error:
            return error
        return None

    def _begin(self) -> StatementApplier:
        """The replica's tables without rows: only logs with DDL need them."""
        tables = Tables()
        tables.follow(self._server)
        for one in self.facts.values():
            tables.create(one.definition)
        return StatementApplier(tables, self._server)

    def _take(self, table: str) -> None:
        """Takes over how a table stands now."""
        assert self._statements is not None
        there = self._statements.tables.base(*table.split(".", 1))
        known = self.facts.get(table)
        if there is None:
            self.facts.pop(table, None)
        elif known is None or known.definition is not there.definition:
            self.facts[table] = self.last[table] = self._behind(table, known, there.definition)
        else:
            return
        self._times[table] = self.times_changed(table) + 1
        self.changes += 1

    def _behind(
        self, table: str, known: TableFacts | None, definition: TableDefinition
    ) -> TableFacts:
        """What is known of a table that has another definition from here on: its rows and pages
        come with it from another name, how the log changes it goes by its own."""
        its_own = TableFacts(definition) if known is None else known.altered(definition)
        sampled = self._sampled.get(table)
        return its_own if sampled is None else its_own.changed_as(sampled.altered(definition))


def _made(fates: Iterable[TableFate]) -> Iterator[str]:
    """The tables that are new behind a statement."""
    return (fate.table for fate in fates if fate.exists and not fate.renamed_to)


def _defined_object(query: Query) -> str:
    """What a statement makes, changes or drops, if that is a table or database, or a view, whose
    name no table can have; empty where it is nothing that a forecast knows, as temporary tables:
    rows events have none of them."""
    sql, lexis = text_and_lexis(query)
    sql = executed_statement(sql)
    if statement_kind(sql) not in _VERBS or is_temporary(sql):
        return ""
    with suppress(*UNREADABLE):
        parser = Parser(sql, lexis)
        while not parser.done:
            word = parser.word()
            if word in OBJECTS or word in IGNORED_OBJECTS:
                return word if word in OBJECTS or word == "VIEW" else ""
            parser.at += 1
    return ""
