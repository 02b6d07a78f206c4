"""Where a replay stands, kept on the target itself: one row, written in the transaction that it
speaks of.

    binlag.slave_relay_log_info: the server's own columns, then binlag_gtids, binlag_transactions,
    binlag_state

It is the row that a replica keeps in `mysql`; the channel is the name of the replay. What a server
keeps elsewhere is in the columns behind. What the row says and what the tables hold cannot differ,
whatever was killed. `binlag_state` is JSON: the XA transactions that are prepared, the databases
that this replay filled, a mark by which the file is known again, and the DDL that is about to run.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from applier.binlog.header import EventFlag
from applier.binlog.reader import open_log
from applier.error_codes import Code
from applier.errors import InputError, ReplicationError
from applier.mysql.client.connection import Server
from applier.mysql.client.session_state import hex_literal
from applier.mysql.feed import UNKNOWN
from applier.sources import log_name
from checkpoints.info import RelayLogInfo
from checkpoints.info_rows import to_row
from checkpoints.position import Position

SCHEMA = "binlag"
TABLE = "`binlag`.`slave_relay_log_info`"
COLUMNS = (
    "Relay_log_name", "Relay_log_pos", "Master_log_name", "Master_log_pos", "binlag_gtids",
    "binlag_transactions", "binlag_state",
)  # fmt: skip
"""What is written; the name of the replay is in Channel_name."""
OWN_COLUMNS = ("binlag_gtids", "binlag_transactions", "binlag_state")
INFO_VERSION = "9.7"
"""Whose columns the table has, on every target: 5.6 knows no channels."""
OLD_TABLE = "`binlag`.`position`"
"""Where the row was in older versions; it is taken over from there."""
DONE_TABLE = "`binlag`.`done`"
CREATE = (
    "CREATE DATABASE IF NOT EXISTS `binlag`",
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
_SAFE = re.compile(r"[ !\"#$%&()*+,./0-9:;<=>?A-Z_a-z-]*")
"""Characters of the same byte in every character set that a session may have."""
MARK_BYTES = 64
LOCK_SECONDS = 60
MOST_WORKERS = 64
"""The server may still be busy with the last text of a run that was killed; its session holds the
lock until that is over."""


@dataclass(frozen=True, slots=True)
class DdlMarker:
    """Written before a DDL statement, which commits by itself: where it stands, and what its tables
    looked like."""

    file: str
    offset: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A row. `pending` maps the identifier of a prepared XA transaction to where it begins;
    `loaded` is False until --schema is in."""

    replay: str
    file: str = ""
    offset: int = 0
    source: Position = UNKNOWN
    """The same place in the source's log: another one where the log is a relay log."""
    gtids: str = ""
    transactions: int = 0
    log_bytes: int = 0
    """Of the log's transactions up to here, since this is counted."""
    pending: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    databases: frozenset[str] = frozenset()
    mark: str = ""
    ddl: DdlMarker | None = None
    loaded: bool = True

    @property
    def position(self) -> Position | None:
        """Where to go on; None before the first transaction."""
        return Position(self.file, self.offset) if self.file else None

    @property
    def is_untouched(self) -> bool:
        """Whether neither a dump nor a transaction has got into the server."""
        return not self.file and not self.databases

    @property
    def onwards(self) -> str:
        """Where the replay goes on, in words."""
        return "from the beginning" if self.position is None else f"after {self.position}"

    def state(self) -> str:
        """JSON in ASCII."""
        ddl = self.ddl
        content: dict[str, Any] = {
            "databases": sorted(self.databases),
            "mark": self.mark,
            "loaded": self.loaded,
            "bytes": self.log_bytes,
        }
        if self.pending:
            content["pending"] = {xid: list(place) for xid, place in self.pending.items()}
        if ddl is not None:
            content["ddl"] = [ddl.file, ddl.offset, ddl.fingerprint]
        return json.dumps(content, separators=(",", ":"))

    def update(self) -> bytes:
        """The statement that writes it."""
        assignments = ",".join(
            f"`{name}`={value}" for name, value in zip(COLUMNS, self._values(), strict=True)
        )
        which = f"`Channel_name`={text_literal(self.replay)}"
        return f"UPDATE {TABLE} SET {assignments} WHERE {which}".encode()

    def insert(self) -> bytes:
        """The statement that writes the row for the first time. The columns that say nothing of a
        replay are as a server begins with."""
        fresh = to_row(RelayLogInfo(channel_name=self.replay), INFO_VERSION)
        row = {name: literal(value) for name, value in fresh.items()} | dict(
            zip(COLUMNS, self._values(), strict=True)
        )
        names = ",".join(f"`{name}`" for name in row)
        return f"INSERT INTO {TABLE} ({names}) VALUES ({','.join(row.values())})".encode()

    def _values(self) -> tuple[str, ...]:
        """Of COLUMNS, as literals."""
        return (
            text_literal(self.file),
            str(self.offset),
            text_literal(self.source.file),
            str(self.source.offset),
            text_literal(self.gtids),
            str(self.transactions),
            text_literal(self.state()),
        )


