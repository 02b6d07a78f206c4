"""What triggers do, in memory: SET of columns of the new row, IF, BEGIN … END, and INSERT,
REPLACE, UPDATE and DELETE (`process_triggers`, sql/table_trigger_dispatcher.cc).

Everything else that a body may hold (variables, loops, SELECT … INTO, calls) is refused by name
before a row changes, and so are values whose moment the versions see differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from applier.binlog.types import ValueRefused
from applier.errors import InputError, ReplicationError
from applier.tables.catalog import Tables
from applier.tables.dml.fired_triggers import FiredTriggers, Program
from applier.tables.dml.row_writer import StatementRows, StatementSession
from applier.tables.expressions.expression_parser import ExpressionParser, sql_parser
from applier.tables.expressions.operands import (
    Operand,
    Scope,
    column_operand,
    condition,
    truth,
    unsupported,
)
from applier.tables.expressions.visible_columns import UNKNOWN_COLUMN
from applier.tables.sql.sql_text import Token
from applier.tables.triggers import Trigger, not_run
from lookup.table import Column, TableDefinition

Execute = Callable[[str, str, StatementSession], int]
"""Carries out a statement of a body: its SQL, the default database and the session."""
_CHANGES = ("INSERT", "REPLACE", "UPDATE", "DELETE")
_OF_THE_SESSION = frozenset(
    "LAST_INSERT_ID RAND UUID ROW_COUNT FOUND_ROWS SYSDATE CONNECTION_ID USER CURRENT_USER".split()
)
_ORDERED = frozenset({"IGNORE", "DUPLICATE", "SELECT"})
"""Words of an INSERT that may see what other rows' triggers did."""


def fired_triggers(
    triggers: Iterable[Trigger],
    event: str,
    definition: TableDefinition,
    session: StatementSession,
    execute: Execute,
    unseen: frozenset[int] = frozenset(),
) -> FiredTriggers:
    """What the rows of a statement fire. `unseen`: columns whose value before the row is stored is
    not known.

    Raises ReplicationError 1235 for a body that is not run here.
    """
    fired = FiredTriggers()
    for trigger in triggers:
        hidden = unseen if trigger.time == "BEFORE" else frozenset()
        try:
            reader = _BodyReader(trigger, event, definition, session, execute, fired, hidden)
            fired.programs[trigger.time].append(reader.program())
        except (InputError, ReplicationError) as error:
            reason = error.message.removeprefix("this expression is not supported in memory: ")
            raise not_run(trigger, event, f"which is not run in memory: {reason}") from None
        if fired.sets_variables and fired.reads_variables:
            raise not_run(trigger, event, "which is not run in memory: variables that it sets")
    return fired


def refuse_cascades(
    tables: Tables,
    session: StatementSession,
    definitions: Iterable[TableDefinition],
    *actions: str,
) -> None:
    """Raises ReplicationError 1235 where a foreign key of 9.7 may fire a trigger of another table
    (enable_cascade_triggers). `actions`: on_delete, on_update."""
    if not session.cascades_fire:
        return
    for definition in definitions:
        parent = definition.database, definition.name
        for child in tables.foreign_keys.followers(parent, *actions):
            tables.triggers.refuse(*child, "UPDATE", "DELETE")


