"""What an expression is made of: operands with the type that the server gives them before any row
is read.

The server decides by these types how values are compared, converted and printed. An operation that
is not exact for the types, or for the values, at hand is refused with 1235.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal
from enum import Enum, auto
from typing import Any

from applier.binlog.charsets import Charset, charset, charset_of_collation_name
from applier.binlog.time_zone import from_utc
from applier.binlog.types import json as json_documents
from applier.binlog.types import to_python
from applier.binlog.types.names import zerofill_width
from applier.binlog.types.numbers import double_text, leading_number
from applier.binlog.types.temporal import (
    Parts,
    date_parts,
    datetime_parts,
    datetime_to_parts,
    parts_text,
    time_microseconds,
    time_text,
    timestamp_microseconds,
)
from applier.binlog.types.texts import TEXT_TYPES
from applier.errors import ReplicationError
from applier.tables.auto_numbers import ONE_BY_ONE, NumberSteps
from applier.tables.sql.sql_mode_flags import NO_MODES, SqlModeFlag
from lookup.handler import Row
from lookup.table import Column

Value = Any
"""None, or what `OperandKind` says."""


class OperandKind(Enum):
    """The types of operands, and the Python values that they have."""

    NULL = auto()
    INTEGER = auto()  # int
    DECIMAL = auto()  # Decimal with the exponent that the type says
    DOUBLE = auto()  # float
    FLOAT = auto()  # float; a FLOAT column, whose text has six digits
    TEXT = auto()  # str
    BINARY = auto()  # bytes
    HEX = auto()  # bytes; a literal 0x… or b'…', a number beside numbers
    DATE = auto()  # Parts
    DATETIME = auto()  # Parts, in the session's time zone
    TIME = auto()  # int, microseconds
    YEAR = auto()  # int
    BIT = auto()  # int
    LABELS = auto()  # str; ENUM and SET
    JSON = auto()  # a document, `JsonNull` for null
    OTHER = auto()  # stored value; nothing but NULL or not is known


class JsonNull:
    """JSON's null as a document, which is not SQL's NULL."""


def as_document(parsed: Value) -> Value:
    """A parsed JSON document as a value of the kind JSON."""
    return JsonNull if parsed is None else parsed


def as_parsed(document: Value) -> Value:
    """The other way round."""
    return None if document is JsonNull else document


def document_text(document: Value, dialect: Dialect) -> str:
    """A document as the server prints it; 5.7 prints 1.0 as 1."""
    return json_documents.to_text(as_parsed(document), point=not dialect.old)


INTEGERS = frozenset({OperandKind.INTEGER, OperandKind.YEAR, OperandKind.BIT})
NUMBERS = INTEGERS | {OperandKind.DECIMAL, OperandKind.DOUBLE, OperandKind.FLOAT}
DATES = frozenset({OperandKind.DATE, OperandKind.DATETIME})
CHARACTERS = frozenset({OperandKind.TEXT, OperandKind.LABELS})
BYTES = frozenset({OperandKind.BINARY, OperandKind.HEX})

OLD_SERVERS = frozenset({"5.6", "5.7"})
"""Rows of `lookup.versions.RULES`: the versions 5.x."""

EXPLICIT, COLUMN, LITERAL, NUMERIC = 0, 2, 4, 5
"""Coercibility: whose collation counts (`Derivation`, sql/item.h)."""


def unsupported(what: str) -> ReplicationError:
    """The error of what is not computed here: 1235, and nothing is guessed."""
    return ReplicationError(
        1235,
        f"this expression is not supported in memory: {what}",
        hint="skip the statement with --skip-errors 1235, or replay into a test DB",
    )


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a session reads SQL. `client`: the character set that a statement's bytes are in;
    `collation`: that of its literals."""

    sql_mode: SqlModeFlag = NO_MODES
    mariadb: bool = False
    old: bool = False
    client: str = "utf8mb4"
    collation: str = "utf8mb4_0900_ai_ci"
    comment_version: int | None = None
    """Whose version comments are read; None: all."""
    lower_case_names: bool = False
    """lower_case_table_names=1."""

    @property
    def is_modern(self) -> bool:
        """MySQL 8.0 and later."""
        return not (self.old or self.mariadb)

    @property
    def display_widths(self) -> bool:
        """Whether the server writes integer types with a display width."""
        return not self.is_modern


PLAIN = Dialect()