def literal(value: str | bytes | float | None) -> str:
    """A cell of an info table as a literal of any session."""
    if isinstance(value, bytes):
        return hex_literal(value) if value else "''"
    return (
        "NULL" if value is None else text_literal(value) if isinstance(value, str) else str(value)
    )


def text_literal(text: str) -> str:
    """A literal that means the same under every SQL mode and character set of the session: swe7,
    too, has other letters in the place of braces and brackets."""
    raw = text.encode("utf-8", "surrogateescape")
    return f"_latin1'{text}'" if _SAFE.fullmatch(text) else hex_literal(raw)


def read_checkpoint(server: Server, replay: str) -> Checkpoint | None:
    """The row of a replay; None when there is none, or no table for it. Raises InputError for a row
    that cannot be read."""
    found = _row(server, TABLE, COLUMNS, f"`Channel_name`={text_literal(replay)}")
    if found is None:
        return _read_old(server, replay)
    file, offset, source_file, source_offset, *rest = found
    return _checkpoint(
        TABLE, replay, file, offset, Position(source_file, int(source_offset)), *rest
    )


def checkpoints_of(server: Server) -> list[Checkpoint]:
    """All replays of a server, by name."""
    homes = ((TABLE, "Channel_name"), (OLD_TABLE, "replay"))
    names = {name for table, column in homes for (name,) in _rows(server, table, (column,))}
    found = [read_checkpoint(server, name) for name in sorted(names)]
    return [checkpoint for checkpoint in found if checkpoint is not None]


def _read_old(server: Server, replay: str) -> Checkpoint | None:
    """As binlag kept it before. Where that is in the source's log was not kept."""
    found = _row(
        server,
        OLD_TABLE,
        ("file", "offset", "gtids", "transactions", "state"),
        f"`replay`={text_literal(replay)}",
    )
    return (
        None
        if found is None
        else _checkpoint(OLD_TABLE, replay, found[0], found[1], UNKNOWN, *found[2:])
    )


def _row(server: Server, table: str, columns: Sequence[str], where: str) -> list[str] | None:
    rows = _rows(server, table, columns, where)
    return rows[0] if rows else None


def _rows(
    server: Server, table: str, columns: Sequence[str], where: str = "TRUE"
) -> list[list[str]]:
    """None where there is no such table."""
    try:
        rows = server.texts(
            f"SELECT {', '.join(f'`{name}`' for name in columns)} FROM {table} WHERE {where}"
        )
    except ReplicationError as error:
        if error.number in NO_SUCH_TABLE:
            return []
        raise
    return [[value or "" for value in row] for row in rows]


def _checkpoint(
    table: str,
    replay: str,
    file: str,
    offset: str,
    source: Position,
    gtids: str,
    transactions: str,
    state: str,
) -> Checkpoint:
    try:
        content = json.loads(state)
        marker = content.get("ddl")
        return Checkpoint(
            replay,
            file,
            int(offset),
            source,
            gtids,
            int(transactions),
            content.get("bytes", 0),
            {xid: (place[0], place[1]) for xid, place in content.get("pending", {}).items()},
            frozenset(content.get("databases", ())),
            content.get("mark", ""),
            None if marker is None else DdlMarker(*marker),
            content.get("loaded", True),
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"the row of {replay!r} in {table} cannot be read: {error}",
            code=Code.REPLAY_ROW,
            hint="delete it to start again",
        ) from None


def create_checkpoint(server: Server, checkpoint: Checkpoint) -> None:
    """Makes the schema, the tables and the row."""
    _create_tables(server)
    server.execute(checkpoint.insert())


