"""CREATE TABLE into a TableDefinition, with the server's own rules for what the statement leaves unsaid.

sql/sql_yacc.yy for the grammar, sql_table.cc (`mysql_prepare_create_table`) for derived names, keys and nullability.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from applier.binlog.charsets import CHARSETS, charset, charset_of_collation_name
from applier.errors import ReplicationError
from applier.tables.sql_text import Parser
from lookup.table import Column, ForeignKey, Key, KeyPart, TableDefinition

TYPE_NAMES: dict[str, str] = {
    **{name: name for name in """
        tinyint smallint mediumint int bigint decimal float double bit year date time datetime timestamp char varchar binary
        varbinary tinytext text mediumtext longtext tinyblob blob mediumblob longblob enum set json geometry point linestring
        polygon multipoint multilinestring multipolygon geometrycollection vector uuid inet4 inet6
    """.split()},
    "integer": "int", "int1": "tinyint", "int2": "smallint", "int3": "mediumint", "int4": "int", "int8": "bigint",
    "middleint": "mediumint", "dec": "decimal", "numeric": "decimal", "fixed": "decimal", "real": "double", "float4": "float",
    "float8": "double", "character": "char", "nchar": "char", "varcharacter": "varchar", "nvarchar": "varchar",
    "geomcollection": "geometrycollection", "bool": "bool", "boolean": "bool", "serial": "serial", "long": "long",
}  # fmt: skip
CHARACTER_TYPES = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"})
BINARY_TWINS = {
    "char": "binary", "varchar": "varbinary", "tinytext": "tinyblob", "text": "blob", "mediumtext": "mediumblob",
    "longtext": "longblob",
}  # fmt: skip
TEMPORAL = frozenset({"time", "datetime", "timestamp"})
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


class SchemaParser:
    """Reads column, key and table clauses; shared by CREATE and ALTER."""

    def __init__(self, parser: Parser, rules: SchemaRules, database: str, table: str) -> None:
        self.parser = parser
        self.rules = rules
        self.database = database
        self.table = table
        self._attributes: dict[str, Callable[[ColumnDraft], None]] = {
            "NOT": self._not,
            "NULL": lambda draft: draft.set(nullable=True, said_null=True),
            "DEFAULT": self._default,
            "ON": self._on_update,
            "AUTO_INCREMENT": lambda draft: draft.set(auto_increment=True),
            "UNIQUE": self._unique,
            "PRIMARY": self._primary,
            "KEY": lambda draft: draft.set(key="PRIMARY"),
            "COMMENT": lambda draft: self._skip_text(),
            "COLLATE": lambda draft: draft.set(collation=self.parser.name()),
            "CHARSET": lambda draft: draft.set(charset=self.parser.name()),
            "CHARACTER": self._character_set,
            "BINARY": lambda draft: draft.set(binary=True),
            "ASCII": lambda draft: draft.set(charset="latin1"),
            "UNICODE": lambda draft: draft.set(charset="ucs2"),
            "UNSIGNED": lambda draft: draft.set(unsigned=True),
            "ZEROFILL": lambda draft: draft.set(unsigned=True),
            "SIGNED": lambda draft: None,
            "COLUMN_FORMAT": lambda draft: self._skip_word(),
            "STORAGE": lambda draft: self._skip_word(),
            "ENGINE_ATTRIBUTE": lambda draft: self._skip_assignment(),
            "SECONDARY_ENGINE_ATTRIBUTE": lambda draft: self._skip_assignment(),
            "GENERATED": self._generated,
            "AS": self._generated_as,
            "VIRTUAL": lambda draft: draft.set(generated="virtual"),
            "STORED": lambda draft: draft.set(generated="stored"),
            "PERSISTENT": lambda draft: draft.set(generated="stored"),
            "INVISIBLE": lambda draft: draft.set(invisible=True),
            "VISIBLE": lambda draft: draft.set(invisible=False),
            "SRID": lambda draft: draft.set(srid=self.parser.integer()),
            "REF_SYSTEM_ID": self._ref_system_id,
            "CHECK": self._check,
            "CONSTRAINT": self._constraint,
            "REFERENCES": self._references,
            "COMPRESSED": lambda draft: self._skip_assignment(),
            "WITH": lambda draft: self._versioning(),
            "WITHOUT": lambda draft: self._versioning(),
            "SERIAL": self._serial_default,
            "ENFORCED": lambda draft: None,
        }

    # columns

    def column(self) -> ColumnDraft:
        """name type attributes…"""
        draft = ColumnDraft(self.parser.name())
        self._type(draft)
        while (word := self.parser.word()) in self._attributes:
            if word == "KEY" and self.parser.op(1) == "(":
                break
            self.parser.at += 1
            self._attributes[word](draft)
        return draft

    def _type(self, draft: ColumnDraft) -> None:
        parser = self.parser
        if parser.accept("NATIONAL"):
            draft.set(charset="utf8mb3")
        word = parser.name().lower()
        name = TYPE_NAMES.get(word)
        if name is None:
            parser.at -= 1
            raise parser.refuse("unknown column type")
        if word in ("nchar", "nvarchar"):
            draft.set(charset="utf8mb3")
        if name == "long":
            name = "mediumblob" if parser.accept("VARBINARY") else "mediumtext"
            parser.accept_any("VARCHAR", "VARCHARACTER")
        if name in ("char",) and parser.accept_any("VARYING"):
            name = "varchar"
        if name == "double":
            parser.accept("PRECISION")
        if name == "bool":
            draft.set(type="tinyint", length=1)
            return
        if name == "serial":
            draft.set(type="bigint", unsigned=True, nullable=False, auto_increment=True, key="UNIQUE")
            return
        draft.set(type=name)
        if name in ("enum", "set"):
            draft.set(labels=self._labels())
        elif parser.op() == "(":
            self._length(draft)
        if name in ("char", "varchar") and parser.accept("BYTE"):
            draft.set(type=BINARY_TWINS[name])

    def _labels(self) -> tuple[str, ...]:
        self.parser.expect("(")
        labels = []
        while True:
            token = self.parser.next()
            labels.append(bytes.fromhex(token.value[2:].strip("'")).decode("utf-8", "replace") if token.kind == "hex" else token.value)
            if not self.parser.accept(","):
                break
        self.parser.expect(")")
        return tuple(label.rstrip(" ") for label in labels)

    def _length(self, draft: ColumnDraft) -> None:
        numbers = [int(part) for part in self.parser.parenthesized().split(",")]
        name = draft.values["type"]
        if name in TEMPORAL:
            draft.set(scale=numbers[0])
        elif name == "year":
            pass
        elif name == "float" and len(numbers) == 1:
            draft.set(type="float" if numbers[0] <= 24 else "double")
        elif name in ("text", "blob"):
            self._sized_lob(draft, str(name), numbers[0])
        else:
            draft.set(length=numbers[0], scale=numbers[1] if len(numbers) > 1 else 0)

    def _sized_lob(self, draft: ColumnDraft, name: str, length: int) -> None:
        size = length * (4 if name == "text" else 1)
        for prefix, most in (("tiny", 255), ("", 65535), ("medium", (1 << 24) - 1), ("long", 1 << 40)):
            if size <= most:
                draft.set(type=prefix + name)
                return

    def _not(self, draft: ColumnDraft) -> None:
        if self.parser.accept("ENFORCED"):
            return
        if self.parser.accept("SECONDARY"):
            return
        self.parser.expect("NULL")
        draft.set(nullable=False, said_null=True)

    def _default(self, draft: ColumnDraft) -> None:
        parser = self.parser
        start = parser.tokens[parser.at].start if parser.at < len(parser.tokens) else len(parser.sql)
        if parser.op() == "(":
            parser.parenthesized()
        elif parser.accept("NEXT", "VALUE", "FOR"):
            parser.table_name(self.database)
        else:
            parser.accept_any("-", "+")
            parser.next()
            while parser.at < len(parser.tokens) and parser.tokens[parser.at].kind == "string":
                parser.at += 1
            if parser.tokens[parser.at - 1].kind == "word" and parser.tokens[parser.at - 1].value.startswith("_"):
                parser.next()
            if parser.op() == "(":
                parser.parenthesized()
        draft.set(default=parser.sql[start : parser.tokens[parser.at - 1].end])

    def _on_update(self, draft: ColumnDraft) -> None:
        self.parser.expect("UPDATE")
        start = self.parser.next().start
        if self.parser.op() == "(":
            self.parser.parenthesized()
        draft.set(on_update=self.parser.sql[start : self.parser.tokens[self.parser.at - 1].end])

    def _character_set(self, draft: ColumnDraft) -> None:
        self.parser.expect("SET")
        draft.set(charset=self.parser.name())

    def _ref_system_id(self, draft: ColumnDraft) -> None:
        self.parser.expect("=")
        draft.set(srid=self.parser.integer())

    def _unique(self, draft: ColumnDraft) -> None:
        self.parser.accept("KEY")
        draft.set(key="UNIQUE")

    def _primary(self, draft: ColumnDraft) -> None:
        self.parser.accept("KEY")
        draft.set(key="PRIMARY")

    def _generated(self, draft: ColumnDraft) -> None:
        self.parser.expect("ALWAYS", "AS")
        if self.parser.accept("ROW"):
            draft.set(system_time=self.parser.next().value.lower(), nullable=False, said_null=True)
            return
        self._generated_as(draft)

    def _generated_as(self, draft: ColumnDraft) -> None:
        draft.set(expression=self.parser.parenthesized())
        draft.values.setdefault("generated", "virtual")

    def _check(self, draft: ColumnDraft) -> None:
        self.parser.parenthesized()

    def _constraint(self, draft: ColumnDraft) -> None:
        if self.parser.word() != "CHECK":
            self.parser.name()

    def _references(self, draft: ColumnDraft) -> None:
        """Ignored on a column in MySQL (9.0+ and MariaDB honour it; such keys come out of dumps as table constraints)."""
        self.parser.table_name(self.database)
        if self.parser.op() == "(":
            self.parser.parenthesized()
        self._reference_actions()

    def _serial_default(self, draft: ColumnDraft) -> None:
        self.parser.expect("DEFAULT", "VALUE")
        draft.set(nullable=False, auto_increment=True, key="UNIQUE")

    def _skip_text(self) -> None:
        self.parser.text()

    def _skip_word(self) -> None:
        self.parser.next()

    def _skip_assignment(self) -> None:
        if self.parser.accept("="):
            self.parser.next()

    def _versioning(self) -> None:
        self.parser.expect("SYSTEM", "VERSIONING")

    # keys

    def key_or_constraint(self, parts: TableParts) -> bool:
        """Reads a table-level key or constraint into `parts`; False when a column definition stands there."""
        parser = self.parser
        start = parser.at
        symbol = None
        if parser.accept("CONSTRAINT"):
            symbol = None if parser.word() in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK") else parser.name()
        word = parser.word()
        quoted = parser.at < len(parser.tokens) and parser.tokens[parser.at].kind == "quoted"
        if quoted or word not in ("PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK", "PERIOD"):
            parser.at = start
            return False
        parser.at += 1
        if word == "CHECK":
            parts.checks.append(parser.parenthesized())
            parser.accept("NOT")
            parser.accept("ENFORCED")
        elif word == "PERIOD":
            parser.skip_until(",", ")")
        elif word == "FOREIGN":
            self._foreign_key(parts, symbol)
        else:
            self._key(parts, word, symbol)
        return True

    def _key(self, parts: TableParts, word: str, symbol: str | None) -> None:
        parser = self.parser
        if word != "KEY" and word != "INDEX":
            parser.accept_any("KEY", "INDEX")
        parser.accept("IF", "NOT", "EXISTS")
        name = symbol
        if word != "PRIMARY" and parser.op() != "(" and parser.word() not in ("USING", "TYPE"):
            name = parser.name()
        kind = {"FULLTEXT": "fulltext", "SPATIAL": "spatial"}.get(word, "btree")
        key = NamedKey("PRIMARY" if word == "PRIMARY" else name, [], word in ("PRIMARY", "UNIQUE"), kind)
        if parser.accept_any("USING", "TYPE"):
            key.kind = self._using(key.kind)
        key.parts = self._key_parts()
        self.key_options(key)
        parts.named_keys.append(key)

    def _using(self, kind: str) -> str:
        algorithm = self.parser.name().lower()
        return "hash" if algorithm == "hash" and kind == "btree" else kind

    def _key_parts(self) -> list[tuple[str | None, int | None, bool, str | None]]:
        parser = self.parser
        parser.expect("(")
        parts: list[tuple[str | None, int | None, bool, str | None]] = []
        while True:
            name, prefix, expression = None, None, None
            if parser.op() == "(":
                expression = parser.parenthesized()
            else:
                name = parser.name()
                if parser.op() == "(":
                    prefix = int(parser.parenthesized())
            parts.append((name, prefix, parser.accept_any("ASC", "DESC") == "DESC", expression))
            if not parser.accept(","):
                break
        parser.expect(")")
        return parts

    def key_options(self, key: NamedKey) -> None:
        parser = self.parser
        while True:
            if parser.accept_any("USING", "TYPE"):
                key.kind = self._using(key.kind)
            elif parser.accept("COMMENT"):
                parser.text()
            elif parser.accept_any("KEY_BLOCK_SIZE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "CLUSTERING"):
                parser.accept("=")
                parser.next()
            elif parser.accept("WITH", "PARSER"):
                parser.name()
            elif parser.accept_any("INVISIBLE"):
                key.visible = False
            elif not parser.accept_any("VISIBLE", "NOT", "IGNORED"):
                return

    def _foreign_key(self, parts: TableParts, symbol: str | None) -> None:
        parser = self.parser
        parser.expect("KEY")
        parser.accept("IF", "NOT", "EXISTS")
        index_name = parser.name() if parser.op() != "(" else None
        columns = tuple(name for name, *_ in self._key_parts() if name is not None)
        parser.expect("REFERENCES")
        database, table = parser.table_name(self.database)
        theirs = tuple(name for name, *_ in self._key_parts() if name is not None) if parser.op() == "(" else columns
        on_delete, on_update = self._reference_actions()
        name = symbol or f"{self.table}_ibfk_{len(parts.foreign_keys) + 1}"
        parts.foreign_keys.append(ForeignKey(name, columns, database, table, theirs, on_delete, on_update))
        parts.named_keys.append(NamedKey(index_name or symbol, [(column, None, False, None) for column in columns], kind="foreign"))

    def _reference_actions(self) -> tuple[str, str]:
        parser = self.parser
        if parser.accept("MATCH"):
            parser.next()
        actions = {"DELETE": "restrict", "UPDATE": "restrict"}
        while parser.accept("ON"):
            event = parser.next().value.upper()
            words = [parser.next().value.lower()]
            if words[0] in ("set", "no"):
                words.append(parser.next().value.lower())
            actions[event] = " ".join(words)
        return actions["DELETE"], actions["UPDATE"]

    # table options

    def table_options(self, parts: TableParts, *ends: str) -> None:
        """ENGINE=, CHARSET=, … up to the end, PARTITION BY, a SELECT or one of `ends`."""
        parser = self.parser
        while not parser.done and (parser.word() or parser.op()) not in ends:
            if parser.accept(","):
                continue
            if parser.word() in ("SELECT", "AS", "IGNORE", "REPLACE") or parser.op() == "(":
                parts.select = parser.sql[parser.tokens[parser.at].start :].rstrip("; ")
                parser.at = len(parser.tokens)
                return
            if parser.accept("START", "TRANSACTION"):
                continue
            if parser.word() == "PARTITION":
                parts.partitioned = True
                parts.options["PARTITION"] = parser.skip_until(*ends)
                continue
            if parser.accept("WITH", "SYSTEM", "VERSIONING"):
                parts.system_versioned = True
                continue
            self._option(parts)

    def _option(self, parts: TableParts) -> None:
        parser = self.parser
        parser.accept("DEFAULT")
        word = parser.next().value.upper()
        if word == "CHARACTER":
            parser.expect("SET")
            word = "CHARSET"
        if word in ("DATA", "INDEX"):
            parser.expect("DIRECTORY")
        parser.accept("=")
        if parser.op() == "(":
            parts.options[word] = parser.parenthesized()
        else:
            parts.options[word] = parser.next().value


class ColumnDraft:
    """A column while its clauses are read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[str, object] = {}

    def set(self, **values: object) -> None:
        self.values.update(values)

    def key(self) -> NamedKey | None:
        """The key that the column's own PRIMARY KEY or UNIQUE clause asks for."""
        kind = self.values.get("key")
        if kind is None:
            return None
        return NamedKey("PRIMARY" if kind == "PRIMARY" else None, [(self.name, None, False, None)], True)

    def build(self, rules: SchemaRules, table_charset: str, table_collation: str) -> Column:
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


