"""Options of a server as my.cnf gives them, for an emulated replica: which of them count, and what
their values mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from applier.error_codes import Code
from applier.errors import InputError, UsageError

SECTIONS = re.compile(r"mysqld(-\d+\.\d+)?|server|mysqld_safe")
_TRUE, _FALSE = (
    {"", "1", "ON", "TRUE", "YES", "ON_PERMISSIVE"},
    {
        "0",
        "OFF",
        "FALSE",
        "NO",
        "OFF_PERMISSIVE",
    },
)
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _switch(text: str) -> bool:
    word = text.upper()
    if word not in _TRUE | _FALSE:
        raise ValueError("is neither ON nor OFF")
    return word in _TRUE


def _number(text: str) -> int:
    found = re.fullmatch(r"(\d+)([KMG]?)", text.strip().upper())
    if found is None:
        raise ValueError("is not a number")
    return int(found[1]) * _UNITS.get(found[2], 1)


def _given(_text: str) -> bool:
    return True


_KINDS: dict[str, Callable[[str], Any]] = {
    "relay_log_recovery": _switch,
    "relay_log_purge": _switch,
    "gtid_mode": _switch,
    "replicate_same_server_id": _switch,
    "preserve_commit_order": _switch,
    "log_replica_updates": _switch,
    "log_bin": _given,
    "relay_log": str,
    "relay_log_info_repository": str,
    "master_info_repository": str,
    "parallel_type": str,
    "workers": _number,
    "checkpoint_group": _number,
    "server_id": _number,
    "max_relay_log_size": _number,
    "relay_log_space_limit": _number,
    "sync_relay_log": _number,
    "sync_relay_log_info": _number,
    "sync_master_info": _number,
    "sync_binlog": _number,
    "innodb_flush_log_at_trx_commit": _number,
}
"""Option of a ReplicaConfiguration -> what a text means. Others of a server do not matter here."""
_OWN = {
    "parallel_workers": "workers",
    "parallel_type": "parallel_type",
    "preserve_commit_order": "preserve_commit_order",
    "checkpoint_group": "checkpoint_group",
}
_NAMES = {f"{word}_{name}": own for name, own in _OWN.items() for word in ("slave", "replica")} | {
    "log_slave_updates": "log_replica_updates",
    "sync_source_info": "sync_master_info",
    "slave_parallel_threads": "workers",
    "slave_parallel_mode": "parallel_type",
}


KNOWN = frozenset(_KINDS) | frozenset(_NAMES)
"""The names that count, today's and old ones."""


def option_file(text: str, name: str = "my.cnf") -> dict[str, str]:
    """The options of a server's sections, by name with underscores; the last one of a name holds.
    !include is not followed.

    Raises InputError for an option before the first section, as the server's programs refuse it
    (my_load_defaults): that is no such file.
    """
    found: dict[str, str] = {}
    is_ours: bool | None = None
    for number, line in enumerate((raw.strip() for raw in text.splitlines()), 1):
        if is_ours is None and line and line[0] not in "#;![":
            raise InputError(
                f"line {number}: an option stands before the first section",
                code=Code.CONFIGURATION,
                file=name,
                hint="give the server's option file, in which [mysqld] stands above its options",
            )
        if line.startswith("["):
            is_ours = SECTIONS.fullmatch(line.strip("[] ").lower()) is not None
        elif is_ours and line and line[0] not in "#;!":
            option, _, value = line.partition("=")
            found[_normal(option)] = value.partition(" #")[0].strip().strip("\"'")
    return found


def configured(options: Mapping[str, str]) -> dict[str, Any]:
    """What of a server's options a ReplicaConfiguration takes. Raises UsageError for a value that
    means nothing."""
    found: dict[str, Any] = {}
    for given, text in options.items():
        name = _normal(given)
        is_off = name.startswith("skip_")
        name = _NAMES.get(name.removeprefix("skip_"), name.removeprefix("skip_"))
        if name not in _KINDS:
            continue
        try:
            found[name] = False if is_off else _KINDS[name](text)
        except ValueError as error:
            raise UsageError(
                f"{given}={text} {error}",
                code=Code.CONFIGURATION,
                hint="give it as the server's option file does",
            ) from None
    return found


def is_known(name: str) -> bool:
    """Whether an option of a server counts here."""
    name = _normal(name).removeprefix("skip_")
    return _NAMES.get(name, name) in _KINDS


def _normal(name: str) -> str:
    return name.strip().lower().replace("-", "_").removeprefix("loose_")
