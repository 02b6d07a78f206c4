"""The types that a server gives expressions before it has read a row: what CREATE TABLE … SELECT
makes columns of (`fix_length_and_dec` and `resolve_type` of the classes in sql/item_func.cc,
item_strfunc.cc, item_cmpfunc.cc and item_sum.cc).

A second, smaller reader of expressions beside the one that computes them: what it does not know has
no type. Held against real servers by tests/tables/test_create_select_servers.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from applier.tables.ddl.ddl_session import DdlSession
from applier.tables.expressions.operands import INTEGER_TYPES
from applier.tables.expressions.visible_columns import VisibleColumns
from applier.tables.sql.sql_mode_flags import SqlModeFlag
from applier.tables.sql.sql_text import Token
from lookup.table import Column

MOST_PRECISION, MOST_SCALE = 65, 30
MOST_TEXT = 255
"""Characters; longer texts may become TEXTs."""
DIVISION_DIGITS = 4
"""div_precision_increment."""
SUM_DIGITS = 22
"""What SUM adds to the digits (DECIMAL_LONGLONG_DIGITS)."""
_DIGITS = {"tinyint": 3, "smallint": 5, "mediumint": 8, "int": 10}
"""Of integer types, but for BIGINT: 19, and 20 without a sign."""
_WIDENING = ("tinyint", "smallint", "mediumint", "int", "bigint")
_MOMENT_LENGTHS = {"date": 10, "datetime": 19, "timestamp": 19, "time": 10, "year": 4}
_REALS = frozenset({"double", "float"})
_NAMES = ("word", "quoted")
_LEVELS = {"+": 0, "-": 0, "*": 1, "/": 1}
_CONDITIONS = frozenset("= <=> <> != < <= > >= && || ! AND OR XOR NOT IS IN LIKE BETWEEN".split())
_CALENDAR = {
    "YEAR": (4, 5), "MONTH": (2, 3), "DAY": (2, 3), "DAYOFMONTH": (2, 3), "HOUR": (2, 3),
    "MINUTE": (2, 3), "SECOND": (2, 3), "QUARTER": (1, 2), "TO_DAYS": (6, 7), "DATEDIFF": (7, 8),
}  # fmt: skip
"""Functions of dates -> display widths in 5.x, and in MariaDB."""
_SAME_LENGTH = frozenset("UPPER UCASE LOWER LCASE TRIM LTRIM RTRIM REVERSE".split())
_BITS = frozenset({"BIT_AND", "BIT_OR", "BIT_XOR"})


class _Unknown(Exception):
    """A type that is not known."""


@dataclass(frozen=True, slots=True)
class ExpressionType:
    """`name`: "null" for NULL. `length`: characters, digits of a DECIMAL, or the display width of
    an integer; `precision`: digits of a number, None where arithmetic with it is not known.

    `column`: what it is the value of; `literal`: written in the SQL; `mixed`: a display width that
    versions do not agree on.
    """

    name: str
    length: int = 0
    scale: int = 0
    unsigned: bool = False
    nullable: bool = True
    precision: int | None = None
    column: Column | None = None
    literal: bool = False
    mixed: bool = False

    @property
    def is_integer(self) -> bool:
        return self.name in INTEGER_TYPES

    @property
    def digits(self) -> int:
        """Raises _Unknown for what is no exact number."""
        if self.precision is None or not (self.is_integer or self.name == "decimal"):
            raise _Unknown
        return self.precision

    @property
    def characters(self) -> int:
        """The most that a text of it has; of numbers and moments those of columns only. Raises
        _Unknown."""
        if self.name == "varchar":
            return self.length
        column = self.column
        if column is None or column.zerofill:
            raise _Unknown
        if self.is_integer:
            return self.length
        if self.name == "decimal":
            return self.length + (self.scale > 0) + (not self.unsigned)
        if self.name in _MOMENT_LENGTHS:
            return _MOMENT_LENGTHS[self.name] + (self.scale and self.scale + 1)
        raise _Unknown


def type_of(
    tokens: Sequence[Token], columns: VisibleColumns, session: DdlSession
) -> ExpressionType | None:
    """The type of an expression over these columns; None where it is not known."""
    try:
        return _Reader(tokens, columns, session).whole()
    except _Unknown:
        return None


class _Reader:
    """Reads one expression, or one argument."""

    def __init__(
        self, tokens: Sequence[Token], columns: VisibleColumns, session: DdlSession
    ) -> None:
        self.tokens, self.columns, self.session = tokens, columns, session
        self.at = 0

    def whole(self) -> ExpressionType:
        if not self.tokens:
            raise _Unknown
        if self._is_condition():
            return ExpressionType("int", 1, precision=1, mixed=True)
        found = self._sum(0)
        if self.at < len(self.tokens):
            raise _Unknown
        return found

    def _is_condition(self) -> bool:
        depth = 0
        for token in self.tokens:
            depth += _opens(token)
            is_word = token.kind in ("word", "op")
            if depth == 0 and is_word and token.value.upper() in _CONDITIONS:
                return True
        return False

    def _sum(self, level: int) -> ExpressionType:
        left = self._primary()
        while self.at < len(self.tokens):
            operator = self.tokens[self.at]
            if operator.kind != "op" or _LEVELS.get(operator.value, -1) < level:
                return left
            self.at += 1
            right = self._sum(_LEVELS[operator.value] + 1)
            left = self._arithmetic(operator.value, left, right)
        return left

    def _primary(self) -> ExpressionType:
        token = self._next()
        if token.kind == "number":
            return _number(token.value)
        if token.kind == "string":
            return ExpressionType("varchar", len(token.value), nullable=False, literal=True)
        if token.value == "(":
            return self._typed(self._enclosed())
        if token.kind not in _NAMES:
            raise _Unknown
        word = token.value.upper() if token.kind == "word" else ""
        if word == "NULL":
            return ExpressionType("null", literal=True)
        if word == "CASE":
            return self._case()
        if self._peek() == "(" and word:
            self.at += 1
            return self._call(word, self._enclosed())
        names = [token.value]
        while self._peek() == ".":
            self.at += 1
            names.append(self._next().value)
        return self._column(names)

    def _column(self, names: list[str]) -> ExpressionType:
        place = self.columns.place(names)
        if place is None:
            raise _Unknown
        column = place[1]
        unsigned, length, precision = column.unsigned, column.length or 0, None
        if column.type in INTEGER_TYPES:
            precision = _DIGITS.get(column.type, 20 if unsigned else 19)
            length = precision + (not unsigned)
        elif column.type == "decimal":
            precision = length
        return ExpressionType(
            column.type, length, column.scale, unsigned, column.nullable, precision, column
        )

    def _call(self, name: str, tokens: Sequence[Token]) -> ExpressionType:
        if name == "COUNT":
            return ExpressionType("bigint", 21, nullable=False, precision=20)
        if name == "GROUP_CONCAT":
            return ExpressionType("mediumtext" if self.session.is_mariadb else "text")
        if name in _BITS:
            return ExpressionType("bigint", 21, unsigned=True, nullable=False)
        if name == "CAST":
            return self._cast(tokens)
        arguments = _split(tokens)
        make = _CALLS.get(name)
        if make is not None:
            return make(self, arguments)
        if name in _SAME_LENGTH:
            (text,) = self._texts(arguments, count=1)
            return self._text(text.characters, [text])
        if name in _CALENDAR:
            for one in arguments:
                self._typed(one)
            return self._calendar(name)
        raise _Unknown

    # rules

    def _arithmetic(
        self, operator: str, one: ExpressionType, two: ExpressionType
    ) -> ExpressionType:
        nullable = one.nullable or two.nullable or operator == "/"
        if _REALS & {one.name, two.name}:
            for each in (one, two):
                _check_exact(each) if each.name not in _REALS else _check_plain(each)
            return ExpressionType("double", nullable=nullable)
        both = one.unsigned and two.unsigned
        if operator == "/":
            _check_exact(two)
            digits = one.digits + two.scale + DIVISION_DIGITS
            return _decimal(digits, one.scale + DIVISION_DIGITS, nullable, unsigned=both)
        if operator == "*":
            digits, scale = one.digits + two.digits, one.scale + two.scale
        else:
            scale = max(one.scale, two.scale)
            digits = max(one.digits - one.scale, two.digits - two.scale) + 1 + scale
        if not (one.is_integer and two.is_integer):
            return _decimal(digits, scale, nullable, unsigned=both)
        unsigned = one.unsigned or two.unsigned
        modes = self.session.expressions.sql_mode
        if operator == "-" and unsigned and modes & SqlModeFlag.NO_UNSIGNED_SUBTRACTION:
            raise _Unknown
        return self._integer(digits, unsigned=unsigned, nullable=nullable)

    def _integer(self, digits: int, *, unsigned: bool, nullable: bool) -> ExpressionType:
        """What a function of integers returns: the width decides between INT and BIGINT."""
        length = digits + (not unsigned)
        is_wide = length >= 10 if self.session.is_mariadb else length > 11
        return ExpressionType(
            "bigint" if is_wide else "int", length, 0, unsigned, nullable, digits
        )

    def _text(self, length: int, sources: Sequence[ExpressionType]) -> ExpressionType:
        """A function of texts may return NULL in strict mode, where max_allowed_packet ends it."""
        if not 0 < length <= MOST_TEXT:
            raise _Unknown
        strict = bool(self.session.expressions.sql_mode & SqlModeFlag.STRICT)
        nullable = strict or any(one.nullable for one in sources)
        return ExpressionType("varchar", length, nullable=nullable)

    def _calendar(self, name: str) -> ExpressionType:
        if name == "YEAR" and self.session.is_modern:
            return ExpressionType("year")
        return ExpressionType("int", _CALENDAR[name][self.session.is_mariadb])

    def _merged(self, types: Sequence[ExpressionType], *, nullable: bool) -> ExpressionType:
        """The type that holds the values of all."""
        typed = [one for one in types if one.name != "null"]
        names = {one.name for one in typed}
        if names <= INTEGER_TYPES and typed:
            return self._merged_integer(typed, nullable)
        if names <= INTEGER_TYPES | {"decimal"} and typed:
            scale = max(one.scale for one in typed)
            digits = max(one.digits - one.scale for one in typed) + scale
            if any(one.unsigned for one in typed):
                raise _Unknown
            return _decimal(digits, scale, nullable)
        if names <= {"varchar", "char", "enum"} and typed:
            length = max(_letters(one) for one in typed)
            if not 0 < length <= MOST_TEXT:
                raise _Unknown
            return ExpressionType("varchar", length, nullable=nullable)
        if len(names) == 1 and names <= {"date", "datetime", "double"}:
            scale = max(one.scale for one in typed)
            if names == {"double"}:
                for one in typed:
                    _check_plain(one)
            return ExpressionType(typed[0].name, scale=scale, nullable=nullable)
        raise _Unknown

    def _merged_integer(self, typed: Sequence[ExpressionType], nullable: bool) -> ExpressionType:
        if len({one.unsigned for one in typed}) > 1 or typed[0].unsigned:
            raise _Unknown
        digits = max(one.digits for one in typed)
        length = max(one.length for one in typed)
        mixed = all(one.literal or one.mixed for one in typed)
        if self.session.is_mariadb:
            name = max((one.name for one in typed), key=_WIDENING.index)
        else:
            name = "bigint" if length > 11 else "int"
        return ExpressionType(name, length, 0, False, nullable, digits, mixed=mixed)

    def _texts(
        self, arguments: Sequence[Sequence[Token]], count: int | None = None
    ) -> list[ExpressionType]:
        """Texts, and columns that become texts."""
        if count is not None and len(arguments) != count:
            raise _Unknown
        return [replace(one, length=_letters(one), name="varchar") for one in self._all(arguments)]

    def _all(self, arguments: Sequence[Sequence[Token]]) -> list[ExpressionType]:
        return [self._typed(one) for one in arguments]

    def _typed(self, tokens: Sequence[Token]) -> ExpressionType:
        return _Reader(tokens, self.columns, self.session).whole()

    # calls

    def sum(self, arguments: Sequence[Sequence[Token]]) -> ExpressionType:
        (one,) = self._all(_one(arguments))
        if one.name in _REALS:
            _check_plain(one)
            return ExpressionType("double")
        return _decimal(one.digits + SUM_DIGITS, one.scale, nullable=True)

    def average(self, arguments: Sequence[Sequence[Token]]) -> ExpressionType:
        (one,) = self._all(_one(arguments))
        if one.name in _REALS:
            _check_plain(one)
            return ExpressionType("double")
        digits = one.digits + DIVISION_DIGITS
        return _decimal(digits, one.scale + DIVISION_DIGITS, nullable=True)

    def extreme(self, arguments: Sequence[Sequence[Token]]) -> ExpressionType:
        (one,) = self._all(_one(arguments))
        return replace(one, nullable=True)

    def concatenated(self, arguments: Sequence[Sequence[Token]]) -> ExpressionType:
        texts = self._texts(arguments)
        return self._text(sum(one.length for one in texts), texts)

    def end(self, arguments: Sequence[Sequence[Token]]) -> ExpressionType:
        """LEFT and RIGHT."""
        if len(arguments) != 2:
            raise _Unknown
        (text,) = self._texts(arguments[:1])
        return self._text(min(text.length, _count(arguments[1])), [text])

    def length(self, arguments: Sequence[Sequence[Token]]) -> ExpressionType:
        (text,) = self._texts(arguments, count=1)
        return ExpressionType("int", 10, nullable=text.nullable)

    def date(self, arguments: Sequence[Sequence[Token]]) -> ExpressionType:
        self._all(_one(arguments))
        return ExpressionType("date")

    def rounded(self, arguments: Sequence[Sequence[Token]]) -> ExpressionType:
        (one,) = self._all(arguments[:1])
        places = _count(arguments[1]) if len(arguments) == 2 else 0
        if len(arguments) > 2 or one.name != "decimal" or one.unsigned:
            raise _Unknown
        if not one.scale or places > one.scale:
            raise _Unknown
        cut = one.scale - places
        return _decimal(one.digits - cut + (cut > 0), places, one.nullable)

    def if_null(self, arguments: Sequence[Sequence[Token]]) -> ExpressionType:
        if len(arguments) != 2:
            raise _Unknown
        one, two = self._all(arguments)
        found = self._merged([one, two], nullable=one.nullable and two.nullable)
        if self.session.is_mariadb or not found.is_integer:
            if self.session.is_old and found.name == "decimal" and not _holds(one, two):
                raise _Unknown
            return found
        # by the types of fields: a literal and a function have BIGINT
        names = {one.column.type if one.column else "bigint" for one in (one, two)}
        return replace(found, name=max(names, key=_WIDENING.index))

    def coalesced(self, arguments: Sequence[Sequence[Token]]) -> ExpressionType:
        types = self._all(arguments)
        some = all if self.session.is_old else any
        return self._merged(types, nullable=not some(not one.nullable for one in types))

    def chosen(self, arguments: Sequence[Sequence[Token]]) -> ExpressionType:
        """IF."""
        if len(arguments) != 3:
            raise _Unknown
        types = self._all(arguments[1:])
        return self._merged(types, nullable=any(one.nullable for one in types))

    def _case(self) -> ExpressionType:
        """Behind CASE, up to its END."""
        parts, depth, start, opened = [], 0, self.at, ""
        for at in range(self.at, len(self.tokens)):
            token = self.tokens[at]
            depth += _opens(token)
            word = token.value.upper() if token.kind == "word" else ""
            if depth == -(word == "END") and word in ("WHEN", "THEN", "ELSE", "END"):
                parts.append((opened, self.tokens[start:at]))
                opened, start = word, at + 1
            if depth < 0:
                self.at = at + 1
                break
        types = [self._typed(part) for word, part in parts if word in ("THEN", "ELSE")]
        nullable = any(one.nullable for one in types) or all(word != "ELSE" for word, _ in parts)
        if opened != "END":
            raise _Unknown
        return self._merged(types, nullable=nullable)

    def _cast(self, tokens: Sequence[Token]) -> ExpressionType:
        words = [at for at, token in enumerate(tokens) if token.value.upper() == "AS"]
        if not words:
            raise _Unknown
        one = self._typed(tokens[: words[-1]])
        named = [token.value.upper() for token in tokens[words[-1] + 1 :]]
        if named == ["DATE"]:
            return ExpressionType("date")
        if named[0] == "DECIMAL" and len(named) in (4, 6):
            digits, scale = int(named[2]), int(named[4]) if len(named) == 6 else 0
            return _decimal(digits, scale, one.nullable)
        if named[0] == "CHAR" and len(named) in (1, 4):
            length = int(named[2]) if len(named) == 4 else _letters(one)
            return self._text(length, [one])
        if named[0] not in ("SIGNED", "UNSIGNED") or not one.is_integer:
            raise _Unknown
        return self._cast_integer(one, unsigned=named[0] == "UNSIGNED")

    def _cast_integer(self, one: ExpressionType, *, unsigned: bool) -> ExpressionType:
        if one.unsigned != unsigned or one.literal or one.mixed:
            raise _Unknown
        found = self._integer(one.digits, unsigned=unsigned, nullable=one.nullable)
        return replace(found, name="bigint") if self.session.is_modern else found

    # tokens

    def _peek(self) -> str:
        return self.tokens[self.at].value if self.at < len(self.tokens) else ""

    def _next(self) -> Token:
        if self.at >= len(self.tokens):
            raise _Unknown
        self.at += 1
        return self.tokens[self.at - 1]

    def _enclosed(self) -> Sequence[Token]:
        """What stands behind the parenthesis, up to the one that closes it, which the cursor
        passes."""
        start, depth = self.at, 1
        while depth:
            depth += _opens(self._next())
        return self.tokens[start : self.at - 1]


def _opens(token: Token) -> int:
    """1 for what begins something nested, -1 for its end."""
    if token.kind == "op":
        return (token.value == "(") - (token.value == ")")
    word = token.value.upper() if token.kind == "word" else ""
    return (word == "CASE") - (word == "END")


def _split(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """The arguments between commas."""
    found, depth, start = [], 0, 0
    for at, token in enumerate(tokens):
        depth += _opens(token)
        if depth == 0 and token.kind == "op" and token.value == ",":
            found.append(tokens[start:at])
            start = at + 1
    return [*found, tokens[start:]] if tokens else []


def _one(arguments: Sequence[Sequence[Token]]) -> Sequence[Sequence[Token]]:
    if len(arguments) != 1:
        raise _Unknown
    return arguments


def _count(tokens: Sequence[Token]) -> int:
    """A number without a sign that is written as an argument."""
    if len(tokens) != 1 or tokens[0].kind != "number" or not tokens[0].value.isdigit():
        raise _Unknown
    return int(tokens[0].value)


def _check_exact(one: ExpressionType) -> None:
    """Raises _Unknown for what is no exact number."""
    assert one.digits


def _check_plain(one: ExpressionType) -> None:
    """Raises _Unknown for a FLOAT(M,D) or DOUBLE(M,D)."""
    if one.column is not None and (one.column.length is not None or one.column.scale):
        raise _Unknown


def _number(text: str) -> ExpressionType:
    whole, point, behind = text.partition(".")
    if "E" in text.upper():
        return ExpressionType("double", nullable=False, literal=True)
    if point:
        digits = len(whole.lstrip("0") + behind)
        if not whole.lstrip("0") or digits > MOST_SCALE:
            raise _Unknown
        return ExpressionType(
            "decimal", digits, len(behind), False, False, digits, literal=True
        )
    digits = len(text.lstrip("0") or "0")
    if digits != len(text) or digits > 9:
        raise _Unknown
    return ExpressionType("int", digits + 1, 0, False, False, digits, literal=True)


def _decimal(
    digits: int, scale: int, nullable: bool, *, unsigned: bool = False
) -> ExpressionType:
    if digits > MOST_PRECISION or scale > MOST_SCALE or digits < max(scale, 1):
        raise _Unknown
    return ExpressionType("decimal", digits, scale, unsigned, nullable, digits)


def _letters(one: ExpressionType) -> int:
    """The characters of what is, or becomes, a text. A number that is written has other ones alone
    than among others."""
    column = one.column
    if column is not None and column.type == "char":
        return column.length or 1
    if column is not None and column.type == "enum":
        return max(map(len, column.labels))
    return one.characters


def _holds(one: ExpressionType, two: ExpressionType) -> bool:
    """Whether 5.x has the digits of the one for both: it adds up their lengths otherwise."""
    if (one.name, one.scale) == (two.name, two.scale):
        return True
    return two.literal and one.name == "decimal" and two.digits < one.digits - one.scale


_CALLS: Mapping[str, Callable[[_Reader, Sequence[Sequence[Token]]], ExpressionType]] = {
    "SUM": _Reader.sum,
    "AVG": _Reader.average,
    **dict.fromkeys(("MIN", "MAX"), _Reader.extreme),
    "CONCAT": _Reader.concatenated,
    **dict.fromkeys(("LEFT", "RIGHT"), _Reader.end),
    **dict.fromkeys(("LENGTH", "OCTET_LENGTH", "CHAR_LENGTH"), _Reader.length),
    "DATE": _Reader.date,
    "ROUND": _Reader.rounded,
    "IFNULL": _Reader.if_null,
    "COALESCE": _Reader.coalesced,
    "IF": _Reader.chosen,
}
