"""From the clauses of a CREATE or ALTER TABLE to a TableDefinition: what the server fills in where
the statement is silent.

sql_table.cc (`mysql_prepare_create_table`, 5.6 to 9.7) for derived names, keys and nullability.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import cast

from applier.binlog.charsets import (
    CHARSETS,
    Charset,
    charset,
    charset_of_collation_name,
    literal_bytes,
)
from applier.errors import ReplicationError
from applier.tables.conversions.conversion_rules import ConversionRules
from applier.tables.definitions.named_keys import TINY_BYTES, NamedKey, resolve_keys
from applier.tables.definitions.partition_bounds import with_settled_bounds
from applier.tables.expressions.defaults import default_in_utc, now_with_digits
from applier.tables.expressions.operands import unsupported
from applier.tables.expressions.row_expressions import Session
from applier.tables.sql.quoting import quoted
from applier.tables.sql.sql_mode_flags import SqlModeFlag
from applier.tables.sql.sql_text import DEFAULT_LEXIS, Lexis
from lookup.handler import engine_traits
from lookup.table import Check, Column, ForeignKey, TableDefinition

CHARACTER_TYPES = frozenset(
    {"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"}
)
BINARY_TWINS = {
    "char": "binary", "varchar": "varbinary", "tinytext": "tinyblob", "text": "blob",
    "mediumtext": "mediumblob", "longtext": "longblob",
}  # fmt: skip
LONGEST_VARCHAR = 65535
LONGEST_VARCHAR_MARIADB = 65532
"""In bytes (`MAX_FIELD_VARCHARLENGTH`; MariaDB leaves room for the length and a NULL bit)."""
LARGE_OBJECTS = (("tiny", TINY_BYTES), ("", 65535), ("medium", (1 << 24) - 1))
"""What the types of TEXT and BLOB hold, in bytes."""
SIZED = frozenset({"char", "varchar", "binary", "varbinary", "bit", "vector"})


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """What the statement's server and session decide. `charset` and `collation`: the database's
    defaults."""

    charset: str = "utf8mb4"
    collation: str | None = None
    modern_utf8mb4: bool = True
    """utf8mb4 without a collation is utf8mb4_0900_ai_ci (8.0+), not utf8mb4_general_ci."""
    utf8mb4_collation: str | None = None
    """default_collation_for_utf8mb4 of the session."""
    implicit_timestamps: bool = False
    """explicit_defaults_for_timestamp is off (the default of 5.x)."""
    mariadb: bool = False
    column_references: bool = False
    """REFERENCES behind a column makes a foreign key (MariaDB 10.5, MySQL 9.0); it is read over
    elsewhere."""
    lexis: Lexis = DEFAULT_LEXIS
    session: Session = field(default_factory=Session)

    @property
    def sql_mode(self) -> SqlModeFlag:
        """The session's."""
        return self.session.sql_mode

    @property
    def empty_is_null(self) -> bool:
        """EMPTY_STRING_IS_NULL of MariaDB."""
        return self.lexis.empty_string_is_null

    @property
    def conversions(self) -> ConversionRules:
        """What an ALTER TABLE of this session makes of the values that are there."""
        flavour = "mariadb" if self.mariadb else "8.0+" if self.modern_utf8mb4 else "5.x"
        session = self.session
        return ConversionRules(flavour, session.sql_mode, session.zone, session.now)

    def collation_of(self, charset_name: str) -> str:
        """The default collation of a character set on this server."""
        name = charset(charset_name).name
        if name == "utf8mb4":
            return self.utf8mb4_collation or (
                "utf8mb4_0900_ai_ci" if self.modern_utf8mb4 else "utf8mb4_general_ci"
            )
        return CHARSETS[name].default_collation if name in CHARSETS else f"{name}_general_ci"


@dataclass
class TableParts:
    """A CREATE TABLE (or ALTER TABLE) as it is read, before the server's rules are applied to the
    whole."""

    columns: list[Column] = field(default_factory=list)
    named_keys: list[NamedKey] = field(default_factory=list)
    foreign_keys: list[ForeignKey] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    system_versioned: bool = False
    partitioned: bool = False
    select: str | None = None
    period: tuple[str, str, str] | None = None
    """MariaDB's PERIOD FOR name (start, end)."""


