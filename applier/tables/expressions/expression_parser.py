"""SQL expressions to operands by recursive descent, with MySQL's grammar (`expr` to `simple_expr`,
sql/sql_yacc.yy).

Each rule of the grammar is one method. What the grammar knows and this does not is refused with
1235.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from applier.binlog.charsets import ALIASES, CHARSETS, charset_of_collation_name, literal_bytes
from applier.errors import ReplicationError
from applier.tables.expressions.bit_functions import BIT_FUNCTIONS
from applier.tables.expressions.calendar_functions import CALENDAR_FUNCTIONS
from applier.tables.expressions.calls import Function
from applier.tables.expressions.comparisons import among, between, compared
from applier.tables.expressions.date_functions import DATE_FUNCTIONS, UNITS, with_interval
from applier.tables.expressions.documents.json_functions import JSON_FUNCTIONS
from applier.tables.expressions.functions import FUNCTIONS
from applier.tables.expressions.literals import (
    bit_bytes,
    introduced,
    moment_literal,
    number_literal,
    string_literal,
    user_variable,
)
from applier.tables.expressions.operands import (
    EXPLICIT,
    Dialect,
    Operand,
    OperandKind,
    Session,
    as_text,
    column_operand,
    condition,
    constant,
    unsupported,
)
from applier.tables.expressions.operators import (
    arithmetic,
    bits,
    both,
    either,
    exclusive,
    inverse,
    inverted,
    is_null,
    is_truth,
    negative,
)
from applier.tables.expressions.patterns.like import like_operand
from applier.tables.expressions.patterns.regular_expressions import regexp_operand
from applier.tables.expressions.row_values import at_row, row_among, row_compared
from applier.tables.expressions.shape_functions import SHAPE_FUNCTIONS
from applier.tables.expressions.special_calls import (
    SPECIAL_CALLS,
    ExpressionGrammar,
    SubqueryReader,
)
from applier.tables.expressions.text_functions import TEXT_FUNCTIONS
from applier.tables.expressions.visible_columns import UNKNOWN_COLUMN, VisibleColumns
from applier.tables.sql.quoting import hex_bytes
from applier.tables.sql.sql_mode_flags import NO_MODES, SqlModeFlag
from applier.tables.sql.sql_text import Lexis, Parser
from lookup.table import TableDefinition

EXACT_FUNCTIONS: Mapping[str, Function] = {
    **FUNCTIONS, **TEXT_FUNCTIONS, **BIT_FUNCTIONS, **DATE_FUNCTIONS, **CALENDAR_FUNCTIONS,
    **JSON_FUNCTIONS, **SHAPE_FUNCTIONS,
}  # fmt: skip
"""By name; what is not here is refused."""
_COMPARISONS = ("=", "<=>", "<>", "!=", "<", "<=", ">", ">=")
_BINARY_LEVELS = {
    "|": 0, "&": 1, "<<": 2, ">>": 2, "+": 3, "-": 3, "*": 4, "/": 4, "DIV": 4, "%": 4, "MOD": 4,
    "^": 5,
}  # fmt: skip
_BITWISE = frozenset({"|", "&", "<<", ">>", "^"})
_WITHOUT_PARENTHESES = frozenset(
    "CURRENT_TIMESTAMP CURRENT_DATE CURRENT_TIME "
    "LOCALTIME LOCALTIMESTAMP UTC_TIMESTAMP UTC_DATE".split()
)
_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE")
_REFUSED = frozenset("INTERVAL EXISTS SELECT ROW MATCH DEFAULT IGNORE ROWNUM NEXT PREVIOUS".split())


def sql_parser(sql: str, dialect: Dialect) -> Parser:
    """A cursor over SQL as a session with these modes reads it."""
    return Parser(sql, Lexis.of_dialect(dialect))


class ExpressionParser:
    """`session`: where user variables have values, and so types; None where an expression cannot
    have any. `subqueries`: None where they are refused. `calls`: functions with a grammar of their
    own. Implements `ExpressionGrammar`."""

    def __init__(
        self,
        parser: Parser,
        columns: TableDefinition | VisibleColumns | None,
        dialect: Dialect,
        session: Session | None = None,
        subqueries: SubqueryReader | None = None,
        calls: Mapping[str, Callable[[ExpressionGrammar], Operand]] = SPECIAL_CALLS,
    ) -> None:
        self.parser = parser
        self.subqueries = subqueries
        self.calls = calls
        self.columns = (
            VisibleColumns.of(columns) if isinstance(columns, TableDefinition) else columns
        )
        self.dialect = dialect
        self.session = session

    # expr

    def expression(self) -> Operand:
        """OR and what binds tighter. Nothing binds what stands alone."""
        if self.parser.op(1) in (",", ")"):
            return self._primary()
        concatenates = self.dialect.sql_mode & SqlModeFlag.PIPES_AS_CONCAT
        left = self._exclusive()
        while self.parser.accept_any("OR", "" if concatenates else "||"):
            left = either(self._condition(left), self._condition(self._exclusive()))
        return left

    def _exclusive(self) -> Operand:
        left = self._both()
        while self.parser.accept("XOR"):
            left = exclusive(left, self._both())
        return left

    def _both(self) -> Operand:
        left = self._not()
        while self.parser.accept_any("AND", "&&"):
            left = both(self._condition(left), self._condition(self._not()))
        return left

    def _condition(self, operand: Operand) -> Operand:
        return operand if self.session is None else condition(operand, self.dialect)

    def _not(self) -> Operand:
        if not self.dialect.sql_mode & SqlModeFlag.HIGH_NOT_PRECEDENCE and self.parser.accept(
            "NOT"
        ):
            return inverse(self._not())
        return self._comparisons()

    def _comparisons(self) -> Operand:
        left = self._predicate()
        while True:
            operator = self.parser.op()
            if operator in _COMPARISONS:
                self.parser.at += 1
                if self.parser.word() in ("ALL", "ANY", "SOME"):
                    raise unsupported("a subquery")
                left = compared(operator, left, self._predicate(), self.dialect)
            elif self.parser.accept("IS"):
                left = self._is(left)
            else:
                return left

    def _is(self, left: Operand) -> Operand:
        negated = self.parser.accept("NOT")
        word = self.parser.accept_any("NULL", "TRUE", "FALSE", "UNKNOWN")
        if not word:
            raise self.parser.refuse("expected NULL, TRUE, FALSE or UNKNOWN")
        found = (
            is_null(left)
            if word == "NULL"
            else is_truth(left, wanted={"TRUE": True, "FALSE": False}.get(word))
        )
        return inverse(found) if negated else found

    def _row_predicate(self) -> Operand:
        left = self._row()
        negated = self.parser.accept("NOT")
        if negated or self.parser.word() == "IN":
            self.parser.expect("IN")
            self.parser.expect("(")
            if self.parser.word() in _QUERIES:
                raise unsupported("IN (SELECT …)")
            rows = [self._row()]
            while self.parser.accept(","):
                rows.append(self._row())
            self.parser.expect(")")
            found = row_among(left, rows, self.dialect)
            return inverse(found) if negated else found
        operator = self.parser.op()
        self.parser.at += 1
        return row_compared(operator, left, self._row(), self.dialect)

    def _row(self) -> list[Operand]:
        self.parser.accept("ROW")
        self.parser.expect("(")
        if self.parser.word() in _QUERIES:
            raise unsupported("a subquery")
        return self.arguments()

    def _predicate(self) -> Operand:
        if at_row(self.parser):
            return self._row_predicate()
        left = self.bit_expression()
        negated = (
            self.parser.word() == "NOT"
            and self.parser.word(1) in ("IN", "BETWEEN", "LIKE", "REGEXP", "RLIKE")
            and self.parser.accept("NOT")
        )
        if self.parser.accept("IN"):
            found = self._in(left)
        elif self.parser.accept("BETWEEN"):
            low = self.bit_expression()
            self.parser.expect("AND")
            found = between(left, low, self._predicate(), self.dialect)
        elif self.parser.accept("LIKE"):
            pattern = self.simple()
            found = like_operand(left, pattern, self._escape(), self.dialect)
        elif self.parser.accept_any("REGEXP", "RLIKE"):
            found = regexp_operand(left, self.bit_expression(), self.dialect)
        elif self.parser.word() in ("SOUNDS", "MEMBER"):
            raise unsupported(self.parser.word())
        else:
            return left
        return inverse(found) if negated else found

    def _in(self, left: Operand) -> Operand:
        self.parser.expect("(")
        if self.parser.word() == "SELECT" and self.subqueries is not None:
            found = self.subqueries.among(left)
            self.parser.expect(")")
            return found
        if self.parser.word() in _QUERIES:
            raise unsupported("IN (SELECT …)")
        items = self.arguments()
        return among(left, items, self.dialect)

    def _escape(self) -> str:
        if self.parser.accept("ESCAPE"):
            given = self.parser.text()
            if len(given) > 1:
                raise unsupported(f"ESCAPE '{given}'")
            return given
        return "" if self.dialect.sql_mode & SqlModeFlag.NO_BACKSLASH_ESCAPES else "\\"

    # bit_expr

    def bit_expression(self) -> Operand:
        return self._binary(0)

    def _binary(self, level: int) -> Operand:
        left = self._concatenated()
        while True:
            operator = self.parser.op() or self.parser.word()
            if _BINARY_LEVELS.get(operator, -1) < level:
                return left
            self.parser.at += 1
            if operator in "+-" and self.parser.word() == "INTERVAL":
                left = self.interval(left, 1 if operator == "+" else -1)
                continue
            right = self._binary(_BINARY_LEVELS[operator] + 1)
            if operator in _BITWISE:
                left = bits(operator, left, right)
            else:
                left = arithmetic("%" if operator == "MOD" else operator, left, right, self.dialect)

    def _concatenated(self) -> Operand:
        left = self.simple()
        while self.dialect.sql_mode & SqlModeFlag.PIPES_AS_CONCAT and self.parser.accept("||"):
            left = self.call("CONCAT", [left, self.simple()])
        return left

    def interval(self, date: Operand, sign: int) -> Operand:
        self.parser.expect("INTERVAL")
        count = self.expression()
        unit = self.parser.word()
        if unit not in UNITS:
            raise unsupported(f"INTERVAL … {unit}")
        self.parser.at += 1
        return with_interval(date, count, unit, sign)

    # simple_expr

    def simple(self) -> Operand:
        found = self._primary()
        while self.parser.accept("COLLATE"):
            found = self._collated(found, self.parser.name())
        return found

    def _collated(self, operand: Operand, collation: str) -> Operand:
        text = as_text(operand, self.dialect)
        if text.kind is OperandKind.TEXT and charset_of_collation_name(
            collation
        ) != charset_of_collation_name(text.collation or collation):
            raise unsupported(f"{operand.sql} COLLATE {collation}")
        return replace(text, collation=collation.lower(), strength=EXPLICIT)

    def _primary(self) -> Operand:
        parser = self.parser
        if parser.accept("-"):
            return negative(self.simple(), self.dialect)
        if parser.accept("+"):
            return self.simple()
        if parser.accept("~"):
            return inverted(self.simple())
        if parser.accept("!") or (
            self.dialect.sql_mode & SqlModeFlag.HIGH_NOT_PRECEDENCE and parser.accept("NOT")
        ):
            return inverse(self.simple())
        if parser.accept("("):
            return self._parenthesized()
        return self._word() if parser.word() else self._literal()

    def _parenthesized(self) -> Operand:
        if self.parser.word() == "SELECT" and self.subqueries is not None:
            inner = self.subqueries.scalar()
        elif self.parser.word() in _QUERIES:
            raise unsupported("a subquery")
        else:
            inner = self.expression()
        self.parser.expect(")")
        return (
            replace(inner, literal=False, sql=f"({inner.sql})")
            if inner.kind is not OperandKind.NULL
            else inner
        )

    def _literal(self) -> Operand:
        token = self.parser.next()
        if token.kind == "number":
            return number_literal(token.value)
        if token.kind == "hex":
            kind = (
                OperandKind.BINARY
                if self.dialect.mariadb and token.value[0] in "xX"
                else OperandKind.HEX
            )
            return constant(kind, hex_bytes(token.value), sql=token.value[:40])
        if token.kind == "bit":
            return constant(OperandKind.HEX, bit_bytes(token.value), sql=token.value[:40])
        if token.kind == "string":
            self.parser.at -= 1
            return self._string()
        if token.kind == "quoted":
            self.parser.at -= 1
            return self._name()
        self.parser.at -= 1
        raise self.parser.refuse("expected an expression")

    def _string(self, introducer: str | None = None) -> Operand:
        token = self.parser.tokens[self.parser.at]
        national = self.parser.sql[token.start] in "nN"
        text = self.parser.text()
        if introducer is not None:
            return introduced(introducer, literal_bytes(self.dialect.client, text), self.dialect)
        if national:
            return constant(
                OperandKind.TEXT, text, sql=f"'{text[:40]}'", collation="utf8mb3_general_ci"
            )
        if (
            not text
            and self.dialect.mariadb
            and self.dialect.sql_mode & SqlModeFlag.EMPTY_STRING_IS_NULL
        ):
            return constant(OperandKind.NULL, None, sql="''")
        return string_literal(text, self.dialect)

    # words

    def _word(self) -> Operand:
        parser = self.parser
        word = parser.word()
        special = self.calls.get(word)
        if parser.op(1) == "(":
            parser.at += 1
            if special is not None:
                return special(self)
            parser.expect("(")
            # words among the arguments of another function may be its own, and no columns
            return self.call(word, self.arguments() if word in EXACT_FUNCTIONS else [])
        if word in ("NULL", "TRUE", "FALSE"):
            parser.at += 1
            if word == "NULL":
                return constant(OperandKind.NULL, None, sql=word)
            return constant(OperandKind.INTEGER, int(word == "TRUE"), sql=word)
        if word in ("DATE", "TIME", "TIMESTAMP") and parser.at_string(1):
            parser.at += 1
            return moment_literal(word, parser.text())
        if word in _WITHOUT_PARENTHESES:
            parser.at += 1
            return self.call(word, [])
        if special is not None and word in ("CASE", "BINARY"):
            parser.at += 1
            return special(self)
        if word.startswith("@"):
            return self._variable()
        if (
            word.startswith("_")
            and ALIASES.get(word[1:].lower(), word[1:].lower()) in CHARSETS
            and parser.at + 1 < len(parser.tokens)
        ):
            found = self._introduced(word[1:].lower())
            if found is not None:
                return found
        if word in _REFUSED:
            raise unsupported(f"{word} in an expression")
        return self._name()

    def _introduced(self, name: str) -> Operand | None:
        token = self.parser.tokens[self.parser.at + 1]
        if token.kind not in ("string", "hex", "bit"):
            return None
        self.parser.at += 1
        if token.kind == "string":
            return self._string(name)
        self.parser.at += 1
        return introduced(
            name,
            hex_bytes(token.value) if token.kind == "hex" else bit_bytes(token.value),
            self.dialect,
        )

    def _name(self) -> Operand:
        """[[database.]table.]column, and column -> path."""
        names = self.names()
        of_cursor = self.parser.op() == "%" and self.parser.word(1) in _OF_CURSORS
        if self.parser.op() == "(" or (of_cursor and self.dialect.mariadb):
            raise unsupported(f"function {'.'.join(names)}")
        operand = self.column(names)
        while arrow := self.parser.accept_any("->", "->>"):
            path = constant(OperandKind.TEXT, self.parser.text(), collation=self.dialect.collation)
            operand = self.call("JSON_EXTRACT", [operand, path])
            if arrow == "->>":
                operand = self.call("JSON_UNQUOTE", [operand])
        return operand

    def names(self) -> list[str]:
        found = [self.parser.name()]
        while self.parser.accept("."):
            found.append(self.parser.name())
        return found

    def column(self, names: list[str], *, inserted: bool = False) -> Operand:
        of_program = None if self.session is None else self.session.of_program
        if of_program is not None and (found := of_program(names)) is not None:
            return found
        at, column = (self.columns or VisibleColumns()).use(names)
        return column_operand(column, at, self.dialect, inserted=inserted)

    def read_default(self, sql: str) -> Operand:
        dialect = replace(self.dialect, sql_mode=NO_MODES)
        try:
            return ExpressionParser(sql_parser(sql, dialect), None, dialect).expression()
        except ReplicationError as error:
            if error.number != UNKNOWN_COLUMN:
                raise
            raise unsupported(f"the default {sql[:40]}, which other columns decide") from None

    def _variable(self) -> Operand:
        word = self.parser.next().value
        if word.startswith("@@") or self.session is None or self.parser.op() == ":=":
            raise unsupported(word)
        if word == "@":
            word += self.parser.name()
        return user_variable(word, self.session.variables.get(word[1:].lower()))

    # calls

    def arguments(self) -> list[Operand]:
        found: list[Operand] = []
        if self.parser.accept(")"):
            return found
        while True:
            found.append(self.expression())
            if self.parser.accept(")"):
                return found
            self.parser.expect(",")

    def call(self, name: str, arguments: list[Operand]) -> Operand:
        if self.dialect.mariadb and self.dialect.sql_mode & SqlModeFlag.ORACLE:
            raise unsupported(f"function {name} in sql_mode=ORACLE")
        if name in _FROZEN and self.session is None and self.columns is not None:
            raise unsupported(f"function {name} in the definition of a table")
        function = EXACT_FUNCTIONS.get(name)
        if function is None:
            raise unsupported(f"function {name}")
        return function.call(name, arguments, self.dialect)


_OF_CURSORS = frozenset({"ISOPEN", "ROWCOUNT", "FOUND", "NOTFOUND"})
"""Behind a cursor's name and % in sql_mode=ORACLE."""
_FROZEN = frozenset({"TIME", "TIMESTAMP"})
"""A definition has them as CAST with the digits that its column had then (5.7.29, 9.7.4, MariaDB
10.11.18), which a later ALTER TABLE does not change."""
