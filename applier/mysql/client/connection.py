"""One connection to the target: SQL out, rows and errors back, in the errors' words that the rest
of the replica uses.

SQL goes out as bytes and values come back as bytes, so that no character set of the client stands
between. A text may hold several statements; `send` returns when the server has it, so that the next
one is made while the server works, and `receive` waits for its answers. There is never more than
one text under way: nothing that comes later can be carried out behind a failure.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from applier.error_codes import Code
from applier.errors import BinlagError, InputError, ReplicationError
from applier.mysql.client.driver import CLIENT, COMMAND, CR, DriverConnection, SSCursor, pymysql
from applier.mysql.client.tls import Tls, TlsMode
from applier.mysql.client.url import Endpoint
from applier.server_versions import found_rules

Row = tuple[bytes | None, ...]
UNGUARDED = "SET SESSION sql_safe_updates = 0, sql_big_selects = 1"
"""Guards against careless statements would stop a log's own, which went through on its source."""
NOT_LOGGED = ", sql_log_bin = 0"
CONNECT_SECONDS = 20
NO_TLS = Tls(TlsMode.DISABLED)
"""Over a unix socket."""
LOST = frozenset(
    {
        CR.CR_SERVER_GONE_ERROR,
        CR.CR_SERVER_LOST,
        CR.CR_SERVER_LOST_EXTENDED,
        0,
        1053,
        1077,
        1079,
        1080,
        3169,
        1927,
        4031,
    }
)
"""The connection is no more: the client noticed, or the server said goodbye (shutdown, KILL,
wait_timeout)."""
KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""A network that is cut is noticed after a minute, however long the server works on a statement.
Seconds, seconds, times."""
NOT_REACHED = frozenset(
    {
        CR.CR_CONNECTION_ERROR,
        CR.CR_CONN_HOST_ERROR,
        CR.CR_IPSOCK_ERROR,
        CR.CR_UNKNOWN_HOST,
        CR.CR_SSL_CONNECTION_ERROR,
    }
)
WRONG_ACCOUNT = frozenset({1045, 1698, 1820, 1862, 3118, 1130, 1129, 2059, 2061})
TRANSIENT = frozenset({1205, 1213, 3572})
"""Another session was in the way: lock wait timeout, deadlock, NOWAIT. Says nothing of the
statement, so no skip list holds for it."""
MISSING_PRIVILEGE = frozenset({1044, 1142, 1143, 1227, 1370, 1419})
_GRANT = (
    "grant the account all on the databases of the log and on binlag, and SUPER "
    "(from 8.0 on REPLICATION_APPLIER, SESSION_VARIABLES_ADMIN and SET_ANY_DEFINER)"
)
_OTHER_DATA = (
    "the tables are not as they were on the source: load the dump that belongs to the log"
    " (--schema), or skip with --apply sql"
)
HINTS: dict[int, str] = {
    **dict.fromkeys(MISSING_PRIVILEGE, _GRANT),
    **dict.fromkeys((1032, 1062, 1146, 1049, 1451, 1452), _OTHER_DATA),
    1146: (
        f"{_OTHER_DATA}; where only the case of the name is another, take a target with"
        " lower_case_table_names=1: the source is on Windows or macOS"
    ),
    **dict.fromkeys(
        TRANSIENT,
        "end the session of the target that is in the way, then give the same command again: it"
        " goes on where it ended",
    ),
    1153: "SET GLOBAL max_allowed_packet to more on the target",
    1148: "SET GLOBAL local_infile=1 on the target: the log loads files",
    3948: "SET GLOBAL local_infile=1 on the target: the log loads files",
    1298: "load the time zones into the target: mysql_tzinfo_to_sql",
    1677: (
        "the columns differ from the source's: SET GLOBAL slave_type_conversions"
        " (replica_type_conversions) on the target"
    ),
    1730: "the target is too old for an event of this log: use --apply sql",
}
"""Error number -> what to do next."""
TLS_HINTS = (
    (
        "certificate has expired",
        "the server's certificate is too old: renew it, or accept any with --ssl-mode REQUIRED",
    ),
    (
        "Hostname mismatch",
        "the certificate names another host: use that name in the address, or --ssl-mode VERIFY_CA",
    ),
    (
        "IP address mismatch",
        "the certificate names another host: use that name in the address, or --ssl-mode VERIFY_CA",
    ),
    (
        "certificate verify failed",
        "name the authority that signed the server's certificate with --ssl-ca FILE",
    ),
    (
        "SSL is required",
        "the server does not offer TLS: turn it on there, or use --ssl-mode PREFERRED",
    ),
    (
        "SSL",
        (
            "the server offers a TLS that this machine refuses: use --ssl-mode DISABLED, or its"
            " unix socket"
        ),
    ),
    (
        "TLS",
        (
            "the server offers a TLS that this machine refuses: use --ssl-mode DISABLED, or its"
            " unix socket"
        ),
    ),
)
"""What the driver says of a connection that did not come about -> what to do; the first that
fits."""
ACCOUNT_HINTS = {
    1820: (
        "the password has expired: ALTER USER USER() IDENTIFIED BY … with the server's own client"
        " first"
    ),
    1862: (
        "the password has expired: ALTER USER USER() IDENTIFIED BY … with the server's own client"
        " first"
    ),
    3118: "the account is locked: ALTER USER … ACCOUNT UNLOCK there",
    1130: "the server accepts no account from this host: create an account for it there",
    1129: (
        "the server blocks this host after too many errors: TRUNCATE performance_schema.host_cache"
        " there, or FLUSH HOSTS"
    ),
}
"""Error number of a refused account -> what to do."""
RESUME_HINT = (
    "start the server, then the same command again: it goes on after the last transaction that was"
    " committed"
)


class ServerLost(InputError):
    """The connection ended under way; what was under way may or may not be committed, and the
    position row says which."""

    is_final = False
    """What was under way is of the kind that the position says nothing of, so that somebody has to
    look."""


class NotReached(InputError):
    """No connection came about: nobody listens there, or TLS failed."""


class Server:
    """A connection. `version` is the server's own text, `rules_version` the row of
    `lookup.versions` that holds for it."""

    def __init__(self, driver: DriverConnection, endpoint: Endpoint) -> None:
        self.driver = driver
        """For those who speak another part of the protocol."""
        self.endpoint = endpoint
        self.version = str(driver.get_server_info())  # type: ignore[no-untyped-call]
        self.rules_version = found_rules(self.version, f"the server at {endpoint}").name
        self.counts: list[int] = []
        """Rows that each statement of the last text matched, as far as they were carried out."""
        self.under_way = False
        self.packet_bytes = int(self.value("SELECT @@max_allowed_packet") or 0)

    @property
    def socket(self) -> Any:
        """What the answer to the text under way comes over."""
        return self.driver.socket

    @property
    def number(self) -> int:
        """The server's number of this session: CONNECTION_ID()."""
        return int(self.driver.thread_id())  # type: ignore[no-untyped-call]

    @property
    def lower_case_names(self) -> bool:
        """Whether names that differ in case only are one: lower_case_table_names is not 0."""
        return self.value("SELECT @@lower_case_table_names") != "0"

    @property
    def answered(self) -> int:
        """Statements of the last text that were carried out."""
        return len(self.counts)

    @property
    def is_mariadb(self) -> bool:
        """Whether it is a MariaDB."""
        return self.rules_version == "mariadb"

    def query(self, sql: str | bytes) -> list[Row]:
        """The rows of one statement, every value as the bytes that the server sent, None for
        NULL."""
        self.send(sql)
        self.receive()
        return list(self.driver.rows)

    def texts(self, sql: str | bytes) -> list[tuple[str | None, ...]]:
        """The same as text."""
        return [
            tuple(None if value is None else value.decode("utf-8", "replace") for value in row)
            for row in self.query(sql)
        ]

    def value(self, sql: str | bytes) -> str | None:
        """The first value of the first row as text, None when there is no row."""
        rows = self.texts(sql)
        return rows[0][0] if rows else None

    def stream(self, sql: str) -> Iterator[Row]:
        """The rows of a big result, one after the other. Nothing else can be asked before the last
        one came."""
        with said_well(self.endpoint), self.driver.cursor(SSCursor) as cursor:
            cursor.execute(sql)
            yield from cursor

    def execute(self, sql: str | bytes) -> int:
        """Rows that the statement matched; for several statements, those of the last."""
        self.send(sql)
        counts = self.receive()
        return counts[-1] if counts else 0

    def send(self, sql: str | bytes) -> None:
        """Hands over a text. The answers are `receive`'s."""
        assert not self.under_way, "one text at a time"
        with said_well(self.endpoint):
            self.driver.command(COMMAND.COM_QUERY, sql)
        self.under_way = True

    def receive(self, statements: int = 1) -> list[int]:
        """Rows that each statement of the text matched. Raises at the first that failed; `answered`
        says how many came before it.

        `statements` of them are waited for at least: a BINLOG statement makes the server forget to
        say that more answers follow.
        """
        assert self.under_way, "a text was sent"
        self.under_way = False
        self.counts = counts = []
        with said_well(self.endpoint):
            while True:
                counts.append(self.driver.next_result())
                if len(counts) >= statements and not self.driver.has_more_answers:
                    return counts

    @contextmanager
    def sending_files(self) -> Iterator[None]:
        """The server may ask for a local file only inside this block: LOAD DATA LOCAL."""
        self.driver.allow_files(True)
        try:
            yield
        finally:
            self.driver.allow_files(False)

    def close(self) -> None:
        """Ends the connection; what was not committed is rolled back by the server."""
        with suppress(pymysql.err.Error):  # it was closed already
            self.driver.close()


