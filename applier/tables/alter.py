"""ALTER TABLE: a list of changes to a definition, then the rows carried over into the new one.

Clauses that change neither rows nor definition (ALGORITHM, LOCK, COMMENT, partition maintenance that keeps all rows) are read
over. A clause that would lose rows by partition is refused with a clear word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from applier.binlog.charsets import charset
from applier.binlog.types import ValueRefused, from_sql, to_text
from applier.errors import ReplicationError
from applier.tables.catalog import Tables
from applier.tables.defaults import column_default, number_rows, row_generator
from applier.tables.engine import MemoryTable
from applier.tables.schema import SchemaParser
from applier.tables.sql_text import Parser
from applier.tables.table_draft import (
    BINARY_TWINS,
    CHARACTER_TYPES,
    ColumnDraft,
    NamedKey,
    SchemaRules,
    TableParts,
    build_definition,
    table_defaults,
)
from lookup.handler import DuplicateKey, Row
from lookup.table import Column, TableDefinition

MAINTENANCE = frozenset(
    "COALESCE REORGANIZE REBUILD ANALYZE CHECK OPTIMIZE REPAIR REMOVE PARTITION WITHOUT WITH".split(),
)
"""Words of ALTER TABLE that change no row and no definition."""


def alter_table(tables: Tables, table: MemoryTable, clause: str, rules: SchemaRules) -> None:
    """Carries out the clauses behind ALTER TABLE name. Raises ReplicationError with the server's number."""
    change = _Alteration(table.definition, clause, rules)
    change.read()
    definition = change.definition()
    moved = definition.full_name != table.definition.full_name
    if moved and tables.get(definition.database, definition.name) is not None:
        raise ReplicationError(1050, f"Table '{definition.name}' already exists", table=definition.full_name)
    new = MemoryTable(definition)
    new.auto_increment = change.auto_increment or table.auto_increment
    convert = _row_converter(table.definition, definition, change.sources)
    rows = [row for _, row in table.scan()]
    if change.order_by and definition.primary is None:
        places = [(table.definition.positions[name.lower()], down) for name, down in change.order_by]
        for place, down in reversed(places):
            rows.sort(key=lambda row: (row[place] is not None, row[place] if row[place] is not None else 0), reverse=down)
    try:
        new.load(_numbered(table.definition, definition, change.sources, map(convert, rows), change.auto_increment or 1))
    except DuplicateKey as duplicate:
        raise ReplicationError(1062, str(duplicate), table=definition.full_name) from None
    tables.replace(table, new)