class ColumnDraft:
    """A column while its clauses are read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[str, object] = {}
        self.checks: list[Check] = []
        self.reference: ForeignKey | None = None
        """What a REFERENCES clause of the column asks for; its name is open yet."""
        self.versioned = False
        """WITH SYSTEM VERSIONING: one such column makes the table system-versioned."""

    def set(self, **values: object) -> None:
        """What a clause says of the column."""
        self.values.update(values)

    def keys(self, *, mariadb: bool) -> list[NamedKey]:
        """The keys that the column's own PRIMARY KEY and UNIQUE clauses ask for; where both stand,
        MariaDB makes the first only."""
        names = [
            name
            for name, word in (("PRIMARY", "primary"), (None, "unique"))
            if self.values.get(word)
        ]
        names = names[:1] if mariadb else names
        return [NamedKey(name, [(self.name, None, False, None)], True) for name in names]

    def constraints(self, *, mariadb: bool) -> list[Check]:
        """The column's own CHECK clauses; MariaDB adds one to JSON without any (since 10.4.3)."""
        if mariadb and self.values["type"] == "json" and not self.checks:
            return [Check(f"json_valid({quoted(self.name)})", column=self.name)]
        return self.checks

    def build(self, rules: SchemaRules, table_charset: str, table_collation: str) -> Column:
        """The column, with the defaults of its table and of the server where no clause says
        otherwise."""
        values = dict(self.values)
        for word in ("primary", "unique", "said_null", "binary", "holds"):
            values.pop(word, None)
        kind = str(values["type"])
        if kind in CHARACTER_TYPES:
            self._charset(values, rules, table_charset, table_collation)
            kind = str(values["type"])
            if "labels" in values:
                values["labels"] = self._labels(str(values["charset"]), rules)
        else:
            values.pop("charset", None)
            values.pop("collation", None)
            if kind == "json" and rules.mariadb:
                values.update(type="longtext", charset="utf8mb4", collation="utf8mb4_bin")
        fit_size(values, rules, self.values.get("holds"))
        kind = str(values["type"])
        if kind == "year":
            values.pop("unsigned", None)
            values.pop("zerofill", None)
            if not rules.mariadb:
                values.pop("length", None)
        if kind == "decimal":
            values.setdefault("length", 10)
        if kind in SIZED:
            values.setdefault("length", 2048 if kind == "vector" else 1)
        if kind == "timestamp" and rules.implicit_timestamps and "said_null" not in self.values:
            values["nullable"] = False
        column = Column(self.name, **values)  # type: ignore[arg-type]
        column = now_with_digits(column) if rules.mariadb else column
        return default_in_utc(column, rules.session)

    def _labels(self, charset_name: str, rules: SchemaRules) -> tuple[str, ...]:
        said = cast("tuple[str | bytes, ...]", self.values["labels"])
        if rules.session.client == "binary":
            said = tuple(
                label if isinstance(label, bytes) else literal_bytes("binary", label)
                for label in said
            )
        elif charset_name == "binary":
            # the literal's own bytes, in the character set of the connection
            literals = charset(charset_of_collation_name(rules.session.collation))
            said = tuple(
                label if isinstance(label, bytes) else literals.encode(_known(literals, label))
                for label in said
            )
        labels = tuple(stored_label(label, charset_name) for label in said)
        if not rules.mariadb and not rules.modern_utf8mb4 and len(charset(charset_name).pad) == 1:
            # a .frm file ends them there, but keeps the hex digits of wide ones (5.6.24, 5.7.29)
            return tuple(label.partition("\0")[0] for label in labels)
        return labels

    def _charset(
        self,
        values: dict[str, object],
        rules: SchemaRules,
        table_charset: str,
        table_collation: str,
    ) -> None:
        said, collation = values.get("charset"), values.get("collation")
        if collation is not None and str(collation).upper() == "DEFAULT":
            said, collation = said or table_charset, None
        if said is None and collation is not None and not is_contextual(str(collation)):
            said = charset_of_collation_name(str(collation))
        name = known_charset(str(said) if said is not None else table_charset)
        if collation is None:
            collation = rules.collation_of(name) if said is not None else table_collation
        elif is_contextual(str(collation)):
            collation = f"{name}_{collation}"
        if self.values.get("binary"):
            collation = f"{name}_bin"
        values["charset"], values["collation"] = name, str(collation)
        if name == "binary" and str(values["type"]) in BINARY_TWINS:
            values.update(type=BINARY_TWINS[str(values["type"])], charset=None, collation=None)


