"""Real servers read the files that we write, and make of damaged ones what `as_server` says; then
they write over them in place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pymysql.cursors
import pytest
from servers.server import Server

from checkpoints.errors import InfoError
from checkpoints.info import RelayLogInfo, SourceInfo
from checkpoints.info_files import InfoFile, encode, parse
from tests.checkpoints.recovery_captures import overwritten
from tests.servers.fixtures import ServerFactory

RELAY, SOURCE = "relay-log.info", "master.info"
RECORDS: Mapping[str, type] = {RELAY: RelayLogInfo, SOURCE: SourceInfo}
CHANGE_MASTER = (
    "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_USER='u', MASTER_PASSWORD='p', "
    "MASTER_PORT=3399, "
    "MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4"
)


def lines(data: bytes, count: int) -> bytes:
    """The first lines of a file."""
    return b"".join(data.splitlines(keepends=True)[:count])


USUAL = (
    "nothing",
    "cut inside the source position",
    "zeros at the end",
    "source: empty",
    "source: too few server ids",
)
"""What is tried each time; BINLAG_ALL_CASES=1 tries all, which takes two starts of a server
each."""


def damages(good: Mapping[str, bytes]) -> dict[str, tuple[str, bytes]]:
    """What was done to it -> the file and its content."""
    relay, source = good[RELAY], good[SOURCE]
    return {
        "nothing": (RELAY, relay),
        "cut inside the source position": (RELAY, relay[: relay.index(b"123456") + 3]),
        "cut before the source log": (RELAY, lines(relay, 3)),
        "cut inside the relay position": (RELAY, lines(relay, 3)[:-1]),
        "cut before the id": (RELAY, lines(relay, 7)),
        "junk in a position": (RELAY, relay.replace(b"123456", b"123x56")),
        "empty": (RELAY, b""),
        "zeros": (RELAY, bytes(len(relay))),
        "zeros at the end": (RELAY, relay[:20] + bytes(len(relay) - 20)),
        "source: empty": (SOURCE, b""),
        "source: cut inside the position": (SOURCE, source[: source.index(b"654321") + 3]),
        "source: cut after the user": (SOURCE, lines(source, 5)),
        "source: cut after the retry count": (SOURCE, lines(source, 20)),
        "source: too few server ids": (SOURCE, source.replace(b"2 3 9", b"4 3 9")),
    }


def good_files(server: Server, version: str) -> dict[str, bytes]:
    """Files of ours with values that the server did not choose."""
    server.execute(CHANGE_MASTER)
    server.stop()
    relay: RelayLogInfo = parse(RelayLogInfo, (server.data / RELAY).read_bytes(), version).record
    source: SourceInfo = parse(SourceInfo, (server.data / SOURCE).read_bytes(), version).record
    relay = replace(
        relay,
        source_log_name="binlog.000007",
        source_log_pos=123456,
        sql_delay=12,
        number_of_workers=3,
    )
    source = replace(
        source,
        source_log_name="binlog.000009",
        source_log_pos=654321,
        host="db.example",
        port=4444,
        connect_retry=7,
    )
    source = replace(
        source,
        ssl_ca="/x/ca",
        heartbeat_period=3.25,
        ignored_server_ids=(3, 9),
        retry_count=11,
        bind="::1",
    )
    return {RELAY: encode(relay, version), SOURCE: encode(source, version)}


def status(server: Server) -> dict[str, Any]:
    connection = server.connect(cursorclass=pymysql.cursors.DictCursor)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW SLAVE STATUS")
            return cursor.fetchone() or {}
    finally:
        connection.close()


def expected(name: str, data: bytes, version: str) -> InfoFile[Any] | None:
    try:
        return parse(RECORDS[name], data, version, as_server=True)
    except InfoError:
        return None


def agrees(shown: dict[str, Any], relay: RelayLogInfo, source: SourceInfo) -> None:
    assert (shown["Relay_Log_Pos"], shown["Exec_Master_Log_Pos"]) == (
        relay.relay_log_pos,
        relay.source_log_pos,
    )
    assert (shown["Relay_Master_Log_File"], shown["SQL_Delay"]) == (
        relay.source_log_name,
        relay.sql_delay,
    )
    assert (shown["Master_Log_File"], shown["Read_Master_Log_Pos"]) == (
        source.source_log_name,
        source.source_log_pos,
    )
    assert (shown["Master_Host"], shown["Master_Port"], shown["Connect_Retry"]) == (
        source.host,
        source.port,
        source.connect_retry,
    )
    assert shown["Replicate_Ignore_Server_Ids"].replace(" ", "") == ",".join(
        map(str, source.ignored_server_ids)
    )
    assert (shown["Master_SSL_CA_File"], shown["Master_Retry_Count"], shown["Master_Bind"]) == (
        source.ssl_ca,
        source.retry_count,
        source.bind,
    )


@pytest.mark.in_ci
@pytest.mark.parametrize("version", ["5.6", "5.7"])
def test_files_of_ours_and_damaged_ones(version: str, server_factory: ServerFactory) -> None:
    server = server_factory(version, options={"skip-slave-start": None, "relay-log": "relay"})
    good = good_files(server, version)
    everything = os.environ.get("BINLAG_ALL_CASES") == "1"
    for damage, (name, data) in damages(good).items():
        if damage not in USUAL and not everything:
            continue
        given = good | {name: data}
        for file, content in given.items():
            (server.data / file).write_bytes(content)
        log_start = len(server.log_text())
        server.start()
        shown = status(server)
        server.stop()
        found = expected(name, data, version)
        if found is None:
            failed = (
                shown["Relay_Log_Pos"] == 0
                if name == RELAY
                else "Error reading master configuration" in server.log_text()[log_start:]
            )
            assert failed, damage
            assert (server.data / name).read_bytes() == data, damage
        else:
            read = {
                file: parse(RECORDS[file], content, version, as_server=True).record
                for file, content in given.items()
            }
            agrees(shown, read[RELAY], read[SOURCE])
            for file, content in given.items():
                assert (server.data / file).read_bytes() == overwritten(
                    content, encode(read[file], version)
                ), damage
