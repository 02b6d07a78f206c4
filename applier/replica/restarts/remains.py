"""What a replica that crashed left in a folder, read and never written: relay logs, info files,
option files, its own binary logs.

The folder is a copy of what lay in the data directory, or that directory itself. What options say
is taken from there where it can be: the version from the head of a relay log, the repositories from
the files that are there, the rest from my.cnf.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from applier.binlog.header import HEADER_LENGTH, MAGIC, EventType, parse_format_description
from applier.error_codes import Code
from applier.errors import InputError, UsageError, cannot_read
from applier.replica.configuration import TABLE, ReplicaConfiguration
from applier.replica.restarts.info_dump import InfoDump
from applier.replica.restarts.option_file import option_file
from checkpoints.errors import CheckpointError
from checkpoints.info import R, RelayLogInfo, SourceInfo
from checkpoints.info_files import parse
from checkpoints.info_rows import from_row

OPTION_FILE, OWN_FILE = "my.cnf", "auto.cnf"
INFO_FILE = re.compile(r"(relay-log|master)\.info|worker-relay-log\.info\.\d+")
_INDEX = ".index"


@dataclass(frozen=True)
class Remains:
    """`files` are the relay logs with what belongs to them, and the info files; `rows` those of the
    info tables."""

    files: dict[str, bytes]
    relay_log: str
    """The base name of the relay logs."""
    options: dict[str, str]
    """Of the option file."""
    own_logs: dict[str, bytes]
    """The replica's own binary logs."""
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    server_uuid: str | None = None

    @property
    def server(self) -> str | None:
        """The version that wrote the newest relay log with a whole head, or else such a binary log
        of the replica's; None where none says it."""
        relay_logs = {
            name: data
            for name, data in self.files.items()
            if name.rpartition(".")[2].isdigit() and INFO_FILE.fullmatch(name) is None
        }
        newest_first = (
            logs[name]
            for logs in (relay_logs, self.own_logs)
            for name in sorted(logs, reverse=True)
        )
        return next(filter(None, map(_version, newest_first)), None)

    @property
    def has_gtids(self) -> bool:
        """Whether a transaction of the relay logs has a GTID."""
        types = {EventType.GTID, EventType.GTID_TAGGED}
        return any(
            not types.isdisjoint(_types(data))
            for name, data in self.files.items()
            if name.startswith(f"{self.relay_log}.")
        )

    def has(self, record: type[R]) -> bool:
        """Whether there is such a record, in a table or in a file, be it damaged."""
        return bool(self.rows.get(record.fields.table)) or record.fields.file_name in self.files

    def check_records(self, configuration: ReplicaConfiguration) -> None:
        """Where no rows of info tables were given. Raises UsageError where the server keeps its
        records there."""
        unknown = [
            f"mysql.{record.fields.table}"
            for record, repository in (
                (RelayLogInfo, configuration.relay_log_info_repository),
                (SourceInfo, configuration.master_info_repository),
            )
            if repository == TABLE and record.fields.file_name not in self.files
        ]
        if unknown:
            raise UsageError(
                f"the positions are in {' and '.join(unknown)}, which the files do not show",
                code=Code.OPTION_MISSING,
                hint="give --info FILE.sql: mysqldump mysql slave_relay_log_info slave_master_info"
                " slave_worker_info",
            )

    def record(self, record: type[R], version: str) -> R | None:
        """A record as the crash left it, from the table or else from the file; None where it is not
        there or cannot be read."""
        found = self.rows.get(record.fields.table)
        data = self.files.get(record.fields.file_name)
        try:
            if found:
                return from_row(record, found[0], version)
            return (
                parse(record, data, version, file=record.fields.file_name, as_server=True).record
                if data
                else None
            )
        except CheckpointError:
            return None


