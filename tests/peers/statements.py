"""Which statements of a script are carried out: those that may change rows or tables of the
script's own databases."""

from __future__ import annotations

import re
from collections.abc import Iterator

_COMMENTS = r"(?:/\*(?!!).*?\*/\s*|--\s[^\n]*\n\s*|#[^\n]*\n\s*)*(?:/\*!\d*\s*)?"
_OBJECTS = r"(user|role|server|tablespace|undo|logfile|resource|event|instance|spatial\s+reference)"
_NOT_SENT = (
    "install", "uninstall",
    rf"(create|alter|drop)\s+(or\s+replace\s+)?(definer\s*=\s*\S+\s+)?{_OBJECTS}", r"rename\s+user",
    "grant", "revoke", r"set\s+(role|default\s+role|password|resource)", "shutdown", "restart",
    "kill", "change", r"start\s+(slave|replica|group|all)", "stop", "reset", "purge", "flush",
    "lock", "unlock", "help", "show", "explain", "describe", r"desc\b", "check", "checksum",
    "cache", r"load\s+index", "handler", "clone", "binlog", "import", r"xa\b", "backup",
    r"create\s+(aggregate\s+)?function\s+\S+\s+returns\s+\w+\s+soname", r"get\s+diag",
    r"analyze\s+format", r"table\s", r"values\s", r"(insert|replace)\s+delayed",
)  # fmt: skip
"""What statements begin with that touch the server itself, accounts, other connections, or nothing
at all. MariaDB may log a delayed insert behind a statement that has changed its row already."""
_SKIP = re.compile(rf"\s*{_COMMENTS}({'|'.join(_NOT_SENT)})", re.IGNORECASE | re.DOTALL)
_SETTINGS = re.compile(
    r"\s*set\b.*(\bglobal\b|\bpersist|sql_log_bin|binlog_format|gtid_|pseudo_|debug|server_id|skip_replication|log_bin|"
    r"transaction_write_set|max_statement_time|max_execution_time|original_|wsrep|sql_slave)",
    re.IGNORECASE | re.DOTALL,
)
"""SET of what the harness depends on."""
_ANYWHERE = re.compile(
    r"\b(sleep|benchmark|get_lock|release_lock|load_file|wait_for_executed_gtid_set|master_gtid_wait|(source|master)_pos_wait)\s*\(|"
    r"into\s+(outfile|dumpfile)|\bmysql\s*\.|performance_schema\s*\.|(data|index)\s+directory|\bsoname\b|@@global\.\w+\s*:?=|@@persist|"
    r"use\s+mysql\b|sys_exec",
    re.IGNORECASE,
)
_READ = re.compile(r"\s*\(*\s*(select|with)\b", re.IGNORECASE)
_READ_WITH_EFFECT = re.compile(
    r"into\s+@|\b(f|fn|func|bug|fun|my)\w*\d*\s*\(|nextval|next\s+value|setval", re.IGNORECASE
)
_NAME = r"(?:`[^`]+`|[\w$]+)(?:\s*\.\s*(?:`[^`]+`|[\w$]+))?"
_DROP = re.compile(
    rf"\s*drop\s+tables?\s+(?:if\s+exists\s+)?({_NAME}(?:\s*,\s*{_NAME})*)\s*(?:cascade|restrict)?\s*",
    re.IGNORECASE,
)
_DROP_DATABASE = re.compile(r"\s*drop\s+(database|schema)\b", re.IGNORECASE)
DROPPED_OF = 4
"""One DROP TABLE of so many is carried out, and every second DROP DATABASE."""


def is_sent(sql: str) -> bool:
    """Whether a statement is carried out."""
    if _SKIP.match(sql) or _SETTINGS.match(sql) or _ANYWHERE.search(sql):
        return False
    return not _READ.match(sql) or _READ_WITH_EFFECT.search(sql) is not None


def kept_aside(statements: list[str]) -> Iterator[tuple[str, list[str]]]:
    """(statement, what is tried instead of it). Scripts drop what they made; most tables are
    renamed, so that rows are left to compare."""
    has_temporary = any(re.search(r"\btemporary\b", sql, re.IGNORECASE) for sql in statements)
    dropped = databases = 0
    for sql in statements:
        match = None if has_temporary else _DROP.fullmatch(sql)
        if match is not None:
            dropped += 1
            yield sql, list(_renames(match[1], dropped)) if dropped % DROPPED_OF else []
        else:
            databases += _DROP_DATABASE.match(sql) is not None
            if not _DROP_DATABASE.match(sql) or databases % 2 == 0:
                yield sql, []


def _renames(names: str, number: int) -> Iterator[str]:
    for at, name in enumerate(re.findall(_NAME, names)):
        database, dot, table = name.strip().rpartition(".")
        plain = re.sub(r"\W", "", table, flags=re.ASCII)[:40]
        yield f"RENAME TABLE {name} TO {database}{dot}zz{number}_{at}_{plain}"
