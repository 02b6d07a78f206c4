"""MERGE tables: their rows stand in other tables (storage/myisammrg of 5.6 to 9.7 and MariaDB). In
memory they have none."""

from __future__ import annotations

from applier.errors import ReplicationError
from lookup.table import TableDefinition

MERGE_ENGINES = frozenset({"merge", "mrg_myisam"})


def is_merge(definition: TableDefinition) -> bool:
    """Whether the table shows the rows of others; one with an empty UNION has no rows."""
    return definition.engine.lower() in MERGE_ENGINES and bool(
        definition.options.get("UNION", "").strip("() ")
    )


def refuse_merge(definition: TableDefinition) -> None:
    """Raises ReplicationError 1235 for a MERGE table, whose rows are asked for or changed."""
    if is_merge(definition):
        raise ReplicationError(
            1235,
            f"{definition.full_name} is a MERGE table, whose rows stand in other tables; that is"
            " not supported in memory",
            table=definition.full_name,
            hint=(
                "leave the table out with --exclude-table, skip the statement with --skip-errors"
                " 1235, or replay into a test DB"
            ),
        )