def take_over(server: Server, replay: str) -> None:
    """Moves the row of a replay that an older binlag began: it is in one place or in the other."""
    old = _read_old(server, replay)
    if old is None:
        return
    _create_tables(server)
    for statement in (
        b"START TRANSACTION",
        old.insert(),
        f"DELETE FROM {OLD_TABLE} WHERE `replay`={text_literal(replay)}",
        b"COMMIT",
    ):
        server.execute(statement)


def _create_tables(server: Server) -> None:
    # SQLAlchemy takes longer to import than a short replay takes
    from applier.mysql.positions.info_tables import definition

    for statement in (*CREATE, definition(RelayLogInfo, INFO_VERSION, OWN_COLUMNS)):
        server.execute(statement)


def lock_replay(server: Server, replay: str, seconds: int = LOCK_SECONDS) -> None:
    """Keeps a second run of the same replay out, and waits for the end of a killed one. Held until
    the connection ends.

    The sessions of a killed run's workers hold locks of their own: one that the server still works
    for may yet commit.

    Raises InputError when another run goes on.
    """
    if server.value(f"SELECT GET_LOCK('{lock_name(replay)}', {seconds})") != "1":
        raise _is_running(replay)
    free = " AND ".join(
        f"IS_FREE_LOCK('{lock_name(replay, worker)}')" for worker in range(1, MOST_WORKERS + 1)
    )
    for _ in range(seconds * 10 + 1):
        if server.value(f"SELECT {free}") == "1":
            return
        time.sleep(0.1)
    raise _is_running(replay)


def is_locked(server: Server, replay: str) -> bool:
    """Whether a run of the replay is at work."""
    return server.value(f"SELECT IS_FREE_LOCK('{lock_name(replay)}')") == "0"


def lock_worker(server: Server, replay: str, worker: int) -> None:
    """Says that this connection works for the replay; `worker` counts from 1. Raises InputError
    when another connection does."""
    if server.value(f"SELECT GET_LOCK('{lock_name(replay, worker)}', {LOCK_SECONDS})") != "1":
        raise _is_running(replay)


def lock_name(replay: str, worker: int = 0) -> str:
    """The server's lock that the first connection of a replay holds, and each worker."""
    name = "binlag:" + hashlib.sha256(replay.encode()).hexdigest()[:40]
    return f"{name}:{worker}" if worker else name


def _is_running(replay: str) -> InputError:
    return InputError(
        f"the replay {replay!r} is running already on this server",
        code=Code.REPLAY_RUNS,
        hint="wait for its end, or end its session (SHOW PROCESSLIST)",
    )


def replay_id(files: list[str]) -> str:
    """The name of the replay of these files when the user gives none: who wrote them and how they
    are called.

    Raises InputError for files without an event.
    """
    path = Path(files[0])
    log = open_log(path)
    if len(log) < 13:
        raise InputError(
            "the file ends before its first event", code=Code.CUT_OFF, file=path.name, position=4
        )
    server_id = int.from_bytes(log[9:13], "little")
    name = log_name(path)
    stem = name.rpartition(".")[0] or name
    return f"{server_id}-{stem}"[:64]


def mark_of(log: bytes, offset: int) -> str:
    """What a file is known by: its format description, and what stands right before the offset."""
    head = bytearray(log[4 : 4 + int.from_bytes(log[13:17], "little")][:1024])
    if len(head) > 19:
        head[17] &= ~EventFlag.IN_USE & 0xFF
        head[-4:] = (
            b""  # the checksum of a file in use is that of the closed one, but not in all versions
        )
    return hashlib.sha256(bytes(head) + log[max(4, offset - MARK_BYTES) : offset]).hexdigest()[:16]


def check_mark(files: list[str], checkpoint: Checkpoint) -> None:
    """Raises InputError when the file in which the replay stopped is another one than before."""
    for path in map(Path, files):
        if log_name(path) != checkpoint.file:
            continue
        if (
            path.stat().st_size < checkpoint.offset
            or mark_of(open_log(path), checkpoint.offset) != checkpoint.mark
        ):
            raise InputError(
                f"{path.name} is not the file that this replay read before: it comes from another"
                " server, or was written again",
                code=Code.OTHER_FILE,
                file=path.name,
                position=checkpoint.offset,
                hint=(
                    f"give the right file, or another --replay-id than {checkpoint.replay!r} to"
                    " start again"
                ),
            )
