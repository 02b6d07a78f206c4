"""Partitions of a table: what PARTITION BY says, and in which partition a row stands.

sql_partition.cc (5.7 to 9.7; MariaDB 10.11): `get_part_id_hash`, `get_part_id_linear_hash`,
`calculate_key_hash_value`, `get_partition_id_range`. What is not exact is refused with 1235: KEY on
other types than integers, PARTITION BY SYSTEM_TIME, bounds that depend on a time zone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from applier.binlog.types.temporal import timestamp_microseconds
from applier.errors import ReplicationError
from applier.tables.collations.collation import sort_key
from applier.tables.expressions.operands import INTEGERS, Scope, Session
from applier.tables.expressions.row_expressions import compile_expression, constant_value
from applier.tables.sql.sql_text import Parser
from lookup.handler import Row
from lookup.table import TableDefinition

INTEGER_BYTES = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
_UNFOLDED = (range(0x61, 0x7B), range(0xC0, 0xD7), range(0xD9, 0xDE), range(0xE0, 0xF7))
_SWEDISH = bytes.maketrans(
    bytes([*chain(*_UNFOLDED), *range(0xF8, 0xFF)]),
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZAAAA\\[\\CEEEEIIIIDNOOOO]UUUYY"
    b"AAAA\\[\\CEEEEIIIIDNOOOO]\xd8UUUYY\xde",
)
"""The sort order of latin1_swedish_ci, by which KEY hashes the bytes of a number
(`my_charset_numeric`)."""
_NULL, _HIGHEST, _LOWEST = (0,), (2,), -(1 << 63)
_UNKNOWN = "which rows stand in a partition is not known"


Place = int | tuple[int, int]
"""Where a partition stands among the others, or a subpartition in such a one."""


@dataclass(frozen=True, slots=True)
class Partition:
    """`bounds`: the expressions of LESS THAN (None: MAXVALUE); `values`: those of IN, each a row of
    columns; `rest`: what else it says."""

    name: str
    bounds: tuple[str | None, ...] = ()
    values: tuple[tuple[str, ...], ...] = ()
    default: bool = False
    rest: str = ""

    @property
    def sql(self) -> str:
        """As PARTITION BY has it."""
        said = ""
        if self.bounds:
            said = (
                " VALUES LESS THAN ("
                + ", ".join(bound or "MAXVALUE" for bound in self.bounds)
                + ")"
            )
        elif self.default:
            said = " DEFAULT"
        elif self.values:
            said = " VALUES IN (" + ", ".join(_row_sql(row) for row in self.values) + ")"
        name = self.name.replace("`", "``")
        return f"PARTITION `{name}`{said} {self.rest}".rstrip()


@dataclass(frozen=True, slots=True)
class Partitioning:
    """`method`: HASH, KEY, RANGE or LIST. `by`: the expression, or the list of columns. `sub`: the
    text of SUBPARTITION BY."""

    method: str
    by: str
    parts: tuple[Partition, ...]
    of_columns: bool = False
    linear: bool = False
    algorithm: int = 2
    sub: str = ""

    @property
    def sql(self) -> str:
        """PARTITION BY …, with a name for each partition."""
        algorithm = " ALGORITHM = 1" if self.algorithm == 1 else ""
        head = (
            "PARTITION BY"
            f" {'LINEAR ' * self.linear}{self.method}{algorithm}{' COLUMNS' * self.of_columns}"
            f" ({self.by})"
        )
        return f"{head} {self.sub} ({', '.join(part.sql for part in self.parts)})"

    @property
    def sub_names(self) -> list[list[str]]:
        """The names of the subpartitions, for each partition."""
        count = Parser(self.sub)
        count.skip_until("SUBPARTITIONS")
        number = count.integer() if count.accept("SUBPARTITIONS") else 1
        made = [[f"{part.name}sp{at}" for at in range(number)] for part in self.parts]
        return [_listed_subs(part) or names for part, names in zip(self.parts, made, strict=True)]

    def index(self, name: str) -> int | None:
        """Where the partition of this name stands."""
        return next(
            (at for at, part in enumerate(self.parts) if part.name.lower() == name.lower()), None
        )


def read_partitioning(parser: Parser) -> Partitioning:
    """PARTITION BY …; the parser stands before it. Raises InputError for what is not known here."""
    parser.expect("PARTITION", "BY")
    linear = parser.accept("LINEAR")
    method = parser.accept_any("HASH", "KEY", "RANGE", "LIST")
    if not method:
        raise parser.refuse("partitions of a kind that is not known in memory")
    algorithm = 2
    if method == "KEY" and parser.accept("ALGORITHM"):
        parser.accept("=")
        algorithm = parser.integer()
    of_columns = method in ("RANGE", "LIST") and bool(parser.accept_any("COLUMNS"))
    by = parser.parenthesized()
    count = parser.integer() if parser.accept("PARTITIONS") else None
    sub = parser.skip_until("PARTITIONS", "(") if parser.word() == "SUBPARTITION" else ""
    if sub:
        sub += " (" + parser.parenthesized() + ")"
        sub += f" SUBPARTITIONS {parser.integer()}" if parser.accept("SUBPARTITIONS") else ""
    parts = (
        read_partitions(parser)
        if parser.op() == "("
        else tuple(Partition(f"p{at}") for at in range(count or 1))
    )
    return Partitioning(method, by, parts, of_columns, linear, algorithm, sub)


def read_partitions(parser: Parser) -> tuple[Partition, ...]:
    """(PARTITION name VALUES …, …)"""
    parser.expect("(")
    parts = []
    while True:
        parser.accept("PARTITION")  # MariaDB may leave the word out
        part = Partition(parser.name())
        if parser.accept("VALUES", "LESS", "THAN"):
            listed = ["MAXVALUE"] if parser.accept("MAXVALUE") else _pieces(parser)
            part = replace(
                part, bounds=tuple(None if text.upper() == "MAXVALUE" else text for text in listed)
            )
        elif parser.accept("VALUES", "IN"):
            rows = [Parser(text, parser.lexis) for text in _pieces(parser)]
            part = replace(
                part,
                values=tuple(
                    tuple(_pieces(row)) if row.op() == "(" else (row.sql,) for row in rows
                ),
            )
        elif parser.accept("DEFAULT") or parser.accept("VALUES", "DEFAULT"):
            part = replace(part, default=True)
        parts.append(replace(part, rest=parser.skip_until(",", ")")))
        if not parser.accept(","):
            break
    parser.expect(")")
    return tuple(parts)


def _listed_subs(part: Partition) -> list[str]:
    """The names in (SUBPARTITION name, …); empty where none are said."""
    parser, names = Parser(part.rest), []
    parser.skip_until("(")
    for piece in _pieces(parser) if parser.op() == "(" else []:
        one = Parser(piece)
        one.expect("SUBPARTITION")
        names.append(one.name())
    return names


def _pieces(parser: Parser) -> list[str]:
    inner = Parser(parser.parenthesized(), parser.lexis)
    pieces = []
    while not inner.done:
        pieces.append(inner.skip_until(","))
        inner.accept(",")
    return pieces


def _row_sql(row: tuple[str, ...]) -> str:
    return row[0] if len(row) == 1 else f"({', '.join(row)})"


# rows

Locate = Callable[[Row], int]


def locator(definition: TableDefinition, partitioning: Partitioning, session: Session) -> Locate:
    """A function from a row to the place of its partition. It, and this, raise ReplicationError
    1235 where that is not exact."""
    if partitioning.method == "KEY":
        return _by_key(definition, partitioning)
    if partitioning.of_columns:
        value = _columns(definition, partitioning)
    else:
        value = _number(definition, partitioning, session)
    if partitioning.method == "HASH":
        return _by_hash(value, len(partitioning.parts), linear=partitioning.linear)
    constant = _constants(definition, partitioning, session)
    if partitioning.method == "RANGE":
        return _by_range(
            value,
            [
                tuple(map(constant, range(len(part.bounds)), part.bounds))
                for part in partitioning.parts
            ],
        )
    return _by_list(value, partitioning, constant)


def _number(
    definition: TableDefinition, partitioning: Partitioning, session: Session
) -> Callable[[Row], Any]:
    seconds = _unix_timestamp(definition, partitioning.by)
    if seconds is not None:
        return lambda row: (
            (_NULL,)
            if row[seconds] is None
            else ((1, timestamp_microseconds(row[seconds]) // 1_000_000),)
        )
    operand = compile_expression(partitioning.by, definition, session.dialect)
    if operand.kind not in INTEGERS:
        raise not_exact(definition, f"PARTITION BY {partitioning.method} ({partitioning.by})")

    def value(row: Row) -> Any:
        found = operand.value(Scope(row, session))
        return (_NULL,) if found is None else ((1, found),)

    return value


def _unix_timestamp(definition: TableDefinition, by: str) -> int | None:
    """The TIMESTAMP column of UNIX_TIMESTAMP(column), which depends on no time zone."""
    parser = Parser(by)
    if not parser.accept("UNIX_TIMESTAMP", "("):
        return None
    at = definition.positions.get(parser.name().lower())
    alone = parser.accept(")") and parser.done
    column = None if at is None else definition.columns[at]
    is_timestamp = column is not None and (column.type, column.scale) == ("timestamp", 0)
    return at if alone and is_timestamp else None


def _names(definition: TableDefinition, partitioning: Partitioning) -> list[int]:
    parser = Parser(partitioning.by)
    names = []
    while not parser.done:
        names.append(parser.name().lower())
        parser.accept(",")
    if any(name not in definition.positions for name in names):
        raise not_exact(definition, f"PARTITION BY {partitioning.method} ({partitioning.by})")
    if not names and definition.primary is not None:
        return list(definition.primary.columns)
    return [definition.positions[name] for name in names]


def _columns(definition: TableDefinition, partitioning: Partitioning) -> Callable[[Row], Any]:
    places = [(at, sort_key(definition.columns[at])) for at in _names(definition, partitioning)]

    def value(row: Row) -> Any:
        return tuple(
            _NULL if row[at] is None else (1, row[at] if key is None else key(row[at]))
            for at, key in places
        )

    return value


def _constants(
    definition: TableDefinition, partitioning: Partitioning, session: Session
) -> Callable[[int, str | None], Any]:
    """A function from (number of the column, SQL of a constant) to what a row's value is compared
    with."""
    places = _names(definition, partitioning) if partitioning.of_columns else []

    def constant(number: int, sql: str | None) -> Any:
        if sql is None:
            return _HIGHEST
        if "UNIX_TIMESTAMP" in sql.upper():  # of the time zone in which the table was made
            raise not_exact(definition, f"a partition's bound {sql}")
        if not places:
            operand = compile_expression(sql, None, session.dialect)
            found = operand.value(Scope((), session))
            if found is not None and operand.kind not in INTEGERS:
                raise not_exact(definition, f"a partition's bound {sql}")
            return _NULL if found is None else (1, found)
        column = definition.columns[places[number]]
        stored, key = constant_value(column, sql, session), sort_key(column)
        return _NULL if stored is None else (1, stored if key is None else key(stored))

    return constant


def _by_range(value: Callable[[Row], Any], bounds: list[tuple[Any, ...]]) -> Locate:
    def locate(row: Row) -> int:
        found = value(row)
        if found == (_NULL,):
            return 0
        return next((at for at, bound in enumerate(bounds) if found < bound), len(bounds))

    return locate


def _by_list(
    value: Callable[[Row], Any],
    partitioning: Partitioning,
    constant: Callable[[int, str | None], Any],
) -> Locate:
    parts = partitioning.parts
    places = {
        tuple(map(constant, range(len(row)), row)): at
        for at, part in enumerate(parts)
        for row in part.values
    }
    default = next((at for at, part in enumerate(parts) if part.default), len(parts))
    return lambda row: places.get(value(row), default)


def _by_hash(value: Callable[[Row], Any], count: int, *, linear: bool) -> Locate:
    def locate(row: Row) -> int:
        found = value(row)[0]
        number = _LOWEST if found == _NULL else found[1]  # `part_val_int`
        return _spread(number, count, linear=linear)

    return locate


def _spread(number: int, count: int, *, linear: bool) -> int:
    """`get_part_id_hash` and `get_part_id_from_linear_hash`, of a signed number of 64 bits."""
    number = (number + (1 << 63)) % (1 << 64) - (1 << 63)
    if not linear:
        return abs(number) % count
    mask = (1 << (count - 1).bit_length()) - 1
    place = number & mask
    return place if place < count else place & (((mask + 1) >> 1) - 1)


def _by_key(definition: TableDefinition, partitioning: Partitioning) -> Locate:
    places = _names(definition, partitioning)
    kinds = [definition.columns[at].type for at in places]
    if not places or any(kind not in INTEGER_BYTES for kind in kinds):
        raise not_exact(definition, f"PARTITION BY KEY ({partitioning.by})")
    sizes = [INTEGER_BYTES[kind] for kind in kinds]
    latin, count = partitioning.algorithm != 1, len(partitioning.parts)

    def locate(row: Row) -> int:
        first, second = 1, 4
        for at, size in zip(places, sizes, strict=True):
            if row[at] is None:
                first ^= (first << 1 | 1) & 0xFFFFFFFFFFFFFFFF
                continue
            data = (row[at] % (1 << 8 * size)).to_bytes(size, "little")
            for byte in data.rstrip(b" ").translate(_SWEDISH) if latin else data:
                first ^= (((first & 63) + second) * byte + (first << 8)) & 0xFFFFFFFFFFFFFFFF
                second += 3
        return _spread(first & 0xFFFFFFFF, count, linear=partitioning.linear)

    return locate


def not_exact(definition: TableDefinition, what: str, why: str = _UNKNOWN) -> ReplicationError:
    """The error of rows whose partition, or whereabouts, are not known."""
    return ReplicationError(
        1235,
        f"{what} is not supported in memory: {why}",
        table=definition.full_name,
        hint="skip it with --skip-errors 1235, or replay into a test DB",
    )