def dialect_of(server: str) -> Dialect:
    """How a server reads the expressions of its tables. `server`: the name of a row of
    `lookup.versions.RULES`."""
    return Dialect(mariadb=server == "mariadb", old=server in OLD_SERVERS)


_UNRECORDED = "write the value as a literal, or leave the table out with --exclude-table"


@dataclass
class Session:
    """What a statement's session gives its expressions. `now` in the session's time zone, `offset`
    from UTC."""

    now: datetime = datetime(1970, 1, 1)
    offset: timedelta = timedelta(0)
    zone: tzinfo = UTC
    sql_mode: SqlModeFlag = NO_MODES
    variables: dict[str, Value] = field(default_factory=dict)
    last_insert_id: int = 0
    seeds: tuple[int, int] | None = None
    mariadb: bool = False
    old: bool = False
    """Versions 5.x."""
    client: str = "utf8mb4"
    collation: str = "utf8mb4_0900_ai_ci"
    comment_version: int | None = None
    numbers: NumberSteps = ONE_BY_ONE
    lc_time_names: int = 0
    """The server's number of a locale; 0: en_US."""
    lower_case_names: bool = False
    """lower_case_table_names=1."""
    of_program: Callable[[list[str]], Operand | None] | None = None
    """What names in a trigger mean that are no columns of a table."""
    is_recorded: bool = True
    """Whether a log tells `now` and `last_insert_id`; nobody knows those of a dump."""

    @classmethod
    def at_utc(cls, dialect: Dialect) -> Session:
        """A session at +00:00 that reads SQL so."""
        return cls(sql_mode=dialect.sql_mode, mariadb=dialect.mariadb, old=dialect.old)

    @property
    def dialect(self) -> Dialect:
        """How the session reads SQL."""
        return Dialect(
            self.sql_mode,
            self.mariadb,
            self.old,
            self.client,
            self.collation,
            self.comment_version,
            self.lower_case_names,
        )

    @property
    def clock(self) -> datetime:
        """`now`. Raises ReplicationError 1235 where it is not recorded."""
        if not self.is_recorded:
            raise ReplicationError(1235, "no log tells the moment of this value", hint=_UNRECORDED)
        return self.now

    def random(self) -> float:
        """RAND() from the seeds of a RAND event (`my_rnd`, mysys/my_rnd.cc). Raises
        ReplicationError 1235 without such an event."""
        if self.seeds is None:
            raise unsupported("RAND() without a RAND event")
        limit = 0x3FFFFFFF
        first = (self.seeds[0] * 3 + self.seeds[1]) % limit
        second = (first + self.seeds[1] + 33) % limit
        self.seeds = (first, second)
        return first / limit


@dataclass(frozen=True, slots=True)
class Scope:
    """Where an expression is evaluated: a row of stored values, and the session. `inserted`: the
    row that VALUES(column) means."""

    row: Row
    session: Session
    inserted: Row | None = None


Evaluate = Callable[[Scope], Value]


@dataclass(frozen=True, slots=True)
class Operand:
    """`digits` behind the point or the second. `collation` where the kind has characters.
    `literal`: written as it is in the SQL."""

    kind: OperandKind
    value: Evaluate
    sql: str = ""
    digits: int = 0
    unsigned: bool = False
    collation: str | None = None
    strength: int = LITERAL
    literal: bool = False
    column: Column | None = None
    of_fixed: bool = False  # worked out from a FLOAT(M,D) or DOUBLE(M,D)
    of_groups: bool = False  # a DECIMAL from a temporary table; which digits its text has is open

    @property
    def is_bytes(self) -> bool:
        """Whether its values are bytes. A literal of kind OTHER is: one in quotes whose bytes are
        no text."""
        return self.kind in BYTES or (self.kind is OperandKind.OTHER and self.literal)

    @property
    def charset(self) -> Charset:
        """The character set of its text."""
        return charset(charset_of_collation_name(self.collation or "utf8mb4_bin"))


def constant(kind: OperandKind, value: Value, **more: Any) -> Operand:
    """An operand that every row gives the same value."""
    return Operand(kind, lambda scope: value, literal=True, **more)


def mapped(
    operand: Operand, kind: OperandKind, convert: Callable[[Any], Value], **more: Any
) -> Operand:
    """The operand as another kind; NULL stays NULL."""
    inner = operand.value

    def value(scope: Scope) -> Value:
        found = inner(scope)
        return None if found is None else convert(found)

    return replace(operand, kind=kind, value=value, **more)


# columns