def fit_size(values: dict[str, object], rules: SchemaRules, said: object = None) -> None:
    """TEXT(n) is of the smallest type that holds n characters, VARCHAR(n) of TEXT's types where a
    row cannot hold it (`prepare_blob_field`, sql/sql_table.cc: outside of strict mode, which
    refuses the statement). `said` is a TEXT's n."""
    kind = str(values["type"])
    if kind in ("varchar", "varbinary"):
        said = values.get("length")
    if not isinstance(said, int):
        return
    octets = said * (charset(str(values["charset"])).max_bytes if values.get("charset") else 1)
    if kind in ("varchar", "varbinary") and octets <= (
        LONGEST_VARCHAR_MARIADB if rules.mariadb else LONGEST_VARCHAR
    ):
        return
    family = "text" if kind in ("varchar", "text") else "blob"
    values["type"] = next(
        (prefix + family for prefix, most in LARGE_OBJECTS if octets <= most), "long" + family
    )
    values.pop("length", None)


def stored_label(label: str | bytes, charset_name: str) -> str:
    """A label of ENUM or SET as the column keeps it (`mysql_prepare_create_table`, 5.6 to 9.7).

    It is in the column's character set, with '?' for what that lacks, and without spaces at its
    end. Bytes are a text of the column's character set; a binary column keeps all of them. Raises
    ReplicationError 1235 for bytes that are no text there.
    """
    own = charset(charset_name)
    if own.name == "binary":
        return label.decode("utf-8", "surrogateescape") if isinstance(label, bytes) else label
    text = own.shown(label) if isinstance(label, bytes) else _known(own, label)
    if re.search("[\ud800-\udfff]", text):
        message = (
            f"a label of ENUM or SET that is not text in {own.name} is not supported in memory"
        )
        raise ReplicationError(1235, f"{message}: {label!r}")
    return text.rstrip(" ")


def _known(own: Charset, text: str) -> str:
    """With '?' for what the character set lacks."""
    return "".join(char if _has(own, char) else "?" for char in text)


def _has(own: Charset, char: str) -> bool:
    try:
        own.encode(char)
    except UnicodeEncodeError:
        return False
    return True


def is_contextual(collation: str) -> bool:
    """MariaDB's names without a character set, which stand for the one of their context (10.10)."""
    return collation.lower().startswith("uca1400_")


def known_charset(name: str) -> str:
    """The name of a column's or table's character set. Raises ReplicationError 1235 for an unknown
    one."""
    own = charset(name)
    if own.name == "binary" and name.lower() != "binary":
        raise ReplicationError(1235, f"the character set {name} is not supported in memory")
    return own.name


def table_defaults(options: dict[str, str], rules: SchemaRules) -> tuple[str, str]:
    """(character set, collation) of a table from its options and the database."""
    named = {word: name for word, name in options.items() if name.upper() != "DEFAULT"}
    said, collation = named.get("CHARSET"), named.get("COLLATE")
    if collation is not None and is_contextual(collation):
        said = said or rules.charset
        collation = f"{charset(said).name}_{collation}"
    if said is None and collation is not None:
        said = charset_of_collation_name(collation)
    if said is not None:
        return known_charset(said), collation or rules.collation_of(said)
    return known_charset(rules.charset), rules.collation or rules.collation_of(rules.charset)