class _BodyReader:
    """One trigger's body for one statement: read once, run for each row."""

    def __init__(
        self, trigger: Trigger, event: str, definition: TableDefinition,
        session: StatementSession, execute: Execute, fired: FiredTriggers, unseen: frozenset[int],
    ) -> None:  # fmt: skip
        self.trigger = trigger
        self.event = event
        self.definition = definition
        self.execute = execute
        self.fired = fired
        self.unseen = unseen
        self.parser = sql_parser(trigger.body, trigger.dialect)
        self.is_nested = bool(session.changing)
        made = trigger.dialect
        expressions = replace(
            session.expressions, sql_mode=made.sql_mode, client=made.client,
            collation=made.collation, of_program=self._column,
        )  # fmt: skip
        changing = session.changing | {(definition.database, definition.name)}
        self.session = replace(session, expressions=expressions, insert_id=None, changing=changing)
        self.rows = StatementRows(self.session)

    def program(self) -> Program:
        """The whole body."""
        for token in self.parser.tokens:
            word = token.value.upper()
            of_server = word[:2] == "@@" or (word[:1] == "@" and self.is_nested)
            if token.kind == "word" and (of_server or word in _OF_THE_SESSION):
                raise unsupported(token.value)
        found = self._statement()
        self.parser.accept(";")
        if not self.parser.done:
            raise unsupported(self.parser.rest()[:40])
        return found

    def _statement(self) -> Program:
        parser = self.parser
        if parser.accept("BEGIN"):
            inner = self._block("END")
            parser.expect("END")
            return inner
        if parser.accept("IF"):
            return self._if()
        if parser.accept("SET"):
            return self._set()
        if parser.word() in _CHANGES:
            return self._change()
        raise unsupported(f"{parser.word() or parser.rest()[:20]} in a trigger")

    def _block(self, *ends: str) -> Program:
        """Statements up to one of the words `ends`, which stays at the cursor."""
        steps: list[Program] = []
        while not self.parser.done and self.parser.word() not in ends:
            steps.append(self._statement())
            self.parser.expect(";")
        return _in_turn(steps)

    def _if(self) -> Program:
        """Behind IF or ELSEIF."""
        parser = self.parser
        chosen = truth(condition(self._expression(), self.trigger.dialect))
        parser.expect("THEN")
        then = self._block("ELSEIF", "ELSE", "END")
        otherwise: Program = _nothing
        if parser.accept("ELSEIF"):
            otherwise = self._if()
        else:
            if parser.accept("ELSE"):
                otherwise = self._block("END")
            parser.expect("END", "IF")
        session = self.session.expressions

        def run() -> None:
            then() if chosen(Scope((), session)) else otherwise()

        return run

    def _set(self) -> Program:
        steps = [self._assignment()]
        while self.parser.accept(","):
            steps.append(self._assignment())
        return _in_turn(steps)

    def _assignment(self) -> Program:
        """NEW.column = value, with the SQL mode that the trigger was made in."""
        parser = self.parser
        if parser.word().startswith("@"):
            return self._variable()
        if self.trigger.time == "AFTER" or not parser.accept("NEW", "."):
            raise unsupported(f"SET {parser.rest()[:20]} in a trigger")
        at, column = self._place(parser.name())
        if column.auto_increment or column.generated or column.on_update is not None:
            raise unsupported(f"SET of the column {column.name} in a trigger")
        if at in self.unseen and column.default is not None and self.trigger.dialect.old:
            # 5.6 puts the moment in place of what the trigger set
            raise unsupported(
                f"SET of the column {column.name}, which has its DEFAULT, in a trigger"
            )
        if self.event == "UPDATE" and any(one.generated for one in self.definition.columns):
            raise unsupported("SET in a trigger over UPDATE of a table with generated columns")
        if not parser.accept_any("=", ":="):
            raise parser.refuse("expected =")
        write = self.rows.writer(column, self._expression())
        row, session = self.fired.row, self.session.expressions
        strict = self.rows.strict(self.definition, first=True)

        def run() -> None:
            assert row.new is not None
            try:
                value = self.rows.fitted(write, Scope((), session), strict=strict)
            except ValueRefused as refused:
                if not self.trigger.dialect.old:
                    raise
                # 5.6 is strict here now and then only
                raise unsupported(f"{refused.message} in a trigger") from None
            if value is None and not column.nullable:
                raise unsupported(f"NULL for the NOT NULL column {column.name} in a trigger")
            row.new = (*row.new[:at], value, *row.new[at + 1 :])

        return run

    def _variable(self) -> Program:
        """@name = value. What a later statement reads of it stands before that one in the log."""
        parser = self.parser
        parser.at += 1 if len(parser.word()) > 1 else 2
        if not parser.accept_any("=", ":="):
            raise parser.refuse("expected =")
        self._expression()
        self.fired.sets_variables = True
        return _nothing

    def _change(self) -> Program:
        """INSERT, REPLACE, UPDATE or DELETE, which is carried out as any statement is."""
        parser, start = self.parser, self.parser.at
        while not parser.done and parser.op() != ";":
            parser.at += 1
        tokens = parser.tokens[start : parser.at]
        end = len(parser.sql) if parser.done else parser.tokens[parser.at].start
        sql, database = parser.sql[tokens[0].start : end], self.trigger.database
        self.fired.changes_tables = True
        words = {token.value.upper() for token in tokens if token.kind == "word"}
        self._note_variables(tokens)
        if tokens[0].value.upper() != "INSERT" or words & _ORDERED:
            self.fired.needs_order = True

        def run() -> None:
            self.execute(sql, database, self.session)

        return run

    # expressions

    def _expression(self) -> Operand:
        session, start = self.session.expressions, self.parser.at
        found = ExpressionParser(self.parser, None, self.trigger.dialect, session).expression()
        self._note_variables(self.parser.tokens[start : self.parser.at])
        return found

    def _note_variables(self, read: Sequence[Token]) -> None:
        self.fired.reads_variables |= any(
            one.kind == "word" and one.value.startswith("@") for one in read
        )

    def _column(self, names: list[str]) -> Operand | None:
        """The operand of NEW.column or OLD.column; None for any other name."""
        which = names[0].upper()
        if len(names) != 2 or which not in ("NEW", "OLD"):
            return None
        if (which, self.event) in (("OLD", "INSERT"), ("NEW", "DELETE")):
            raise unsupported(f"{which} in a trigger over {self.event}")
        at, column = self._place(names[1])
        waits = column.generated and which == "NEW" and self.trigger.time == "BEFORE"
        if waits or at in self.unseen:
            raise unsupported(f"{which}.{column.name} before the row is stored")
        if column.auto_increment and self.event == "INSERT" and self.trigger.time == "BEFORE":
            raise unsupported(f"{which}.{column.name} before the row has its number")
        inner = column_operand(column, at, self.trigger.dialect)
        row, is_new = self.fired.row, which == "NEW"

        def value(scope: Scope) -> object:
            stored = row.new if is_new else row.old
            assert stored is not None
            return inner.value(Scope(stored, scope.session))

        return replace(inner, value=value)

    def _place(self, name: str) -> tuple[int, Column]:
        at = self.definition.positions.get(name.lower())
        if at is None:
            raise ReplicationError(UNKNOWN_COLUMN, f"Unknown column '{name}' in a trigger")
        return at, self.definition.columns[at]


def _in_turn(steps: list[Program]) -> Program:
    def run() -> None:
        for step in steps:
            step()

    return run


def _nothing() -> None:
    """A step that changes neither the row nor a table."""
