"""The definition of a table while the clauses of an ALTER TABLE change it.

Clauses that change neither rows nor definition (ALGORITHM, LOCK, COMMENT, partition maintenance
that keeps all rows) are read over. A clause that would lose rows by partition is refused with a
clear word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from applier.errors import ReplicationError
from applier.tables.ddl.charset_change import in_charset
from applier.tables.definitions import checks
from applier.tables.definitions.altered_columns import (
    AlteredColumn,
    AlteredColumns,
    names_in,
    rename_in,
    with_names,
)
from applier.tables.definitions.named_keys import NamedKey, named_key
from applier.tables.definitions.schema import SchemaParser
from applier.tables.definitions.table_draft import (
    ColumnDraft,
    SchemaRules,
    TableParts,
    build_definition,
    table_defaults,
)
from applier.tables.definitions.table_options import option_ahead, read_option, refuse_substitute
from applier.tables.expressions.defaults import default_in_utc
from applier.tables.merge_tables import qualify_union
from applier.tables.partitioning.partition_clauses import PartitionChange, PartitionClause
from applier.tables.partitioning.partitions import not_exact
from applier.tables.sql.sql_text import Parser
from lookup.handler import traits_of
from lookup.table import Column, TableDefinition

MAINTENANCE = frozenset(
    """
    REBUILD ANALYZE CHECK OPTIMIZE REPAIR REMOVE PARTITION SECONDARY_LOAD SECONDARY_UNLOAD
    """.split()
)
"""Words of ALTER TABLE that change no row and no definition; with them a statement ends."""
LAST_WORDS = frozenset({"PARTITION", "REMOVE"})
"""What stands behind the last clause without a comma: PARTITION BY and REMOVE PARTITIONING."""
PARTITION_WORDS = ("TRUNCATE", "COALESCE", "REORGANIZE", "EXCHANGE")


def read_alteration(
    old: TableDefinition, clause: str, rules: SchemaRules, database: str
) -> Alteration:
    """All clauses behind ALTER TABLE name. Raises InputError for one that is not known."""
    charset, collation = old.charset, old.collation
    while True:
        change = Alteration(old, clause, rules, database, charset=charset, collation=collation)
        change.read()
        if (change.table_charset, change.table_collation) == (charset, collation):
            return change
        charset, collation = change.table_charset, change.table_collation


class Alteration:
    """The definition while it is changed.

    `charset` and `collation` are the table's own afterwards: new columns take them, also those that
    stand before the clause that sets them (`mysql_alter_table`, sql/sql_table.cc; seen on 5.7.29,
    9.7.4, 10.11.18). `read_alteration` finds them.
    """

    def __init__(
        self,
        old: TableDefinition,
        clause: str,
        rules: SchemaRules,
        database: str,
        *,
        charset: str,
        collation: str,
    ) -> None:
        self.old = old
        self.rules = rules
        self.parser = Parser(clause, rules.lexis)
        self.reader = SchemaParser(self.parser, rules, old.database, old.name)
        self.columns = AlteredColumns(old)
        self.column_changes: list[tuple[str, Callable[[Column], Column]]] = []
        """Name and what ALTER COLUMN does to it, in order."""
        self.sources: list[int | None] = []
        """For each column of the new definition the position it had before, None for a new one."""
        self.keys = [named_key(key, old) for key in old.keys]
        self.new_keys: list[NamedKey] = []
        self.key_names: dict[str, str] = {}
        """Old name of a key in lower case -> its new name."""
        self.parts = TableParts(
            foreign_keys=list(old.foreign_keys),
            checks=list(old.checks),
            options=dict(old.options),
            system_versioned=old.system_versioned,
            partitioned=old.partitioned,
            period=old.period,
        )
        self.parts.options.pop("AUTO_INCREMENT", None)
        self.table_charset, self.table_collation = charset, collation
        self.name = (old.database, old.name)
        self.database = database
        self.auto_increment: int | None = None
        self.order_by: list[tuple[str, bool]] = []
        self.partitions: PartitionChange | None = None
        self.copy_asked = False
        """ALGORITHM=COPY."""
        self.discards = False
        """DISCARD TABLESPACE."""
        self.says_timestamp = False
        """Whether a TIMESTAMP is among the columns defined; only then does the log say what
        explicit_defaults_for_timestamp was."""

    def read(self) -> None:
        """All clauses. Raises InputError for one that is not known."""
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
            "WITH": self._with,
            "WITHOUT": lambda: self.parser.expect("VALIDATION"),
            **{word: partial(self._partition, word) for word in PARTITION_WORDS},
            "DISCARD": lambda: self._tablespace("DISCARD"),
            "IMPORT": lambda: self._tablespace("IMPORT"),
        }
        parser = self.parser
        while not parser.done:
            word = parser.word()
            if word in MAINTENANCE:
                self._maintenance(word)
            elif word in handlers:
                parser.at += 1
                handlers[word]()
            else:
                self._option()
            if not (
                parser.accept(",")
                or parser.done
                or parser.word() in LAST_WORDS
                or option_ahead(parser, self.rules)
            ):
                raise parser.refuse("the next clause was expected")
        self._change_columns()

    def definition(self) -> TableDefinition:
        """The new definition. Raises ReplicationError for names that are not there, or twice."""
        columns = self.columns.in_places()
        self.sources = [column.source for column in columns]
        self.parts.columns = [column.column for column in columns]
        self._follow_names(columns)
        self.parts.named_keys = [key for key in self.keys + self.new_keys if key.parts]
        rules = replace(
            self.rules, implicit_timestamps=self.rules.implicit_timestamps and self.says_timestamp
        )
        definition = build_definition(
            *self.name, self.parts, rules, self.table_charset, self.table_collation
        )
        return replace(definition, temporary=self.old.temporary)

    # columns

    def _follow_names(self, columns: list[AlteredColumn]) -> None:
        """Keys and foreign keys that were there know the columns by their old names; so do
        expressions, which only MariaDB writes anew.

        MySQL refuses the change, or takes the expression as it stands: then it means the column
        that has the name now.
        """
        renamed = self.columns.renamed
        for key in self.keys:
            key.parts = self.columns.follow_parts(key.parts)
            if (new_name := self.key_names.get((key.name or "").lower())) is not None:
                key.name, key.generated = new_name, False
        self.parts.foreign_keys = self.columns.follow_foreign_keys(self.parts.foreign_keys)
        if self.parts.options.get("PARTITION") and renamed.keys() & names_in(
            self.parts.options["PARTITION"]
        ):
            text = self.parts.options["PARTITION"]
            self.parts.options["PARTITION"] = rename_in(text, renamed) if self.rules.mariadb else ""
        if renamed and self.rules.mariadb:
            self.parts.checks = [
                checks.renamed(check, renamed) if check in self.old.checks else check
                for check in self.parts.checks
            ]
            self.parts.columns = [
                column.column if column.redefined else with_names(column.column, renamed)
                for column in columns
            ]

    def _place(self, column: AlteredColumn) -> None:
        """FIRST or AFTER another, where they stand behind a column."""
        if self.parser.accept("FIRST"):
            column.after = ""
        elif self.parser.accept("AFTER"):
            column.after = self.parser.name()
        moved = column.after is not None or column.source is None
        if moved and column not in self.columns.placed:
            self.columns.placed.append(column)

    def _build(self, draft: ColumnDraft) -> Column:
        parts = TableParts(foreign_keys=self.parts.foreign_keys, checks=self.parts.checks)
        self.reader.take_keys(draft, parts)
        self.new_keys.extend(parts.named_keys)
        column = draft.build(self.rules, self.table_charset, self.table_collation)
        self.says_timestamp = self.says_timestamp or column.type == "timestamp"
        return column

    def _add(self) -> None:
        parser = self.parser
        if parser.word() == "PARTITION":
            self._partition("ADD")
            return
        if self.rules.mariadb and parser.accept("SYSTEM", "VERSIONING"):
            self.parts.system_versioned = True
            return
        parts = TableParts(
            foreign_keys=self.parts.foreign_keys, checks=self.parts.checks, period=self.parts.period
        )
        if self.reader.key_or_constraint(parts):
            self._add_keys(parts)
            return
        parser.accept("COLUMN")
        exists_ok = parser.accept("IF", "NOT", "EXISTS")
        if parser.accept("("):
            while True:
                if self.reader.key_or_constraint(parts):
                    self._add_keys(parts)
                else:
                    self._add_column(self.reader.column(), exists_ok)
                if not parser.accept(","):
                    break
            parser.expect(")")
            return
        self._add_column(self.reader.column(), exists_ok)

    def _add_keys(self, parts: TableParts) -> None:
        """The keys of one clause; with IF NOT EXISTS only those whose name is not there."""
        names = {(key.name or "").lower() for key in self.keys + self.new_keys}
        self.new_keys.extend(
            key
            for key in parts.named_keys
            if not (key.if_not_exists and (key.name or "").lower() in names)
        )
        parts.named_keys = []
        self.parts.period = parts.period

    def _add_column(self, draft: ColumnDraft, exists_ok: bool) -> None:
        column = AlteredColumn(self._build(draft), None, redefined=True)
        if exists_ok and self.columns.is_there(draft.name):
            self.parser.skip_until(",")
            return
        self._place(column)

    def _modify(self) -> None:
        self.parser.accept("COLUMN")
        missing_ok = self.parser.accept("IF", "EXISTS")
        draft = self.reader.column()
        self._redefine(draft.name, draft, missing_ok)

    def _change(self) -> None:
        self.parser.accept("COLUMN")
        missing_ok = self.parser.accept("IF", "EXISTS")
        old_name = self.parser.name()
        self._redefine(old_name, self.reader.column(), missing_ok)

    def _redefine(self, old_name: str, draft: ColumnDraft, missing_ok: bool) -> None:
        if missing_ok and old_name not in self.columns:
            self.parser.skip_until(",")
            return
        column = self.columns.with_new(old_name)
        if self.rules.mariadb:
            self.parts.checks = checks.without_own(self.parts.checks, old_name)
        column.column = self._build(draft)
        column.redefined = True
        self._place(column)

    def _drop(self) -> None:
        parser = self.parser
        if parser.accept("PRIMARY", "KEY"):
            self._drop_key("PRIMARY")
        elif parser.accept_any("INDEX", "KEY"):
            exists_ok = parser.accept("IF", "EXISTS")
            self._drop_key(parser.name(), exists_ok)
        elif parser.accept("FOREIGN", "KEY"):
            exists_ok = parser.accept("IF", "EXISTS")
            self._drop_foreign_key(parser.name(), exists_ok)
        elif parser.accept_any("CHECK", "CONSTRAINT"):
            exists_ok, mariadb = parser.accept("IF", "EXISTS"), self.rules.mariadb
            name = parser.name()
            if mariadb and name.upper() == "PRIMARY":
                parser.accept("KEY")
            self.parts.foreign_keys = [
                key for key in self.parts.foreign_keys if key.name.lower() != name.lower()
            ]
            self.keys = [key for key in self.keys if (key.name or "").lower() != name.lower()]
            self.parts.checks = checks.without(
                self.parts.checks, name, mariadb=mariadb, is_there=not exists_ok
            )
        elif parser.word() == "PARTITION":
            self._partition("DROP")
        elif self.rules.mariadb and (
            parser.accept("PERIOD", "FOR") or parser.accept("PERIOD", "IF", "EXISTS", "FOR")
        ):
            name = parser.name().lower()
            if self.parts.period is not None and self.parts.period[0].lower() == name:
                self.parts.period = None
        elif self.rules.mariadb and parser.accept("SYSTEM", "VERSIONING"):
            self._drop_system_versioning()
        else:
            parser.accept("COLUMN")
            self._drop_column(parser.accept("IF", "EXISTS"))

    def _with(self) -> None:
        versioned = self.rules.mariadb and self.parser.accept("SYSTEM", "VERSIONING")
        if not versioned:
            self.parser.expect("VALIDATION")
        self.parts.system_versioned = self.parts.system_versioned or versioned

    def _drop_system_versioning(self) -> None:
        self.parts.system_versioned = False
        ends = {column.name for column in self.old.columns if column.system_time == "end"}
        for key in self.keys:
            key.parts = [part for part in key.parts if part[0] not in ends]
        for column in self.columns.kept:
            column.dropped = column.dropped or column.column.hidden

    def _drop_column(self, exists_ok: bool) -> None:
        name = self.parser.name()
        self.parser.accept_any("RESTRICT", "CASCADE")
        if name in self.columns:
            self.columns[name].dropped = True
            self.parts.checks = checks.without_columns(self.parts.checks, {name.lower()})
        elif not exists_ok:
            raise ReplicationError(
                1091, f"Can't DROP '{name}'; check that column/key exists", table=self.old.full_name
            )

    def _drop_foreign_key(self, name: str, exists_ok: bool) -> None:
        kept = [key for key in self.parts.foreign_keys if key.name.lower() != name.lower()]
        known = traits_of(self.old).foreign_keys
        if known and len(kept) == len(self.parts.foreign_keys) and not exists_ok:
            raise ReplicationError(
                1091, f"Can't DROP '{name}'; check that column/key exists", table=self.old.full_name
            )
        self.parts.foreign_keys = kept

    def _drop_key(self, name: str, exists_ok: bool = False) -> None:
        kept = [key for key in self.keys if (key.name or "").lower() != name.lower()]
        if len(kept) == len(self.keys) and not exists_ok:
            raise ReplicationError(
                1091, f"Can't DROP '{name}'; check that column/key exists", table=self.old.full_name
            )
        self.keys = kept

    def _rename(self) -> None:
        parser = self.parser
        if parser.accept("COLUMN"):
            missing_ok = parser.accept("IF", "EXISTS")
            old = parser.name()
            parser.expect("TO")
            new = parser.name()
            if not missing_ok or old in self.columns:
                column = self.columns[old]
                column.column = replace(column.column, name=new)
        elif parser.accept_any("INDEX", "KEY"):
            parser.accept("IF", "EXISTS")
            old = parser.name().lower()
            parser.expect("TO")
            self.key_names[old] = parser.name()
        else:
            parser.accept_any("TO", "AS", "=")
            self.name = parser.table_name(self.database)

    def _alter(self) -> None:
        parser = self.parser
        if parser.accept_any("INDEX", "KEY"):
            parser.accept("IF", "EXISTS")
            name = parser.name().lower()
            visible = parser.accept_any("VISIBLE", "INVISIBLE", "NOT", "IGNORED")
            parser.accept("IGNORED")
            for key in self.keys:
                if (key.name or "").lower() == name:
                    key.visible = visible != "INVISIBLE"
            return
        if parser.accept_any("CHECK", "CONSTRAINT"):
            name, enforced = parser.name(), not parser.accept("NOT")
            parser.accept("ENFORCED")
            self.parts.checks = checks.with_enforcement(self.parts.checks, name, enforced=enforced)
            return
        parser.accept("COLUMN")
        missing_ok = parser.accept("IF", "EXISTS")
        name, change = parser.name(), self._column_change()
        if change is not None and not (missing_ok and name not in self.columns):
            self.column_changes.append((name, change))

    def _column_change(self) -> Callable[[Column], Column] | None:
        """What stands behind ALTER COLUMN name, None where it changes nothing here."""
        parser = self.parser
        if parser.accept("DROP", "DEFAULT"):
            return partial(replace, default=None)
        if parser.accept("SET", "DEFAULT"):
            draft = ColumnDraft("")
            self.reader._default(draft)
            default = str(draft.values["default"])
            return lambda column: default_in_utc(
                replace(column, default=default), self.rules.session
            )
        if parser.accept("SET", "MASKING", "POLICY"):
            parser.name()
            return None
        if parser.accept("DROP", "MASKING", "POLICY"):
            return None
        parser.expect("SET")
        return partial(replace, invisible=parser.next().value.upper() == "INVISIBLE")

    def _change_columns(self) -> None:
        """ALTER COLUMN, behind all other clauses: MariaDB takes also a column that a later clause
        adds (`mysql_prepare_alter_table`; seen on 10.11.18). Raises ReplicationError 1054."""
        for name, change in self.column_changes:
            column = self.columns.with_new(name)
            column.column = change(column.column)

    # the table as a whole

    def _convert(self) -> None:
        parser = self.parser
        parser.expect("TO")
        if not parser.accept_any("CHARSET"):
            parser.expect("CHARACTER", "SET")
        options = {"CHARSET": parser.name()}
        if parser.accept("COLLATE"):
            options["COLLATE"] = parser.name()
        self.table_charset, self.table_collation = table_defaults(options, self.rules)
        for column in self.columns.kept:
            column.column = in_charset(
                column.column, self.table_charset, self.table_collation, self.rules, self.old
            )

    def _order(self) -> None:
        self.parser.expect("BY")
        while True:
            self.order_by.append(
                (self.parser.column_name(), self.parser.accept_any("ASC", "DESC") == "DESC")
            )
            if not self.parser.accept(","):
                return

    def _option(self) -> None:
        before = dict(self.parts.options)
        self.parts.options = {}
        read_option(self.parser, self.rules, self.parts)
        said = self.parts.options
        self.parts.options = {**before, **said}
        refuse_substitute(said.get("ENGINE", ""), self.rules)
        qualify_union(said, self.database, self.rules.lexis)
        if "CHARSET" in said or "COLLATE" in said:
            self.table_charset, self.table_collation = table_defaults(said, self.rules)
        if said.get("AUTO_INCREMENT", "").isdigit():
            self.auto_increment = int(said["AUTO_INCREMENT"])
        self.copy_asked = self.copy_asked or said.get("ALGORITHM", "").upper() == "COPY"
        for word in ("ALGORITHM", "LOCK", "AUTO_INCREMENT"):
            self.parts.options.pop(word, None)

    def _maintenance(self, word: str) -> None:
        """Clauses that keep every row."""
        text = self.parser.skip_until()
        if word == "REMOVE" or text.upper().startswith("PARTITION BY"):
            self.parts.partitioned = word != "REMOVE"
            self.parts.options["PARTITION"] = "" if word == "REMOVE" else text

    def _partition(self, word: str) -> None:
        self.parser.expect("PARTITION")
        self.partitions = PartitionClause(self.old, self.parser, self.database).read(word)
        after = self.partitions.after
        self.parts.options["PARTITION"] = "" if after is None else after.sql

    def _tablespace(self, word: str) -> None:
        if word == "DISCARD" and self.parser.accept("TABLESPACE"):
            self.discards = True
            return
        why = "its rows are in files that the log does not have"
        raise not_exact(self.old, f"ALTER TABLE … {word} TABLESPACE", why)
