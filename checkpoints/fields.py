"""The one table of what stands in the replica's info records: each field's name, column, kind, and
the servers that have it.

Three records say where a replica stands: how far it has applied (relay-log.info,
mysql.slave_relay_log_info), how far it has received and from whom (master.info,
mysql.slave_master_info), and how far each worker is (worker-relay-log.info.N,
mysql.slave_worker_info). A server version is a column of this table: newer servers append fields,
none has ever been moved or taken away. Sources: sql/rpl_rli.cc, rpl_mi.cc and rpl_rli_pdb.cc
(write_info, read_info) of 5.6, 5.7 and 8.0; SHOW CREATE TABLE of 5.6.24, 5.7.29 and 9.7.4. "8.0" is
8.0.27 and newer; what older ones of 8.0 wrote is read by its own line count. 8.3.0 took the files
away and changed nothing else; 9.7 changed nothing.

MariaDB has files only. It kept the lines of 5.5 and those of 5.6 that it needs, left the others and
some more empty, and writes what is its own behind them as key=value lines (rpl_mi.cc and rpl_rli.cc
of 10.11, flush_master_info and Relay_log_info::flush; real 10.11.18).

Columns and files keep the old words to this day (Master_log_name); the names here are today's
(source_log_name).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

from checkpoints.errors import CheckpointError
from checkpoints.kinds import (
    ALL_IDS,
    BITMAP,
    BOOLEAN,
    NULLABLE_TEXT,
    SECONDS,
    SERVER_IDS,
    SIGNED,
    TEXT,
    UNSIGNED,
    UNSIGNED_LONG,
    FieldKind,
    enumeration,
    reserved,
)
from lookup.versions import MARIADB, ServerVersion, row_name

MYSQL: Final = ("5.5", "5.6", "5.7", "8.0", "8.4", "9.7")
VERSIONS: Final = (*MYSQL, MARIADB)
END_MARKER: Final = b"END_MARKER"
"""The line behind the key=value lines."""
REFUSED: Final = object()
"""The server does not start when this line is missing."""


@lru_cache
def column_of(server: str) -> str:
    """The column of VERSIONS that describes a server: "8.0.46" is "8.0", "9.9" is "9.7".

    Raises CheckpointError for MySQL 5.1 and older, whose files are their own.
    """
    try:
        column = row_name(VERSIONS, ServerVersion.parse(server))
    except ValueError as error:
        raise CheckpointError(str(error), hint=f"name one from {VERSIONS[0]} on") from None
    if column is None:
        raise CheckpointError(
            f"the info records of {server} are not known",
            hint=f"name a MySQL version from {VERSIONS[0]} on",
        )
    return column


def product(server: str) -> str:
    """The server as a message names it: "MySQL 5.7", "MariaDB"."""
    return "MariaDB" if column_of(server) == MARIADB else f"MySQL {server}"


@dataclass(frozen=True, slots=True)
class Field:
    """One line of a file, one column of a table. A line that is kept free has no name."""

    name: str
    column: str
    kind: FieldKind
    since: str
    missing: Any = REFUSED
    """What the server takes when the file ends before this line (its default, unless that is 0 or a
    null pointer: init_*var_from_file)."""


@dataclass(frozen=True)
class Fields:
    """The fields of one record and what of them each version writes."""

    file_name: str
    table: str
    fields: tuple[Field, ...]
    counts: Mapping[str, int | None]
    """Version -> the number in the file's first line and in Number_of_lines; None: the file has no
    such line."""
    count_counts_itself: bool
    counted_from: int
    """A smaller number in the first line is no count: the file is of the old form, which begins
    with a log name."""
    uncounted_fields: int
    """How many fields the old form has."""
    keys: Mapping[str, tuple[str, ...]]
    """Version -> the primary key of the table; a version that is missing has no table."""
    files_in: tuple[str, ...]
    mariadb: tuple[Field, ...]
    """What MariaDB writes in their place."""
    keyed: Mapping[str, tuple[Field, ...]]
    """Version -> the key=value lines that follow, up to END_MARKER. In a file, the name is the
    key."""

    def of(self, version: str) -> tuple[Field, ...]:
        """The fields that a version writes."""
        return self._of_versions[version]

    @cached_property
    def _of_versions(self) -> dict[str, tuple[Field, ...]]:
        until = {version: MYSQL[: at + 1] for at, version in enumerate(MYSQL)}
        return {
            version: tuple(field for field in self.fields if field.since in until[version])
            for version in MYSQL
        } | {MARIADB: self.mariadb}

    def unknown_to(self, version: str) -> tuple[Field, ...]:
        """The fields that a version has no place for."""
        written = {field.name for field in (*self.of(version), *self.keyed.get(version, ()))}
        every = (*self.fields, *(field for fields in self.keyed.values() for field in fields))
        return tuple(field for field in every if field.name not in written)

    def announced(self, version: str, count: int) -> tuple[Field, ...]:
        """The fields that a version reads behind a count: no further than the count says and than
        it knows."""
        return self.of(version)[: count - self.count_counts_itself]

    def uncounted(self, version: str, count: int | None) -> tuple[Field, ...]:
        """What a version writes beyond its own count and never reads again.

        5.7 counts 7 in relay-log.info and writes 8: LINES_IN_RELAY_LOG_INFO_WITH_ID, and then the
        channel too (rpl_rli.cc, write_info).
        """
        return (
            self.of(version)[count - self.count_counts_itself :]
            if count is not None and count == self.counts[version]
            else ()
        )

    def versions_with(self, count: int | None) -> tuple[str, ...]:
        """The versions whose files begin with this count."""
        return tuple(version for version in self.files_in if self.counts[version] == count)


def _group(since: str, *rows: tuple[Any, ...]) -> Iterable[Field]:
    return (Field(name, column, kind, since, *missing) for name, column, kind, *missing in rows)


FILES_IN: Final = (*MYSQL[:4], MARIADB)
"""The versions that can keep their records in files."""
SCANNING: Final = frozenset({MARIADB})
"""The versions that refuse a line of a file that does not begin with a number (sscanf)."""
_CHANNEL_KEY: Final = ("Channel_name",)


def _free(count: int, line: bytes = b"") -> Iterable[Field]:
    return (Field("", "", reserved(line), MARIADB, None) for _ in range(count))


_POSITIONS: Final = tuple(
    _group(
        "5.5",
        ("relay_log_name", "Relay_log_name", TEXT, ""),
        ("relay_log_pos", "Relay_log_pos", UNSIGNED_LONG, 4),
        ("source_log_name", "Master_log_name", TEXT, ""),
        ("source_log_pos", "Master_log_pos", UNSIGNED_LONG),
    )
)
_DELAY: Final = Field("sql_delay", "Sql_delay", SIGNED, "5.6")

RELAY_LOG_FIELDS: Final = Fields(
    file_name="relay-log.info",
    table="slave_relay_log_info",
    fields=(
        *_POSITIONS,
        _DELAY,
        *_group(
            "5.6",
            ("number_of_workers", "Number_of_workers", UNSIGNED),
            ("id", "Id", UNSIGNED, 1),
        ),
        *_group("5.7", ("channel_name", "Channel_name", TEXT, "")),
        *_group(
            "8.0",
            ("privilege_checks_username", "Privilege_checks_username", NULLABLE_TEXT, None),
            ("privilege_checks_hostname", "Privilege_checks_hostname", NULLABLE_TEXT, None),
            ("require_row_format", "Require_row_format", BOOLEAN),
            (
                "require_table_primary_key_check",
                "Require_table_primary_key_check",
                enumeration("STREAM", "ON", "OFF", "GENERATE"),
                "STREAM",
            ),
            (
                "assign_gtids_to_anonymous_transactions_type",
                "Assign_gtids_to_anonymous_transactions_type",
                enumeration("OFF", "LOCAL", "UUID"),
                "OFF",
            ),
            (
                "assign_gtids_to_anonymous_transactions_value",
                "Assign_gtids_to_anonymous_transactions_value",
                TEXT,
                "",
            ),
        ),
    ),
    counts={"5.5": None, "5.6": 7, "5.7": 7, MARIADB: 5} | dict.fromkeys(MYSQL[3:], 14),
    count_counts_itself=False,
    counted_from=5,
    uncounted_fields=4,
    keys={"5.6": ("Id",)} | dict.fromkeys(MYSQL[2:], _CHANNEL_KEY),
    files_in=FILES_IN,
    mariadb=(*_POSITIONS, _DELAY),
    keyed={},
)

_CONNECTION: Final = tuple(
    _group(
        "5.5",
        ("source_log_name", "Master_log_name", TEXT, ""),
        ("source_log_pos", "Master_log_pos", UNSIGNED_LONG, 4),
        ("host", "Host", TEXT),
        ("user_name", "User_name", TEXT, "test"),
        ("user_password", "User_password", TEXT),
        ("port", "Port", UNSIGNED, 3306),
        ("connect_retry", "Connect_retry", UNSIGNED, 60),
        ("enabled_ssl", "Enabled_ssl", BOOLEAN),
        ("ssl_ca", "Ssl_ca", TEXT),
        ("ssl_capath", "Ssl_capath", TEXT),
        ("ssl_cert", "Ssl_cert", TEXT),
        ("ssl_cipher", "Ssl_cipher", TEXT),
        ("ssl_key", "Ssl_key", TEXT),
        ("ssl_verify_server_cert", "Ssl_verify_server_cert", BOOLEAN),
        ("heartbeat_period", "Heartbeat", SECONDS),
    )
)
_IGNORED: Final = ("ignored_server_ids", "Ignored_server_ids")
_CRL: Final = tuple(
    _group("5.6", ("ssl_crl", "Ssl_crl", TEXT), ("ssl_crlpath", "Ssl_crlpath", TEXT))
)

SOURCE_FIELDS: Final = Fields(
    file_name="master.info",
    table="slave_master_info",
    fields=(
        *_CONNECTION,
        *_group("5.5", ("bind", "Bind", TEXT, "")),
        Field(*_IGNORED, SERVER_IDS, "5.5"),
        *_group(
            "5.6",
            ("uuid", "Uuid", TEXT),
            ("retry_count", "Retry_count", UNSIGNED_LONG, 86400),
        ),
        *_CRL,
        *_group("5.6", ("enabled_auto_position", "Enabled_auto_position", BOOLEAN)),
        *_group(
            "5.7", ("channel_name", "Channel_name", TEXT), ("tls_version", "Tls_version", TEXT)
        ),
        *_group(
            "8.0",
            ("public_key_path", "Public_key_path", TEXT),
            ("get_public_key", "Get_public_key", BOOLEAN),
            ("network_namespace", "Network_namespace", TEXT),
            ("compression_algorithm", "Master_compression_algorithm", TEXT),
            ("zstd_compression_level", "Master_zstd_compression_level", UNSIGNED),
            ("tls_ciphersuites", "Tls_ciphersuites", NULLABLE_TEXT, None),
            ("connection_auto_failover", "Source_connection_auto_failover", BOOLEAN),
            ("gtid_only", "Gtid_only", BOOLEAN),
        ),
    ),
    counts={"5.5": 18, "5.6": 23, "5.7": 25, MARIADB: 33} | dict.fromkeys(MYSQL[3:], 33),
    count_counts_itself=True,
    counted_from=14,
    uncounted_fields=7,
    keys={"5.6": ("Host", "Port")} | dict.fromkeys(MYSQL[2:], _CHANNEL_KEY),
    files_in=FILES_IN,
    mariadb=(
        *_CONNECTION,
        *_free(1),
        Field(*_IGNORED, ALL_IDS, "5.5"),
        *_free(1),
        *_free(1, b"0"),
        *_CRL,
        *_free(11),
    ),
    keyed={
        MARIADB: tuple(
            _group(
                MARIADB,
                (
                    "using_gtid",
                    "Using_gtid",
                    enumeration("No", "Current_Pos", "Slave_Pos", first=0),
                    "Slave_Pos",
                ),
                ("do_domain_ids", "Do_domain_ids", ALL_IDS, ()),
                ("ignore_domain_ids", "Ignore_domain_ids", ALL_IDS, ()),
            )
        )
    },
)

WORKER_FIELDS: Final = Fields(
    file_name="worker-relay-log.info",
    table="slave_worker_info",
    fields=(
        *_group(
            "5.6",
            ("id", "Id", UNSIGNED),
            ("relay_log_name", "Relay_log_name", TEXT, ""),
            ("relay_log_pos", "Relay_log_pos", UNSIGNED_LONG),
            ("source_log_name", "Master_log_name", TEXT, ""),
            ("source_log_pos", "Master_log_pos", UNSIGNED_LONG),
            ("checkpoint_relay_log_name", "Checkpoint_relay_log_name", TEXT, ""),
            ("checkpoint_relay_log_pos", "Checkpoint_relay_log_pos", UNSIGNED_LONG),
            ("checkpoint_source_log_name", "Checkpoint_master_log_name", TEXT, ""),
            ("checkpoint_source_log_pos", "Checkpoint_master_log_pos", UNSIGNED_LONG),
            ("checkpoint_seqno", "Checkpoint_seqno", UNSIGNED),
            ("checkpoint_group_size", "Checkpoint_group_size", UNSIGNED),
            ("checkpoint_group_bitmap", "Checkpoint_group_bitmap", BITMAP),
        ),
        *_group("5.7", ("channel_name", "Channel_name", TEXT, "")),
    ),
    counts=dict.fromkeys(VERSIONS),
    count_counts_itself=False,
    counted_from=0,
    uncounted_fields=0,
    keys={"5.6": ("Id",)} | dict.fromkeys(MYSQL[2:], ("Channel_name", "Id")),
    files_in=MYSQL[1:4],
    mariadb=(),
    keyed={},
)
"""Its files are numbered (worker-relay-log.info.1) and never begin with a count; its table has no
Number_of_lines."""