INTEGER_TYPES = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_BINARY_TYPES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_KINDS: Mapping[str, OperandKind] = {
    **dict.fromkeys(INTEGER_TYPES, OperandKind.INTEGER),
    **dict.fromkeys(TEXT_TYPES, OperandKind.TEXT),
    **dict.fromkeys(_BINARY_TYPES, OperandKind.BINARY),
    "decimal": OperandKind.DECIMAL,
    "double": OperandKind.DOUBLE,
    "float": OperandKind.FLOAT,
    "date": OperandKind.DATE,
    "datetime": OperandKind.DATETIME,
    "timestamp": OperandKind.DATETIME,
    "time": OperandKind.TIME,
    "year": OperandKind.YEAR,
    "bit": OperandKind.BIT,
    "enum": OperandKind.LABELS,
    "set": OperandKind.LABELS,
    "json": OperandKind.JSON,
}


def column_operand(column: Column, at: int, dialect: Dialect, *, inserted: bool = False) -> Operand:
    """A column of the row; with `inserted` of the row that was to be inserted."""
    kind = _KINDS.get(column.type, OperandKind.OTHER)
    if column.type == "char" and dialect.sql_mode & SqlModeFlag.PAD_CHAR_TO_FULL_LENGTH:
        kind = OperandKind.OTHER
    read = _reader(column, kind)

    def value(scope: Scope) -> Value:
        row = scope.row if not inserted else scope.inserted
        stored = None if row is None else row[at]
        return None if stored is None else read(stored, scope.session)

    collation = None
    if kind in CHARACTERS:
        collation = column.collation or charset(column.charset).default_collation
    unsigned = column.unsigned or kind in (OperandKind.BIT, OperandKind.YEAR)
    return Operand(
        kind, value, column.name, column.scale, unsigned, collation, COLUMN, column=column
    )


def _reader(column: Column, kind: OperandKind) -> Callable[[Any, Session], Value]:
    if kind is OperandKind.OTHER:
        return lambda stored, session: stored
    if kind is OperandKind.DATE:
        return lambda stored, session: (*date_parts(stored), 0, 0, 0, 0)
    if kind is OperandKind.TIME:
        return lambda stored, session: time_microseconds(stored)
    if kind is OperandKind.JSON:
        return lambda stored, session: as_document(json_documents.decode(stored))
    if column.type == "datetime":
        return lambda stored, session: datetime_parts(stored)
    if column.type == "timestamp":
        return lambda stored, session: local_parts(timestamp_microseconds(stored), session)
    convert = to_python(column)
    if kind is not OperandKind.TEXT:
        return lambda stored, session: convert(stored)

    def text(stored: bytes, _session: Session) -> str:
        found = convert(stored)
        if isinstance(found, bytes):
            raise unsupported(f"text of `{column.name}` that is not valid in its character set")
        return str(found)

    return text


def local_parts(microseconds: int, session: Session) -> Parts:
    """Microseconds since 1970 as the session's time; 0 is the zero date."""
    if microseconds == 0:
        return (0, 0, 0, 0, 0, 0, 0)
    return datetime_to_parts(
        from_utc(
            datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds), session.zone
        )
    )


# an operand as text, as a number, as a truth value


def as_text(operand: Operand, dialect: Dialect) -> Operand:
    """As the server prints it. Raises ReplicationError 1235 where its text is not known."""
    kind, digits = operand.kind, operand.digits
    if kind in (OperandKind.TEXT, OperandKind.NULL):
        return operand
    if kind is OperandKind.LABELS:
        return replace(operand, kind=OperandKind.TEXT)
    if kind is OperandKind.DATE:
        return _printed(operand, dialect, lambda value: "{:04d}-{:02d}-{:02d}".format(*value[:3]))
    if kind is OperandKind.DATETIME:
        return _printed(operand, dialect, lambda value: parts_text(value, digits))
    if kind is OperandKind.TIME:
        return _printed(operand, dialect, lambda value: time_text(value, digits))
    if kind is OperandKind.DECIMAL and not operand.of_groups:
        return _printed(operand, dialect, lambda value: f"{rounded_half_up(value, digits):f}")
    is_fixed = operand.column is None or operand.column.length is not None  # FLOAT(M,D)
    if kind in _PRINTERS and not (kind is OperandKind.FLOAT and is_fixed):
        return _printed(operand, dialect, _PRINTERS[kind])
    raise unsupported(f"{operand.sql} as text")


