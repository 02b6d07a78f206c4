"""From the clauses of a CREATE or ALTER TABLE to a TableDefinition: what the server fills in where the statement is silent.

sql_table.cc (`mysql_prepare_create_table`, 5.6 to 9.7) for derived names, keys and nullability.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from applier.binlog.charsets import CHARSETS, charset, charset_of_collation_name
from applier.errors import ReplicationError
from lookup.table import Column, ForeignKey, Key, KeyPart, TableDefinition

CHARACTER_TYPES = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"})
BINARY_TWINS = {
    "char": "binary", "varchar": "varbinary", "tinytext": "tinyblob", "text": "blob", "mediumtext": "mediumblob",
    "longtext": "longblob",
}  # fmt: skip
SIZED = frozenset({"char", "varchar", "binary", "varbinary", "bit", "vector"})


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """What the statement's server and session decide. `charset` and `collation`: the database's defaults."""

    charset: str = "utf8mb4"
    collation: str | None = None
    modern_utf8mb4: bool = True
    """utf8mb4 without a collation is utf8mb4_0900_ai_ci (8.0+), not utf8mb4_general_ci."""
    utf8mb4_collation: str | None = None
    """default_collation_for_utf8mb4 of the session."""
    implicit_timestamps: bool = False
    """explicit_defaults_for_timestamp is off (the default of 5.x)."""
    mariadb: bool = False
    generate_invisible_key: bool = False
    ansi_quotes: bool = False

    def collation_of(self, charset_name: str) -> str:
        """The default collation of a character set on this server."""
        name = charset(charset_name).name
        if name == "utf8mb4":
            return self.utf8mb4_collation or ("utf8mb4_0900_ai_ci" if self.modern_utf8mb4 else "utf8mb4_general_ci")
        return CHARSETS[name].default_collation if name in CHARSETS else f"{name}_general_ci"


@dataclass
class TableParts:
    """A CREATE TABLE (or ALTER TABLE) as it is read, before the server's rules are applied to the whole."""

    columns: list[Column] = field(default_factory=list)
    named_keys: list[NamedKey] = field(default_factory=list)
    foreign_keys: list[ForeignKey] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    system_versioned: bool = False
    partitioned: bool = False
    select: str | None = None


@dataclass
class NamedKey:
    """A key whose parts are (column name, prefix, descending, expression) yet."""

    name: str | None
    parts: list[tuple[str | None, int | None, bool, str | None]]
    unique: bool = False
    kind: str = "btree"
    visible: bool = True


class ColumnDraft:
    """A column while its clauses are read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[str, object] = {}

    def set(self, **values: object) -> None:
        """What a clause says of the column."""
        self.values.update(values)

    def key(self) -> NamedKey | None:
        """The key that the column's own PRIMARY KEY or UNIQUE clause asks for."""
        kind = self.values.get("key")
        if kind is None:
            return None
        return NamedKey("PRIMARY" if kind == "PRIMARY" else None, [(self.name, None, False, None)], True)

    def build(self, rules: SchemaRules, table_charset: str, table_collation: str) -> Column:
        """The column, with the defaults of its table and of the server where no clause says otherwise."""
        values = dict(self.values)
        for word in ("key", "said_null", "binary"):
            values.pop(word, None)
        kind = str(values["type"])
        if kind in CHARACTER_TYPES:
            self._charset(values, rules, table_charset, table_collation)
            kind = str(values["type"])
        else:
            values.pop("charset", None)
            values.pop("collation", None)
            if kind == "json" and rules.mariadb:
                values.update(type="longtext", charset="utf8mb4", collation="utf8mb4_bin")
        if kind == "decimal":
            values.setdefault("length", 10)
        if kind in SIZED:
            values.setdefault("length", 2048 if kind == "vector" else 1)
        if kind == "timestamp" and rules.implicit_timestamps and "said_null" not in self.values:
            values["nullable"] = False
        return Column(self.name, **values)  # type: ignore[arg-type]

    def _charset(self, values: dict[str, object], rules: SchemaRules, table_charset: str, table_collation: str) -> None:
        said, collation = values.get("charset"), values.get("collation")
        if said is None and collation is not None:
            said = charset_of_collation_name(str(collation))
        name = charset(str(said)).name if said is not None else charset(table_charset).name
        if collation is None:
            collation = rules.collation_of(name) if said is not None else table_collation
        if self.values.get("binary"):
            collation = f"{name}_bin"
        values["charset"], values["collation"] = name, str(collation)
        if name == "binary" and str(values["type"]) in BINARY_TWINS:
            values.update(type=BINARY_TWINS[str(values["type"])], charset=None, collation=None)


def table_defaults(options: dict[str, str], rules: SchemaRules) -> tuple[str, str]:
    """(character set, collation) of a table from its options and the database."""
    said, collation = options.get("CHARSET"), options.get("COLLATE")
    if said is None and collation is not None:
        said = charset_of_collation_name(collation)
    if said is not None:
        return charset(said).name, collation or rules.collation_of(said)
    return charset(rules.charset).name, rules.collation or rules.collation_of(rules.charset)