def build_definition(
    database: str,
    name: str,
    parts: TableParts,
    rules: SchemaRules,
    table_charset: str,
    table_collation: str,
) -> TableDefinition:
    """Applies the rules that look at the table as a whole. Raises ReplicationError 1235 for a key
    of columns that a SELECT adds."""
    columns = list(parts.columns)
    if parts.select is not None:
        _refuse_keys_of_the_select(parts)
    if parts.system_versioned and not any(column.system_time for column in columns):
        for end in ("start", "end"):
            hidden = Column(
                f"row_{end}",
                "timestamp",
                scale=6,
                nullable=False,
                invisible=True,
                system_time=end,
                hidden=True,
            )
            columns.append(hidden)
    if rules.implicit_timestamps:
        columns = _implicit_timestamps(columns)
    _end_period(parts, columns)
    gipk = any(
        column.name == "my_row_id" and column.invisible and column.auto_increment
        for column in columns
    )
    _extend_versioned(parts, columns)
    keys = resolve_keys(parts.named_keys, columns, f"{database}.{name}", rules)
    for key in keys:
        if key.is_primary:
            for at in key.columns:
                columns[at] = replace(columns[at], nullable=False)
    engine = parts.options.get("ENGINE", parts.options.get("TYPE", "InnoDB"))
    return TableDefinition(
        database=database,
        name=name,
        columns=tuple(columns),
        keys=tuple(keys),
        foreign_keys=tuple(parts.foreign_keys) if engine_traits(engine).foreign_keys else (),
        engine=engine,
        charset=table_charset,
        collation=table_collation,
        generated_invisible_key=gipk,
        row_format=parts.options.get("ROW_FORMAT"),
        checks=() if rules.session.old else tuple(parts.checks),
        partitioned=parts.partitioned,
        system_versioned=parts.system_versioned or any(column.system_time for column in columns),
        options=with_settled_bounds(parts.options, rules.lexis, rules.session),
        period=parts.period,
    )


def _refuse_keys_of_the_select(parts: TableParts) -> None:
    names = {column.name.lower() for column in parts.columns}
    for name, *_ in (part for key in parts.named_keys for part in key.parts):
        if name is not None and name.lower() not in names:
            raise unsupported(f"a key of `{name}`, which comes from the SELECT")


def _end_period(parts: TableParts, columns: list[Column]) -> None:
    """The columns of a PERIOD are NOT NULL."""
    names = [] if parts.period is None else [name.lower() for name in parts.period[1:]]
    for at, column in enumerate(columns):
        if column.name.lower() in names:
            columns[at] = replace(column, nullable=False)


def _extend_versioned(parts: TableParts, columns: list[Column]) -> None:
    """MariaDB appends the row's end time to each unique key of a system-versioned table."""
    end = next((column.name for column in columns if column.system_time == "end"), None)
    for key in parts.named_keys:
        if end is not None and key.unique and all(name != end for name, *_ in key.parts):
            key.parts.append((end, None, False, None))


def _implicit_timestamps(columns: list[Column]) -> list[Column]:
    """The first TIMESTAMP column of a table tracks the time where it has no DEFAULT; the others
    start at zero.

    `promote_first_timestamp_column` (sql/sql_table.cc); an ALTER TABLE looks at all columns of the
    table that comes of it.
    """
    first = True
    done = []
    for column in columns:
        if (
            column.type == "timestamp"
            and not column.nullable
            and column.default is None
            and column.on_update is None
            and column.generated is None
        ):
            if first:
                now = f"CURRENT_TIMESTAMP({column.scale})" if column.scale else "CURRENT_TIMESTAMP"
                column = replace(column, default=now, on_update=now)
            else:
                column = replace(column, default="'0000-00-00 00:00:00'")
        first = first and column.type != "timestamp"
        done.append(column)
    return done


def generated_number(name: str, table: str) -> int | None:
    """n of a made-up name such as table_ibfk_n (`dict_create_add_foreign_id`), None for one that
    somebody gave."""
    match = re.fullmatch(re.escape(table) + r"_ibfk_(\d+)", name, re.IGNORECASE)
    return None if match is None else int(match[1])