def read_remains(
    folder: Path,
    dump: InfoDump | None = None,
    option_path: Path | None = None,
    relay_log: str | None = None,
    channel: str = "",
) -> Remains:
    """`relay_log`: that option of the server, where it is not as in the option file. Raises
    InputError where there is no folder, no trace of relay logs, or a file that cannot be read."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder", code=Code.NO_REPLICA)
    try:
        indexes = {
            path.name.removesuffix(_INDEX): _listed(path)
            for path in sorted(folder.glob("*" + _INDEX))
        }
        option_path = option_path or folder / OPTION_FILE
        options = (
            option_file(option_path.read_text("utf-8", "surrogateescape"), str(option_path))
            if option_path.is_file()
            else {}
        )
        option = relay_log or options.get("relay_log")
        base = (
            Path(option).stem + (f"-{channel.lower()}" if channel else "")
            if option
            else _base_of(indexes, folder, dump)
        )
        files = {
            path.name: path.read_bytes()
            for path in sorted(folder.iterdir())
            if path.is_file() and _belongs(path.name, base)
        }
        files = {
            name: (
                _local(data, base) if name.endswith((_INDEX, ".info")) or ".info." in name else data
            )
            for name, data in files.items()
        }
        _refuse_named_connections(folder, files)
        own = next(
            (
                names
                for name, names in indexes.items()
                if name != base and all((folder / one).is_file() for one in names)
            ),
            [],
        )
        own_file = folder / OWN_FILE
        uuid = re.search(
            r"server-uuid\s*=\s*([0-9a-f-]{36})", own_file.read_text() if own_file.is_file() else ""
        )
        own_logs = {name: (folder / name).read_bytes() for name in own}
    except OSError as error:
        raise cannot_read(error) from None
    rows = (
        {}
        if dump is None
        else {
            table: [_with_local_names(row) for row in found] for table, found in dump.rows.items()
        }
    )
    return Remains(files, base, options, own_logs, rows, uuid[1] if uuid else None)


def _refuse_named_connections(folder: Path, files: Mapping[str, bytes]) -> None:
    """Those of MariaDB have records and relay logs with their name in them."""
    named = sorted(path.name for path in folder.glob("master-*.info"))
    if named and SourceInfo.fields.file_name not in files:
        raise InputError(
            f"{folder} holds the records of named connections: {', '.join(named)}",
            code=Code.NO_REPLICA,
            hint=(
                "copy those of one connection into a folder as master.info and relay-log.info, with"
                " its relay logs and their index"
            ),
        )


def _listed(index: Path) -> list[str]:
    return [
        Path(line).name for line in index.read_text("utf-8", "surrogateescape").splitlines() if line
    ]


def _base_of(indexes: Mapping[str, list[str]], folder: Path, dump: InfoDump | None) -> str:
    """The index with the applier's relay log, or else the name of that, or else the index whose
    name says so, or else the only one."""
    rows = dump.rows.get(RelayLogInfo.fields.table, []) if dump is not None else []
    applied = {Path(str(row.get("Relay_log_name", ""))).name for row in rows}
    info = folder / RelayLogInfo.fields.file_name
    if info.is_file():
        applied |= {
            Path(line).name
            for line in info.read_text("utf-8", "surrogateescape").splitlines()[:2]
            if line
        }
    known = [base for base, names in indexes.items() if applied & set(names)]
    numbered = {name.rpartition(".")[0] for name in applied if re.search(r".\.\d{6,}$", name)}
    named = [base for base in indexes if "relay" in base]
    for found in (known, list(numbered), named, list(indexes)):
        if len(found) == 1:
            return found[0]
    raise InputError(
        f"{folder} holds {'several indexes' if indexes else 'no index'} of relay logs",
        code=Code.NO_REPLICA,
        hint="copy the relay logs and their .index file of the crashed server into one folder",
    )


def _belongs(name: str, base: str) -> bool:
    return (
        INFO_FILE.fullmatch(name) is not None
        or re.fullmatch(re.escape(base) + r"\.(\d+|index|index_crash_safe|~rec~)", name) is not None
    )


def _local(data: bytes, base: str) -> bytes:
    """The names of relay logs that lay in a folder of their own, as they are where they lie now."""
    return re.sub(
        rb"^[^\n]*/(?=" + re.escape(base).encode() + rb"\.\d+$)", b"./", data, flags=re.MULTILINE
    )


def _with_local_names(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: (
            f"./{Path(value).name}" if name.lower().endswith("relay_log_name") and value else value
        )
        for name, value in row.items()
    }


def _version(content: bytes) -> str | None:
    at = len(MAGIC)
    length = int.from_bytes(content[at + 9 : at + 13], "little")
    if (
        len(content) < at + max(length, HEADER_LENGTH)
        or content[at + 4] != EventType.FORMAT_DESCRIPTION
    ):
        return None
    try:
        return parse_format_description(content[at + HEADER_LENGTH : at + length]).server_version
    except InputError:
        return None


def _types(content: bytes) -> set[int]:
    found, at = set(), len(MAGIC)
    while at + HEADER_LENGTH <= len(content):
        found.add(content[at + 4])
        at += max(HEADER_LENGTH, int.from_bytes(content[at + 9 : at + 13], "little"))
    return found