def _printed(operand: Operand, dialect: Dialect, convert: Callable[[Any], str]) -> Operand:
    width = 0 if operand.column is None else zerofill_width(operand.column)
    return mapped(
        operand,
        OperandKind.TEXT,
        lambda value: convert(value).rjust(width, "0"),
        collation=dialect.collation,
        strength=NUMERIC,
        column=None,
    )


def rounded_half_up(value: Decimal, digits: int) -> Decimal:
    """At so many digits behind the point; a value with fewer gets zeros. A quotient of 5.x and
    MariaDB holds more than it shows."""
    return value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, context=_WIDE)


_WIDE = Context(prec=130)


def _short_double(value: float) -> str:
    text = double_text(value)
    if len(text) > 15 or "e" in text:
        raise unsupported(f"the text of the number {value!r}")
    return text


def _short_float(value: float) -> str:
    """FLT_DIG digits (`Field_float::val_str`)."""
    text = f"{value:.6g}"
    if text == "-0" or "e" in text:
        raise unsupported(f"the text of the number {value!r}")
    return text


_PRINTERS: Mapping[OperandKind, Callable[[Any], str]] = {
    OperandKind.INTEGER: str,
    OperandKind.YEAR: "{:04d}".format,
    OperandKind.DOUBLE: _short_double,
    OperandKind.FLOAT: _short_float,
}


def as_number(operand: Operand) -> Operand:
    """INTEGER, DECIMAL or DOUBLE (or NULL). Raises ReplicationError 1235 where the number is not
    known.

    That of a moment with fractions of a second has other digits in each version.
    """
    kind, digits = operand.kind, operand.digits
    if kind in (OperandKind.INTEGER, OperandKind.DECIMAL, OperandKind.DOUBLE, OperandKind.NULL):
        return operand
    if kind in (OperandKind.YEAR, OperandKind.BIT):
        return replace(operand, kind=OperandKind.INTEGER)
    if kind is OperandKind.FLOAT:
        return replace(operand, kind=OperandKind.DOUBLE)
    if kind is OperandKind.TEXT:
        return mapped(operand, OperandKind.DOUBLE, leading_number, digits=0)
    if kind is OperandKind.HEX:
        return mapped(operand, OperandKind.INTEGER, _hex_number, unsigned=True)
    if kind is OperandKind.DATE:
        return mapped(
            operand, OperandKind.INTEGER, lambda parts: (parts[0] * 100 + parts[1]) * 100 + parts[2]
        )
    if kind is OperandKind.DATETIME and not digits:
        return mapped(operand, OperandKind.INTEGER, _datetime_number)
    if kind is OperandKind.TIME and not digits:
        return mapped(operand, OperandKind.INTEGER, _time_number)
    raise unsupported(f"{operand.sql} as a number")


def _hex_number(value: bytes) -> int:
    if len(value) > 8:
        raise unsupported(f"0x{value.hex()[:20]}… as a number")
    return int.from_bytes(value, "big")


def _datetime_number(parts: Parts) -> int:
    return int("{:04d}{:02d}{:02d}{:02d}{:02d}{:02d}".format(*parts[:6]))


def _time_number(microseconds: int) -> int:
    seconds = abs(microseconds) // 1_000_000
    number = seconds // 3600 * 10000 + seconds // 60 % 60 * 100 + seconds % 60
    return -number if microseconds < 0 else number


def truth(operand: Operand) -> Callable[[Scope], bool | None]:
    """What an operand is as a condition; None for NULL."""
    if operand.kind is OperandKind.NULL:
        return lambda scope: None
    inner = as_number(operand).value

    def value(scope: Scope) -> bool | None:
        found = inner(scope)
        return None if found is None else bool(found != 0)

    return value


def condition(operand: Operand, dialect: Dialect) -> Operand:
    """An operand of WHERE and ON, or of AND and OR, beside which a constant falls away. What stands
    there alone 5.x takes for an integer, so that 0.1 does not hold (seen on 5.7.29): raises
    ReplicationError 1235 for another kind."""
    if dialect.old and operand.kind not in INTEGERS | {OperandKind.NULL}:
        raise unsupported(f"{operand.sql} as a condition")
    return operand


# collations


def shared_collation(operands: list[Operand]) -> tuple[str, int]:
    """The collation that texts have together, and its coercibility. Raises ReplicationError 1235
    where two of them compete."""
    best = min(operand.strength for operand in operands)
    names = {operand.collation for operand in operands if operand.strength == best}
    if len(names) != 1 or None in names:
        raise unsupported(f"texts of the collations {', '.join(sorted(map(str, names)))} together")
    return str(names.pop()), best
