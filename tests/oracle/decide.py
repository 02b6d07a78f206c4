"""Which key and which algorithm, step by step as the server's source has it (facts on 5.6, 5.7,
8.0, 8.4/9.7, MariaDB 10.11)."""

from __future__ import annotations

from collections.abc import Callable

from lookup.table import Key, TableDefinition
from lookup.versions import ServerRules

INDEX, TABLE, HASH = "I", "T", "H"


def primary_key(definition: TableDefinition) -> Key | None:
    """PRIMARY, or the first unique key that is not nullable, without prefix: the server makes that
    one primary."""
    keys = definition.sorted_keys
    for key in keys:
        if key.name == "PRIMARY":
            return key
    for key in keys:
        if (
            key.unique
            and not nullable(definition, key)
            and all(part.prefix is None for part in key.parts)
        ):
            return key
    return None


def nullable(definition: TableDefinition, key: Key) -> bool:
    return any(definition.columns[column].nullable for column in key.columns)


def key_columns(definition: TableDefinition, key: Key) -> set[int]:
    """All parts that InnoDB's key really has."""
    columns = set(key.columns)
    primary = primary_key(definition)
    if definition.engine == "InnoDB" and not key.unique and primary is not None:
        columns |= set(primary.columns)
    return columns


def search_key(
    definition: TableDefinition, image: set[int], rules: ServerRules, classes: str
) -> Key | None:
    """`search_key_in_table`. `classes` out of "P" primary, "U" unique, "K" other."""
    primary = primary_key(definition)
    if "P" in classes and primary is not None and key_columns(definition, primary) <= image:
        return primary
    if "U" in classes and rules.name != "5.6":
        for key in definition.sorted_keys:
            if key is primary or not key.unique or nullable(definition, key):
                continue
            if not key.visible and rules.name in ("8.0", "8.4", "9.7"):
                continue
            if key_columns(definition, key) <= image:
                return key
    if "K" in classes:
        for key in definition.sorted_keys:
            if key is primary or (key.unique and not nullable(definition, key)):
                continue
            if key.kind == "fulltext" or not key.enabled:
                continue
            if not key.visible and rules.name in ("8.0", "8.4", "9.7"):
                continue
            if key_columns(definition, key) <= image:
                return key
    return None


def decide(
    definition: TableDefinition,
    image: set[int],
    rules: ServerRules,
    row_search: frozenset[str] | None,
    rows_per_value: Callable[[Key], float],
) -> tuple[str, Key | None]:
    if rules.name == "mariadb":
        return decide_mariadb(definition, rows_per_value)
    if rules.name in ("8.4", "9.7") or row_search is None:
        row_search = frozenset(
            {"INDEX_SCAN", "TABLE_SCAN"}
            if rules.name in ("5.6", "5.7")
            else {"INDEX_SCAN", "HASH_SCAN"}
        )
    if "INDEX_SCAN" in row_search:
        key = search_key(definition, image, rules, "PU")
        if key is not None:
            return INDEX, key
    if "HASH_SCAN" in row_search:
        return HASH, search_key(definition, image, rules, "PUK")
    if "INDEX_SCAN" in row_search:
        key = search_key(definition, image, rules, "PUK")
        if key is not None:
            return INDEX, key
    return TABLE, None


def decide_mariadb(
    definition: TableDefinition, rows_per_value: Callable[[Key], float]
) -> tuple[str, Key | None]:
    """`find_key`: the image is not looked at."""
    best: Key | None = None
    best_rows = 0.0
    for key in definition.sorted_keys:
        if not key.enabled:
            continue
        if key.unique and not nullable(definition, key):
            return INDEX, key
        if key.kind == "fulltext":
            continue
        rows = rows_per_value(key)
        if best is None or 0 < rows < best_rows:
            best, best_rows = key, rows
    return (TABLE, None) if best is None else (INDEX, best)
