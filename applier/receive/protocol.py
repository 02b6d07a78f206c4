"""What a replica says to its source before and while it receives: who it is, what it can read, and
from where on.

The order is the server's (get_master_version_and_clock, register_slave_on_master and request_dump,
sql/rpl_replica.cc 9.7). User variables have their old and their new name set together: a source
looks for the one it knows. MariaDB has two of its own: what its replica understands, and the GTIDs
to go on behind (sql/slave.cc 10.11).
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass

from applier.error_codes import Code
from applier.errors import InputError, ReplicationError, UsageError
from applier.mysql.client.connection import Server, lost, said_well
from applier.mysql.client.driver import COMMAND, pymysql
from applier.mysql.client.url import Endpoint
from applier.receive.dump_stream import PACKET_HEAD, DumpStream
from checkpoints.gtid import GtidSet, MariadbGtidSet
from checkpoints.position import Position

NON_BLOCKING = 1
"""Flag of a dump: the source ends it instead of waiting for more (sql/rpl_constants.h)."""
SEND_ANNOTATIONS = 2
"""MariaDB's flag: annotate rows events come, too (BINLOG_SEND_ANNOTATE_ROWS_EVENT)."""
MARIADB_CAPABILITY = 4
"""GTID events as they are, and holes in the log (MARIA_SLAVE_CAPABILITY_MINE)."""
UNKNOWN_VARIABLE = 1193
REPORT_HOST = b"binlag"
_MAX_OFFSET = (1 << 32) - 1
_NO_PRIVILEGE = frozenset({1044, 1045, 1142, 1227})
_ERROR, _END, _SHORT_PACKET = 0xFF, 0xFE, 8
"""First bytes of packets; the end of a dump is one with fewer bytes behind it."""
BEGINNING_BYTES = 1 << 17
"""Of a long event; a statement's own text begins within the first 2^16 bytes and some."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the replica is. Both must be unique among all replicas of a source: it ends the older
    dump of two with the same."""

    server_id: int
    uuid: str


@dataclass(frozen=True, slots=True)
class SourceServer:
    """Who the source is. `uuid` is None for MariaDB; `checksum` is 1 for CRC32, 0 for none, what it
    writes now and will send."""

    version: str
    is_mariadb: bool
    server_id: int
    uuid: str | None
    checksum: int
    clock_difference_seconds: int
    """Own clock less the source's (clock_diff_with_source)."""
    gtid_mode: str


def greet(server: Server, own: Identity, heartbeat_seconds: float) -> SourceServer:
    """Asks the source who it is and tells it what the replica understands. Raises ReplicationError
    1593 for one that is ourselves."""
    clock = int(server.value("SELECT UNIX_TIMESTAMP()") or 0)
    difference = int(time.time()) - clock
    server_id = int(server.value("SELECT @@GLOBAL.server_id") or 0)
    if server_id == own.server_id:
        raise ReplicationError(
            1593,
            f"the source and this replica have the same server id, {server_id}",
            hint="give another one with --server-id; each server of a replication needs its own",
        )
    uuid = None if server.is_mariadb else _variable(server, "server_uuid")
    if uuid is not None and uuid == own.uuid:
        raise ReplicationError(
            1593,
            f"the source and this replica have the same server UUID, {uuid}",
            hint="remove auto.cnf from the folder of the relay logs: it was copied from the source",
        )
    for name, value in (
        ("heartbeat_period", str(int(heartbeat_seconds * 10**9))),
        ("binlog_checksum", "@@GLOBAL.binlog_checksum"),
    ):
        _tell(server, f"SET @master_{name} = {value}, @source_{name} = {value}")
    checksum = 1 if (server.value("SELECT @master_binlog_checksum") or "").upper() == "CRC32" else 0
    if server.is_mariadb:
        server.execute(f"SET @mariadb_slave_capability = {MARIADB_CAPABILITY}")
    else:
        server.execute(f"SET @slave_uuid = '{own.uuid}', @replica_uuid = '{own.uuid}'")
    gtid_mode = "" if server.is_mariadb else (_variable(server, "gtid_mode") or "OFF")
    return SourceServer(
        server.version, server.is_mariadb, server_id, uuid, checksum, difference, gtid_mode
    )


def _variable(server: Server, name: str) -> str | None:
    try:
        return server.value(f"SELECT @@GLOBAL.{name}")
    except ReplicationError as error:
        if error.number == UNKNOWN_VARIABLE:
            return None
        raise


def _tell(server: Server, sql: str) -> None:
    """What a source is too old to know is not there: events have had checksums since 5.6."""
    try:
        server.execute(sql)
    except ReplicationError as error:
        if error.number != UNKNOWN_VARIABLE:
            raise


