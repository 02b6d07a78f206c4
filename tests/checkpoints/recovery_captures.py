"""What real 5.6.24 and 5.7.29 replicas left behind at every step of 60 scenarios: info files, rows
of the info tables, relay logs.

They are committed as one archive, tests/captures/recovery.tar.xz (its README.md tells how they came
about), unpacked for a run; BINLAG_CAPTURES names a folder that holds recovery/ instead.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from checkpoints.info import RelayLogInfo, SourceInfo, WorkerInfo
from tests.captures_support import CAPTURES

ARCHIVE = Path(__file__).parent.parent / "captures" / "recovery.tar.xz"
SERVERS = {"my56": "5.6", "my57": "5.7"}
RECORDS = {
    "relay-log.info": RelayLogInfo,
    "master.info": SourceInfo,
    "worker-relay-log.info": WorkerInfo,
}
TABLES = {record.fields.table: record for record in RECORDS.values()}
NUMBERS = frozenset(
    "Number_of_lines Relay_log_pos Master_log_pos Sql_delay Number_of_workers Id Port "
    "Connect_retry Enabled_ssl Ssl_verify_server_cert "
    "Retry_count Enabled_auto_position Checkpoint_relay_log_pos Checkpoint_master_log_pos "
    "Checkpoint_seqno Checkpoint_group_size".split()
)
COLUMNS_OF_A_WORKER = (
    "Id Relay_log_name Relay_log_pos Master_log_name Master_log_pos Checkpoint_relay_log_name "
    "Checkpoint_relay_log_pos "
    "Checkpoint_master_log_name Checkpoint_master_log_pos Checkpoint_seqno Checkpoint_group_size "
    "Checkpoint_group_bitmap "
    "Channel_name".split()
)
_UNUSED_WORKER = re.compile(
    r"-- row \d+: Id (\d+), all other fields empty or 0, Checkpoint_group_size (\d+)"
)
_UNPACKED: list[tempfile.TemporaryDirectory[str]] = []
"""Keeps the unpacked folder until the process ends."""


@functools.cache
def folder() -> Path:
    """Where the captures are; unpacked once a process."""
    if (CAPTURES / "recovery").is_dir():
        return CAPTURES / "recovery"
    _UNPACKED.append(tempfile.TemporaryDirectory(prefix="binlag-recovery-"))
    with tarfile.open(ARCHIVE) as archive:
        # Debian 12's extractall has no filter yet
        for member in filter(tarfile.TarInfo.isfile, archive):
            path = Path(_UNPACKED[0].name) / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            content = archive.extractfile(member)
            assert content is not None
            path.write_bytes(content.read())
    return Path(_UNPACKED[0].name) / "recovery"


def scenarios() -> list[Path]:
    """The folders of the scenarios: my56_file_mts4_gtid_ap0_rec0, …"""
    return sorted(path.parent for path in folder().glob("*/transcript.md"))


def version(scenario: Path) -> str:
    return SERVERS[scenario.name[:4]]


def info_files() -> Iterator[tuple[type, str, Path]]:
    """Every raw info file: the record in it, the server's version, its path."""
    for scenario in scenarios():
        for path in sorted((scenario / "raw").glob("*.info*")):
            name = re.sub(r"\.\d+\Z", "", path.name.split(".", 1)[1])
            yield RECORDS[name], version(scenario), path


def files_after_kill() -> Iterator[tuple[type, str, bytes]]:
    """The info files that kill -9 left behind under load."""
    for path in sorted((folder() / "crash").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            for name, text in json.loads(line)["after_kill"].items():
                if name in RECORDS and text is not None:
                    yield RECORDS[name], SERVERS[path.name[:4]], text.encode("latin-1")


def shown_workers() -> Iterator[tuple[str, bytes]]:
    """The worker files that stand in the transcripts as text."""
    for scenario in scenarios():
        for shown in re.findall(
            r"^file worker-relay-log.info.\d+ \(\d+ bytes\), python repr\n```\n(.*)\n```",
            text_of(scenario),
            re.M,
        ):
            yield version(scenario), ast.literal_eval(shown)


def text_of(scenario: Path) -> str:
    return (scenario / "transcript.md").read_text()


def rows() -> Iterator[tuple[type, str, dict[str, Any]]]:
    """Every row of the info tables in the transcripts, typed as a client sees it."""
    for scenario in scenarios():
        for table, text in re.findall(
            r"^mysql\.(slave_\w+)\n```\n(.*?)\n```", text_of(scenario), re.M | re.S
        ):
            for row in re.split(r"\n(?=-- row)", text):
                if row.startswith("-- row"):
                    yield TABLES[table], version(scenario), row_of(row, version(scenario))


def row_of(text: str, server: str) -> dict[str, Any]:
    unused = _UNUSED_WORKER.match(text)
    if unused:
        columns = COLUMNS_OF_A_WORKER[: 12 if server == "5.6" else 13]
        row: dict[str, Any] = {column: 0 if column in NUMBERS else "" for column in columns}
        return row | {
            "Id": int(unused[1]),
            "Checkpoint_group_size": int(unused[2]),
            "Checkpoint_group_bitmap": bytes(int(unused[2])),
        }
    return {
        name: _value(name, value.strip())
        for name, value in (line.split(":", 1) for line in text.splitlines()[1:])
    }


def _value(column: str, text: str) -> Any:
    if column == "Checkpoint_group_bitmap":
        digits, size = re.fullmatch(
            r"0x([0-9a-f]*) \((\d+) bytes, trailing zero digits cut\)", text
        ).groups()  # type: ignore[union-attr]
        return bytes.fromhex(digits.ljust(2 * int(size), "0"))
    if column == "Heartbeat":
        return float(text)
    return int(text) if column in NUMBERS else text


def overwritten(old: bytes, new: bytes) -> bytes:
    """An info file after a server wrote `new` over `old`, in place."""
    return new + old[len(new) :]
