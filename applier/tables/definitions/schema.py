"""The grammar of CREATE TABLE (sql/sql_yacc.yy): column, key and table clauses; ALTER TABLE shares
it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from applier.errors import ReplicationError
from applier.tables.conversions.conversion_rules import FAMILIES
from applier.tables.definitions.column_types import read_type
from applier.tables.definitions.named_keys import NamedKey
from applier.tables.definitions.table_draft import (
    ColumnDraft,
    SchemaRules,
    TableParts,
    build_definition,
    generated_number,
    table_defaults,
)
from applier.tables.definitions.table_options import read_table_options
from applier.tables.sql.sql_text import Parser, tokenize
from lookup.table import Check, ForeignKey, TableDefinition

KEY_KINDS = {"FULLTEXT": "fulltext", "SPATIAL": "spatial", "VECTOR": "vector"}
INDEX_METHODS = frozenset({"BTREE", "HASH", "RTREE"})
TEMPORAL_LITERALS = frozenset({"DATE", "TIME", "TIMESTAMP"})


class SchemaParser:
    """Reads column, key and table clauses; shared by CREATE and ALTER."""

    def __init__(self, parser: Parser, rules: SchemaRules, database: str, table: str) -> None:
        self.parser = parser
        self.rules = rules
        self.database = database
        self.table = table
        self._attributes: dict[str, Callable[[ColumnDraft], object]] = {
            "NOT": self._not,
            "NULL": lambda draft: draft.set(nullable=True, said_null=True),
            "DEFAULT": self._default,
            "ON": self._on_update,
            "AUTO_INCREMENT": lambda draft: draft.set(auto_increment=True, nullable=False),
            "UNIQUE": self._unique,
            "PRIMARY": self._primary,
            "KEY": lambda draft: draft.set(primary=True),
            "COMMENT": lambda draft: self.parser.text(),
            "COLLATE": lambda draft: draft.set(collation=self.parser.name()),
            "CHARSET": lambda draft: draft.set(charset=self.parser.name()),
            "BYTE": lambda draft: draft.set(charset="binary"),
            "CHARACTER": self._character_set,
            "BINARY": lambda draft: draft.set(binary=True),
            "ASCII": lambda draft: draft.set(charset="latin1"),
            "UNICODE": lambda draft: draft.set(charset="ucs2"),
            "UNSIGNED": lambda draft: draft.set(unsigned=True),
            "ZEROFILL": lambda draft: draft.set(unsigned=True, zerofill=True),
            "SIGNED": lambda draft: None,
            "COLUMN_FORMAT": lambda draft: self.parser.next(),
            "STORAGE": lambda draft: self.parser.next(),
            "ENGINE_ATTRIBUTE": lambda draft: self._engine_text(),
            "SECONDARY_ENGINE_ATTRIBUTE": lambda draft: self._engine_text(),
            "GENERATED": self._generated,
            "AS": self._as,
            "VIRTUAL": lambda draft: draft.set(generated="virtual"),
            "STORED": lambda draft: draft.set(generated="stored"),
            "PERSISTENT": lambda draft: draft.set(generated="stored"),
            "INVISIBLE": lambda draft: draft.set(invisible=True),
            "VISIBLE": lambda draft: draft.set(invisible=False),
            "MASKING": lambda draft: self._masking_policy(),
            "SRID": lambda draft: draft.set(srid=self.parser.integer()),
            "REF_SYSTEM_ID": self._ref_system_id,
            "CHECK": self._check,
            "CONSTRAINT": self._constraint,
            "REFERENCES": self._references,
            "COMPRESSED": self._compressed,
            "WITH": self._versioned,
            "WITHOUT": lambda draft: self.parser.expect("SYSTEM", "VERSIONING"),
            "SERIAL": self._serial_default,
            "ENFORCED": lambda draft: None,
        }

    # columns

    def column(self) -> ColumnDraft:
        """name type attributes…"""
        draft = ColumnDraft(self.parser.column_name())
        read_type(self.parser, self.rules, draft)
        while True:
            word = self.parser.word()
            if word in self._attributes:
                self.parser.at += 1
                self._attributes[word](draft)
            elif not self._engine_attribute():
                return draft

    def _engine_attribute(self) -> bool:
        """MariaDB's storage engines have attributes of their own: name = value."""
        if not self.rules.mariadb or self.parser.op(1) != "=":
            return False
        self.parser.name()
        self.parser.expect("=")
        self.parser.next()
        return True

    def _not(self, draft: ColumnDraft) -> None:
        if self.parser.accept("ENFORCED"):
            draft.checks[-1:] = [replace(check, enforced=False) for check in draft.checks[-1:]]
            return
        if self.parser.accept("SECONDARY"):
            return
        self.parser.expect("NULL")
        draft.set(nullable=False, said_null=True)

    def _default(self, draft: ColumnDraft) -> None:
        start = self.parser.at
        if self.parser.op() == "(":
            self.parser.parenthesized()
        elif self.parser.accept("NEXT", "VALUE", "FOR"):
            self.parser.table_name(self.database)
        elif self.parser.accept("CASE"):
            self._case()
        else:
            self._literal_or_call()
        text = self.parser.text_since(start)
        none = text.upper() == "NULL" and self.rules.empty_is_null
        # MySQL drops a literal default of these with a warning, unless the SQL mode refuses it.
        none = none or (
            not self.rules.mariadb
            and not text.startswith("(")
            and FAMILIES.get(str(draft.values.get("type"))) in ("clob", "blob", "json")
        )
        draft.set(default=None if none else text)

    def _case(self) -> None:
        """CASE … END, behind its first word."""
        depth = 1
        while depth:
            depth += {"CASE": 1, "END": -1}.get(self.parser.word(), 0)
            self.parser.next()

    def _literal_or_call(self) -> None:
        """A signed literal, or a name with what is called behind it."""
        parser = self.parser
        parser.accept_any("-", "+")
        token = parser.next()
        if token.kind in ("word", "quoted"):
            if token.value.startswith("_") or token.value.upper() in TEMPORAL_LITERALS:
                parser.accept_kinds("string", "hex", "bit")
            while parser.accept("."):
                parser.name()
            if parser.op() == "(":
                parser.parenthesized()
        if parser.accept(":="):
            self._literal_or_call()
        while parser.accept_kinds("string"):
            pass

    def _versioned(self, draft: ColumnDraft) -> None:
        self.parser.expect("SYSTEM", "VERSIONING")
        draft.versioned = True

    def _on_update(self, draft: ColumnDraft) -> None:
        self.parser.expect("UPDATE")
        start = self.parser.at
        self._literal_or_call()
        draft.set(on_update=self.parser.text_since(start))

    def _character_set(self, draft: ColumnDraft) -> None:
        self.parser.expect("SET")
        draft.set(charset=self.parser.name())

    def _ref_system_id(self, draft: ColumnDraft) -> None:
        self.parser.expect("=")
        draft.set(srid=self.parser.integer())

    def _unique(self, draft: ColumnDraft) -> None:
        self.parser.accept("KEY")
        draft.set(unique=True)

    def _primary(self, draft: ColumnDraft) -> None:
        self.parser.accept("KEY")
        draft.set(primary=True)

    def _generated(self, draft: ColumnDraft) -> None:
        self.parser.expect("ALWAYS", "AS")
        self._as(draft)

    def _as(self, draft: ColumnDraft) -> None:
        """AS (expression), or MariaDB's AS ROW START and AS ROW END."""
        if self.parser.accept("ROW"):
            end = self.parser.accept_any("START", "END")
            if not end:
                raise self.parser.refuse("expected START or END")
            draft.set(system_time=end.lower(), nullable=False, said_null=True)
            return
        expression = self.parser.expression_in_parentheses()
        self._refuse_literals(draft.name, expression)
        draft.set(expression=expression)
        draft.values.setdefault("generated", "virtual")

    def _refuse_literals(self, name: str, expression: str) -> None:
        """5.7 reads the text anew in the character set of whoever opens the table first, so that
        the column's values change."""
        texts = (
            token.value
            for token in tokenize(expression, self.rules.lexis)
            if token.kind == "string"
        )
        if self.rules.session.old and not all(map(str.isascii, texts)):
            raise ReplicationError(
                1235,
                f"the generated column `{name}` has a literal that is not ASCII, which 5.7 reads in"
                " the character set of the session that opens the table; that is not supported in"
                " memory",
                table=f"{self.database}.{self.table}",
                hint="leave the table out with --exclude-table, or replay into a test DB",
            )

    def _check(self, draft: ColumnDraft, name: str = "") -> None:
        draft.checks.append(Check(self.parser.expression_in_parentheses(), name, draft.name))

    def _constraint(self, draft: ColumnDraft) -> None:
        unnamed = self.parser.word() in ("CHECK", "REFERENCES")
        name = "" if unnamed else self.parser.name()
        if self.rules.mariadb and self.parser.accept("REFERENCES"):
            self._references(draft, name)
        else:
            self.parser.expect("CHECK")
            self._check(draft, name)

    def _references(self, draft: ColumnDraft, name: str = "") -> None:
        key = self._reference(name, (draft.name,))
        if self.rules.column_references:
            draft.reference = key

    def _serial_default(self, draft: ColumnDraft) -> None:
        self.parser.expect("DEFAULT", "VALUE")
        draft.set(nullable=False, auto_increment=True, unique=True)

    def _masking_policy(self) -> None:
        """Of 9.7; it changes what is read, not what is stored."""
        self.parser.expect("POLICY")
        self.parser.name()

    def _engine_text(self) -> None:
        self.parser.accept("=")
        self.parser.text()

    def _compressed(self, draft: ColumnDraft) -> None:
        """COMPRESSED [= method]"""
        draft.set(compressed=True)
        if self.parser.accept("="):
            self.parser.name()

    # keys

    def key_or_constraint(self, parts: TableParts) -> bool:
        """Reads a table-level key or constraint into `parts`; False when a column definition stands
        there."""
        parser = self.parser
        symbol = None
        if constraint := parser.accept("CONSTRAINT"):
            parser.accept("IF", "NOT", "EXISTS")
            symbol = (
                None
                if parser.word() in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK")
                else parser.name()
            )
        word = parser.word()
        if word == "CHECK":
            parser.at += 1
            expression = parser.expression_in_parentheses()
            enforced = not parser.accept("NOT", "ENFORCED")
            parser.accept("ENFORCED")
            parts.checks.append(Check(expression, symbol or "", enforced=enforced))
        elif word == "FOREIGN":
            parser.at += 1
            self._foreign_key(parts, symbol)
        elif (
            word in ("PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL")
            or self._is_vector_key()
        ):
            parser.at += 1
            self._key(parts, word, symbol)
        elif constraint:
            raise parser.refuse("expected a constraint")
        elif self.rules.mariadb and (
            parser.accept("PERIOD", "FOR") or parser.accept("PERIOD", "IF", "NOT", "EXISTS", "FOR")
        ):
            self.period(parts)
        else:
            return False
        return True

    def _is_vector_key(self) -> bool:
        """MariaDB 11.7."""
        return (
            self.rules.mariadb
            and self.parser.word() == "VECTOR"
            and self.parser.word(1) in ("KEY", "INDEX")
        )

    def period(self, parts: TableParts) -> None:
        """name (start, end), behind PERIOD FOR. That of SYSTEM_TIME names what AS ROW START and AS
        ROW END say already."""
        name = self.parser.name()
        start, end = (part[0] or "" for part in self._key_parts(parts))
        # then it says IF NOT EXISTS
        is_there = parts.period is not None and parts.period[0].lower() == name.lower()
        if name.upper() != "SYSTEM_TIME" and not is_there:
            parts.period = (name, start, end)

    def _key(self, parts: TableParts, word: str, symbol: str | None) -> None:
        parser = self.parser
        if word == "PRIMARY":
            parser.expect("KEY")
        elif word not in ("KEY", "INDEX"):
            parser.accept_any("KEY", "INDEX")
        key = NamedKey(symbol, [], word in ("PRIMARY", "UNIQUE"), KEY_KINDS.get(word, "btree"))
        key.if_not_exists = parser.accept("IF", "NOT", "EXISTS")
        if parser.op() != "(" and not self._is_using():
            key.name = parser.name()
        if self._is_using():
            self._using(key)
        if word == "PRIMARY":
            key.name = "PRIMARY"
        key.parts = self._key_parts(parts)
        self.key_options(key)
        parts.named_keys.append(key)

    def _is_using(self) -> bool:
        """TYPE is a name, too: KEY type (a)."""
        return self.parser.word() == "USING" or (
            self.parser.word() == "TYPE" and self.parser.word(1) in INDEX_METHODS
        )

    def _using(self, key: NamedKey) -> None:
        self.parser.at += 1
        algorithm = self.parser.accept_any(*INDEX_METHODS)
        if not algorithm:
            raise self.parser.refuse("unknown index method")
        if key.kind == "btree" and algorithm == "HASH":
            key.kind = "hash"

    def _key_parts(
        self, parts: TableParts
    ) -> list[tuple[str | None, int | None, bool, str | None]]:
        parser = self.parser
        parser.expect("(")
        found: list[tuple[str | None, int | None, bool, str | None]] = []
        while True:
            name, prefix, expression = None, None, None
            if parser.op() == "(":
                expression = parser.expression_in_parentheses()
            else:
                name = parser.name()
                if parser.accept("("):
                    prefix = parser.integer()
                    parser.expect(")")
            if self.rules.mariadb and parser.accept("WITHOUT", "OVERLAPS"):
                found += [
                    (column, None, False, None) for column in self._period_columns(parts, name)
                ]
            else:
                found.append((name, prefix, parser.accept_any("ASC", "DESC") == "DESC", expression))
            if not parser.accept(","):
                break
        parser.expect(")")
        return found

    def _period_columns(self, parts: TableParts, name: str | None) -> tuple[str, str]:
        """What WITHOUT OVERLAPS puts into the key: the period's end and start (seen on MariaDB
        10.11.18)."""
        if parts.period is None or parts.period[0].lower() != (name or "").lower():
            raise ReplicationError(
                1072,
                f"Key column '{name}' doesn't exist in table",
                table=f"{self.database}.{self.table}",
            )
        return parts.period[2], parts.period[1]

    def key_options(self, key: NamedKey) -> None:
        """What stands behind the columns of a key: USING, KEY_BLOCK_SIZE, VISIBLE, …"""
        parser = self.parser
        while True:
            if self._is_using():
                self._using(key)
            elif parser.accept("COMMENT"):
                parser.text()
            elif parser.accept_any(
                "KEY_BLOCK_SIZE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "CLUSTERING"
            ):
                parser.accept("=")
                parser.next()
            elif parser.accept("WITH", "PARSER"):
                parser.name()
            elif parser.accept("INVISIBLE"):
                key.visible = False
            elif not (
                parser.accept_any("VISIBLE", "IGNORED")
                or parser.accept("NOT", "IGNORED")
                or self._engine_attribute()
            ):
                return

    def _foreign_key(self, parts: TableParts, symbol: str | None) -> None:
        parser = self.parser
        parser.expect("KEY")
        exists_ok = parser.accept("IF", "NOT", "EXISTS")
        index_name = parser.name() if parser.op() != "(" else None
        columns = tuple(name for name, *_ in self._key_parts(parts) if name is not None)
        parser.expect("REFERENCES")
        key = self._reference(symbol or (index_name if self.rules.mariadb else None) or "", columns)
        if not exists_ok or all(
            other.name.lower() != key.name.lower() for other in parts.foreign_keys
        ):
            self.add_reference(parts, key, index_name)

    def _reference(self, name: str, columns: tuple[str, ...]) -> ForeignKey:
        """table (columns) actions, behind REFERENCES."""
        database, table = self.parser.table_name(self.database)
        theirs: tuple[str, ...] = ()
        if self.parser.op() == "(":
            theirs = tuple(name for name, *_ in self._key_parts(TableParts()) if name is not None)
        return ForeignKey(name, columns, database, table, theirs, *self._reference_actions())

    def add_reference(
        self, parts: TableParts, key: ForeignKey, index_name: str | None = None
    ) -> None:
        """A foreign key and the index that it needs. One without a name gets table_ibfk_n, with n
        one above those that there are."""
        numbers = [generated_number(other.name, self.table) or 0 for other in parts.foreign_keys]
        name = key.name or f"{self.table}_ibfk_{max(numbers, default=0) + 1}"
        parts.foreign_keys.append(replace(key, name=name))
        index = NamedKey(
            key.name or index_name,
            [(column, None, False, None) for column in key.columns],
            kind="foreign",
        )
        parts.named_keys.append(index)

    def take_keys(self, draft: ColumnDraft, parts: TableParts) -> None:
        """What a column's own clauses ask for: keys, checks, a table that is system-versioned."""
        parts.system_versioned |= draft.versioned
        parts.named_keys.extend(draft.keys(mariadb=self.rules.mariadb))
        parts.checks.extend(draft.constraints(mariadb=self.rules.mariadb))
        if draft.reference is not None:
            self.add_reference(parts, draft.reference)

    def _reference_actions(self) -> tuple[str, str]:
        parser = self.parser
        if parser.accept("MATCH"):
            parser.next()
        actions = {"DELETE": "restrict", "UPDATE": "restrict"}
        while parser.accept("ON"):
            event = parser.accept_any(*actions)
            if not event:
                raise parser.refuse("expected DELETE or UPDATE")
            words = [parser.next().value.lower()]
            if words[0] in ("set", "no"):
                words.append(parser.next().value.lower())
            actions[event] = " ".join(words)
        return actions["DELETE"], actions["UPDATE"]


