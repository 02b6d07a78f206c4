"""Functions and their calls: the types of arguments that are a function's domain, and what type its
result has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from applier.tables.expressions.operands import (
    BYTES,
    NUMERIC,
    Dialect,
    Operand,
    OperandKind,
    Scope,
    Value,
    as_number,
    as_text,
    shared_collation,
    unsupported,
)
from applier.tables.expressions.operators import as_shown, null_or, worked_out_of


@dataclass(frozen=True, slots=True)
class Call:
    """A call whose arguments are in the domain already."""

    name: str
    arguments: list[Operand]
    dialect: Dialect

    @property
    def sql(self) -> str:
        """For messages."""
        return f"{self.name}({', '.join(argument.sql for argument in self.arguments)})"[:80]


@dataclass(frozen=True, slots=True)
class Domain:
    """Types that an argument may have, and what is made of them before the call."""

    kinds: frozenset[OperandKind]
    convert: Callable[[Operand, Dialect], Operand]

    def take(self, operand: Operand, call: str, dialect: Dialect) -> Operand:
        """The converted argument. Raises ReplicationError 1235 for one outside of the domain."""
        if operand.kind is OperandKind.NULL:
            return operand
        if operand.kind not in self.kinds:
            raise unsupported(
                f"function {call} of {operand.kind.name.lower()} ({operand.sql[:40]})"
            )
        return self.convert(operand, dialect)


def as_bytes(operand: Operand, dialect: Dialect) -> Operand:
    """Text in its own character set."""
    if operand.kind in (OperandKind.BINARY, OperandKind.HEX):
        return replace(operand, kind=OperandKind.BINARY)
    text = as_text(operand, dialect)
    encode, inner = text.charset.encode, text.value

    def value(scope: Scope) -> Value:
        found = inner(scope)
        return None if found is None else encode(found)

    return replace(text, kind=OperandKind.BINARY, value=value)


def _as_number(operand: Operand, _dialect: Dialect) -> Operand:
    return as_number(operand)


def unchanged(operand: Operand, _dialect: Dialect) -> Operand:
    """Of any type as it stands."""
    return operand


PRINTED = frozenset(
    {
        OperandKind.TEXT,
        OperandKind.LABELS,
        OperandKind.INTEGER,
        OperandKind.DECIMAL,
        OperandKind.DOUBLE,
        OperandKind.FLOAT,
        OperandKind.DATE,
        OperandKind.DATETIME,
        OperandKind.TIME,
        OperandKind.YEAR,
    }
)
TEXTS = Domain(PRINTED, as_text)
WORDS = Domain(frozenset({OperandKind.TEXT, OperandKind.LABELS}), as_text)
RAW = Domain(PRINTED | {OperandKind.BINARY, OperandKind.HEX}, as_bytes)
STRINGS = Domain(
    PRINTED | BYTES,
    lambda operand, dialect: operand if operand.kind in BYTES else as_text(operand, dialect),
)
WHOLE = Domain(frozenset({OperandKind.INTEGER, OperandKind.YEAR}), _as_number)
EXACT_NUMBERS = Domain(
    frozenset({OperandKind.INTEGER, OperandKind.DECIMAL, OperandKind.YEAR}), _as_number
)
REAL_NUMBERS = Domain(
    frozenset(
        {
            OperandKind.INTEGER,
            OperandKind.DECIMAL,
            OperandKind.DOUBLE,
            OperandKind.FLOAT,
            OperandKind.YEAR,
        }
    ),
    _as_number,
)
ANY = Domain(frozenset(OperandKind), unchanged)


@dataclass(frozen=True, slots=True)
class Function:
    """`domains` of the arguments in order; the last one holds for all others, at most `most` in
    all."""

    domains: tuple[Domain, ...]
    build: Callable[[Call], Operand]
    least: int
    most: int = 1000

    def call(self, name: str, arguments: list[Operand], dialect: Dialect) -> Operand:
        """The result of a call. Raises ReplicationError 1235 outside of the domain."""
        if not self.least <= len(arguments) <= self.most:
            raise unsupported(f"function {name} of {len(arguments)} arguments")
        last = len(self.domains) - 1
        taken = [
            self.domains[min(at, last)].take(argument, name, dialect)
            for at, argument in enumerate(arguments)
        ]
        found = worked_out_of(arguments, self.build(Call(name, taken, dialect)))
        return as_shown(found, dialect)


def text_result(
    compute: Callable[..., Value], *, sources: int | None = None
) -> Callable[[Call], Operand]:
    """Text; its collation is that of the first `sources` arguments together, of all texts
    without."""

    def build(call: Call) -> Operand:
        texts = [
            argument for argument in call.arguments[:sources] if argument.kind is OperandKind.TEXT
        ]
        collation, strength = (
            shared_collation(texts) if texts else (call.dialect.collation, NUMERIC)
        )
        return Operand(
            OperandKind.TEXT,
            null_or(call.arguments, compute),
            call.sql,
            collation=collation,
            strength=strength,
        )

    return build


def string_result(
    compute: Callable[..., Value], *, sources: int | None = None
) -> Callable[[Call], Operand]:
    """As `text_result`; bytes where one of the strings is binary, with the other texts in their own
    character sets."""
    as_text_result = text_result(compute, sources=sources)

    def build(call: Call) -> Operand:
        strings = call.arguments[:sources]
        if not any(argument.kind in BYTES for argument in strings):
            return as_text_result(call)
        raw = [
            argument if argument.kind is OperandKind.NULL else as_bytes(argument, call.dialect)
            for argument in strings
        ]
        return Operand(
            OperandKind.BINARY, null_or([*raw, *call.arguments[len(raw) :]], compute), call.sql
        )

    return build


def plain_text(compute: Callable[..., Value]) -> Callable[[Call], Operand]:
    """Text of ASCII characters in the connection's collation."""
    return lambda call: Operand(
        OperandKind.TEXT,
        null_or(call.arguments, compute),
        call.sql,
        collation=call.dialect.collation,
    )


def integer_result(
    compute: Callable[..., Value], *, unsigned: bool = False
) -> Callable[[Call], Operand]:
    """An integer."""
    return lambda call: Operand(
        OperandKind.INTEGER, null_or(call.arguments, compute), call.sql, unsigned=unsigned
    )


def binary_result(compute: Callable[..., Value]) -> Callable[[Call], Operand]:
    """Bytes."""
    return lambda call: Operand(OperandKind.BINARY, null_or(call.arguments, compute), call.sql)