def parse_create_table(sql: str, database: str, rules: SchemaRules) -> TableDefinition:
    """The definition that `CREATE TABLE … (…)` makes. Raises InputError when it cannot be read."""
    parser = Parser(sql, ansi_quotes=rules.ansi_quotes)
    parser.expect("CREATE")
    parser.accept("OR", "REPLACE")
    temporary = parser.accept("TEMPORARY")
    parser.expect("TABLE")
    parser.accept("IF", "NOT", "EXISTS")
    database, name = parser.table_name(database)
    definition, _ = read_table_body(parser, database, name, rules)
    return replace(definition, temporary=temporary)


def read_table_body(parser: Parser, database: str, name: str, rules: SchemaRules) -> tuple[TableDefinition, str | None]:
    """What follows the name: (columns and keys) options [SELECT …]. Returns the definition and the SELECT."""
    reader = SchemaParser(parser, rules, database, name)
    parts = TableParts()
    drafts: list[ColumnDraft] = []
    if parser.op() == "(" and parser.word(1) != "SELECT":
        parser.expect("(")
        while True:
            if not reader.key_or_constraint(parts):
                draft = reader.column()
                drafts.append(draft)
                own = draft.key()
                if own is not None:
                    parts.named_keys.append(own)
            if not parser.accept(","):
                break
        parser.expect(")")
    reader.table_options(parts)
    table_charset, table_collation = table_defaults(parts.options, rules)
    parts.columns = [draft.build(rules, table_charset, table_collation) for draft in drafts]
    return build_definition(database, name, parts, rules, table_charset, table_collation), parts.select


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
