"""Where a replay stands, kept on the target itself: one row, written in the transaction that it speaks of.

    binlag.position: replay, file, offset, gtids, transactions, state

What the row says and what the tables hold cannot differ, whatever was killed. `state` is JSON: the XA transactions that are prepared,
the databases that this replay filled, a mark by which the file is known again, and the DDL that is about to run.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from applier.binlog.header import EventFlag
from applier.binlog.reader import open_log
from applier.error_codes import Code
from applier.errors import InputError, ReplicationError
from applier.mysql.connection import Server
from applier.mysql.session_state import hex_literal
from checkpoints.position import Position

SCHEMA = "binlag"
TABLE = "`binlag`.`position`"
DONE_TABLE = "`binlag`.`done`"
CREATE = (
    "CREATE DATABASE IF NOT EXISTS `binlag`",
    f"""CREATE TABLE IF NOT EXISTS {TABLE} (
  `replay` VARCHAR(64) CHARACTER SET utf8 COLLATE utf8_bin NOT NULL PRIMARY KEY,
  `file` VARCHAR(512) CHARACTER SET utf8 NOT NULL,
  `offset` BIGINT UNSIGNED NOT NULL,
  `gtids` LONGTEXT CHARACTER SET ascii NOT NULL,
  `transactions` BIGINT UNSIGNED NOT NULL,
  `state` LONGTEXT CHARACTER SET utf8 NOT NULL
) ENGINE=InnoDB""",
    f"""CREATE TABLE IF NOT EXISTS {DONE_TABLE} (
  `replay` VARCHAR(64) CHARACTER SET utf8 COLLATE utf8_bin NOT NULL,
  `number` BIGINT UNSIGNED NOT NULL,
  `file` VARCHAR(512) CHARACTER SET utf8 NOT NULL,
  `start` BIGINT UNSIGNED NOT NULL,
  `end` BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (`replay`, `number`)
) ENGINE=InnoDB""",
)
NO_SUCH_TABLE = frozenset({1049, 1146})
MARK_BYTES = 64
LOCK_SECONDS = 60
MOST_WORKERS = 64
"""The server may still be busy with the last text of a run that was killed; its session holds the lock until that is over."""


@dataclass(frozen=True, slots=True)
class DdlMarker:
    """Written before a DDL statement, which commits by itself: where it stands, and what its tables looked like."""

    file: str
    offset: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A row. `pending` maps the identifier of a prepared XA transaction to where it begins; `loaded` is False until --schema is in."""

    replay: str
    file: str = ""
    offset: int = 0
    gtids: str = ""
    transactions: int = 0
    pending: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    databases: frozenset[str] = frozenset()
    mark: str = ""
    ddl: DdlMarker | None = None
    loaded: bool = True

    @property
    def position(self) -> Position | None:
        """Where to go on; None before the first transaction."""
        return Position(self.file, self.offset) if self.file else None

    def state(self) -> str:
        """JSON in ASCII."""
        ddl = self.ddl
        content: dict[str, Any] = {"databases": sorted(self.databases), "mark": self.mark, "loaded": self.loaded}
        if self.pending:
            content["pending"] = {xid: list(place) for xid, place in self.pending.items()}
        if ddl is not None:
            content["ddl"] = [ddl.file, ddl.offset, ddl.fingerprint]
        return json.dumps(content, separators=(",", ":"))

    def update(self) -> bytes:
        """The statement that writes it."""
        pairs = (
            ("file", text_literal(self.file)),
            ("offset", str(self.offset)),
            ("gtids", text_literal(self.gtids)),
            ("transactions", str(self.transactions)),
            ("state", text_literal(self.state())),
        )
        assignments = ",".join(f"`{name}`={value}" for name, value in pairs)
        return f"UPDATE {TABLE} SET {assignments} WHERE `replay`={text_literal(self.replay)}".encode()

    def insert(self) -> bytes:
        """The statement that writes the row for the first time."""
        values = (
            text_literal(self.replay),
            text_literal(self.file),
            str(self.offset),
            text_literal(self.gtids),
            str(self.transactions),
            text_literal(self.state()),
        )
        return f"INSERT INTO {TABLE} VALUES ({','.join(values)})".encode()


def text_literal(text: str) -> str:
    """A literal that means the same under every SQL mode and character set of the session."""
    raw = text.encode("utf-8", "surrogateescape")
    safe = all(32 <= byte < 127 and byte not in b"'\\" for byte in raw)
    return f"'{text}'" if safe else hex_literal(raw)


