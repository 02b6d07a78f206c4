"""How a server keeps tables open for the workers of its applier, as data: a row for each version.

Counted by Opened_tables, with one transaction of three tables out of 225 to 300 after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class TableCacheRules:
    """`own_tables`: that take a place in each instance of the cache and are not the log's. In a
    9.7.4 with 250 for each instance 235 to 237 of the log's tables stayed open, in a 5.7.29 with
    125 there were 124, in a MariaDB 10.11.18 with 250 there were 249."""

    own_tables: int = 1


_OLD, _NEW = TableCacheRules(), TableCacheRules(own_tables=15)
TABLE_CACHE_RULES = {
    **dict.fromkeys(("5.6", "5.7", "mariadb"), _OLD),
    **dict.fromkeys(("8.0", "8.4", "9.7"), _NEW),
}
"""Version -> its rules. 5.6 is taken to be as 5.7, and 8.0 and 8.4 as 9.7."""


@dataclass(frozen=True, slots=True)
class TableCache:
    """table_open_cache tables in so many instances. MariaDB's workers share one: it begins with
    one, and adds others where threads wait for each other."""

    tables: float = inf
    instances: int = 1

    def tables_of_the_log(self, rules: TableCacheRules) -> float:
        """Those of a log that stay open in an instance."""
        if self.tables == inf:
            return inf
        return max(self.tables // self.instances - rules.own_tables, 1.0)


UNLIMITED = TableCache()