def parse_create_table(sql: str, database: str, rules: SchemaRules) -> TableDefinition:
    """The definition that `CREATE TABLE … (…)` makes. Raises InputError when it cannot be read."""
    parser = Parser(sql, rules.lexis)
    parser.expect("CREATE")
    parser.accept("OR", "REPLACE")
    temporary = parser.accept("TEMPORARY")
    parser.expect("TABLE")
    parser.accept("IF", "NOT", "EXISTS")
    database, name = parser.table_name(database)
    return replace(read_table_body(parser, database, name, rules)[0], temporary=temporary)


def read_table_body(
    parser: Parser, database: str, name: str, rules: SchemaRules
) -> tuple[TableDefinition, str | None]:
    """What follows the name, (columns and keys) options [SELECT …]: definition and SELECT."""
    reader = SchemaParser(parser, rules, database, name)
    parts = TableParts()
    drafts: list[ColumnDraft] = []
    if parser.op() == "(" and parser.word(1) != "SELECT" and parser.op(1) != "(":
        parser.expect("(")
        while True:
            if not reader.key_or_constraint(parts):
                drafts.append(reader.column())
                reader.take_keys(drafts[-1], parts)
            if not parser.accept(","):
                break
        parser.expect(")")
    read_table_options(parser, rules, parts)
    table_charset, table_collation = table_defaults(parts.options, rules)
    parts.columns = [draft.build(rules, table_charset, table_collation) for draft in drafts]
    return (
        build_definition(database, name, parts, rules, table_charset, table_collation),
        parts.select,
    )
