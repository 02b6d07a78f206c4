"""Which CHECK constraints a table has.

They are not evaluated: what they refuse is not in the log. But IGNORE leaves out the rows that they
refuse, so that statements with it are refused on such a table (`tables/dml/row_writer.py`). Hence a
constraint of which it is not known whether it went is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import replace

from applier.tables.definitions.altered_columns import names_in, rename_in
from lookup.table import Check

_MADE_UP = re.compile(r"(?i).*_chk_\d+|CONSTRAINT_\d+")
"""Names that MySQL and MariaDB give a constraint that has none."""


def without(checks: list[Check], name: str, *, mariadb: bool, is_there: bool) -> list[Check]:
    """After DROP CONSTRAINT. Of those whose names servers made up it is known which one goes where
    there is only one. `is_there`: without IF EXISTS."""
    gone = [check for check in checks if check.name.lower() == name.lower()]
    if not gone and is_there and _MADE_UP.fullmatch(name):
        unnamed = [check for check in checks if not (check.name or (mariadb and check.column))]
        gone = unnamed if len(unnamed) == 1 else []
    return [check for check in checks if check not in gone]


def with_enforcement(checks: list[Check], name: str, *, enforced: bool) -> list[Check]:
    """After ALTER CHECK name [NOT] ENFORCED. Where servers made the names up, and it is not known
    which constraint is meant, none is let go and all are enforced."""
    named = [check for check in checks if check.name.lower() == name.lower()]
    if not named and _MADE_UP.fullmatch(name):
        unnamed = [check for check in checks if not check.name]
        named = unnamed if enforced or len(unnamed) == 1 else []
    return [replace(check, enforced=enforced) if check in named else check for check in checks]


def without_columns(checks: list[Check], dropped: Set[str]) -> list[Check]:
    """After DROP COLUMN: servers let a column go whose constraints need no other one."""
    return [check for check in checks if not dropped & names_in(check.expression)]


def without_own(checks: list[Check], column: str) -> list[Check]:
    """MariaDB: what stood behind a column goes when it is defined anew."""
    return [check for check in checks if check.column.lower() != column.lower()]


def renamed(check: Check, names: Mapping[str, str]) -> Check:
    """By the new names of columns, `names`: old one in lower case -> new one."""
    column = names.get(check.column.lower(), check.column)
    return replace(check, expression=rename_in(check.expression, names), column=column)
