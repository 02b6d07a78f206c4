"""What keeps a replay off a server that is not a test server, and off data that is not its own."""

from __future__ import annotations

from applier.error_codes import Code
from applier.errors import UsageError
from applier.mysql.client.connection import Server
from applier.mysql.client.dialect import TargetDialect

SYSTEM_SCHEMAS = frozenset({"mysql", "sys", "performance_schema", "information_schema", "binlag"})
FORCE_HINT = "replay into a test server, or give --force when you are sure"


class ReadOnly(UsageError):
    """The target takes no changes."""


def check_target(server: Server, dialect: TargetDialect, *, force: bool) -> None:
    """Raises UsageError for a server that others depend on or that takes no changes."""
    if dialect.is_on("super_read_only") or (dialect.is_on("read_only") and not _may_write(server)):
        raise ReadOnly(
            f"{server.endpoint} is read-only",
            code=Code.NOT_A_TEST_SERVER,
            hint="SET GLOBAL read_only=0 on it if it is a test server",
        )
    if force:
        return
    replicas = _replicas(server)
    if replicas:
        raise UsageError(
            f"{server.endpoint} is a source: {replicas} read its binary log",
            code=Code.NOT_A_TEST_SERVER,
            hint=FORCE_HINT,
        )


def _may_write(server: Server) -> bool:
    grants = " ".join(text or "" for (text,) in server.texts("SHOW GRANTS"))
    return any(
        word in grants
        for word in ("SUPER", "ALL PRIVILEGES ON *.*", "CONNECTION_ADMIN", "READ_ONLY ADMIN")
    )


def _replicas(server: Server) -> str:
    """Who reads the binary log, in words; empty for nobody."""
    sessions = [
        row for row in server.texts("SHOW PROCESSLIST") if (row[4] or "").startswith("Binlog Dump")
    ]
    return (
        f"{len(sessions)} replica{'s' * (len(sessions) != 1)} or"
        f" receiver{'s' * (len(sessions) != 1)}"
        if sessions
        else ""
    )


def holds_data(server: Server, database: str) -> bool:
    """Whether a database has any table."""
    name = database.encode("utf-8", "surrogateescape").hex()
    return bool(
        server.query(
            f"SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA=CONVERT(X'{name}' USING"
            " utf8) LIMIT 1"
        )
    )


def foreign_data(server: Server, database: str) -> UsageError:
    """The error for a database that holds data which is not from this replay."""
    return UsageError(
        f"the database {database!r} on {server.endpoint} already holds tables that are not from"
        " this replay",
        code=Code.FOREIGN_TABLES,
        hint=(
            "drop it, load the data before the log with --schema FILE.sql, or give --force to"
            " replay onto what is there"
        ),
    )
