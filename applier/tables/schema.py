"""The grammar of CREATE TABLE (sql/sql_yacc.yy): column, key and table clauses; ALTER TABLE shares it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from applier.tables.sql_text import Parser, hex_bytes
from applier.tables.table_draft import (
    BINARY_TWINS,
    ColumnDraft,
    NamedKey,
    SchemaRules,
    TableParts,
    build_definition,
    table_defaults,
)
from lookup.table import ForeignKey, TableDefinition

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

TEMPORAL = frozenset({"time", "datetime", "timestamp"})


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
            if token.kind not in ("string", "hex"):
                self.parser.at -= 1
                raise self.parser.refuse("expected a label")
            labels.append(hex_bytes(token.value).decode("utf-8", "replace") if token.kind == "hex" else token.value)
            if not self.parser.accept(","):
                break
        self.parser.expect(")")
        return tuple(label.rstrip(" ") for label in labels)

    def _length(self, draft: ColumnDraft) -> None:
        numbers = self._numbers()
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

    def _numbers(self) -> list[int]:
        """(number, …)"""
        parser = self.parser
        parser.expect("(")
        numbers = [parser.integer()]
        while parser.accept(","):
            numbers.append(parser.integer())
        parser.expect(")")
        return numbers

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
                    prefix = self._numbers()[0]
            parts.append((name, prefix, parser.accept_any("ASC", "DESC") == "DESC", expression))
            if not parser.accept(","):
                break
        parser.expect(")")
        return parts

    def key_options(self, key: NamedKey) -> None:
        """What stands behind the columns of a key: USING, KEY_BLOCK_SIZE, VISIBLE, …"""
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