def build_definition(
    database: str, name: str, parts: TableParts, rules: SchemaRules, table_charset: str, table_collation: str
) -> TableDefinition:
    """Applies the rules that look at the table as a whole."""
    columns = list(parts.columns)
    if parts.system_versioned and not any(column.system_time for column in columns):
        for end in ("start", "end"):
            columns.append(Column(f"row_{end}", "timestamp", scale=6, nullable=False, invisible=True, system_time=end))
    if rules.implicit_timestamps:
        columns = _implicit_timestamps(columns)
    gipk = any(column.name == "my_row_id" and column.invisible and column.auto_increment for column in columns)
    if rules.generate_invisible_key and not any(key.name == "PRIMARY" for key in parts.named_keys):
        columns.insert(0, Column("my_row_id", "bigint", unsigned=True, nullable=False, auto_increment=True, invisible=True))
        parts.named_keys.insert(0, NamedKey("PRIMARY", [("my_row_id", None, False, None)], True))
        gipk = True
    positions = {column.name.lower(): at for at, column in enumerate(columns)}
    _extend_versioned(parts, columns)
    keys = _resolve_keys(parts.named_keys, positions, f"{database}.{name}")
    for key in keys:
        if key.is_primary:
            for at in key.columns:
                columns[at] = replace(columns[at], nullable=False)
    return TableDefinition(
        database,
        name,
        tuple(columns),
        tuple(keys),
        tuple(parts.foreign_keys),
        parts.options.get("ENGINE", parts.options.get("TYPE", "InnoDB")),
        table_charset,
        table_collation,
        gipk,
        parts.options.get("ROW_FORMAT"),
        tuple(parts.checks),
        parts.partitioned,
        parts.system_versioned or any(column.system_time for column in columns),
        options=parts.options,
    )


def _extend_versioned(parts: TableParts, columns: list[Column]) -> None:
    """MariaDB appends the row's end time to each unique key of a system-versioned table."""
    end = next((column.name for column in columns if column.system_time == "end"), None)
    for key in parts.named_keys:
        if end is not None and key.unique and all(name != end for name, *_ in key.parts):
            key.parts.append((end, None, False, None))


def _implicit_timestamps(columns: list[Column]) -> list[Column]:
    """The first TIMESTAMP column of a 5.x table without a DEFAULT tracks the time; the others start at zero."""
    first = True
    done = []
    for column in columns:
        if column.type == "timestamp" and not column.nullable and column.default is None and column.on_update is None:
            if first:
                column = replace(column, default="CURRENT_TIMESTAMP", on_update="CURRENT_TIMESTAMP")
            else:
                column = replace(column, default="'0000-00-00 00:00:00'")
        first = first and column.type != "timestamp"
        done.append(column)
    return done


def _resolve_keys(named: list[NamedKey], positions: dict[str, int], table: str) -> list[Key]:
    """Names to positions; keys without a name get the one the server makes up. Foreign keys add a key where none serves."""
    keys: list[Key] = []
    ordinary = [key for key in named if key.kind != "foreign"]
    for key in ordinary + [key for key in named if key.kind == "foreign"]:
        parts = tuple(_part(item, positions, table) for item in key.parts)
        columns = tuple(part.column for part in parts)
        if key.kind == "foreign" and any(other.columns[: len(columns)] == columns and not other.has_prefix for other in keys):
            continue
        taken = {other.name.lower() for other in keys}
        if key.name is not None and key.name.lower() in taken:
            number, what = (1068, "Multiple primary key defined") if key.name == "PRIMARY" else (1061, f"Duplicate key name '{key.name}'")
            raise ReplicationError(number, what, table=table)
        name = key.name or _key_name(key, taken)
        multi_valued = any(" array" in (expression or "").lower() for *_, expression in key.parts)
        kind = "btree" if key.kind == "foreign" else key.kind
        keys.append(Key(name, parts, key.unique, kind, key.visible, multi_valued))
    return keys


def _part(item: tuple[str | None, int | None, bool, str | None], positions: dict[str, int], table: str) -> KeyPart:
    name, prefix, descending, expression = item
    if name is None:
        return KeyPart(None, None, descending, expression)
    at = positions.get(name.lower())
    if at is None:
        raise ReplicationError(1072, f"Key column '{name}' doesn't exist in table", table=table)
    return KeyPart(at, prefix, descending)


def _key_name(key: NamedKey, taken: set[str]) -> str:
    """`make_unique_key_name`: the first column's name, then with _2, _3, …"""
    base = key.parts[0][0] or "functional_index"
    if base.lower() not in taken and base.lower() != "primary":
        return base
    return next(f"{base}_{number}" for number in range(2, 200) if f"{base}_{number}".lower() not in taken)
