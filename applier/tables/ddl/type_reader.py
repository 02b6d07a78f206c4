"""Reads the type of an expression: a second, smaller reader beside the one that computes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from applier.tables.ddl.ddl_session import DdlSession
from applier.tables.ddl.expression_types import (
    DIVISION_DIGITS,
    SHORTEST_BIGINT_OF_MARIADB,
    SUM_DIGITS,
    ExpressionType,
    ExpressionTypeRules,
    UnknownType,
    decimal_type,
    extended,
    of_column,
    of_number,
    rounded,
)
from applier.tables.ddl.type_tokens import (
    COMPARISONS,
    arguments_of,
    is_call,
    names_of,
    nesting,
    written_count,
)
from applier.tables.expressions.date_functions import DAY_UNITS, UNITS
from applier.tables.expressions.visible_columns import VisibleColumns
from applier.tables.sql.sql_mode_flags import SqlModeFlag
from applier.tables.sql.sql_text import Token

_NAMES = ("word", "quoted")
_LEVELS = {"+": 0, "-": 0, "*": 1, "/": 1, "%": 1}
_DIVISIONS = frozenset({"/", "%"})
_SAME_LENGTH = frozenset("UPPER UCASE LOWER LCASE TRIM LTRIM RTRIM REVERSE".split())
_DIGESTS = {"MD5": 32, "SHA1": 40, "SHA": 40}
_AGGREGATES = frozenset({"SUM", "AVG", "MIN", "MAX"})
_BITS = frozenset({"BIT_AND", "BIT_OR", "BIT_XOR"})
_CALENDAR = {
    "YEAR": (4, 5), "MONTH": (2, 3), "DAY": (2, 3), "DAYOFMONTH": (2, 3), "HOUR": (2, 3),
    "MINUTE": (2, 3), "SECOND": (2, 3), "QUARTER": (1, 2), "DAYOFWEEK": (1, 1), "WEEKDAY": (1, 1),
    "DAYOFYEAR": (3, 4), "WEEK": (2, 3), "YEARWEEK": (6, 6), "TO_DAYS": (6, 7),
    "DATEDIFF": (7, 8),
}  # fmt: skip
"""Functions of dates -> display widths of MySQL 5.x, and of MariaDB."""
_NOW = {"NOW": "datetime", "CURRENT_TIMESTAMP": "datetime", "CURDATE": "date"}
_WHOLE_UNITS = UNITS - {"MICROSECOND"}
_FORMATTED = {
    **dict.fromkeys("ymdceisShIl", 2), **dict.fromkeys("Hk", 7), "j": 3, "Y": 4, "f": 6,
}  # fmt: skip
"""What stands behind % in DATE_FORMAT -> characters (`Item_func_date_format::format_length`)."""

_BETWEEN, _AROUND = frozenset({"8.0", "8.4"}), ("5.7", "9.7")

Arguments = Sequence[Sequence[Token]]


def type_of(
    tokens: Sequence[Token], columns: VisibleColumns, session: DdlSession
) -> ExpressionType | None:
    """The type of an expression over these columns; None where it is not known.

    Of 8.0 and 8.4, which the rules were not held against, it is known where those of 5.7 and of 9.7
    are the same.
    """
    servers = _AROUND if session.server in _BETWEEN else (session.server,)
    rules = [ExpressionTypeRules(replace(session, server=one)) for one in servers]
    try:
        found = {_TypeReader(tokens, columns, one).whole() for one in rules}
    except UnknownType:
        return None
    return found.pop() if len(found) == 1 else None


class _TypeReader:
    """Reads one expression, or one argument."""

    def __init__(
        self, tokens: Sequence[Token], columns: VisibleColumns, rules: ExpressionTypeRules
    ) -> None:
        self.tokens, self.columns, self.rules = tokens, columns, rules
        self.at = 0

    def whole(self) -> ExpressionType:
        condition = self._condition()
        if condition is not None:
            return condition
        found = self._sum(0)
        if self.at < len(self.tokens):
            raise UnknownType
        return found

    def _condition(self) -> ExpressionType | None:
        """Of a comparison; of one of columns and literals it is known whether it may be NULL.
        Raises UnknownType for <=>, which is never NULL, and for || that joins texts."""
        depth, words, calls = 0, set(), False
        for at, token in enumerate(self.tokens):
            word = token.value.upper() if token.kind in ("word", "op") else ""
            depth += nesting(token)
            if depth == 0:
                words.add(word)
            calls = calls or word == "CASE" or (is_call(self.tokens, at) and word != "IN")
        is_null = [token.value.upper() for token in self.tokens[-3:]]
        if "IS" in words:
            known = is_null[-2:] == ["IS", "NULL"] or is_null == ["IS", "NOT", "NULL"]
            known = known and not words & COMPARISONS - {"NOT"}
            return ExpressionType("int", 1, 0, False, False, 1, narrow=True, mixed=not known)
        if not words & COMPARISONS:
            return None
        modes = self.rules.session.expressions.sql_mode
        if "||" in words and modes & SqlModeFlag.PIPES_AS_CONCAT:
            raise UnknownType
        names = names_of(self.tokens)
        known = not calls and None not in map(self.columns.place, names)
        divides = any(one.kind == "op" and one.value in _DIVISIONS for one in self.tokens)
        nullable = divides or any(map(self.columns.may_be_null, names))
        return ExpressionType("int", 1, 0, False, nullable, 1, narrow=True, mixed=not known)

    def _sum(self, level: int) -> ExpressionType:
        left = self._primary()
        while self.at < len(self.tokens):
            operator = self.tokens[self.at]
            if operator.kind != "op" or _LEVELS.get(operator.value, -1) < level:
                return left
            self.at += 1
            if self._peek().upper() == "INTERVAL":
                left = _shifted(left, self.tokens[self.at :])
                self.at = len(self.tokens)
            else:
                right = self._sum(_LEVELS[operator.value] + 1)
                left = self.rules.arithmetic(operator.value, left, right)
        return left

    def _primary(self) -> ExpressionType:
        token = self._next()
        if token.kind == "number":
            return of_number(token.value)
        if token.kind == "string":
            return self._string(token.value)
        if token.value == "(":
            return self._typed(self._enclosed())
        if token.kind not in _NAMES:
            raise UnknownType
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
        place = self.columns.place(names)
        if place is None:
            raise UnknownType
        return of_column(place[1], nullable=self.columns.may_be_null(names))

    def _string(self, text: str) -> ExpressionType:
        client = self.rules.session.expressions.client
        if not text.isascii() and not client.startswith("utf8"):
            raise UnknownType
        return ExpressionType("varchar", len(text), nullable=False, literal=True)

    def _call(self, name: str, tokens: Sequence[Token]) -> ExpressionType:
        if name in _AGGREGATES and tokens and tokens[0].value.upper() == "DISTINCT":
            tokens = tokens[1:]
        session, arguments = self.rules.session, arguments_of(tokens)
        if name == "COUNT":
            return ExpressionType("bigint", 21, nullable=False, precision=20)
        if name == "GROUP_CONCAT":
            return ExpressionType("mediumtext" if session.is_mariadb else "text")
        if name in _BITS:
            return ExpressionType("bigint", 21, unsigned=True, nullable=False)
        if name in _NOW and not arguments:
            return ExpressionType(_NOW[name], nullable=False)
        if name == "CAST":
            return self._cast(tokens)
        if name in _SAME_LENGTH:
            (text,) = self._some(arguments, 1)
            return self.rules.text(text.characters, [text])
        if name in _DIGESTS:
            (text,) = self._some(arguments, 1)
            return self.rules.text(_DIGESTS[name], [text.as_text])
        if name in _CALENDAR:
            return self._calendar(name, arguments)
        make = _CALLS.get(name)
        if make is None:
            raise UnknownType
        return make(self, arguments)

    # functions

    def sum(self, arguments: Arguments) -> ExpressionType:
        (one,) = self._some(arguments, 1)
        return extended(one, SUM_DIGITS, 0)

    def average(self, arguments: Arguments) -> ExpressionType:
        (one,) = self._some(arguments, 1)
        return extended(one, DIVISION_DIGITS, DIVISION_DIGITS)

    def extreme(self, arguments: Arguments) -> ExpressionType:
        """MIN and MAX: of a function of integers a BIGINT, but its width stays."""
        (one,) = self._some(arguments, 1)
        if one.literal or one.narrow or (one.name == "year" and one.column is None):
            raise UnknownType
        is_wide = one.is_integer and one.column is None
        return replace(one, nullable=True, name="bigint" if is_wide else one.name)

    def concatenated(self, arguments: Arguments) -> ExpressionType:
        texts = self._all(arguments)
        return self.rules.text(sum(one.characters for one in texts), texts)

    def joined(self, arguments: Arguments) -> ExpressionType:
        separator, *texts = self._all(arguments)
        if not texts:
            raise UnknownType
        between = separator.characters * (len(texts) - 1)
        length = sum(one.characters for one in texts) + between
        return self.rules.text(length, [separator, *texts])

    def end(self, arguments: Arguments) -> ExpressionType:
        text, _ = self._some(arguments, 2)
        return self.rules.text(min(text.characters, written_count(arguments[1])), [text])

    def part(self, arguments: Arguments) -> ExpressionType:
        """SUBSTRING of no more than there is: for the rest, versions count bytes."""
        text, _, _ = self._some(arguments, 3)
        start, length = written_count(arguments[1]), written_count(arguments[2])
        if not start or length > text.characters - start + 1:
            raise UnknownType
        return self.rules.text(length, [text])

    def padded(self, arguments: Arguments) -> ExpressionType:
        text, _, _ = self._some(arguments, 3)
        return self.rules.text(written_count(arguments[1]), [text.as_text])

    def repeated(self, arguments: Arguments) -> ExpressionType:
        text, _ = self._some(arguments, 2)
        return self.rules.text(text.characters * written_count(arguments[1]), [text])

    def replaced(self, arguments: Arguments) -> ExpressionType:
        text, old, new = self._some(arguments, 3)
        if not (old.literal and new.literal and new.characters <= old.characters):
            raise UnknownType
        return self.rules.text(text.characters, [text])

    def length(self, arguments: Arguments) -> ExpressionType:
        (text,) = self._some(arguments, 1)
        if text.as_text.strict:
            raise UnknownType
        return ExpressionType("int", 10, nullable=text.nullable)

    def date(self, arguments: Arguments) -> ExpressionType:
        self._some(arguments, 1)
        return ExpressionType("date")

    def shifted(self, arguments: Arguments) -> ExpressionType:
        if len(arguments) != 2:
            raise UnknownType
        return _shifted(self._typed(arguments[0]), arguments[1])

    def formatted(self, arguments: Arguments) -> ExpressionType:
        date, form = self._some(arguments, 2)
        if not form.literal or form.name != "varchar" or date.name == "time":
            raise UnknownType
        text, length, at = arguments[1][0].value, 0, 0
        while at < len(text):
            marked = text[at] == "%" and at + 1 < len(text)
            if marked and text[at + 1] not in _FORMATTED:
                raise UnknownType
            length += _FORMATTED[text[at + 1]] if marked else 1
            at += 1 + marked
        return replace(self.rules.text(length, [date]), nullable=True)

    def rounded(self, arguments: Arguments) -> ExpressionType:
        if not 1 <= len(arguments) <= 2:
            raise UnknownType
        return rounded(
            self._typed(arguments[0]), written_count(arguments[1]) if len(arguments) == 2 else 0
        )

    def absolute(self, arguments: Arguments) -> ExpressionType:
        (one,) = self._some(arguments, 1)
        if one.is_integer and not one.literal:
            return self.rules.integer(one.digits, unsigned=one.unsigned, nullable=one.nullable)
        if one.name != "decimal" or one.literal:
            raise UnknownType
        return replace(one, column=None)

    def remainder(self, arguments: Arguments) -> ExpressionType:
        return self.rules.arithmetic("%", *self._some(arguments, 2))

    def if_null(self, arguments: Arguments) -> ExpressionType:
        one, two = self._some(arguments, 2)
        return self.rules.if_null(one, two)

    def null_if(self, arguments: Arguments) -> ExpressionType:
        one, _ = self._some(arguments, 2)
        if one.literal or one.strict or one.name in ("date", "datetime", "char", "enum"):
            raise UnknownType
        if one.name == "decimal":
            return replace(one, nullable=True, column=None)
        found = self.rules.merged([one], nullable=True)
        return replace(found, field="bigint") if self.rules.session.is_old else found

    def coalesced(self, arguments: Arguments) -> ExpressionType:
        types = self._all(arguments)
        enough = all if self.rules.session.is_old else any
        nullable = not enough(not one.nullable for one in types)
        found = self.rules.merged(types, nullable=nullable)
        if found.narrow and self.rules.session.is_old:  # it has a digit less
            raise UnknownType
        return found

    def chosen(self, arguments: Arguments) -> ExpressionType:
        if len(arguments) != 3:
            raise UnknownType
        types = self._all(arguments[1:])
        nullable = any(one.nullable for one in types)
        nullable = nullable or self._is_unsure(arguments[:1])
        found = self.rules.merged(types, nullable=nullable)
        self.rules.check_lengths(found, types)
        return found

    def greatest(self, arguments: Arguments) -> ExpressionType:
        types = self._all(arguments)
        if any(one.unsigned or one.name in ("char", "enum") for one in types):
            raise UnknownType
        if all(one.literal for one in types):
            raise UnknownType
        return self.rules.merged(types, nullable=any(one.nullable for one in types))

    def _is_unsure(self, conditions: Arguments) -> bool:
        """Whether MariaDB gives NULL, too, what a condition chooses that may be NULL."""
        if not self.rules.session.is_mariadb:
            return False
        types = self._all(conditions)
        if any(one.mixed for one in types):
            raise UnknownType
        return any(one.nullable for one in types)

    def _calendar(self, name: str, arguments: Arguments) -> ExpressionType:
        self._all(arguments)
        if name == "YEAR" and self.rules.session.is_modern:
            return ExpressionType("year")
        return ExpressionType("int", _CALENDAR[name][self.rules.session.is_mariadb])

    def _case(self) -> ExpressionType:
        """Behind CASE, up to its END."""
        parts, depth, start, opened = [], 0, self.at, ""
        for at in range(self.at, len(self.tokens)):
            token = self.tokens[at]
            depth += nesting(token)
            word = token.value.upper() if token.kind == "word" else ""
            if depth == -(word == "END") and word in ("WHEN", "THEN", "ELSE", "END"):
                parts.append((opened, self.tokens[start:at]))
                opened, start = word, at + 1
            if depth < 0:
                break
        if opened != "END":
            raise UnknownType
        self.at = start
        types = [self._typed(part) for word, part in parts if word in ("THEN", "ELSE")]
        has_else = any(word == "ELSE" for word, _ in parts)
        nullable = not has_else or any(one.nullable for one in types)
        conditions = [part for word, part in parts if word in ("", "WHEN") and part]
        nullable = nullable or self._is_unsure(conditions)
        found = self.rules.merged(types, nullable=nullable)
        is_alike = len({one.name for one in types}) == 1 or nullable
        # 5.6 has an INT(0) for 1 and 0, and more that may be NULL
        is_odd = self.rules.session.server == "5.6" and (found.narrow or not is_alike)
        return replace(found, mixed=is_odd)

    def _cast(self, tokens: Sequence[Token]) -> ExpressionType:
        at = max((at for at, one in enumerate(tokens) if one.value.upper() == "AS"), default=0)
        one, named = self._typed(tokens[:at]), [each.value.upper() for each in tokens[at + 1 :]]
        if named == ["DATE"]:
            return ExpressionType("date")
        if named[:1] == ["DECIMAL"] and len(named) in (4, 6):
            scale = int(named[4]) if len(named) == 6 else 0
            return decimal_type(int(named[2]), scale, nullable=one.nullable)
        if named[:1] == ["CHAR"] and len(named) in (1, 4):
            length = int(named[2]) if len(named) == 4 else one.characters
            return self.rules.text(length, [one])
        unsigned = named == ["UNSIGNED"]
        if named not in (["SIGNED"], ["UNSIGNED"]) or one.unsigned != unsigned:
            raise UnknownType
        if one.literal or not one.is_integer:
            raise UnknownType
        found = self.rules.integer(one.digits, unsigned=unsigned, nullable=one.nullable)
        if self.rules.session.is_mariadb and found.length == SHORTEST_BIGINT_OF_MARIADB:
            return replace(found, name="int")
        if self.rules.session.is_modern:
            return replace(found, name="bigint", precision=20 + unsigned)
        return found

    # tokens

    def _some(self, arguments: Arguments, count: int) -> list[ExpressionType]:
        """The types of so many arguments."""
        if len(arguments) != count:
            raise UnknownType
        return self._all(arguments)

    def _all(self, arguments: Arguments) -> list[ExpressionType]:
        if not arguments:
            raise UnknownType
        return [self._typed(one) for one in arguments]

    def _typed(self, tokens: Sequence[Token]) -> ExpressionType:
        return _TypeReader(tokens, self.columns, self.rules).whole()

    def _peek(self) -> str:
        return self.tokens[self.at].value if self.at < len(self.tokens) else ""

    def _next(self) -> Token:
        if self.at >= len(self.tokens):
            raise UnknownType
        self.at += 1
        return self.tokens[self.at - 1]

    def _enclosed(self) -> Sequence[Token]:
        """What stands behind the parenthesis, up to the one that closes it, which the cursor
        passes."""
        start, depth = self.at, 1
        while depth:
            depth += nesting(self._next())
        return self.tokens[start : self.at - 1]


def _shifted(date: ExpressionType, interval: Sequence[Token]) -> ExpressionType:
    """A date and INTERVAL of one whole number and a unit."""
    unit = interval[-1].value.upper()
    if len(interval) != 3 or unit not in _WHOLE_UNITS or not interval[1].value.isdigit():
        raise UnknownType
    if date.name == "date" and unit in DAY_UNITS:
        return ExpressionType("date")
    if date.name in ("date", "datetime", "timestamp"):
        return ExpressionType("datetime", scale=date.scale)
    raise UnknownType


_CALLS: Mapping[str, Callable[[_TypeReader, Arguments], ExpressionType]] = {
    "SUM": _TypeReader.sum,
    "AVG": _TypeReader.average,
    **dict.fromkeys(("MIN", "MAX"), _TypeReader.extreme),
    "CONCAT": _TypeReader.concatenated,
    "CONCAT_WS": _TypeReader.joined,
    **dict.fromkeys(("LEFT", "RIGHT"), _TypeReader.end),
    **dict.fromkeys(("SUBSTRING", "SUBSTR", "MID"), _TypeReader.part),
    **dict.fromkeys(("LPAD", "RPAD"), _TypeReader.padded),
    "REPEAT": _TypeReader.repeated,
    "REPLACE": _TypeReader.replaced,
    **dict.fromkeys(("LENGTH", "OCTET_LENGTH", "CHAR_LENGTH"), _TypeReader.length),
    **dict.fromkeys(("DATE", "LAST_DAY"), _TypeReader.date),
    **dict.fromkeys(("DATE_ADD", "DATE_SUB", "ADDDATE", "SUBDATE"), _TypeReader.shifted),
    "DATE_FORMAT": _TypeReader.formatted,
    "ROUND": _TypeReader.rounded,
    "ABS": _TypeReader.absolute,
    "MOD": _TypeReader.remainder,
    "IFNULL": _TypeReader.if_null,
    "NULLIF": _TypeReader.null_if,
    "COALESCE": _TypeReader.coalesced,
    "IF": _TypeReader.chosen,
    **dict.fromkeys(("GREATEST", "LEAST"), _TypeReader.greatest),
}