def read_checkpoint(server: Server, replay: str) -> Checkpoint | None:
    """The row of a replay; None when there is none, or no table for it. Raises InputError for a row that cannot be read."""
    columns = "`file`, `offset`, `gtids`, `transactions`, `state`"
    try:
        rows = server.texts(f"SELECT {columns} FROM {TABLE} WHERE `replay`={text_literal(replay)}")
    except ReplicationError as error:
        if error.number in NO_SUCH_TABLE:
            return None
        raise
    if not rows:
        return None
    file, offset, gtids, transactions, state = (value or "" for value in rows[0])
    try:
        content = json.loads(state)
        marker = content.get("ddl")
        return Checkpoint(
            replay,
            file,
            int(offset),
            gtids,
            int(transactions),
            {xid: (place[0], place[1]) for xid, place in content.get("pending", {}).items()},
            frozenset(content.get("databases", ())),
            content.get("mark", ""),
            None if marker is None else DdlMarker(*marker),
            content.get("loaded", True),
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"the row of {replay!r} in {TABLE} cannot be read: {error}", code=Code.REPLAY_ROW, hint="delete it to start anew"
        ) from None


def create_checkpoint(server: Server, checkpoint: Checkpoint) -> None:
    """Makes the schema, the table and the row."""
    for statement in CREATE:
        server.execute(statement)
    server.execute(checkpoint.insert())


def lock_replay(server: Server, replay: str, seconds: int = LOCK_SECONDS) -> None:
    """Keeps a second run of the same replay out, and waits for the end of a killed one. Held until the connection ends.

    The sessions of a killed run's workers hold locks of their own: one that the server still works for may yet commit.

    Raises InputError when another run goes on.
    """
    if server.value(f"SELECT GET_LOCK('{_lock_name(replay)}', {seconds})") != "1":
        raise _is_running(replay)
    free = " AND ".join(f"IS_FREE_LOCK('{_lock_name(replay, worker)}')" for worker in range(1, MOST_WORKERS + 1))
    for _ in range(seconds * 10 + 1):
        if server.value(f"SELECT {free}") == "1":
            return
        time.sleep(0.1)
    raise _is_running(replay)


def lock_worker(server: Server, replay: str, worker: int) -> None:
    """Says that this connection works for the replay; `worker` counts from 1. Raises InputError when another connection does."""
    if server.value(f"SELECT GET_LOCK('{_lock_name(replay, worker)}', {LOCK_SECONDS})") != "1":
        raise _is_running(replay)


def _lock_name(replay: str, worker: int = 0) -> str:
    name = "binlag:" + hashlib.sha256(replay.encode()).hexdigest()[:40]
    return f"{name}:{worker}" if worker else name


def _is_running(replay: str) -> InputError:
    return InputError(
        f"the replay {replay!r} is running already on this server",
        code=Code.REPLAY_RUNS,
        hint="wait for its end, or end its session (SHOW PROCESSLIST)",
    )


def replay_id(files: list[str]) -> str:
    """The name of the replay of these files when the user gives none: who wrote them and how they are called.

    Raises InputError for files without an event.
    """
    path = Path(files[0])
    log = open_log(path)
    if len(log) < 13:
        raise InputError("the file ends before its first event", code=Code.CUT_OFF, file=path.name, position=4)
    server_id = int.from_bytes(log[9:13], "little")
    stem = path.name.rpartition(".")[0] or path.name
    return f"{server_id}-{stem}"[:64]


def mark_of(log: bytes, offset: int) -> str:
    """What a file is known by: its format description, and what stands right before the offset."""
    head = bytearray(log[4 : 4 + int.from_bytes(log[13:17], "little")][:1024])
    if len(head) > 19:
        head[17] &= ~EventFlag.IN_USE & 0xFF
        head[-4:] = b""  # the checksum of a file in use is that of the closed one, but not in all versions
    return hashlib.sha256(bytes(head) + log[max(4, offset - MARK_BYTES) : offset]).hexdigest()[:16]


def check_mark(files: list[str], checkpoint: Checkpoint) -> None:
    """Raises InputError when the file in which the replay stopped is another one than before."""
    for path in map(Path, files):
        if path.name != checkpoint.file:
            continue
        if path.stat().st_size < checkpoint.offset or mark_of(open_log(path), checkpoint.offset) != checkpoint.mark:
            raise InputError(
                f"{path.name} is not the file that this replay read before: it comes from another server, or was written anew",
                code=Code.OTHER_FILE,
                file=path.name,
                position=checkpoint.offset,
                hint=f"give the right file, or another --replay-id than {checkpoint.replay!r} to start anew",
            )