def register(server: Server, own: Identity) -> None:
    """COM_REGISTER_SLAVE: from now on SHOW REPLICAS lists us. Raises InputError when the account
    may not replicate."""
    host = bytes([len(REPORT_HOST)]) + REPORT_HOST
    payload = struct.pack("<I", own.server_id) + host + b"\0\0" + struct.pack("<HII", 0, 0, 0)
    try:
        server.driver.command(COMMAND.COM_REGISTER_SLAVE, payload)
        server.driver.acknowledgement()
    except pymysql.err.MySQLError as error:
        if error.args and error.args[0] in _NO_PRIVILEGE:
            user = server.endpoint.user
            raise InputError(
                f"{server.endpoint}: {user} may not replicate: {error.args[-1]}",
                code=Code.NO_PRIVILEGE,
                hint=f"GRANT REPLICATION SLAVE ON *.* TO {user} there",
            ) from None
        with said_well(server.endpoint):
            raise


@dataclass(frozen=True, slots=True)
class Request:
    """A dump command: its code and what follows it."""

    command: int
    payload: bytes


def dump_from(position: Position, own: Identity, *, flags: int) -> Request:
    """COM_BINLOG_DUMP: from a place in the source's log on; an empty file name stands for the
    oldest one.

    Raises UsageError for a position beyond 4 GiB.
    """
    if position.offset > _MAX_OFFSET:
        raise UsageError(
            f"the position {position} is beyond 4 GiB, which the command for a dump by position"
            " cannot say",
            code=Code.OPTION_VALUE,
            hint="receive with --auto-position into a new folder",
        )
    return Request(
        COMMAND.COM_BINLOG_DUMP,
        struct.pack("<IHI", position.offset, flags, own.server_id) + position.file.encode(),
    )


def dump_without(gtids: GtidSet, own: Identity, *, flags: int) -> Request:
    """COM_BINLOG_DUMP_GTID: all transactions but these."""
    encoded = gtids.encode()
    return Request(
        COMMAND.COM_BINLOG_DUMP_GTID,
        struct.pack("<HIIQI", flags, own.server_id, 0, 4, len(encoded)) + encoded,
    )


def dump_behind(server: Server, gtids: MariadbGtidSet, own: Identity, *, flags: int) -> Request:
    """MariaDB's: the state goes into a variable, and the dump names no place."""
    server.execute(
        f"SET @slave_connect_state = '{gtids}', @slave_gtid_strict_mode = 0,"
        " @slave_gtid_ignore_duplicates = 0"
    )
    return dump_from(Position("", 4), own, flags=flags)


class Dump:
    """The events that a source sends, each as the bytes that stand in its log."""

    def __init__(self, endpoint: Endpoint, stream: DumpStream) -> None:
        self._endpoint = endpoint
        self._stream = stream
        self.buffer = stream.buffer
        """What has come and was not taken yet."""
        self.has_ended = False
        """The source has ended the dump."""

    @classmethod
    def begin(cls, server: Server, request: Request, timeout_seconds: float) -> Dump:
        """Asks for it. `timeout_seconds` without a byte count as a lost connection: an idle source
        sends heartbeats."""
        with said_well(server.endpoint):
            server.driver.command(request.command, request.payload)
        return cls(server.endpoint, DumpStream(server.socket, timeout_seconds))

    def fill(self) -> None:
        """Waits for more bytes. Raises ServerLost."""
        reason = "the source ended it"
        try:
            if self._stream.fill():
                return
        except OSError as error:
            reason = str(error)
        raise lost(self._endpoint, reason)

    def event(self) -> bytes | None:
        """Takes the next event out of the buffer; None where it has not come to its end, and at the
        end of the dump.

        Raises ReplicationError for what the source complains of (1236).
        """
        packet = self.buffer.packet()
        if packet is None:
            return None
        first, data = packet
        if first == _ERROR:
            with said_well(self._endpoint):
                pymysql.err.raise_mysql_exception(bytes([first]) + data)
        self.has_ended = first == _END and len(data) < _SHORT_PACKET
        return None if self.has_ended else data

    def beginning(self) -> bytes | None:
        """That of the next event, where it does not fit into the buffer, which is full; it is not
        taken. None where there is no such event."""
        buffer = self.buffer
        start = buffer.start + PACKET_HEAD
        if not buffer.is_full or buffer.memory[start] or buffer.has_packet:
            return None
        return bytes(buffer.memory[start + 1 : min(buffer.end, start + 1 + BEGINNING_BYTES)])

    def pieces(self) -> Iterator[memoryview]:
        """Takes the next event as it comes; a piece is gone when the next one is asked for. Raises
        ServerLost."""
        pieces = self.buffer.pieces(self.fill)
        yield next(pieces)[1:]
        yield from pieces

    def has_more(self) -> bool:
        """More bytes have come already, so the next event is not waited for."""
        return self._stream.has_more()


def interrupt(server: Server) -> None:
    """Ends what the connection waits for, from a signal handler or another thread; what it waited
    for is a lost connection then."""
    sock = server.socket
    if sock is not None:
        try:
            with socket.socket(fileno=os.dup(sock.fileno())) as same:  # below TLS and compression
                same.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # the other side was faster
