"""The ALTER TABLE that lets a replica find each row of a table at once, or the reason why there is
none.

A suggestion is accepted by the server whatever rows the table holds, and keeps every row and every
rule of the table. That leaves three ways, in this order:

1. a unique key without nullable columns that this server does not use for rows events becomes the
   primary key;
2. the AUTO_INCREMENT column becomes the primary key (a table has one such column at most, error
   1075);
3. a new invisible AUTO_INCREMENT column becomes the primary key, as
   sql_generate_invisible_primary_key makes it.

Columns that merely hold no duplicates today are never suggested, and no column is made NOT NULL.
The unique keys of a partitioned table contain the partition columns (1503). Algorithms and locks
are those that 5.6.24, 5.7.29, 9.7.4 and MariaDB 10.11.18 accept after ALGORITHM= and LOCK=; 8.0 and
8.4, between two that agree, are taken to do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from applier.tables.engine import MemoryTable
from applier.tables.keys import ref_extractor
from applier.tables.partitioning.partition_columns import partition_columns
from applier.tables.row_size import MOST_ROW_BYTES, row_bytes
from applier.tables.sql.quoting import quoted
from lookup.decision import BY_INDEX, decide
from lookup.table import Column, Key, KeyPart, TableDefinition
from lookup.versions import INDEX_SCAN, ServerRules

COLUMN = "my_row_id"
"""The name that sql_generate_invisible_primary_key gives (sql/sql_gipk.cc, 8.0.30)."""
COLUMN_BYTES = 8
MOST_KEYS = 64
MOST_COLUMNS = {"innodb": 1017}
OTHER_MOST_COLUMNS = 4096
REBUILT_IN_PLACE = frozenset({"innodb"})
ACCEPTED_ENGINES = frozenset({"innodb", "myisam", "memory", "heap", "aria"})
REFUSED_ENGINES = {
    "csv": (
        "CSV tables have no keys. Convert the table to InnoDB first, if no other program reads its"
        " file."
    ),
    "mrg_myisam": (
        "A MERGE table has the keys of its underlying tables. Add the key to all of these, then to"
        " the MERGE table."
    ),
    "merge": (
        "A MERGE table has the keys of its underlying tables. Add the key to all of these, then to"
        " the MERGE table."
    ),
}
NEVER_LOOKED_UP = frozenset({"archive", "blackhole"})
"""Engines without UPDATE and DELETE, or without rows."""

ON_SOURCE = "Run it on the source: a replica uses the new column only if the log carries it."
NUMBERED = (
    "Each server numbers its existing rows in its own storage order. Rebuild the replica from the"
    " source afterwards, or compare both tables by `{column}`."
)
VISIBLE = (
    "SELECT * returns the new column, and INSERT without a column list fails with error 1136"
    " (columns are invisible from 8.0.23 on)."
)
DUPLICATES = (
    "If a value of {columns} occurs twice, the ALTER fails with error 1062 and changes nothing."
)
NULLABLE_PARTITION = (
    "The partition column {columns} may be NULL, so the table cannot have a primary key. The unique"
    " key finds single rows all the same."
)

Duplicated = Callable[[Sequence[int]], bool]
"""Positions of columns -> whether two rows have the same values there."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What to do for a table whose rows a replica does not find at once.

    `sql` is None where no ALTER TABLE helps; `finding` then says why. `algorithm` and `lock` are
    what ALTER TABLE takes by itself ("INPLACE" and "SHARED"); `notes` are sentences to know before
    it is run.
    """

    finding: str
    sql: str | None = None
    algorithm: str | None = None
    lock: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def duration(self) -> str | None:
        """How long the table is locked, in a sentence; None without `sql`."""
        if self.sql is None:
            return None
        goes_on = (
            "reads and writes go on"
            if self.lock == "NONE"
            else "reads go on, writes wait until it is done"
        )
        return (
            f"ALGORITHM={self.algorithm}, LOCK={self.lock}: the server rebuilds the whole table;"
            f" {goes_on}."
        )

    @property
    def lines(self) -> list[str]:
        """For people: the finding, the statement, and what to know of it."""
        return [text for text in (self.finding, self.sql, self.duration, *self.notes) if text]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "finding": self.finding,
            "sql": self.sql,
            "algorithm": self.algorithm,
            "lock": self.lock,
            "notes": list(self.notes),
        }


def suggestion(
    definition: TableDefinition,
    rules: ServerRules,
    row_search: frozenset[str] | None = None,
    duplicated: Duplicated | None = None,
) -> Suggestion | None:
    """The suggestion for a table on a replica with these rules; None where updates and deletes find
    each row by a unique key.

    The before image is taken to hold all columns, as it does for a table without a primary key.
    `row_search` is slave_rows_search_algorithms. `duplicated` looks at the rows where they are
    known.
    """
    decision = decide(definition, range(len(definition.columns)), rules, row_search)
    if decision.algorithm == BY_INDEX and decision.key_class in ("primary", "unique"):
        return None
    if definition.primary is not None:
        return _index_scan(rules, row_search)
    engine = definition.engine.lower()
    if engine in NEVER_LOOKED_UP or definition.temporary:
        return None
    if engine in REFUSED_ENGINES:
        return Suggestion(REFUSED_ENGINES[engine])
    if engine not in ACCEPTED_ENGINES:
        return Suggestion(
            f"No key finds a single row. Which ALTER TABLE the engine {definition.engine} accepts"
            " is not known."
        )
    if len(definition.keys) >= MOST_KEYS:
        return Suggestion(
            f"No key finds a single row, and the table has {MOST_KEYS} keys, the most that there"
            " can be. Drop one first."
        )
    return (
        _unique(definition)
        or _auto_increment(definition, rules, duplicated)
        or _new_column(definition, rules)
    )


def duplicates_in(table: MemoryTable) -> Duplicated:
    """Looks at the rows of a table in memory, as a key on the columns would."""

    def found(columns: Sequence[int]) -> bool:
        key = Key("PRIMARY", tuple(KeyPart(at) for at in columns), unique=True)
        ref = ref_extractor(table.definition, key)
        rows = table.stored_rows()
        return len({ref(row) for row in rows}) < len(rows)

    return found


def _index_scan(rules: ServerRules, row_search: frozenset[str] | None) -> Suggestion | None:
    """For a table whose primary key an option keeps from being used."""
    if not rules.row_search_selectable:
        return None
    options = ",".join(sorted({*(row_search or rules.row_search), INDEX_SCAN}, reverse=True))
    return Suggestion(
        f"The table has a primary key. Set slave_rows_search_algorithms = '{options}' on the"
        " replica to use it."
    )


def _unique(definition: TableDefinition) -> Suggestion | None:
    """The first unique key that can be a primary key as it stands."""
    for key in definition.sorted_keys:
        usable = definition.is_unique_not_null(key) and key.kind == "btree"
        if usable and not any(definition.columns[at].is_virtual for at in key.columns):
            parts = ", ".join(_part(definition, part) for part in key.parts)
            finding = (
                f"Unique key `{key.name}` has no nullable column, but this server does not use it."
                " Make it the primary key:"
            )
            return _existing(definition, finding, parts)
    return None


def _auto_increment(
    definition: TableDefinition, rules: ServerRules, duplicated: Duplicated | None
) -> Suggestion | None:
    """The AUTO_INCREMENT column, with what the engine and the partitions ask for; None without such
    a column."""
    at = next((at for at, column in enumerate(definition.columns) if column.auto_increment), None)
    if at is None:
        return None
    name = quoted(definition.columns[at].name)
    partitions = partition_columns(definition)
    if partitions is None:
        return Suggestion(
            "No key finds a single row. Which columns the partitions go by is not known, so no key"
            " is suggested."
        )
    key = _key_of_auto_increment(definition, at)
    columns = tuple(dict.fromkeys((*key.columns[: key.columns.index(at) + 1], *partitions)))
    unfit = [column for column in columns if not _can_be_primary(definition.columns[column], rules)]
    names = ", ".join(quoted(definition.columns[column].name) for column in columns)
    if unfit:
        reason = quoted(definition.columns[unfit[0]].name)
        return Suggestion(
            f"Key `{key.name}` finds single rows by the AUTO_INCREMENT column {name}. No ALTER"
            f" TABLE is suggested: a primary key would have to contain {reason}, which may be NULL"
            " or is generated."
        )
    if duplicated is not None and duplicated(columns):
        return Suggestion(
            f"{names} is AUTO_INCREMENT, but rows share values of it. Renumber these rows, then"
            " make it the primary key."
        )
    finding = f"{name} is AUTO_INCREMENT, but its key is not unique. Make it the primary key:"
    return _existing(definition, finding, names, (DUPLICATES.format(columns=names),))


def _existing(
    definition: TableDefinition, finding: str, parts: str, notes: tuple[str, ...] = ()
) -> Suggestion:
    """ADD PRIMARY KEY on columns that the table has."""
    alter = f"ALTER TABLE {_table(definition)} ADD PRIMARY KEY ({parts});"
    if definition.system_versioned:
        alter = f"SET STATEMENT system_versioning_alter_history=KEEP FOR {alter}"
    return Suggestion(finding, alter, *_price(definition, fills_column=False), notes)


def _new_column(definition: TableDefinition, rules: ServerRules) -> Suggestion:
    """A new AUTO_INCREMENT column."""
    refusal = _no_room(definition)
    if refusal is not None:
        return Suggestion(f"No key finds a single row, and {refusal}")
    partitions = partition_columns(definition)
    if partitions is None:
        return Suggestion(
            "No key finds a single row. Which columns the partitions go by is not known, so no key"
            " is suggested."
        )
    taken = {column.name.lower() for column in definition.columns}
    name = next(
        word
        for word in (COLUMN, *(f"{COLUMN}{number}" for number in range(2, 5000)))
        if word not in taken
    )
    clause = (
        f"ADD COLUMN `{name}` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT"
        + " INVISIBLE" * rules.invisible_columns
    )
    notes = [ON_SOURCE, NUMBERED.format(column=name)]
    if not rules.invisible_columns:
        notes.append(VISIBLE)
    columns = [definition.columns[at] for at in partitions]
    names = ", ".join(quoted(column.name) for column in columns)
    if not columns:
        clause += " PRIMARY KEY"
    elif all(_can_be_primary(column, rules) for column in columns):
        clause += f", ADD PRIMARY KEY (`{name}`, {names})"
    else:
        clause += f", ADD UNIQUE KEY `{name}` (`{name}`, {names})"
        if any(column.nullable for column in columns):
            notes.append(NULLABLE_PARTITION.format(columns=names))
    what = "an invisible" if rules.invisible_columns else "an"
    finding = f"No key finds a single row. Add {what} AUTO_INCREMENT column:"
    return Suggestion(
        finding,
        f"ALTER TABLE {_table(definition)} {clause};",
        *_price(definition, fills_column=True),
        tuple(notes),
    )


def _no_room(definition: TableDefinition) -> str | None:
    """Why the table cannot have another column, None when it can."""
    if definition.system_versioned:
        return (
            "MariaDB adds no AUTO_INCREMENT column to a system-versioned table that has history"
            " (error 1112)."
        )
    most = MOST_COLUMNS.get(definition.engine.lower(), OTHER_MOST_COLUMNS)
    if (
        len(definition.columns)
        + sum(_is_expression(part) for key in definition.keys for part in key.parts)
        >= most
    ):
        return (
            f"the table has {len(definition.columns):,} columns: another one is too many (error"
            " 1117)."
        )
    if row_bytes(definition) + COLUMN_BYTES > MOST_ROW_BYTES:
        return (
            f"its rows are up to {row_bytes(definition):,} bytes long: {COLUMN_BYTES} more are too"
            " many (error 1118)."
        )
    return None


def _key_of_auto_increment(definition: TableDefinition, at: int) -> Key:
    """The key that the server demands for the column: one where it is the first part comes
    first."""
    keys = [key for key in definition.sorted_keys if at in key.columns]
    return min(keys, key=lambda key: key.columns.index(at))


def _can_be_primary(column: Column, rules: ServerRules) -> bool:
    """Whether a primary key may have the column without changing it. MariaDB takes no generated
    column (error 1903)."""
    return (
        not column.nullable and not column.is_virtual and not (rules.find_row and column.generated)
    )


def _price(definition: TableDefinition, *, fills_column: bool) -> tuple[str, str]:
    """(ALGORITHM, LOCK) of the statement. InnoDB numbers rows under a shared lock only."""
    if definition.engine.lower() not in REBUILT_IN_PLACE:
        return "COPY", "SHARED"
    return "INPLACE", "SHARED" if fills_column else "NONE"


def _is_expression(part: KeyPart) -> bool:
    """A functional key part is a hidden column."""
    return part.column is None


def _part(definition: TableDefinition, part: KeyPart) -> str:
    assert part.column is not None
    prefix = "" if part.prefix is None else f"({part.prefix})"
    return quoted(definition.columns[part.column].name) + prefix + " DESC" * part.descending


def _table(definition: TableDefinition) -> str:
    database = f"{quoted(definition.database)}." if definition.database else ""
    return database + quoted(definition.name)
