"""Events that --skip-errors passes over, and the tables that are not what a server's would be
then."""

from __future__ import annotations

import re
from collections.abc import Iterable

from applier.binlog.events import Query
from applier.binlog.selection.table_filter import StatementNames
from applier.errors import NOT_SUPPORTED, ReplicationError
from applier.options import ReplayOptions
from applier.result import ReplayResult
from applier.tables.catalog import Tables
from applier.tables.sql.statement_names import names_of, text_and_lexis
from applier.tables.sql.stored_calls import may_call_stored

_CALLS = re.compile(r"(?i)\b(CALL|EXECUTE)\b")
_UNKNOWN = ""
"""Among the tables of `ReplayResult.inexact`: any table may have been changed."""
_NO_TABLE = (1051, 1146)
_DROPS = re.compile(rb"(?i)\s*DROP\s+(TABLE|DATABASE|SCHEMA)\b")


class InexactTables:
    """`ReplayResult.inexact` while it grows."""

    __slots__ = ("options", "result", "tables")

    def __init__(self, options: ReplayOptions, result: ReplayResult, tables: Tables) -> None:
        self.options = options
        self.result = result
        self.tables = tables

    def pass_over(self, error: ReplicationError, query: Query | None = None) -> None:
        """An event that could not be opened: raises its error unless that is in the skip list."""
        error = self._of_its_cause(error)
        if not self.options.skips(error.number):
            raise error
        if error.number == NOT_SUPPORTED:
            database, dot, table = (error.table or "").partition(".")
            changed = {f"{self.options.rewrite.get(database, database)}{dot}{table}"}
            if query is not None:
                changed = self._changed(query)
                if may_call_stored(*text_and_lexis(query)):
                    changed.add(_UNKNOWN)
            self._add(changed, error.message)
            if query is not None:
                self.forget_dropped(query)
        self.result.note(
            f"skipped by --skip-errors: {error.message}",
            number=error.number,
            file=error.file,
            position=error.position,
            table=error.table,
        )

    def _of_its_cause(self, error: ReplicationError) -> ReplicationError:
        """The error; where a table is not there since what makes it was passed over, the error of
        that."""
        database, dot, table = (error.table or "").partition(".")
        name = f"{self.options.rewrite.get(database, database)}{dot}{table}"
        reason = self.result.inexact.get(name)
        if error.number not in _NO_TABLE or reason is None or name in self.tables:
            return error
        return ReplicationError(
            NOT_SUPPORTED,
            f"{error.message}: what makes it was passed over ({reason})",
            file=error.file,
            position=error.position,
            table=error.table,
            hint=error.hint,
        )

    def pass_on(self, query: Query) -> None:
        """What a statement makes of a table that is not exact is not exact: RENAME TABLE, INSERT …
        SELECT, CREATE TABLE … LIKE."""
        if not self.result.inexact:
            return
        sql = query.sql.decode("utf-8", "replace").lower()
        for table, reason in list(self.result.inexact.items()):
            if _is_named(table.rpartition(".")[2].lower(), sql):
                self._add(self._changed(query), reason)

    def forget_dropped(self, query: Query) -> None:
        """A table that was dropped is forgotten: what is made under its name later is exact."""
        if not (self.result.inexact and _DROPS.match(query.sql)):
            return
        names, rewrite = self._names(query), self.options.rewrite
        dropped = {f"{rewrite.get(database, database)}.{table}" for database, table in names.tables}
        databases = {rewrite.get(name, name) for name in names.databases}
        for table in list(self.result.inexact):
            is_named = table in dropped or table.partition(".")[0] in databases
            if is_named and table not in self.tables:
                del self.result.inexact[table]

    def _names(self, query: Query) -> StatementNames:
        return names_of(query, lower_case_names=self.options.lower_case_names)

    def _add(self, tables: Iterable[str], reason: str) -> None:
        for table in tables:
            self.result.inexact.setdefault(table, reason)

    def _changed(self, query: Query) -> set[str]:
        """Tables that a statement changes, by their names here, and those that follow them by
        foreign keys and triggers; with _UNKNOWN where a view, or what a trigger calls, changes
        others."""
        rewrite = self.options.rewrite
        left = [
            (rewrite.get(database, database), name) for database, name in self._names(query).tables
        ]
        found = set(left)
        unknown = not found
        while left:
            name = left.pop()
            unknown = unknown or name in self.tables.views
            new = self.tables.foreign_keys.followers(name, "on_delete", "on_update")
            for body in self.tables.triggers.bodies(*name):
                new |= self._named_in(body)
                unknown = unknown or self._may_change_others(body)
            left += new - found
            found |= new
        return {f"{database}.{name}" for database, name in found} | (
            {_UNKNOWN} if unknown else set()
        )

    def _may_change_others(self, body: str) -> bool:
        """Whether a trigger's body may change tables that it does not name: by what it calls, or
        through a view."""
        names_view = any(_is_named(view.lower(), body.lower()) for _, view in self.tables.views)
        return names_view or _CALLS.search(body) is not None or may_call_stored(body)

    def _named_in(self, body: str) -> set[tuple[str, str]]:
        definitions = (table.definition for table in self.tables)
        sql = body.lower()
        return {(one.database, one.name) for one in definitions if _is_named(one.name.lower(), sql)}


def _is_named(table: str, sql: str) -> bool:
    """Whether a name stands in a statement, and not within a longer one; both in lower case.

    A column or a text of that name counts, too: rather a table too many is not comparable."""
    return any(
        name in sql and re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", sql) is not None
        for name in {table, table.replace("`", "``")}
    )
