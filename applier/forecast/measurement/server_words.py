"""What a version calls the parts of replication that a measurement needs."""

from __future__ import annotations

from applier.replica.scheduling import LOGICAL_CLOCK
from applier.replica.scheduling import rules_for as scheduling_of
from lookup.versions import ServerRules

OLD_WORDS = {
    "STOP REPLICA": "STOP SLAVE", "RESET REPLICA ALL": "RESET SLAVE ALL",
    "START REPLICA SQL_THREAD": "START SLAVE SQL_THREAD",
    "CHANGE REPLICATION SOURCE TO SOURCE_HOST": "CHANGE MASTER TO MASTER_HOST",
    "SHOW REPLICA STATUS": "SHOW SLAVE STATUS",
}  # fmt: skip
"""Words of 8.0.23 and later -> those before."""
_THREADS = (
    "SELECT thread_os_id FROM performance_schema.threads WHERE name IN"
    " ('thread/sql/replica_worker', 'thread/sql/replica_sql', 'thread/sql/slave_worker',"
    " 'thread/sql/slave_sql') ORDER BY name LIKE '%worker' DESC LIMIT 1"
)
_MARIADB_THREADS = (
    "SELECT tid FROM information_schema.PROCESSLIST WHERE command IN ('Slave_worker', 'Slave_SQL')"
    " ORDER BY command = 'Slave_worker' DESC LIMIT 1"
)
"""Its performance schema is off by default."""


class ServerWords:
    """The words of one version."""

    def __init__(self, rules: ServerRules) -> None:
        self.is_mariadb = rules.name == "mariadb"
        self.is_old = rules.source_word == "master"
        self.source_log = (
            "MASTER_LOG_FILE = 'binlog.000001', MASTER_LOG_POS = 4, " if self.is_mariadb else ""
        )
        """What CHANGE MASTER must say of the source's log: a worker of MariaDB 10.11.18 takes its
        name apart at the dot, and the server crashes where it has none (compare_log_names)."""
        self.applier_thread = _MARIADB_THREADS if self.is_mariadb else _THREADS
        """A query for the thread of the operating system that changes rows."""
        known = scheduling_of(rules.name)
        self.parallel_type = (
            LOGICAL_CLOCK if LOGICAL_CLOCK in known.parallel_types else known.parallel_type
        )
        """How cells of several workers hand transactions out."""
        self.marks_independence = LOGICAL_CLOCK in known.parallel_types or self.is_mariadb
        """A log can say that its transactions may go beside each other."""

    def __call__(self, statement: str) -> str:
        """A statement in today's words, as this version writes it."""
        for word, old in OLD_WORDS.items() if self.is_old else ():
            statement = statement.replace(word, old)
        return statement

    def workers(self, number: int) -> dict[str, str]:
        """The variables for so many workers; for fewer than two one thread does all."""
        several = {"slave_parallel_type": self.parallel_type} if number > 1 else {}
        if self.is_mariadb:
            several = {"slave_parallel_mode": self.parallel_type} if number > 1 else {}
            return several | {"slave_parallel_threads": str(number if number > 1 else 0)}
        if self.is_old:
            return several | {"slave_parallel_workers": str(number if number > 1 else 0)}
        return {"replica_parallel_workers": str(max(number, 1))}


def position(gtids: str) -> str:
    """The statement that sets what a MariaDB has applied."""
    return f"SET GLOBAL gtid_slave_pos = {literal(gtids)}"


def literal(value: str) -> str:
    """A value as a statement has it."""
    return value if value.isdigit() else "'" + value.replace("'", "''") + "'"
