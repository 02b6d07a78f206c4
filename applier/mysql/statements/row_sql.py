"""Rows of an event as SQL: which statement finds and changes exactly the rows that the images name.

The decision table of `lookup.decision` is carried out by statements: by a unique key a row is found
by its key, by another index or none by its whole image. A statement never changes more rows than
there are images: LIMIT says how many, so that of twins only as many go as the log says. Generated
columns are never set, and virtual ones never compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from applier.binlog.types.json import JsonDiff
from applier.mysql.statements.literals import (
    Condition,
    Literal,
    compares_bytes,
    diff_expression,
    equals,
    exact_order,
    key_equals,
    literal,
)
from applier.tables.sql.quoting import quoted
from lookup.decision import decide
from lookup.handler import traits_of
from lookup.rows import compared_columns
from lookup.strategies import Decision
from lookup.table import Key, TableDefinition
from lookup.versions import RULES, ServerRules

Image = tuple[Any, ...]

FILTERING = frozenset(
    """
        tinyint smallint mediumint int bigint decimal year date datetime timestamp time double float
        char varchar binary varbinary
    """.split()
)
"""Types whose values stand well in an IN list. Where a collation or a DOUBLE finds more than the
bytes are, the images decide."""

SETTINGS: dict[str, str] = {
    "character_set_client": "utf8mb4",
    "collation_connection": "utf8mb4_general_ci",
    "sql_mode": "_utf8mb4'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
    "time_zone": "_utf8mb4'+00:00'",
}
"""What the statements need of their session, so that every value that a server can hold is taken as
it is. The texts name their character set: in a session whose collation_connection is of ucs2 or
utf16 they would be of that (1231, 1298; seen on 5.7.29, 9.7.4, MariaDB 10.11.18)."""
OUR_RULES: ServerRules = RULES["8.0"]
"""The newest rules that leave the algorithm open; they hold on every server, since we choose."""


class RowSql:
    """Statements for the events of one shape on one table.

    `before_columns` and `after_columns` are local positions, `row_search` is
    slave_rows_search_algorithms (None: INDEX_SCAN,HASH_SCAN).
    """

    def __init__(
        self,
        definition: TableDefinition,
        kind: str,
        before_columns: tuple[int, ...],
        after_columns: tuple[int, ...],
        rules_version: str,
        row_search: frozenset[str] | None = None,
    ) -> None:
        self.definition = definition
        self._rules_version = rules_version
        self.kind = kind
        self.name = f"{quoted(definition.database)}.{quoted(definition.name)}"
        self.decision = Decision()
        self.before_columns = before_columns
        self.after_columns = after_columns
        columns = definition.columns
        stored = before_columns if kind == "write" else after_columns
        self._stored: list[tuple[int, int, Literal]] = [
            (place, at, literal(columns[at], rules_version))
            for place, at in enumerate(stored)
            if columns[at].generated is None
        ]
        self.complete = {
            at for at, column in enumerate(columns) if column.generated is None
        } <= set(stored)
        self._names = ", ".join(quoted(columns[at].name) for _, at, _ in self._stored)
        self._kept = [
            quoted(column.name)
            for at, column in enumerate(columns)
            if column.on_update and at not in stored and kind == "update"
        ]
        """Columns that the server would set to the current time by itself."""
        if kind != "write":
            self.decision = decide(definition, before_columns, OUR_RULES, row_search)
        key = () if self.decision.key is None else self.decision.key.columns
        self._key: list[tuple[int, Condition]] = [
            (before_columns.index(at), key_equals(columns[at], rules_version))
            for at in key
            if at in before_columns
        ]
        self._unique_columns = {
            at
            for one in definition.keys
            if one.unique
            for at in (*one.columns, *self._computed(one))
        }
        compared = compared_columns(definition, before_columns)
        bare = {at for at in key if not compares_bytes(columns[at], rules_version)}
        self._rest: list[tuple[int, Condition]] = [
            (before_columns.index(at), equals(columns[at], rules_version))
            for at in compared
            if at not in bare
        ]
        orders = (
            (before_columns.index(at), exact_order(columns[at], rules_version)) for at in compared
        )
        self._exact: list[tuple[int, Condition]] = [
            (place, order) for place, order in orders if order is not None
        ]
        self._filters: list[tuple[int, str, Literal]] = [
            (
                before_columns.index(at),
                quoted(columns[at].name),
                literal(columns[at], rules_version),
            )
            for at in (*key, *(at for at in compared if at not in key))
            if at in before_columns and columns[at].type in FILTERING
        ]

    @property
    def by_unique_key(self) -> bool:
        """The row is found by its key alone; that it differs elsewhere stops no replica."""
        return self.decision.by_unique_key

    @property
    def by_hash(self) -> bool:
        """All images of an event are known before the first row is looked for."""
        return self.decision.hashes

    @property
    def one_pass(self) -> bool:
        """Many images are looked for in one scan of the table. Not where rows may move to another
        partition: an UPDATE of many tables meets them there once more (seen on 5.7.29)."""
        moves = self.definition.partitioned and self.kind == "update"
        return self.by_hash and self.decision.key is None and not moves

    @property
    def can_be_undone(self) -> bool:
        """Statements that matched too few rows can be rolled back."""
        return traits_of(self.definition).transactional

    def keeps_unique_keys(self, row: Any) -> bool:
        """Whether an update leaves every unique key as it is; only such ones may change places."""
        if self.kind != "update":
            return True
        before, after = row
        for at in self._unique_columns:
            if at in self.after_columns:
                if at not in self.before_columns:
                    return False
                if before[self.before_columns.index(at)] != after[self.after_columns.index(at)]:
                    return False
        return True

    # conditions

    def key_condition(self, image: Image) -> str:
        """The key's columns as in the image; empty without a key."""
        return " AND ".join([condition(image[place]) for place, condition in self._key])

    def rest_condition(self, image: Image) -> str:
        """All other columns as in the image, and the key's byte for byte; empty where nothing is
        left to compare."""
        return " AND ".join([condition(image[place]) for place, condition in self._rest])

    def condition(self, image: Image) -> str:
        """The whole image. One without a local column names no row."""
        return (
            " AND ".join(filter(None, (self.key_condition(image), self.rest_condition(image))))
            or "FALSE"
        )

    def filter(self, rows: Sequence[Any]) -> str:
        """What holds for every row that is one of the images, in a form that an index answers.

        By a key of several columns it is the keys themselves: the first column alone may lead to
        half of the table. Else it is a list of values of one column: the key's, or that with the
        most different values.
        """
        images = [row[0] for row in rows] if self.kind == "update" else rows
        if len(self._key) > 1:
            return f"({' OR '.join(f'({self.key_condition(image)})' for image in images)})"
        best: tuple[int, str, bool, Literal, set[Any]] | None = None
        for place, name, make in self._filters:
            values = {image[place] for image in images}
            has_null = None in values
            values.discard(None)
            if values and (best is None or len(values) > best[0]):
                best = len(values), name, has_null, make, values
            if self._key and best is not None:
                break
        if best is None:
            return "TRUE"
        _, name, has_null, make, values = best
        listed = f"{name} IN ({', '.join(make(value) for value in sorted(values))})"
        return f"({listed} OR {name} IS NULL)" if has_null else listed

    # statements

    def insert(self, images: Sequence[Image], *, replace: bool = False) -> bytes:
        """One INSERT of all images; `replace`: rows in the way are overwritten, as exec mode
        IDEMPOTENT does."""
        rows = ",".join(
            [
                f"({', '.join([make(image[place]) for place, _, make in self._stored])})"
                for image in images
            ]
        )
        verb = "REPLACE" if replace and self.complete else "INSERT"
        sql = f"{verb} INTO {self.name} ({self._names}) VALUES {rows}"
        if replace and not self.complete and self._stored:
            names = [quoted(self.definition.columns[at].name) for _, at, _ in self._stored]
            sql += " ON DUPLICATE KEY UPDATE " + ", ".join(
                f"{name} = VALUES({name})" for name in names
            )
        return sql.encode("utf-8", "surrogateescape")

    def change(
        self, row: Any, count: int = 1, *, key_only: bool = False, only_if: str = ""
    ) -> bytes:
        """Deletes or updates `count` rows: `row` is an image, or the (before, after) pair of an
        update.

        `key_only`: whatever the other columns hold. `only_if` is a condition on the session that
        must hold, too.
        """
        before = row[0] if self.kind == "update" else row
        where = self.key_condition(before) if key_only else self.condition(before)
        where = f"{only_if} AND {where}" if only_if else where
        where += "" if key_only else self._exact_first(before)
        if self.kind == "update":
            sql = (
                f"UPDATE {self.name}{self._hint()} SET {self._assignments(*row)} WHERE {where}"
                f" LIMIT {count}"
            )
        else:
            sql = f"DELETE FROM {self.name} WHERE {where} LIMIT {count}"
        return sql.encode("utf-8", "surrogateescape")

    def count_images(self, needed: Sequence[tuple[Any, int]]) -> bytes:
        """One scan that sets @binlag_found to the number of images that the table holds exactly as
        often as needed."""
        cases = self._cases([row for row, _ in needed])
        counts = " ".join(f"WHEN {at} THEN {count}" for at, (_, count) in enumerate(needed))
        where = self.filter([row for row, _ in needed])
        counted = (
            f"SELECT CASE {cases} END AS `image`, COUNT(*) AS `found` FROM {self.name} WHERE"
            f" {where} GROUP BY 1"
        )
        wanted = (
            f"SELECT COUNT(*) FROM ({counted}) AS `counted` WHERE `found` = CASE `image`"
            f" {counts} END"
        )
        return f"SET @binlag_found = ({wanted})".encode("utf-8", "surrogateescape")

    def change_all(self, rows: Sequence[Any], only_if: str) -> bytes:
        """One scan that changes every row of the table that is one of the images, which must differ
        from each other.

        Which image a row is gets decided before anything is set: SET alone would see the values
        that it has set already. Big unsigned numbers say that they are: 5.6 takes them for negative
        where a CASE has small ones too.
        """
        if self.kind == "delete":
            images = " OR ".join(f"({self.condition(image)})" for image in rows)
            which = f"{only_if} AND {self.filter(rows)} AND ({images})"
            return f"DELETE FROM {self.name} WHERE {which}".encode("utf-8", "surrogateescape")
        numbers = " UNION ALL ".join(
            ["SELECT 0 AS `image`", *(f"SELECT {at}" for at in range(1, len(rows)))]
        )
        assignments = [f"{name} = {name}" for name in self._kept]
        for place, at, make in self._stored:
            column = self.definition.columns[at]
            form = (
                "CAST({} AS UNSIGNED)"
                if (column.unsigned and "int" in column.type) or column.type in ("bit", "set")
                else "{}"
            )
            values = " ".join(
                f"WHEN {number} THEN {form.format(self._value(pair, place, at, make))}"
                for number, pair in enumerate(rows)
            )
            assignments.append(f"{quoted(column.name)} = CASE `binlag`.`image` {values} END")
        return (
            f"UPDATE {self.name} STRAIGHT_JOIN ({numbers}) AS `binlag` ON `binlag`.`image` = CASE"
            f" {self._cases(rows)} END SET {', '.join(assignments)} WHERE {only_if} AND"
            f" {self.filter(rows)}"
        ).encode("utf-8", "surrogateescape")

    # pieces

    def _exact_first(self, image: Image) -> str:
        """Of rows that all equal the image, the one that is the image goes first."""
        if self.decision.key_class in ("primary", "unique"):
            return ""
        orders = ", ".join(filter(None, (order(image[place]) for place, order in self._exact)))
        return f" ORDER BY {orders}" if orders else ""

    def _computed(self, key: Key) -> list[int]:
        """The columns that a unique key's generated columns or expressions may be made of: all of
        them."""
        generated = key.is_functional or any(
            self.definition.columns[at].generated for at in key.columns
        )
        return list(range(len(self.definition.columns))) if generated else []

    def _cases(self, rows: Sequence[Any]) -> str:
        """Which image a row is: WHEN ... THEN its number."""
        images = [row[0] for row in rows] if self.kind == "update" else rows
        return " ".join(
            f"WHEN {self.condition(image)} THEN {at}" for at, image in enumerate(images)
        )

    def _assignments(self, before: Image, after: Image) -> str:
        pairs = [
            f"{quoted(self.definition.columns[at].name)} ="
            f" {self._value((before, after), place, at, make)}"
            for place, at, make in self._stored
        ]
        if not pairs:
            name = next(
                quoted(column.name)
                for column in self.definition.columns
                if column.generated is None
            )
            pairs = [f"{name} = {name}"]
        return ", ".join([*(f"{name} = {name}" for name in self._kept), *pairs])

    def _value(self, pair: tuple[Image, Image], place: int, at: int, make: Literal) -> str:
        before, after = pair
        value = after[place]
        if not isinstance(value, JsonDiff):
            return make(value)
        if at in self.before_columns:
            return make(value.apply(before[self.before_columns.index(at)] or b""))
        return diff_expression(self.definition.columns[at], value, self._rules_version)

    def _hint(self) -> str:
        key = self.decision.key
        return "" if key is None else f" FORCE INDEX ({quoted(key.name)})"