def connect(endpoint: Endpoint) -> Server:
    """Raises InputError when the server cannot be reached or does not let us in."""
    with said_well(endpoint):
        driver: DriverConnection = _driver(endpoint)(
            host=endpoint.host,
            port=endpoint.port,
            user=endpoint.user,
            password=endpoint.password or "",
            unix_socket=endpoint.socket,
            charset="utf8mb4",
            use_unicode=False,
            conv={},
            autocommit=True,
            init_command=UNGUARDED if endpoint.log_bin else UNGUARDED + NOT_LOGGED,
            connect_timeout=CONNECT_SECONDS,
            client_flag=CLIENT.MULTI_STATEMENTS | CLIENT.FOUND_ROWS,
            local_infile=True,
            **(NO_TLS if endpoint.socket is not None else endpoint.tls).driver_options(),
        )
        driver.allow_files(False)
        if endpoint.socket is None:
            _keep_alive(driver.socket)
        return Server(driver, endpoint)


def _driver(endpoint: Endpoint) -> Callable[..., DriverConnection]:
    """What makes the driver's connection."""
    if endpoint.compression.is_off:
        return DriverConnection
    from applier.mysql.client.compressed_connection import CompressingConnection

    return partial(CompressingConnection, endpoint.compression)


def _keep_alive(stream: Any) -> None:
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE.items():
        if hasattr(socket, name):
            stream.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def first_ready(servers: Sequence[Server]) -> int:
    """Waits until one of several servers has answered all that it was sent; its place among
    them."""
    idle = [place for place, server in enumerate(servers) if not server.under_way]
    if idle:
        return idle[0]
    sockets = [server.socket for server in servers]
    return sockets.index(select.select(sockets, [], [])[0][0])


