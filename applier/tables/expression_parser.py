"""SQL expressions to operands by recursive descent, with MySQL's grammar (`expr` to `simple_expr`, sql/sql_yacc.yy).

Each rule of the grammar is one method. What the grammar knows and this does not is refused with 1235.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal

from applier.binlog.charsets import CHARSETS, charset_of_collation_name, literal_bytes
from applier.errors import ReplicationError
from applier.tables.casts import cast
from applier.tables.comparisons import among, between, compared, comparison, like_operand
from applier.tables.date_functions import DATE_FUNCTIONS, UNITS, with_interval
from applier.tables.functions import FUNCTIONS, Function, trimmed
from applier.tables.json_functions import JSON_FUNCTIONS
from applier.tables.literals import bit_bytes, introduced, moment_literal, number_literal, string_literal
from applier.tables.operands import (
    COLUMN,
    EXPLICIT,
    Dialect,
    Operand,
    OperandKind,
    Session,
    as_text,
    column_operand,
    constant,
    shared_collation,
    truth,
    unsupported,
)
from applier.tables.operators import (
    arithmetic,
    bits,
    both,
    choice,
    either,
    exclusive,
    inverse,
    inverted,
    is_null,
    is_truth,
    negative,
    null_or,
)
from applier.tables.sql_mode_flags import SqlModeFlag
from applier.tables.sql_text import Lexis, Parser, hex_bytes
from lookup.table import TableDefinition

_COMPARISONS = ("=", "<=>", "<>", "!=", "<", "<=", ">", ">=")
_BINARY_LEVELS = {"|": 0, "&": 1, "<<": 2, ">>": 2, "+": 3, "-": 3, "*": 4, "/": 4, "DIV": 4, "%": 4, "MOD": 4, "^": 5}
_BITWISE = frozenset({"|", "&", "<<", ">>", "^"})
_WITHOUT_PARENTHESES = frozenset("CURRENT_TIMESTAMP CURRENT_DATE CURRENT_TIME LOCALTIME LOCALTIMESTAMP UTC_TIMESTAMP UTC_DATE".split())
_EXTRACTED = frozenset({"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND", "QUARTER"})


def sql_parser(sql: str, dialect: Dialect) -> Parser:
    """A cursor over SQL as a session with these modes reads it."""
    return Parser(sql, Lexis.of(dialect.sql_mode, client=dialect.client, mariadb=dialect.mariadb, version=dialect.comment_version))


class ExpressionParser:
    """`session`: where user variables have values, and so types; None where an expression cannot have any."""

    def __init__(self, parser: Parser, definition: TableDefinition | None, dialect: Dialect, session: Session | None = None) -> None:
        self.parser = parser
        self.definition = definition
        self.dialect = dialect
        self.session = session

    # expr

    def expression(self) -> Operand:
        """OR and what binds tighter. Nothing binds what stands alone."""
        if self.parser.op(1) in (",", ")"):
            return self._primary()
        left = self._exclusive()
        while self.parser.accept_any("OR", "" if self.dialect.sql_mode & SqlModeFlag.PIPES_AS_CONCAT else "||"):
            left = either(left, self._exclusive())
        return left

    def _exclusive(self) -> Operand:
        left = self._both()
        while self.parser.accept("XOR"):
            left = exclusive(left, self._both())
        return left

    def _both(self) -> Operand:
        left = self._not()
        while self.parser.accept_any("AND", "&&"):
            left = both(left, self._not())
        return left

    def _not(self) -> Operand:
        if not self.dialect.sql_mode & SqlModeFlag.HIGH_NOT_PRECEDENCE and self.parser.accept("NOT"):
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
        found = is_null(left) if word == "NULL" else is_truth(left, wanted={"TRUE": True, "FALSE": False}.get(word))
        return inverse(found) if negated else found

    def _predicate(self) -> Operand:
        left = self._binary()
        negated = self.parser.word() == "NOT" and self.parser.word(1) in ("IN", "BETWEEN", "LIKE") and self.parser.accept("NOT")
        if self.parser.accept("IN"):
            found = self._in(left)
        elif self.parser.accept("BETWEEN"):
            low = self._binary()
            self.parser.expect("AND")
            found = between(left, low, self._predicate(), self.dialect)
        elif self.parser.accept("LIKE"):
            pattern = self._simple()
            found = like_operand(left, pattern, self._escape(), self.dialect)
        elif self.parser.word() in ("REGEXP", "RLIKE", "SOUNDS", "MEMBER"):
            raise unsupported(self.parser.word())
        else:
            return left
        return inverse(found) if negated else found

    def _in(self, left: Operand) -> Operand:
        self.parser.expect("(")
        if self.parser.word() in ("SELECT", "WITH", "VALUES", "TABLE"):
            raise unsupported("IN (SELECT …)")
        items = self._arguments()
        return among(left, items, self.dialect)

    def _escape(self) -> str:
        if self.parser.accept("ESCAPE"):
            given = self.parser.text()
            if len(given) > 1:
                raise unsupported(f"ESCAPE '{given}'")
            return given
        return "" if self.dialect.sql_mode & SqlModeFlag.NO_BACKSLASH_ESCAPES else "\\"

    # bit_expr

    def _binary(self, level: int = 0) -> Operand:
        left = self._concatenated()
        while _BINARY_LEVELS.get(operator := self.parser.op() or self.parser.word(), -1) >= level:
            self.parser.at += 1
            if operator in "+-" and self.parser.word() == "INTERVAL":
                left = self._interval(left, 1 if operator == "+" else -1)
                continue
            right = self._binary(_BINARY_LEVELS[operator] + 1)
            if operator in _BITWISE:
                left = bits(operator, left, right)
            else:
                left = arithmetic("%" if operator == "MOD" else operator, left, right, self.dialect)
        return left

    def _concatenated(self) -> Operand:
        left = self._simple()
        while self.dialect.sql_mode & SqlModeFlag.PIPES_AS_CONCAT and self.parser.accept("||"):
            left = self._call("CONCAT", [left, self._simple()])
        return left

    def _interval(self, date: Operand, sign: int) -> Operand:
        self.parser.expect("INTERVAL")
        count = self.expression()
        unit = self.parser.word()
        if unit not in UNITS:
            raise unsupported(f"INTERVAL … {unit}")
        self.parser.at += 1
        return with_interval(date, count, unit, sign)

    # simple_expr

    def _simple(self) -> Operand:
        found = self._primary()
        while self.parser.accept("COLLATE"):
            found = self._collated(found, self.parser.name())
        return found

    def _collated(self, operand: Operand, collation: str) -> Operand:
        text = as_text(operand, self.dialect)
        if text.kind is OperandKind.TEXT and charset_of_collation_name(collation) != charset_of_collation_name(text.collation or collation):
            raise unsupported(f"{operand.sql} COLLATE {collation}")
        return replace(text, collation=collation.lower(), strength=EXPLICIT)

    def _primary(self) -> Operand:
        parser = self.parser
        if parser.accept("-"):
            return negative(self._simple(), self.dialect)
        if parser.accept("+"):
            return self._simple()
        if parser.accept("~"):
            return inverted(self._simple())
        if parser.accept("!") or (self.dialect.sql_mode & SqlModeFlag.HIGH_NOT_PRECEDENCE and parser.accept("NOT")):
            return inverse(self._simple())
        if parser.accept("("):
            return self._parenthesized()
        return self._word() if parser.word() else self._literal()

    def _parenthesized(self) -> Operand:
        if self.parser.word() in ("SELECT", "WITH", "VALUES", "TABLE"):
            raise unsupported("a subquery")
        inner = self.expression()
        if self.parser.op() == ",":
            raise unsupported("a row of values")
        self.parser.expect(")")
        return replace(inner, literal=False, sql=f"({inner.sql})") if inner.kind is not OperandKind.NULL else inner

    def _literal(self) -> Operand:
        token = self.parser.next()
        if token.kind == "number":
            return number_literal(token.value)
        if token.kind == "hex":
            kind = OperandKind.BINARY if self.dialect.mariadb and token.value[0] in "xX" else OperandKind.HEX
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
            return constant(OperandKind.TEXT, text, sql=f"'{text[:40]}'", collation="utf8mb3_general_ci")
        if not text and self.dialect.mariadb and self.dialect.sql_mode & SqlModeFlag.EMPTY_STRING_IS_NULL:
            return constant(OperandKind.NULL, None, sql="''")
        return string_literal(text, self.dialect)

    # words

    def _word(self) -> Operand:
        parser = self.parser
        word = parser.word()
        special = _SPECIAL.get(word)
        if parser.op(1) == "(":
            parser.at += 1
            if special is not None:
                return special(self)
            parser.expect("(")
            return self._call(word, self._arguments())
        if word in ("NULL", "TRUE", "FALSE"):
            parser.at += 1
            if word == "NULL":
                return constant(OperandKind.NULL, None, sql=word)
            return constant(OperandKind.INTEGER, int(word == "TRUE"), sql=word)
        if word in ("DATE", "TIME", "TIMESTAMP") and parser.at + 1 < len(parser.tokens) and parser.tokens[parser.at + 1].kind == "string":
            parser.at += 1
            return moment_literal(word, parser.text())
        if word in _WITHOUT_PARENTHESES:
            parser.at += 1
            return self._call(word, [])
        if special is not None and word in ("CASE", "BINARY"):
            parser.at += 1
            return special(self)
        if word.startswith("@"):
            return self._variable()
        if word.startswith("_") and word[1:].lower() in CHARSETS and parser.at + 1 < len(parser.tokens):
            found = self._introduced(word[1:].lower())
            if found is not None:
                return found
        if word in ("INTERVAL", "EXISTS", "SELECT", "ROW", "MATCH", "DEFAULT", "ROWNUM", "NEXT", "PREVIOUS"):
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
        return introduced(name, hex_bytes(token.value) if token.kind == "hex" else bit_bytes(token.value), self.dialect)

    def _name(self) -> Operand:
        """[[database.]table.]column, and column -> path."""
        operand = self._column(self._names())
        while arrow := self.parser.accept_any("->", "->>"):
            path = constant(OperandKind.TEXT, self.parser.text(), collation=self.dialect.collation)
            operand = self._call("JSON_EXTRACT", [operand, path])
            if arrow == "->>":
                operand = self._call("JSON_UNQUOTE", [operand])
        return operand

    def _names(self) -> list[str]:
        found = [self.parser.name()]
        while self.parser.accept("."):
            found.append(self.parser.name())
        return found

    def _column(self, names: list[str], *, inserted: bool = False) -> Operand:
        definition = self.definition
        at = None if definition is None else definition.positions.get(names[-1].lower())
        if at is None or definition is None:
            raise ReplicationError(1054, f"Unknown column '{'.'.join(names)}' in 'field list'")
        if names[-2:-1] and names[-2].lower() != definition.name.lower():
            raise unsupported(f"the column {'.'.join(names)}")
        return column_operand(definition.columns[at], at, self.dialect, inserted=inserted)

    def _variable(self) -> Operand:
        word = self.parser.next().value
        if word.startswith("@@") or self.session is None or self.parser.op() == ":=":
            raise unsupported(word)
        if word == "@":
            word += self.parser.name()
        value = self.session.variables.get(word[1:].lower())
        if value is None:
            return constant(OperandKind.NULL, None, sql=word)
        kind = _VARIABLE_KINDS[type(value)]
        digits = max(-int(value.as_tuple().exponent), 0) if isinstance(value, Decimal) else 0
        unsigned = isinstance(value, int) and value >= 1 << 63
        return replace(constant(kind, value, sql=word, digits=int(digits), unsigned=unsigned, strength=COLUMN), literal=False)

    # calls

    def _arguments(self) -> list[Operand]:
        """Up to the closing parenthesis, which is passed."""
        found: list[Operand] = []
        if self.parser.accept(")"):
            return found
        while True:
            found.append(self.expression())
            if self.parser.accept(")"):
                return found
            self.parser.expect(",")

    def _call(self, name: str, arguments: list[Operand]) -> Operand:
        if self.dialect.mariadb and self.dialect.sql_mode & SqlModeFlag.ORACLE:
            raise unsupported(f"function {name} in sql_mode=ORACLE")
        function: Function | None = FUNCTIONS.get(name) or DATE_FUNCTIONS.get(name) or JSON_FUNCTIONS.get(name)
        if function is None:
            raise unsupported(f"function {name}")
        return function.call(name, arguments, self.dialect)

    def _cast(self) -> Operand:
        self.parser.expect("(")
        value = self.expression()
        self.parser.expect("AS")
        return self._cast_to(value)

    def _convert(self) -> Operand:
        self.parser.expect("(")
        value = self.expression()
        if self.parser.accept("USING"):
            raise unsupported("CONVERT … USING")
        self.parser.expect(",")
        return self._cast_to(value)

    def _cast_to(self, value: Operand) -> Operand:
        kind = self.parser.skip_until(")")
        self.parser.expect(")")
        return cast(value, kind, self.dialect)

    def _binary_cast(self) -> Operand:
        return cast(self._simple(), "BINARY", self.dialect)

    def _substring(self) -> Operand:
        self.parser.expect("(")
        arguments = [self.expression()]
        while self.parser.accept_any(",", "FROM", "FOR"):
            arguments.append(self.expression())
        self.parser.expect(")")
        return self._call("SUBSTRING", arguments)

    def _trim(self) -> Operand:
        self.parser.expect("(")
        side = self.parser.accept_any("BOTH", "LEADING", "TRAILING")
        what = self.expression() if self.parser.word() != "FROM" else string_literal(" ", self.dialect)
        if not self.parser.accept("FROM"):
            self.parser.expect(")")
            return self._call("TRIM", [what])
        texts = [as_text(self.expression(), self.dialect), as_text(what, self.dialect)]
        self.parser.expect(")")
        collation, strength = shared_collation(
            [text for text in texts if text.kind is OperandKind.TEXT] or [string_literal("", self.dialect)]
        )
        compute = null_or(texts, lambda text, cut: trimmed(text, cut, side or "BOTH"))
        return Operand(OperandKind.TEXT, compute, "TRIM(…)", collation=collation, strength=strength)

    def _position(self) -> Operand:
        self.parser.expect("(")
        wanted = self._binary()
        self.parser.expect("IN")
        value = self.expression()
        self.parser.expect(")")
        return self._call("LOCATE", [wanted, value])

    def _extract(self) -> Operand:
        self.parser.expect("(")
        unit = self.parser.word()
        self.parser.at += 1
        self.parser.expect("FROM")
        value = self.expression()
        self.parser.expect(")")
        if unit not in _EXTRACTED or value.kind is OperandKind.TIME:
            raise unsupported(f"EXTRACT({unit} …)")
        return self._call(unit, [value])

    def _date_add(self, sign: int) -> Operand:
        self.parser.expect("(")
        date = self.expression()
        self.parser.expect(",")
        if self.parser.word() == "INTERVAL":
            found = self._interval(date, sign)
        else:
            found = self._call("ADDDATE" if sign > 0 else "SUBDATE", [date, self.expression()])
        self.parser.expect(")")
        return found

    def _if(self) -> Operand:
        self.parser.expect("(")
        arguments = self._arguments()
        if len(arguments) != 3:
            raise unsupported("IF()")
        return choice([(truth(arguments[0]), arguments[1])], arguments[2], self.dialect)

    def _case(self) -> Operand:
        subject = None if self.parser.word() == "WHEN" else self.expression()
        branches = []
        while self.parser.accept("WHEN"):
            condition = self.expression()
            self.parser.expect("THEN")
            if subject is None:
                test: Callable[..., bool | None] = truth(condition)
            else:
                test = _equal(comparison(subject, condition, self.dialect))
            branches.append((test, self.expression()))
        otherwise = self.expression() if self.parser.accept("ELSE") else constant(OperandKind.NULL, None, sql="NULL")
        self.parser.expect("END")
        return choice(branches, otherwise, self.dialect)

    def _values(self) -> Operand:
        self.parser.expect("(")
        names = self._names()
        self.parser.expect(")")
        return self._column(names, inserted=True)

    def _random(self) -> Operand:
        self.parser.expect("(")
        self.parser.expect(")")
        return Operand(OperandKind.DOUBLE, lambda scope: scope.session.random(), "RAND()")

    def _last_insert_id(self) -> Operand:
        self.parser.expect("(")
        self.parser.expect(")")
        return Operand(OperandKind.INTEGER, lambda scope: scope.session.last_insert_id, "LAST_INSERT_ID()", unsigned=True)


def _equal(order: Callable[..., int | None]) -> Callable[..., bool | None]:
    return lambda scope: order(scope) == 0


_VARIABLE_KINDS: Mapping[type, OperandKind] = {
    int: OperandKind.INTEGER,
    Decimal: OperandKind.DECIMAL,
    float: OperandKind.DOUBLE,
    str: OperandKind.TEXT,
    bytes: OperandKind.BINARY,
}
_SPECIAL: Mapping[str, Callable[[ExpressionParser], Operand]] = {
    "CAST": ExpressionParser._cast,
    "CONVERT": ExpressionParser._convert,
    **dict.fromkeys(("SUBSTRING", "SUBSTR", "MID"), ExpressionParser._substring),
    "TRIM": ExpressionParser._trim,
    "POSITION": ExpressionParser._position,
    "EXTRACT": ExpressionParser._extract,
    **dict.fromkeys(("DATE_ADD", "ADDDATE"), lambda parser: parser._date_add(1)),
    **dict.fromkeys(("DATE_SUB", "SUBDATE"), lambda parser: parser._date_add(-1)),
    "IF": ExpressionParser._if,
    "CASE": ExpressionParser._case,
    "BINARY": ExpressionParser._binary_cast,
    **dict.fromkeys(("VALUES", "VALUE"), ExpressionParser._values),
    "RAND": ExpressionParser._random,
    "LAST_INSERT_ID": ExpressionParser._last_insert_id,
}
