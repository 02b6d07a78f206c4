"""How many pages of indexes a server has split, by its own count.

The model of `index_fill` gives the splits of a log within a factor of two, and a price is made of
what a cell really asked for.
"""

from __future__ import annotations

from applier.forecast.prices.units import PLACE, Amounts
from applier.mysql.client.connection import Server

_COUNTER = "index_page_splits"
_WHERE = f"FROM information_schema.INNODB_METRICS WHERE NAME = '{_COUNTER}'"
_START = f"SET GLOBAL innodb_monitor_enable = '{_COUNTER}'"
_STOP = f"SET GLOBAL innodb_monitor_disable = '{_COUNTER}'"


def counting(server: Server, *, mariadb: bool) -> tuple[list[str], list[str]]:
    """Statements that make the server count, and that stop it again; none where it does already."""
    return ([], []) if is_counting(server, mariadb=mariadb) else ([_START], [_STOP])


def is_counting(server: Server, *, mariadb: bool) -> bool:
    """Whether the server counts already; by default it does not."""
    column = "ENABLED" if mariadb else "STATUS = 'enabled'"
    return server.value(f"SELECT {column} {_WHERE}") == "1"


def page_splits(server: Server) -> int:
    """Since it began to count."""
    return int(str(server.value(f"SELECT COUNT {_WHERE}")))


def with_splits(amounts: Amounts, splits: float) -> Amounts:
    """The amounts with so many leaves split."""
    place = PLACE["leaf split"]
    return (*amounts[:place], splits, *amounts[place + 1 :])
