"""The first inputs of each target: our own made logs, beginnings of captures, documents, sets,
files and statements."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Callable, Iterator

from applier.binlog.types import json
from applier.dumps.split import split_statements
from checkpoints.gtid import GtidSet
from checkpoints.info import RelayLogInfo, SourceInfo, WorkerInfo
from checkpoints.info_files import encode
from tests.applier.fuzz import event_starts
from tests.binlog import build
from tests.binlog.columnar_support import SPECS
from tests.binlog.test_fuzz import mariadb_log, mysql_log
from tests.captures_support import captures, logs
from tests.fuzz.targets import INFO_VERSIONS, SCHEMA, framed, image_script, script

UUID = build.UUID_TEXT
BEGINNING = 3_000
"""Bytes of a capture that make a seed."""


def whole_logs() -> Iterator[bytes]:
    for checksum in (True, False):
        yield mysql_log(checksum)
        yield mariadb_log(checksum)
    for capture in captures():
        content = logs(capture)[0].read_bytes()
        ends = [at for at in event_starts(content) if at <= BEGINNING]
        yield content[: ends[-1]]


def scripts() -> Iterator[bytes]:
    """The events of the logs one by one, without their frame, and some of a log together."""
    seen = set()
    for content in [
        mysql_log(False),
        mariadb_log(False),
        *(logs(capture)[0].read_bytes() for capture in captures()),
    ]:
        version = 1 if b"MariaDB" in content[:80] else 0
        trailer = 4 if content[4:].startswith(b"") and _has_checksum(content) else 0
        together = []
        for at in event_starts(content)[1:]:
            kind, length = content[at + 4], int.from_bytes(content[at + 9 : at + 13], "little")
            body = content[at + 19 : at + length - trailer]
            if len(body) > 1_000:
                continue
            if len(together) < 8:
                together.append((kind, body))
            if (kind, version) not in seen:
                seen.add((kind, version))
                yield script((kind, body), version=version)
        yield script(*together, version=version)


def _has_checksum(content: bytes) -> bool:
    length = int.from_bytes(content[13:17], "little")
    return content[4 + length - 5] == 1


def row_scripts() -> Iterator[bytes]:
    """A table map and a rows event of every type alone, and of many types together."""
    chance = random.Random(1)
    for kind in (30, 31, 32, 39):
        for specs in (
            [[spec] for spec in SPECS]
            if kind == 30
            else [SPECS[:20], SPECS[20:], chance.sample(SPECS, 6)]
        ):
            body = build.table_map(
                types=bytes(spec.type_code for spec in specs),
                metadata=b"".join(spec.metadata for spec in specs),
            )[1][8:]
            image = bytes((len(specs) + 7) // 8) + b"".join(
                _value(spec.type_code, spec.metadata) for spec in specs
            )
            bitmap = ((1 << len(specs)) - 1).to_bytes((len(specs) + 7) // 8, "little")
            both = kind in (31, 39)
            options = b"\0" if kind == 39 else b""
            rows = (
                bytes([len(specs)])
                + bitmap * (1 + both)
                + image
                + (options + image if both else b"")
            )
            yield image_script(kind, body, rows)


def _value(type_code: int, metadata: bytes) -> bytes:
    """Any value: of a type with a length before it one byte long, else as many as its type has."""
    from applier.binlog import wire

    both = int.from_bytes(
        metadata,
        "little" if type_code in wire.LITTLE_ENDIAN_METADATA or len(metadata) == 1 else "big",
    )
    form = wire.wire_of(type_code, both, unsigned=False)
    return (
        (1).to_bytes(form.size, "little") + b"1"
        if form.kind == "prefixed"
        else b"\x80".ljust(form.size, b"\1")
    )


def replay_scripts() -> Iterator[bytes]:
    body = build.table_map(table=b"k", types=b"\x03\x0f\x03", metadata=b"\x50\0")
    images = {
        30: b"\0" + struct.pack("<iB3si", 7, 3, b"abc", 8),
        32: b"\0" + struct.pack("<iB3si", 1, 3, b"one", 10),
        31: b"\0"
        + struct.pack("<iB3si", 1, 3, b"one", 10)
        + b"\x04"
        + struct.pack("<iB3s", 1, 3, b"eins"),
    }
    for kind, image in images.items():
        yield script(
            build.gtid(1),
            build.query(b"BEGIN"),
            body,
            build.rows(kind, image, width=3),
            build.xid(),
        )
    for statement in STATEMENTS:
        yield script(
            build.gtid(1), build.query(b"BEGIN"), build.query(statement.encode()), build.xid()
        )
    for statement in DDL:
        yield script(build.gtid(1), build.query(statement.encode()))


STATEMENTS = (
    "INSERT INTO k VALUES (9, CONCAT('a', NOW()), 1 + 2 * 3)",
    (
        "UPDATE k SET v = UPPER(v), u = IFNULL(u, 0) + 1 WHERE i BETWEEN 1 AND 2 OR v LIKE 't%' "
        "ORDER BY i LIMIT 1"
    ),
    "DELETE FROM k WHERE i IN (1, 2) AND NOT u <=> NULL",
    "REPLACE INTO k (i, v) VALUES (1, 0x41), (2, _utf8mb4'x')",
    "INSERT INTO k SELECT i + 10, v, NULL FROM k WHERE i > 1",
    "INSERT INTO w (d, tm, j) VALUES ('2020-02-30', '-10:11:12.5', '{\"a\": [1, null]}')",
    "SAVEPOINT `a`",
    "ROLLBACK TO `a`",
)
DDL = (
    "ALTER TABLE k ADD COLUMN n VARCHAR(9) NOT NULL DEFAULT 'x' FIRST, DROP KEY v, RENAME TO kk",
    "CREATE TABLE x LIKE k",
    (
        "CREATE TABLE x (a INT AS (b + 1) STORED, b INT, CHECK (a > b)) PARTITION BY HASH (b) "
        "PARTITIONS 4"
    ),
    "DROP TABLE IF EXISTS k, d.t",
    "TRUNCATE k",
    "RENAME TABLE k TO l, l TO m",
    "CREATE UNIQUE INDEX x ON k (v(2) DESC)",
    "ALTER DATABASE d DEFAULT CHARACTER SET latin1",
)
DOCUMENTS = (
    "null", "true", "[]", "{}", "-1", "70000", "18446744073709551615", "1.5e300",
    '"text \\u00e4 \\n"', "[1, [2, [3, {}]]]",
    '{"a": 1, "b": {"c": [null, false, "x"]}, "long key": -9223372036854775808}',
    '{"a": [1, 2], "b": "x", "c": {"d": 4}}',
)  # fmt: skip


def json_documents() -> Iterator[bytes]:
    for text in DOCUMENTS:
        yield json.encode(json.parse_text(text))
        yield text.encode()
    yield json.encode(
        [
            json.OpaqueValue(246, b"\x04\x02\x81\x01"),
            json.OpaqueValue(12, bytes(8)),
            json.OpaqueValue(10, b"\0" * 7 + b"\x19"),
        ]
    )
    yield json.encode([0] * 70)
    document = json.encode(json.parse_text(DOCUMENTS[-1]))
    for operation, path, value in (
        (0, "$.b", "7"),
        (1, "$.a[1]", '"n"'),
        (1, '$."n"', "[]"),
        (2, "$.c.d", ""),
        (2, "$.a[last]", ""),
    ):
        new = json.encode(json.parse_text(value)) if value else b""
        change = (
            bytes([operation, len(path)])
            + path.encode()
            + (bytes([len(new)]) + new if value else b"")
        )
        yield change.ljust(len(document)) if len(change) < len(document) else change + document
        yield change + document[: len(change)]


def gtid_sets() -> Iterator[bytes]:
    texts = (
        f"{UUID}:1",
        f"{UUID}:1-5:7-9:100",
        f"{UUID}:tag_1:1-3:5,{UUID[:-1]}0:4-9223372036854775806",
        "0-1-5",
        "0-1-5,1-2-7",
    )
    for text in texts:
        yield text.encode()
        yield f"{text}/{UUID}:2-8".encode()
        if "-1-" not in text[:4]:
            yield GtidSet(text).encode()


def info_files() -> Iterator[bytes]:
    relay = RelayLogInfo("./relay-bin.000002", 4, "binlog.000001", 1234)
    source = SourceInfo("binlog.000001", 1234, "host", "user", ignored_server_ids=(1, 2))
    worker = WorkerInfo(
        1,
        "./relay-bin.000002",
        4,
        "binlog.000001",
        1234,
        "./relay-bin.000001",
        4,
        "binlog.000001",
        154,
    )
    for version in INFO_VERSIONS:
        for number, record in enumerate((relay, source, worker)):
            if version in type(record).fields.files_in:
                yield bytes([number]) + encode(record, version)


HEAD = SCHEMA[: SCHEMA.index("CREATE TABLE w")]


def statements() -> Iterator[bytes]:
    yield SCHEMA.encode()
    for statement in (*STATEMENTS, *DDL):
        yield f"{HEAD}{statement};".encode()
    for capture in captures():
        yield from _with_rows((capture / "before.sql").read_bytes())


def _with_rows(sql: bytes) -> Iterator[bytes]:
    """Each short CREATE TABLE of a dump, with the INSERT behind it."""
    made = b""
    for statement in (raw.sql for raw in split_statements(io.BytesIO(sql))):
        if statement.startswith(b"CREATE TABLE") and len(statement) < 1_200:
            yield b"CREATE DATABASE d; USE d;\n" + statement + b";"
            made = statement
        elif statement.startswith(b"INSERT") and made and len(statement) < 600:
            yield b"CREATE DATABASE d; USE d;\n" + made + b";\n" + statement + b";"
            made = b""
        elif not statement.startswith((b"/*", b"LOCK", b"--")):
            made = b""


SEEDS: dict[str, Callable[[], Iterator[bytes]]] = {
    "events": lambda: (seed for make in (whole_logs, scripts) for seed in make()),
    "columns": lambda: (seed for make in (whole_logs, scripts) for seed in make()),
    "images": row_scripts,
    "replay": lambda: (seed for make in (replay_scripts, scripts) for seed in make()),
    "json": json_documents,
    "gtids": gtid_sets,
    "info": info_files,
    "schema": statements,
}
"""Target -> its seeds."""

__all__ = ["SEEDS", "framed"]
