"""Fuzz targets: each takes any bytes and may raise nothing but the errors that are documented for
what it calls.

    events    a log, or events without their frame, through every reader of the Python side
    columns   the same into Arrow, by Python and by the compiled kernels, which must agree
    images    one table map and one rows event that need not fit each other, likewise
    replay    events into tables in memory
    json      binary JSON, JSON text, partial updates
    gtids     GTID sets as text and in the log's binary form, and what sets can do
    info      relay-log.info, master.info and worker files of every version
    schema    SQL as load_schema reads it

A target asserts what holds of whatever could be read: what is written again reads the same, two
decoders agree. `SEEDS` makes the first inputs of a target; `corpus/<target>` has what grew out of
them.
"""

from __future__ import annotations

import contextlib
import struct
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import applier
from applier.binlog.listing import Listing
from applier.binlog.reader import LogReader
from applier.binlog.transactions import group
from applier.binlog.types import ValueRefused, json
from applier.errors import InputError, ReplicationError, UsageError
from checkpoints.errors import CheckpointError
from checkpoints.gtid import GtidError, GtidSet, MariadbGtidSet, parse_gtid_set
from checkpoints.info import RelayLogInfo, SourceInfo, WorkerInfo
from checkpoints.info_files import parse, versions_of
from tests.binlog import build
from tests.fuzz.guard import kernels_on_guarded_memory

Target = Callable[[bytes], None]
CORPUS = Path(__file__).parent / "corpus"


# logs


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fuzz-")


def _file(content: bytes) -> Path:
    path = Path(_folder().name) / "binlog.000001"
    path.write_bytes(content)
    return path


def framed(data: bytes) -> bytes:
    """A log as it stands; other bytes as a list of events, each a type, two bytes of length, and
    its body.

    So a change to a body keeps the frame whole, and what reads bodies is reached.
    """
    if data.startswith(build.MAGIC):
        return data
    events, at = [], 1
    while at + 3 <= len(data):
        end = at + 3 + int.from_bytes(data[at + 1 : at + 3], "little")
        events.append((data[at], data[at + 3 : end]))
        at = end
    version = ("8.0.36", "10.11.6-MariaDB", "5.7.29", "9.7.0")[data[0] & 3 if data else 0]
    return build.log(*events, version=version, checksum=False)


def script(*events: tuple[int, bytes], version: int = 0) -> bytes:
    """The bytes that `framed` makes these events of."""
    return bytes([version]) + b"".join(
        bytes([kind]) + struct.pack("<H", len(body)) + body for kind, body in events
    )


def events(data: bytes) -> None:
    path = _file(framed(data))
    try:
        for listed in Listing([str(path)], with_rows=True, verify=False):
            listed.as_dict()
            list(listed.row_lines())
        list(group(LogReader([path], verify_checksum=False)))
    except InputError as error:
        assert error.file is not None
        assert "\n" not in str(error)


def columns(data: bytes) -> None:
    _both_decoders(framed(data))


def _both_decoders(content: bytes) -> None:
    from tests.binlog.columnar_support import assert_same, collect

    path = _file(content)
    expected, error = collect([path], compiled=False, verify_checksum=False)
    with kernels_on_guarded_memory():
        found, own_error = collect([path], compiled=True, verify_checksum=False, threads=1)
    assert (error is None) == (own_error is None), (error, own_error)
    if error is None:
        assert_same(found, expected)


KINDS = (30, 31, 32, 39, 23, 24, 25, 30)


def images(data: bytes) -> None:
    content = image_log(data)
    events(content)
    _both_decoders(content)


def image_log(data: bytes) -> bytes:
    """First byte: type of the rows event; two bytes: length of the table map's variable part; the
    rest is the rows event's."""
    head, rest = data[:3].ljust(3, b"\0"), data[3:]
    size = min(int.from_bytes(head[1:3], "little"), len(rest))
    kind = KINDS[head[0] & 7]
    extra = struct.pack("<H", 2) if kind >= 30 else b""
    return build.log(
        build.gtid(1),
        (19, struct.pack("<IHH", 1, 0, 1) + rest[:size]),
        (kind, struct.pack("<IHH", 1, 0, 1) + extra + rest[size:]),
        checksum=False,
    )


def image_script(kind: int, map_body: bytes, rows_body: bytes) -> bytes:
    """The bytes that `image_log` makes these two events of. `rows_body` begins with the width."""
    return bytes([KINDS.index(kind)]) + struct.pack("<H", len(map_body)) + map_body + rows_body


