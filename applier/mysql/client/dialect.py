"""What the target understands: its session variables, its collations, and which events its BINLOG
statement takes.

A difference between versions is a column here or a variable that the server has or has not; nowhere
else is a version looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

from applier.mysql.client.connection import Server
from lookup.versions import HASH_SCAN, RULES


@dataclass(frozen=True, slots=True)
class Accepted:
    """A row of the table: what one server version takes (sql/sql_binlog.cc `check_event_type`;
    facts of 5.6 to 9.7, MariaDB 10.11)."""

    rows_v1: bool = True
    """Rows events in the form of 5.1 to 5.5 and MariaDB; 8.4 and later know them no more."""
    exec_mode: bool = True
    """Has rbr_exec_mode, which SHOW VARIABLES does not show."""
    applier_mode: str = "pseudo_slave_mode"
    """The variable that says a session carries out another server's log: old SQL modes and such are
    let through."""


ACCEPTED: dict[str, Accepted] = {
    "5.6": Accepted(exec_mode=False),
    "5.7": Accepted(),
    "8.0": Accepted(),
    "8.4": Accepted(rows_v1=False, applier_mode="pseudo_replica_mode"),
    "9.7": Accepted(rows_v1=False, applier_mode="pseudo_replica_mode"),
    "mariadb": Accepted(exec_mode=False),
}

GENERATED_KEYS = "sql_generate_invisible_primary_key"


@dataclass(frozen=True, slots=True)
class TargetDialect:
    """One server as it answered when it was asked."""

    accepted: Accepted
    variables: dict[str, str]
    """Its session variables and their values at the start."""
    collations: dict[int, tuple[str, str]]
    """Number -> name and character set."""
    is_mariadb: bool
    hashes: bool = False
    """Whether it reads a table without a usable key once for each rows event, not once for each
    row."""

    @classmethod
    def of(cls, server: Server) -> TargetDialect:
        """Asks the server. Raises ReplicationError."""
        variables = {
            name or "": value or "" for name, value in server.texts("SHOW SESSION VARIABLES")
        }
        known = server.texts(
            "SELECT ID, COLLATION_NAME, CHARACTER_SET_NAME FROM information_schema.COLLATIONS"
        )
        collations = {
            int(number): (name, charset or "") for number, name, charset in known if number and name
        }
        rules, chosen = RULES[server.rules_version], variables.get("slave_rows_search_algorithms")
        hashes = (
            HASH_SCAN in (chosen.split(",") if chosen else rules.row_search) and not rules.find_row
        )
        return cls(ACCEPTED[server.rules_version], variables, collations, server.is_mariadb, hashes)

    def is_on(self, variable: str) -> bool:
        """Whether a variable of the session is on; False for one that the server does not have."""
        return self.variables.get(variable, "").upper() in ("ON", "1", "TRUE")


def without_generated_keys(server: Server, dialect: TargetDialect) -> None:
    """A replica makes tables as they are in the log, whatever this variable says (9.7.4).

    Raises ReplicationError where the session may not change it.
    """
    if dialect.is_on(GENERATED_KEYS):
        server.execute(f"SET @@session.{GENERATED_KEYS}=0")