@contextmanager
def said_well(endpoint: Endpoint) -> Iterator[None]:
    """Turns the driver's errors into ours inside the block. Neither the password nor the SQL is in
    them."""
    try:
        yield
    except pymysql.err.MySQLError as error:
        raise _ours(error, endpoint) from None


def lost(endpoint: Endpoint, reason: str) -> ServerLost:
    """The error for a connection that is no more."""
    return ServerLost(
        f"the connection to {endpoint} was lost: {reason or 'it is closed'}",
        code=Code.CONNECTION_LOST,
        hint=RESUME_HINT,
    )


def _ours(error: pymysql.err.MySQLError, endpoint: Endpoint) -> BinlagError:
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = str(error.args[1]) if len(error.args) > 1 else str(error)
    if number in NOT_REACHED:
        hint = next(
            (hint for words, hint in TLS_HINTS if words in text),
            "check that the server runs and that the address is right",
        )
        return NotReached(f"{endpoint} cannot be reached: {text}", code=Code.NOT_REACHED, hint=hint)
    if number in LOST or isinstance(error, pymysql.err.InterfaceError):
        return lost(endpoint, text)
    if number in WRONG_ACCOUNT:
        return InputError(
            f"{endpoint} refuses the account: {text}",
            code=Code.WRONG_ACCOUNT,
            hint=ACCOUNT_HINTS.get(
                number,
                "set BINLAG_PASSWORD, give --password-file FILE, or name another user; "
                "--ssl-cert and --ssl-key where it needs a certificate",
            ),
        )
    return ReplicationError(number, one_line(text), hint=HINTS.get(number))


def one_line(text: str) -> str:
    """What the server says, without the statement that it quotes from behind the one that
    failed."""
    quoted, behind, _ = text.partition("\n;")
    return " ".join(quoted.split()) + ("'" if behind and quoted.count("'") % 2 else "")