class _Alteration:
    """The definition while it is changed. `sources`: for each column the position it had before, None for a new one."""

    def __init__(self, old: TableDefinition, clause: str, rules: SchemaRules) -> None:
        self.old = old
        self.rules = rules
        self.parser = Parser(clause, ansi_quotes=rules.ansi_quotes)
        self.reader = SchemaParser(self.parser, rules, old.database, old.name)
        self.columns: list[Column] = list(old.columns)
        self.sources: list[int | None] = list(range(len(old.columns)))
        self.keys = [_named(key, old) for key in old.keys]
        self.parts = TableParts(
            foreign_keys=list(old.foreign_keys),
            checks=list(old.checks),
            options=dict(old.options),
            system_versioned=old.system_versioned,
            partitioned=old.partitioned,
        )
        self.parts.options.pop("AUTO_INCREMENT", None)
        self.table_charset, self.table_collation = old.charset, old.collation
        self.name = (old.database, old.name)
        self.auto_increment: int | None = None
        self.order_by: list[tuple[str, bool]] = []

    def read(self) -> None:
        handlers: dict[str, Callable[[], None]] = {
            "ADD": self._add,
            "DROP": self._drop,
            "MODIFY": self._modify,
            "CHANGE": self._change,
            "RENAME": self._rename,
            "ALTER": self._alter,
            "CONVERT": self._convert,
            "ORDER": self._order,
            "DISABLE": lambda: self.parser.expect("KEYS"),
            "ENABLE": lambda: self.parser.expect("KEYS"),
            "FORCE": lambda: None,
            "IGNORE": lambda: None,
            "TRUNCATE": lambda: self._partition("TRUNCATE"),
            "EXCHANGE": lambda: self._partition("EXCHANGE"),
            "DISCARD": lambda: self._partition("DISCARD"),
            "IMPORT": lambda: self._partition("IMPORT"),
        }
        parser = self.parser
        while not parser.done:
            if parser.accept(","):
                continue
            word = parser.word()
            if word in MAINTENANCE:
                self._maintenance(word)
            elif word in handlers:
                parser.at += 1
                handlers[word]()
            else:
                self._option()

    def definition(self) -> TableDefinition:
        self.parts.columns = self.columns
        self.parts.named_keys = [key for key in self.keys if key.parts]
        rules = replace(self.rules, implicit_timestamps=False)
        renamed = build_definition(*self.name, self.parts, rules, self.table_charset, self.table_collation)
        return replace(renamed, temporary=self.old.temporary)

    # columns

    def _position(self, name: str) -> int:
        for at, column in enumerate(self.columns):
            if column.name.lower() == name.lower():
                return at
        raise ReplicationError(1054, f"Unknown column '{name}' in '{self.old.name}'", table=self.old.full_name)

    def _has(self, name: str) -> bool:
        return any(column.name.lower() == name.lower() for column in self.columns)

    def _place(self, column: Column, source: int | None, default: int) -> None:
        """Puts a column FIRST, AFTER another, or at `default`."""
        at = default
        if self.parser.accept("FIRST"):
            at = 0
        elif self.parser.accept("AFTER"):
            at = self._position(self.parser.name()) + 1
        self.columns.insert(at, column)
        self.sources.insert(at, source)

    def _build(self, draft: ColumnDraft) -> Column:
        key = draft.key()
        if key is not None:
            self.keys.append(key)
        return draft.build(self.rules, self.table_charset, self.table_collation)

    def _add(self) -> None:
        parser = self.parser
        if parser.word() == "PARTITION":
            self._maintenance("ADD")
            return
        if parser.accept("SYSTEM", "VERSIONING"):
            self.parts.system_versioned = True
            return
        parts = TableParts(foreign_keys=self.parts.foreign_keys, checks=self.parts.checks)
        if self.reader.key_or_constraint(parts):
            self.keys.extend(parts.named_keys)
            return
        parser.accept("COLUMN")
        exists_ok = parser.accept("IF", "NOT", "EXISTS")
        if parser.accept("("):
            while True:
                if self.reader.key_or_constraint(parts):
                    self.keys.extend(parts.named_keys)
                    parts.named_keys = []
                else:
                    self._add_column(self.reader.column(), exists_ok)
                if not parser.accept(","):
                    break
            parser.expect(")")
            return
        self._add_column(self.reader.column(), exists_ok)

    def _add_column(self, draft: ColumnDraft, exists_ok: bool) -> None:
        if self._has(draft.name):
            if exists_ok:
                return
            raise ReplicationError(1060, f"Duplicate column name '{draft.name}'", table=self.old.full_name)
        hidden = next((at for at, column in enumerate(self.columns) if column.system_time == "start"), len(self.columns))
        self._place(self._build(draft), None, hidden)

    def _modify(self) -> None:
        self.parser.accept("COLUMN")
        self.parser.accept("IF", "EXISTS")
        draft = self.reader.column()
        self._redefine(draft.name, draft)

    def _change(self) -> None:
        self.parser.accept("COLUMN")
        self.parser.accept("IF", "EXISTS")
        old_name = self.parser.name()
        self._redefine(old_name, self.reader.column())

    def _redefine(self, old_name: str, draft: ColumnDraft) -> None:
        at = self._position(old_name)
        source = self.sources[at]
        column = self._build(draft)
        self._rename_in_keys(self.columns[at].name, column.name)
        del self.columns[at], self.sources[at]
        self._place(column, source, at)

    def _rename_in_keys(self, old: str, new: str) -> None:
        for key in self.keys:
            key.parts = [(new if name and name.lower() == old.lower() else name, *rest) for name, *rest in key.parts]  # type: ignore[misc]

    def _drop(self) -> None:
        parser = self.parser
        if parser.accept("PRIMARY", "KEY"):
            self._drop_key("PRIMARY")
        elif parser.accept_any("INDEX", "KEY"):
            exists_ok = parser.accept("IF", "EXISTS")
            self._drop_key(parser.name(), exists_ok)
        elif parser.accept("FOREIGN", "KEY"):
            parser.accept("IF", "EXISTS")
            name = parser.name().lower()
            self.parts.foreign_keys = [key for key in self.parts.foreign_keys if key.name.lower() != name]
        elif parser.accept_any("CHECK", "CONSTRAINT"):
            parser.accept("IF", "EXISTS")
            name = parser.name()
            self.parts.foreign_keys = [key for key in self.parts.foreign_keys if key.name.lower() != name.lower()]
            self.keys = [key for key in self.keys if (key.name or "").lower() != name.lower()]
        elif parser.accept("PARTITION"):
            self._partition("DROP")
        elif parser.accept("SYSTEM", "VERSIONING"):
            raise self._unsupported("DROP SYSTEM VERSIONING")
        else:
            parser.accept("COLUMN")
            self._drop_column(parser.accept("IF", "EXISTS"))

    def _drop_column(self, exists_ok: bool) -> None:
        name = self.parser.name()
        if not self._has(name):
            if exists_ok:
                return
            raise ReplicationError(1091, f"Can't DROP '{name}'; check that column/key exists", table=self.old.full_name)
        at = self._position(name)
        del self.columns[at], self.sources[at]
        self.parser.accept_any("RESTRICT", "CASCADE")
        for key in self.keys:
            key.parts = [part for part in key.parts if part[0] is None or part[0].lower() != name.lower()]

    def _drop_key(self, name: str, exists_ok: bool = False) -> None:
        kept = [key for key in self.keys if (key.name or "").lower() != name.lower()]
        if len(kept) == len(self.keys) and not exists_ok:
            raise ReplicationError(1091, f"Can't DROP '{name}'; check that column/key exists", table=self.old.full_name)
        self.keys = kept

    def _rename(self) -> None:
        parser = self.parser
        if parser.accept("COLUMN"):
            parser.accept("IF", "EXISTS")
            at = self._position(parser.name())
            parser.expect("TO")
            new = parser.name()
            self._rename_in_keys(self.columns[at].name, new)
            self.columns[at] = replace(self.columns[at], name=new)
        elif parser.accept_any("INDEX", "KEY"):
            old = parser.name().lower()
            parser.expect("TO")
            new = parser.name()
            for key in self.keys:
                if (key.name or "").lower() == old:
                    key.name = new
        else:
            parser.accept_any("TO", "AS", "=")
            self.name = parser.table_name(self.old.database)

    def _alter(self) -> None:
        parser = self.parser
        if parser.accept_any("INDEX", "KEY"):
            name = parser.name().lower()
            visible = parser.accept_any("VISIBLE", "INVISIBLE", "NOT", "IGNORED")
            parser.accept("IGNORED")
            for key in self.keys:
                if (key.name or "").lower() == name:
                    key.visible = visible != "INVISIBLE"
            return
        if parser.accept_any("CHECK", "CONSTRAINT"):
            parser.name()
            parser.accept("NOT")
            parser.accept("ENFORCED")
            return
        parser.accept("COLUMN")
        at = self._position(parser.name())
        if parser.accept("DROP", "DEFAULT"):
            self.columns[at] = replace(self.columns[at], default=None)
        elif parser.accept("SET", "DEFAULT"):
            draft = ColumnDraft("")
            self.reader._default(draft)
            self.columns[at] = replace(self.columns[at], default=str(draft.values["default"]))
        else:
            parser.expect("SET")
            self.columns[at] = replace(self.columns[at], invisible=parser.next().value.upper() == "INVISIBLE")

    # the table as a whole

    def _convert(self) -> None:
        parser = self.parser
        parser.expect("TO")
        if not parser.accept_any("CHARSET"):
            parser.expect("CHARACTER", "SET")
        name = parser.name()
        options = {"CHARSET": self.rules.charset if name.upper() == "DEFAULT" else name}
        if parser.accept("COLLATE"):
            options["COLLATE"] = parser.name()
        self.table_charset, self.table_collation = table_defaults(options, self.rules)
        self.columns = [self._converted(column) for column in self.columns]

    def _converted(self, column: Column) -> Column:
        if column.type not in CHARACTER_TYPES or column.charset is None:
            return column
        if self.table_charset == "binary" and column.type in BINARY_TWINS:
            return replace(column, type=BINARY_TWINS[column.type], charset=None, collation=None)
        wider = charset(self.table_charset).max_bytes > charset(column.charset).max_bytes
        grown = {"tinytext": "text", "text": "mediumtext", "mediumtext": "longtext"}.get(column.type) if wider else None
        return replace(column, type=grown or column.type, charset=self.table_charset, collation=self.table_collation)

    def _order(self) -> None:
        self.parser.expect("BY")
        while True:
            self.order_by.append((self.parser.name(), self.parser.accept_any("ASC", "DESC") == "DESC"))
            if not self.parser.accept(","):
                return

    def _option(self) -> None:
        before = dict(self.parts.options)
        self.parts.options = {}
        self.reader._option(self.parts)
        said = self.parts.options
        self.parts.options = {**before, **said}
        if "CHARSET" in said or "COLLATE" in said:
            self.table_charset, self.table_collation = table_defaults(said, self.rules)
        if said.get("AUTO_INCREMENT", "").isdigit():
            self.auto_increment = int(said["AUTO_INCREMENT"])
        for word in ("ALGORITHM", "LOCK", "AUTO_INCREMENT"):
            self.parts.options.pop(word, None)

    def _maintenance(self, word: str) -> None:
        """Partition clauses that keep every row."""
        text = self.parser.skip_until()
        if word == "REMOVE" or text.upper().startswith("PARTITION BY"):
            self.parts.partitioned = word != "REMOVE"

    def _partition(self, word: str) -> None:
        raise self._unsupported(f"{word} PARTITION")

    def _unsupported(self, what: str) -> ReplicationError:
        return ReplicationError(
            1235,
            f"ALTER TABLE … {what} is not supported in memory: which rows it takes away is not known",
            table=self.old.full_name,
            hint="skip it with --skip-errors 1235, or replay into a test DB",
        )