SCHEMA = """
CREATE DATABASE d; USE d;
CREATE TABLE t (i INT);
CREATE TABLE k (i INT PRIMARY KEY, v VARCHAR(20), u INT UNIQUE, KEY (v(3)));
CREATE TABLE w (ti TINYINT, si SMALLINT UNSIGNED, mi MEDIUMINT, b BIGINT, dc DECIMAL(12,4), f FLOAT,
    db DOUBLE, bt BIT(9), y YEAR,
    d DATE, tm TIME(2), dt DATETIME(6), ts TIMESTAMP(3) NULL, c CHAR(10), vb VARBINARY(300), t TEXT,
    e ENUM('a','b'), s SET('x','y'),
    j JSON, g GEOMETRY);
INSERT INTO k VALUES (1, 'one', 10), (2, 'two', 20), (3, NULL, NULL);
"""


@cache
def _tables() -> applier.Tables:
    return applier.load_schema(SCHEMA)


def replay(data: bytes) -> None:
    path = _file(framed(data))
    options: dict[str, Any] = {
        "verify_checksum": False,
        "type_conversions": "ALL_LOSSY,ALL_NON_LOSSY",
    }
    if data and data[0] & 4:
        options["exec_mode"] = "idempotent"
    try:
        result = applier.replay([path], into=_tables().copy(), **options)
    except (InputError, UsageError) as error:
        assert error.file is not None
        assert "\n" not in str(error)
        return
    if result.error is not None:
        assert result.error.number > 0
        assert result.error.position is not None


# values


def json_documents(data: bytes) -> None:
    _binary_json(data)
    _json_text(data)
    half = len(data) // 2
    with contextlib.suppress(InputError, ReplicationError):
        json.JsonDiff(data[:half]).apply(data[half:])


def _binary_json(data: bytes) -> None:
    try:
        document = json.decode(data)
        shown = json.to_text(document)
    except InputError:
        return
    try:
        written = json.encode(document)
    except ValueRefused:
        return
    # whose keys are put in order
    assert json.to_text(json.decode(written)) == shown or "{" in shown
    assert json.encode(json.decode(written)) == written


def _json_text(data: bytes) -> None:
    try:
        document = json.parse_text(data.decode("utf-8", "replace"))
        written = json.encode(document)
    except (ValueRefused, ReplicationError):  # 1235: two members of one name
        return
    assert json.encode(json.decode(written)) == written


# checkpoints


def gtids(data: bytes) -> None:
    try:
        held = GtidSet.decode(data)
        assert GtidSet.decode(held.encode()) == held
    except GtidError:
        pass
    texts = data.decode("latin-1").split("/", 1)
    sets = []
    for text in texts:
        try:
            held_in_text = parse_gtid_set(text)
        except GtidError:
            continue
        assert str(parse_gtid_set(str(held_in_text))) == str(held_in_text)
        if isinstance(held_in_text, GtidSet):
            assert GtidSet.decode(held_in_text.encode()) == held_in_text
            sets.append(held_in_text)
        else:
            assert isinstance(held_in_text, MariadbGtidSet)
    if len(sets) == 2:
        _sets(*sets)


def _sets(left: GtidSet, right: GtidSet) -> None:
    """What holds of any two sets."""
    both, rest = left.union(right), left.subtract(right)
    assert both == right.union(left)
    assert rest.union(right) == both
    assert left.issubset(both) and right.issubset(both)
    assert not rest.subtract(left)
    assert both.count() == rest.count() + right.count()


RECORDS = (RelayLogInfo, SourceInfo, WorkerInfo)
INFO_VERSIONS = ("5.5", "5.6", "5.7", "8.0")


def info(data: bytes) -> None:
    record = RECORDS[data[0] % 3] if data else RelayLogInfo
    content = data[1:]
    for version in INFO_VERSIONS:
        for as_server in (False, True):
            try:
                found = parse(record, content, version, file="x.info", as_server=as_server)
            except CheckpointError as error:
                assert error.file == "x.info"
                continue
            written = b""  # 5.5 writes no count: what it writes of a newer file is no file
            if not as_server and (version != "5.5" or found.count is None):
                # a newer version's file may hold what this one cannot write
                with contextlib.suppress(CheckpointError):
                    written = found.encode()
            if written:
                assert parse(record, written, version).record == found.record
    with contextlib.suppress(CheckpointError):
        versions_of(record, content)


# SQL


def schema(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    try:
        tables = applier.load_schema(text + "\n;", server="9.7")
    except InputError as error:
        assert "\n" not in str(error)
        return
    for table in tables:
        with contextlib.suppress(
            ReplicationError
        ):  # a value that only the server which loads it knows
            table.rows()


TARGETS: dict[str, Target] = {
    "events": events,
    "columns": columns,
    "images": images,
    "replay": replay,
    "json": json_documents,
    "gtids": gtids,
    "info": info,
    "schema": schema,
}


def corpus(name: str) -> Iterator[tuple[str, bytes]]:
    """(name, input) of what is kept for a target."""
    for path in sorted((CORPUS / name).iterdir()):
        yield path.name, path.read_bytes()
