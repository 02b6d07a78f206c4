"""The types that a server gives to expressions before it has read a row, and the rules by which
operators and functions make one of others (`fix_length_and_dec` and `resolve_type` of the classes
in sql/item_func.cc, item_strfunc.cc, item_cmpfunc.cc and item_sum.cc).

What is not known, or differs in a way that no rule here has, raises `UnknownType`. Held against
real servers by tests/tables/test_expression_types_servers.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from applier.tables.ddl.ddl_session import DdlSession
from applier.tables.expressions.operands import INTEGER_TYPES
from applier.tables.sql.sql_mode_flags import SqlModeFlag
from lookup.table import Column

MOST_PRECISION, MOST_SCALE = 65, 30
MOST_TEXT = 255
"""Characters or bytes; longer texts may become TEXTs and BLOBs."""
SHORT_DIGITS = 8
"""Of a literal that is an INT everywhere: with nine, 8.0 and later have a BIGINT."""
DIVISION_DIGITS = 4
"""div_precision_increment."""
SUM_DIGITS = 22
"""What SUM adds to the digits (DECIMAL_LONGLONG_DIGITS)."""
SHORTEST_BIGINT_OF_MARIADB, LONGEST_INT = 10, 11
"""Display widths with which a function of integers returns a BIGINT or an INT."""
_DIGITS = {"tinyint": 3, "smallint": 5, "mediumint": 8, "int": 10}
"""Of integer types, but for BIGINT: 19, and 20 without a sign."""
_WIDENING = ("tinyint", "smallint", "mediumint", "int", "bigint")
_MOMENT_LENGTHS = {"date": 10, "datetime": 19, "timestamp": 19, "time": 10, "year": 4}
_EXACT = INTEGER_TYPES | {"decimal"}
_REALS = frozenset({"double", "float"})
_TEXTS = frozenset({"varchar", "char", "enum"})


class UnknownType(Exception):
    """A type that is not known."""


@dataclass(frozen=True, slots=True)
class ExpressionType:
    """`name`: "null" for NULL. `length`: characters, digits of a DECIMAL, or the display width of
    an integer; `precision`: digits of a number, None where arithmetic with it is not known.

    `column`: what it is the value of; `literal`: written in the SQL; `narrow`: a condition, or
    chosen among literals, so that arithmetic other than SUM and AVG is not known; `mixed`: nor is
    its display width. `field`: MySQL's type for the values of an integer, BIGINT of literals and
    functions, whatever their width; `strict`: a text that may be NULL only because of the mode.
    """

    name: str
    length: int = 0
    scale: int = 0
    unsigned: bool = False
    nullable: bool = True
    precision: int | None = None
    column: Column | None = None
    literal: bool = False
    narrow: bool = False
    mixed: bool = False
    field: str = "bigint"
    strict: bool = False

    @property
    def is_integer(self) -> bool:
        """Whether it is one of the integer types."""
        return self.name in INTEGER_TYPES

    @property
    def digits(self) -> int:
        """Raises UnknownType for what is no exact number."""
        if self.precision is None or self.narrow or self.name not in _EXACT:
            raise UnknownType
        return self.precision

    @property
    def characters(self) -> int:
        """The most that a text of it has. Raises UnknownType: a number or moment that is no column
        has other lengths alone than among texts."""
        column = self.column
        if self.name == "varchar":
            return self.length
        if column is None or column.zerofill:
            raise UnknownType
        if self.name == "char":
            return column.length or 1
        if self.name == "enum":
            return max(map(len, column.labels))
        if self.is_integer:
            return self.length
        if self.name == "decimal":
            return self.length + (self.scale > 0) + (not self.unsigned)
        if self.name in _MOMENT_LENGTHS:
            return _MOMENT_LENGTHS[self.name] + (self.scale and self.scale + 1)
        raise UnknownType

    @property
    def as_text(self) -> ExpressionType:
        """The text that it becomes. Raises UnknownType."""
        return ExpressionType(
            "varchar", self.characters, nullable=self.nullable, literal=self.literal,
            strict=self.strict,
        )  # fmt: skip

    @property
    def is_double(self) -> bool:
        """Whether it is a FLOAT or DOUBLE. Raises UnknownType for a FLOAT(M,D) and DOUBLE(M,D)."""
        if self.name not in _REALS:
            return False
        if self.column is not None and (self.column.length is not None or self.column.scale):
            raise UnknownType
        return True


def of_column(column: Column, *, nullable: bool) -> ExpressionType:
    """The type of a column, which an outer join may make nullable."""
    length, precision = column.length or 0, None
    if column.type in INTEGER_TYPES:
        precision = _DIGITS.get(column.type, 20 if column.unsigned else 19)
        length = precision + (not column.unsigned)
    elif column.type == "decimal":
        precision = length
    return ExpressionType(
        column.type, length, column.scale, column.unsigned, nullable, precision, column,
        field=column.type,
    )  # fmt: skip


def of_number(text: str) -> ExpressionType:
    """The type of a number that is written without a sign."""
    whole, point, behind = text.partition(".")
    if "E" in text.upper():
        return ExpressionType("double", nullable=False, literal=True)
    digits = len(whole + behind)
    if (whole[:1] in ("", "0") and text != "0") or digits > MOST_SCALE:
        raise UnknownType
    if point:
        return ExpressionType("decimal", digits, len(behind), False, False, digits, literal=True)
    if digits > SHORT_DIGITS:
        raise UnknownType
    return ExpressionType("int", digits, 0, False, False, digits, literal=True)


def decimal_type(
    digits: int, scale: int, *, nullable: bool, unsigned: bool = False
) -> ExpressionType:
    """A DECIMAL, no longer than there are."""
    if digits > MOST_PRECISION or scale > MOST_SCALE or digits < max(scale, 1):
        raise UnknownType
    return ExpressionType("decimal", digits, scale, unsigned, nullable, digits)


def extended(one: ExpressionType, digits: int, scale: int) -> ExpressionType:
    """The type of SUM and AVG, which add digits and places."""
    if one.is_double:
        return ExpressionType("double")
    given = replace(one, narrow=False).digits
    return decimal_type(given + digits, one.scale + scale, nullable=True)


def rounded(one: ExpressionType, places: int) -> ExpressionType:
    """Of ROUND to fewer places."""
    if one.name != "decimal" or one.unsigned or not one.scale or places > one.scale:
        raise UnknownType
    cut = one.scale - places
    return decimal_type(one.digits - cut + (cut > 0), places, nullable=one.nullable)


class ExpressionTypeRules:
    """The rules of one session's server."""

    def __init__(self, session: DdlSession) -> None:
        self.session = session
        self.is_strict = bool(session.expressions.sql_mode & SqlModeFlag.STRICT)

    def arithmetic(self, operator: str, one: ExpressionType, two: ExpressionType) -> ExpressionType:
        """Of +, -, *, / and %."""
        nullable = one.nullable or two.nullable or operator in "/%"
        if operator == "%":
            if not (one.is_integer and two.is_integer and two.literal) or one.literal:
                raise UnknownType
            digits = max(one.digits, two.digits)
            found = self.integer(digits, unsigned=one.unsigned, nullable=nullable)
            return replace(found, precision=None) if self.session.is_modern else found
        if one.is_double or two.is_double:
            if not all(each.is_double or each.digits for each in (one, two)):
                raise UnknownType
            return ExpressionType("double", nullable=nullable)
        unsigned = one.unsigned and two.unsigned
        if operator == "/":
            digits = one.digits + (two.digits and two.scale) + DIVISION_DIGITS
            scale = one.scale + DIVISION_DIGITS
        elif operator == "*":
            digits, scale = one.digits + two.digits, one.scale + two.scale
        else:
            scale = max(one.scale, two.scale)
            digits = max(one.digits - one.scale, two.digits - two.scale) + 1 + scale
        if operator == "/" or not (one.is_integer and two.is_integer):
            return decimal_type(digits, scale, nullable=nullable, unsigned=unsigned)
        unsigned = one.unsigned or two.unsigned
        modes = self.session.expressions.sql_mode
        if operator == "-" and unsigned and modes & SqlModeFlag.NO_UNSIGNED_SUBTRACTION:
            raise UnknownType
        return self.integer(digits, unsigned=unsigned, nullable=nullable)

    def integer(self, digits: int, *, unsigned: bool, nullable: bool) -> ExpressionType:
        """What a function of integers returns: the width decides between INT and BIGINT."""
        length = digits + (not unsigned)
        is_wide = (
            length >= SHORTEST_BIGINT_OF_MARIADB
            if self.session.is_mariadb
            else length > LONGEST_INT
        )
        name = "bigint" if is_wide else "int"
        return ExpressionType(name, length, 0, unsigned, nullable, digits)

    def text(self, length: int, sources: Sequence[ExpressionType]) -> ExpressionType:
        """What a function of texts returns: NULL, too, in strict mode, where a text may be longer
        than max_allowed_packet."""
        if not 0 < length <= MOST_TEXT:
            raise UnknownType
        nullable = any(one.nullable and not one.strict for one in sources)
        return ExpressionType(
            "varchar", length, 0, False, self.is_strict or nullable,
            strict=self.is_strict and not nullable,
        )  # fmt: skip

    def merged(self, types: Sequence[ExpressionType], *, nullable: bool) -> ExpressionType:
        """The type that holds the values of all: COALESCE, IF, CASE, GREATEST."""
        typed = [one for one in types if one.name != "null"]
        names = {one.name for one in typed}
        if not typed or any(one.strict for one in typed):
            raise UnknownType
        if names <= INTEGER_TYPES:
            if all(one.literal for one in types) and len(typed) < len(types):
                raise UnknownType
            return self._merged_integers(typed, nullable=nullable)
        if names <= _EXACT:
            if any(one.is_integer and one.unsigned for one in typed):
                raise UnknownType
            scale = max(one.scale for one in typed)
            digits = max(one.digits - one.scale for one in typed) + scale
            unsigned = all(one.unsigned for one in typed) and not self.session.is_modern
            return decimal_type(digits, scale, nullable=nullable, unsigned=unsigned)
        if names <= _TEXTS:
            length = max(one.characters for one in typed)
            if not 0 < length <= MOST_TEXT:
                raise UnknownType
            return ExpressionType("varchar", length, nullable=nullable)
        if len(names) > 1 or not names <= {"date", "datetime", "double"}:
            raise UnknownType
        if not all(one.is_double or one.name != "double" for one in typed):
            raise UnknownType
        return ExpressionType(
            typed[0].name, scale=max(one.scale for one in typed), nullable=nullable
        )

    def _merged_integers(
        self, typed: Sequence[ExpressionType], *, nullable: bool
    ) -> ExpressionType:
        digits = max(one.digits for one in typed)
        length = max(one.digits + (not one.unsigned) for one in typed)
        signs = {one.unsigned for one in typed}
        if len(signs) > 1:
            if not self.session.is_modern or any(
                one.unsigned and one.field == "bigint" for one in typed
            ):
                found = decimal_type(digits, 0, nullable=nullable)
                return replace(found, narrow=self.session.is_old)  # IFNULL of it is a BIGINT
            digits = length - 1
        name = "bigint" if length > LONGEST_INT else "int"
        if self.session.is_mariadb:
            name = _widest([one.name for one in typed])
        written = all(one.literal for one in typed)
        if written and self.session.is_old:
            length = digits
        field = _field_of(typed)
        return ExpressionType(
            name, length, 0, signs == {True}, nullable, digits, narrow=written, field=field
        )

    def if_null(self, one: ExpressionType, two: ExpressionType) -> ExpressionType:
        """Of IFNULL: MySQL takes integers by the types of fields."""
        nullable = two.nullable and (one.nullable or self.session.is_old)
        found = self.merged([one, two], nullable=nullable)
        if self.session.is_mariadb:
            return found
        if one.is_integer and two.is_integer:
            if self.session.is_old and one.unsigned != two.unsigned:
                if one.column is None or not (two.column is not None or two.literal):
                    raise UnknownType
                length = max(one.digits, two.digits) + 1
                found = ExpressionType("int", length, nullable=nullable, precision=length - 1)
                field = _widest([one.field, two.field])
                found = replace(found, narrow=True, field=field)
            elif found.name == "decimal":
                return found
            return replace(found, name=found.field)
        self.check_lengths(found, [one, two])
        return found

    def check_lengths(self, found: ExpressionType, types: Sequence[ExpressionType]) -> None:
        """Raises UnknownType where 5.x gives IF and IFNULL of several numbers the longest of their
        lengths and the places of another."""
        typed = [one for one in types if one.name != "null"]
        is_odd = self.session.is_old and found.name == "decimal"
        if is_odd and not any(all(_holds(one, two) for two in typed) for one in typed):
            raise UnknownType


def _widest(names: Sequence[str]) -> str:
    return max(names, key=_WIDENING.index)


def _field_of(typed: Sequence[ExpressionType]) -> str:
    """The type of fields that holds integers with and without a sign."""
    unsigned = [one.field for one in typed if one.unsigned]
    signed = [one.field for one in typed if not one.unsigned]
    if not unsigned or not signed:
        return _widest(unsigned + signed)
    wider = _WIDENING[min(_WIDENING.index(_widest(unsigned)) + 1, len(_WIDENING) - 1)]
    return _widest([wider, *signed])


def _holds(one: ExpressionType, two: ExpressionType) -> bool:
    """Whether the one has digits enough for both."""
    if (one.name, one.digits, one.scale) == (two.name, two.digits, two.scale):
        return True
    return two.literal and not two.scale and two.digits < one.digits - one.scale