def _named(key: Any, definition: TableDefinition) -> NamedKey:
    parts = [
        (None if part.column is None else definition.columns[part.column].name, part.prefix, part.descending, part.expression)
        for part in key.parts
    ]
    return NamedKey(key.name, parts, key.unique, key.kind, key.visible)


# rows


def _row_converter(old: TableDefinition, new: TableDefinition, sources: list[int | None]) -> Callable[[Row], Row]:
    """A function from rows of the old definition to rows of the new one."""
    steps: list[tuple[int | None, Callable[[Any], Any] | None]] = []
    if len(sources) < len(new.columns):
        sources = [*sources, *[None] * (len(new.columns) - len(sources))]
    for source, column in zip(sources, new.columns, strict=True):
        steps.append((source, None if source is None else value_converter(old.columns[source], column)))
    defaults = [None if source is not None else column_default(column) for source, column in zip(sources, new.columns, strict=True)]
    generate = row_generator(new)

    def convert(row: Row) -> Row:
        values = tuple(
            defaults[at] if source is None else row[source] if change is None else change(row[source])
            for at, (source, change) in enumerate(steps)
        )
        return values if generate is None else generate(values)

    return convert


def _numbered(
    old: TableDefinition, new: TableDefinition, sources: list[int | None], rows: Iterable[Row], start: int
) -> Iterable[Row]:
    """A column that becomes AUTO_INCREMENT numbers the rows in their order; one that was it keeps even its zeros."""
    for source, column in zip(sources, new.columns, strict=False):
        if column.auto_increment and (source is None or not old.columns[source].auto_increment):
            return number_rows(new, rows, start)
    return rows


def value_converter(old: Column, new: Column) -> Callable[[Any], Any] | None:
    """A function that carries stored values from one column definition to another; None when they stay as they are.

    It raises ReplicationError for a value that the new column does not hold.
    """
    same_bytes = ("type", "length", "scale", "unsigned", "charset", "labels")
    if all(getattr(old, name) == getattr(new, name) for name in same_bytes) and (new.nullable or not old.nullable):
        return None
    read, write, missing = to_text(old), from_sql(new), None if new.nullable else column_default(replace(new, default=None))
    plain = all(getattr(old, name) == getattr(new, name) for name in same_bytes)
    hexadecimal = old.type in ("binary", "varbinary") or old.type.endswith("blob") or old.type in ("geometry", "vector")

    def convert(value: Any) -> Any:
        if value is None:
            return missing
        if plain:
            return value
        try:
            return write(value if hexadecimal or (old.type == "bit" and new.type == "bit") else read(value))
        except ValueRefused as refused:
            if refused.closest is not None:
                return refused.closest
            raise ReplicationError(refused.number, refused.message) from None

    return convert
