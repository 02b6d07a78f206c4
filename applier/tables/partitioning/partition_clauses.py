"""Clauses that name or change a table's partitions: PARTITION (…) of a statement, and those of
ALTER TABLE."""

from __future__ import annotations

from dataclasses import dataclass, replace

from applier.errors import InputError, ReplicationError
from applier.tables.partitioning.partitions import (
    Partition,
    Partitioning,
    Place,
    not_exact,
    read_partitioning,
    read_partitions,
)
from applier.tables.sql.sql_text import Lexis, Parser
from lookup.table import TableDefinition


@dataclass
class PartitionChange:
    """What the partition clause of an ALTER TABLE does. `after`: None where the table has no
    partitions then, or they are not known."""

    before: Partitioning | None
    after: Partitioning | None
    emptied: frozenset[Place] = frozenset()
    exchanged: tuple[Place, tuple[str, str]] | None = None
    """A partition, and the table that it changes places with."""


def partitioning_of(definition: TableDefinition, lexis: Lexis) -> Partitioning | None:
    """None for a table without partitions, and for one whose partitions are not known."""
    text = definition.options.get("PARTITION")
    if not definition.partitioned or not text:
        return None
    try:
        return read_partitioning(Parser(text, lexis))
    except InputError:
        return None


class PartitionClause:
    """Reads one partition clause behind its first word. Raises ReplicationError 1235 where
    partitions are not known that it names."""

    def __init__(self, definition: TableDefinition, parser: Parser, database: str) -> None:
        self.definition = definition
        self.parser = parser
        self.database = database
        self.before = partitioning_of(definition, parser.lexis)

    def read(self, word: str) -> PartitionChange:
        """`word`: DROP, TRUNCATE, ADD, COALESCE, REORGANIZE or EXCHANGE; the parser stands behind
        PARTITION."""
        if word in ("DROP", "TRUNCATE", "EXCHANGE") and self.before is None:
            raise not_exact(self.definition, f"ALTER TABLE … {word} PARTITION")
        change = PartitionChange(self.before, self.before)
        if self.before is not None:
            getattr(self, f"_{word.lower()}")(change, self.before)
        self.parser.skip_until()
        return change

    def places(self) -> frozenset[Place]:
        """The partitions and subpartitions that are listed at the cursor. Raises ReplicationError
        1735 for one that the table does not have."""
        if self.before is None:
            raise not_exact(self.definition, "PARTITION (…)")
        before = self.before
        return frozenset(self._place_or_sub(before, name) for name in self._listed())

    def _named(self, before: Partitioning) -> list[int]:
        return [self._place(before, name) for name in self._listed()]

    def _place_or_sub(self, before: Partitioning, name: str) -> Place:
        for at, names in enumerate(before.sub_names if before.sub else []):
            for below, own in enumerate(names):
                if own.lower() == name.lower():
                    return at, below
        return self._place(before, name)

    def _place(self, before: Partitioning, name: str) -> int:
        at = before.index(name)
        if at is None:
            raise ReplicationError(
                1735,
                f"Unknown partition '{name}' in table '{self.definition.name}'",
                table=self.definition.full_name,
            )
        return at

    def _drop(self, change: PartitionChange, before: Partitioning) -> None:
        if self.parser.accept("IF", "EXISTS"):
            names = [name for name in self._listed() if before.index(name) is not None]
            change.emptied = frozenset(self._place(before, name) for name in names)
        else:
            change.emptied = frozenset(self._named(before))
        change.after = replace(
            before,
            parts=tuple(part for at, part in enumerate(before.parts) if at not in change.emptied),
        )

    def _listed(self) -> list[str]:
        names = [self.parser.name()]
        while self.parser.accept(","):
            names.append(self.parser.name())
        return names

    def _truncate(self, change: PartitionChange, before: Partitioning) -> None:
        every = self.parser.accept("ALL")
        names = [part.name for part in before.parts] if every else self._listed()
        change.emptied = frozenset(self._place_or_sub(before, name) for name in names)

    def _add(self, change: PartitionChange, before: Partitioning) -> None:
        self.parser.accept("IF", "NOT", "EXISTS")
        self.parser.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
        if self.parser.accept("PARTITIONS"):
            new = tuple(
                Partition(f"p{len(before.parts) + at}") for at in range(self.parser.integer())
            )
        else:
            new = tuple(
                part for part in read_partitions(self.parser) if before.index(part.name) is None
            )
        change.after = replace(before, parts=before.parts + new)

    def _coalesce(self, change: PartitionChange, before: Partitioning) -> None:
        self.parser.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
        change.after = replace(
            before, parts=before.parts[: len(before.parts) - self.parser.integer()]
        )

    def _reorganize(self, change: PartitionChange, before: Partitioning) -> None:
        self.parser.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
        if self.parser.done:
            return
        places = self._named(before)
        self.parser.expect("INTO")
        new = read_partitions(self.parser)
        first, last = min(places), max(places)
        change.after = replace(before, parts=before.parts[:first] + new + before.parts[last + 1 :])

    def _exchange(self, change: PartitionChange, before: Partitioning) -> None:
        at = self._place_or_sub(before, self.parser.name())
        self.parser.expect("WITH", "TABLE")
        change.exchanged = at, self.parser.table_name(self.database)
