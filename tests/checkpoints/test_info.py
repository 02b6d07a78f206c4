"""Info records: what real servers wrote comes back byte for byte, and what no server wrote is
refused."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints import bitmap
from checkpoints.errors import CheckpointError, InfoError
from checkpoints.fields import MYSQL, column_of
from checkpoints.info import RelayLogInfo, SourceInfo, WorkerInfo
from checkpoints.info_files import encode, parse, versions_of
from checkpoints.info_rows import columns, from_row, key_columns, to_row
from checkpoints.position import Position
from tests.captures_support import CAPTURES
from tests.checkpoints import recovery_captures as real

RECORDS = (RelayLogInfo, SourceInfo, WorkerInfo)


def test_real_files() -> None:
    count = 0
    for record, server, path in real.info_files():
        data = path.read_bytes()
        read = parse(record, data, server, file=str(path))
        assert read.encode() == data, path
        assert parse(record, data, server, as_server=True) == read, path
        assert server in versions_of(record, data), path
        assert real.overwritten(data, encode(read.record, server)) == data, path
        count += 1
    assert count == 978


def test_real_files_after_kill() -> None:
    counts = [
        parse(record, data, server).encode() == data
        for record, server, data in real.files_after_kill()
    ]
    counts += [
        parse(WorkerInfo, data, server).encode() == data for server, data in real.shown_workers()
    ]
    assert all(counts)
    assert len(counts) == 216 + 516


def test_real_rows() -> None:
    count = 0
    for record, server, row in real.rows():
        written = to_row(from_row(record, row, server), server)
        assert list(written.items()) == list(row.items())
        count += 1
    assert count == 852


def test_real_files_never_shrink() -> None:
    """That a shorter text leaves the end of the longer one behind is seen in 978 real files."""
    for scenario in real.scenarios():
        sizes: dict[str, int] = {}
        for path in sorted((scenario / "raw").glob("*.info*")):
            name = path.name.split(".", 1)[1]
            assert path.stat().st_size >= sizes.get(name, 0), path
            sizes[name] = path.stat().st_size


def states() -> list[Path]:
    return sorted((CAPTURES / "open").glob("*/state_*.json"))


@pytest.mark.parametrize("path", states(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_rows_of_9_7(path: Path) -> None:
    state = json.loads(path.read_text())
    for row in state["slave_relay_log_info"]:
        assert to_row(from_row(RelayLogInfo, row, "9.7"), "9.7") == row
    for shown in state["slave_worker_info"]:
        row = {name: value for name, value in shown.items() if name != "bitmap_hex"}
        row["Checkpoint_group_bitmap"] = bytes.fromhex(shown["bitmap_hex"])
        assert to_row(from_row(WorkerInfo, row, "9.7"), "9.7") == row


CHANNEL_9_7: dict[str, Any] = {
    "Number_of_lines": 14,
    "Relay_log_name": "./relay-ch_1.000001",
    "Relay_log_pos": 4,
    "Master_log_name": "",
    "Master_log_pos": 0,
    "Sql_delay": 7,
    "Number_of_workers": 0,
    "Id": 1,
    "Channel_name": "ch_1",
    "Privilege_checks_username": "root",
    "Privilege_checks_hostname": "localhost",
    "Require_row_format": 1,
    "Require_table_primary_key_check": "ON",
    "Assign_gtids_to_anonymous_transactions_type": "OFF",
    "Assign_gtids_to_anonymous_transactions_value": "",
}
SOURCE_9_7: dict[str, Any] = {
    "Number_of_lines": 33,
    "Master_log_name": "",
    "Master_log_pos": 4,
    "Host": "::1",
    "User_name": "u",
    "User_password": "",
    "Port": 3398,
    "Connect_retry": 60,
    "Enabled_ssl": 1,
    "Ssl_ca": "",
    "Ssl_capath": "",
    "Ssl_cert": "",
    "Ssl_cipher": "",
    "Ssl_key": "",
    "Ssl_verify_server_cert": 0,
    "Heartbeat": 2.5,
    "Bind": "",
    "Ignored_server_ids": "0",
    "Uuid": "",
    "Retry_count": 10,
    "Ssl_crl": "",
    "Ssl_crlpath": "",
    "Enabled_auto_position": 0,
    "Channel_name": "ch_1",
    "Tls_version": "",
    "Public_key_path": "",
    "Get_public_key": 0,
    "Network_namespace": "",
    "Master_compression_algorithm": "zstd,zlib",
    "Master_zstd_compression_level": 9,
    "Tls_ciphersuites": "TLS_AES_128_GCM_SHA256",
    "Source_connection_auto_failover": 0,
    "Gtid_only": 0,
}
"""Rows of a real 9.7.4 after CHANGE REPLICATION SOURCE TO … FOR CHANNEL 'Ch_1' with most of its
options."""
REAL_5_6_SOURCE = (
    b"23\nbinlog.000001\n4\n127.0.0.1\nu\np\n3399\n60\n0\n\n\n\n\n\n0\n2.500\n\n6 1 2 3 1 2 3\n\n"
    b"86400\n\n\n0\n"
)
"""5.6.24, SET GLOBAL master_info_repository=FILE: the server itself doubles the list of ignored
server ids."""


def test_a_channel_of_9_7() -> None:
    relay = from_row(RelayLogInfo, CHANNEL_9_7, "9.7")
    assert (relay.channel_name, relay.privilege_checks_username, relay.require_row_format) == (
        "ch_1",
        "root",
        True,
    )
    assert to_row(relay, "9.7") == CHANNEL_9_7
    source = from_row(SourceInfo, SOURCE_9_7, "9.7")
    assert (source.heartbeat_period, source.compression_algorithm) == (2.5, "zstd,zlib")
    assert to_row(source, "9.7") == SOURCE_9_7
    assert (
        to_row(dataclasses.replace(source, tls_ciphersuites=None), "9.7")["Tls_ciphersuites"]
        is None
    )


def test_ignored_server_ids() -> None:
    read = parse(SourceInfo, REAL_5_6_SOURCE, "5.6.24")
    assert read.record.ignored_server_ids == (1, 2, 3, 1, 2, 3)
    assert read.record.user_password == "p"
    assert "'p'" not in repr(read.record)
    assert read.encode() == REAL_5_6_SOURCE


FORMS = {
    "5.5": (b"./relay.000002\n251\nbinlog.000001\n107\n", None),
    "5.6": (b"7\n./relay.000002\n251\nbinlog.000001\n107\n0\n4\n1\n", 7),
    "5.7": (b"7\n./relay.000002\n251\nbinlog.000001\n107\n0\n4\n1\n\n", 7),
    "8.0": (b"14\n./relay.000002\n251\nbinlog.000001\n107\n0\n4\n1\n\n\n\n0\n1\n1\n\n", 14),
}


@pytest.mark.parametrize("server", FORMS)
def test_every_version_reads_what_older_ones_wrote(server: str) -> None:
    """An upgraded server finds an older file; what that lacks has the usual value."""
    for writer in list(FORMS)[: list(FORMS).index(server) + 1]:
        text, count = FORMS[writer]
        read = parse(RelayLogInfo, text, server)
        workers = 0 if writer == "5.5" else 4
        assert read.record == RelayLogInfo(
            "./relay.000002", 251, "binlog.000001", 107, number_of_workers=workers
        )
        assert read.count == count
        assert encode(read.record, writer) == text if workers else True
        assert (
            encode(dataclasses.replace(read.record, number_of_workers=0), "5.5") == FORMS["5.5"][0]
        )


def test_source_files_of_every_version() -> None:
    """The lines of each version, and that a count includes itself."""
    lines = {"5.5": 18, "5.6": 23, "5.7": 25, "8.0": 33}
    record = SourceInfo(
        "binlog.000007", 120, "db1", "repl", "s3cret", 3307, ignored_server_ids=(5, 9)
    )
    for server, count in lines.items():
        text = encode(record, server)
        assert text.startswith(
            (
                b"%d\nbinlog.000007\n120\ndb1\nrepl\ns3cret\n3307\n60\n0\n\n\n\n\n\n0\n30.000\n\n"
                b"2 5 9\n"
            )
            % count
        )
        assert text.count(b"\n") == count
        assert parse(SourceInfo, text, server).record == record
        assert versions_of(SourceInfo, text) == (server,)
    assert versions_of(SourceInfo, b"31\n") == ("8.0",), "8.0.20 counted 31"


def test_an_8_0_20_file_is_read_by_its_own_count() -> None:
    text = (
        encode(SourceInfo("binlog.000007", 120, "db1"), "8.0")
        .replace(b"33\n", b"31\n", 1)
        .removesuffix(b"0\n0\n")
    )
    read = parse(SourceInfo, text, "8.0.46")
    assert read.count == 31
    assert read.record == SourceInfo("binlog.000007", 120, "db1")
    assert read.stale == b""


def test_stale_bytes() -> None:
    """A shorter text leaves the end of the longer one behind; nobody reads it, and it is kept."""
    old = encode(RelayLogInfo("./relay.000002", 100_200_300, "binlog.000001", 100_200_000), "5.7")
    new = encode(RelayLogInfo("./relay.000003", 4, "binlog.000001", 100_200_300), "5.7")
    file = real.overwritten(old, new)
    assert len(file) == len(old)
    read = parse(RelayLogInfo, file, "5.7")
    assert read.record.relay_position == Position("./relay.000003", 4)
    assert read.stale == old[len(new) :] == b"\n0\n0\n1\n\n"
    assert read.encode() == file


def test_what_5_6_left_behind_is_no_channel_of_5_7() -> None:
    """5.7 writes its channel after the seven lines that it counts and never reads it; only an empty
    line can be its own."""
    left = b"7\n./relay.000003\n4\nbinlog.000001\n9\n0\n4\n1\n4\n1\n"
    read = parse(RelayLogInfo, left, "5.7")
    assert (read.record.channel_name, read.stale) == ("", b"4\n1\n")


def test_positions_move_together() -> None:
    moved = RelayLogInfo(number_of_workers=4).at(
        Position("./relay.000002", 10), Position("binlog.000003", 20)
    )
    assert (moved.relay_position, moved.source_position) == (
        Position("./relay.000002", 10),
        Position("binlog.000003", 20),
    )
    assert moved.number_of_workers == 4
    assert SourceInfo(host="h").at(Position("binlog.000003", 20)).source_position == Position(
        "binlog.000003", 20
    )


@pytest.mark.parametrize(
    ("server", "column"),
    [
        ("5.5.62", "5.5"),
        ("5.6", "5.6"),
        ("8.2.0", "8.0"),
        ("8.3.0", "8.4"),
        ("8.4", "8.4"),
        ("9.7.4", "9.7"),
        ("10.0.1", "9.7"),
        ("mariadb", "mariadb"),
        ("10.11.18-MariaDB-log", "mariadb"),
    ],
)
def test_versions(server: str, column: str) -> None:
    assert column_of(server) == column


@pytest.mark.parametrize("server", ["5.1", "8", "", "x.y"])
def test_versions_refused(server: str) -> None:
    with pytest.raises(CheckpointError):
        column_of(server)


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("server", MYSQL)
def test_the_table_of_fields_fits_the_records(record: type, server: str) -> None:
    names = [
        field.name for field in (*record.fields.fields, *record.fields.keyed.get("mariadb", ()))
    ]
    own = [field.name for field in dataclasses.fields(record)]
    assert [name for name in names if name != "checkpoint_group_size"] == own
    assert list(record.fields.of(server)) == list(
        record.fields.fields[: len(record.fields.of(server))]
    )
    if server in record.fields.keys:
        assert set(key_columns(record, server)) <= set(columns(record, server))


GOOD = {RelayLogInfo: FORMS["5.7"][0], SourceInfo: REAL_5_6_SOURCE, WorkerInfo: b""}
FOREIGN = {
    "empty": b"",
    "configuration": b"[mysqld]\nserver-id=1\n",
    "auto.cnf": b"[auto]\nserver-uuid=47fccdd6-e548-11f1-adc0-02fc00000001\n",
    "binary log": b"\xfebin\x8a\x00\x01\x02" * 20,
    "index": b"./relay.000001\n./relay.000002\n",
    "zeros": bytes(64),
    "carriage returns": FORMS["5.7"][0].replace(b"\n", b"\r\n"),
    "a page of HTML": b"<html>\n<body>\n",
    "a huge number": b"9" * 5000 + b"\n",
}


@pytest.mark.parametrize("data", FOREIGN.values(), ids=FOREIGN.keys())
@pytest.mark.parametrize("record", RECORDS)
def test_foreign_files(record: type, data: bytes) -> None:
    with pytest.raises(
        InfoError, match=r"file there\.info, line \d+\)\. Next: .*nothing was written"
    ) as caught:
        parse(record, data, "5.7", file="there.info")
    assert caught.value.line is not None and caught.value.line <= 2


def written(record: type, server: str) -> bytes:
    return encode(record(source_log_name="binlog.000001", source_log_pos=34567), server)


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("server", ["5.6", "5.7", "8.0"])
def test_cut_off_anywhere(record: type, server: str) -> None:
    """Every proper beginning of a file is refused by line; that of 5.7's relay-log.info without its
    last line is a file of 5.6."""
    data = written(record, server)
    parse(record, data, server)
    for size in range(len(data) - ((record, server) == (RelayLogInfo, "5.7"))):
        with pytest.raises(InfoError) as caught:
            parse(record, data[:size], server, file="f")
        assert caught.value.file == "f"
        assert caught.value.line is not None and caught.value.hint


@given(st.data())
def test_garbled_anywhere(data: st.DataObject) -> None:
    """A changed byte is refused, or it is a value that a server may have written: then it is the
    file's own."""
    record = data.draw(st.sampled_from(RECORDS))
    server = data.draw(st.sampled_from(["5.6", "5.7", "8.0"]))
    text = bytearray(written(record, server))
    text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    try:
        read = parse(record, bytes(text), server)
    except InfoError as error:
        assert error.line is not None
    else:
        if read.count == record.fields.counts[server] and not read.stale:
            assert read.encode().rstrip(b"\n") == bytes(text).rstrip(b"\n")


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\n\0"), max_size=20)
NUMBERS = st.integers(0, (1 << 32) - 1)


@given(
    TEXTS,
    st.integers(0, (1 << 64) - 1),
    TEXTS,
    st.integers(-(1 << 31), (1 << 31) - 1),
    NUMBERS,
    TEXTS,
    st.binary(max_size=40),
)
def test_any_value_round_trips(
    name: str, offset: int, source: str, delay: int, workers: int, channel: str, stale: bytes
) -> None:
    records = (
        RelayLogInfo(name, offset, source, offset, delay, workers, 1, channel),
        SourceInfo(source, offset, name, channel, name, ignored_server_ids=(workers, 7),
                   tls_ciphersuites=channel or None),
        WorkerInfo(workers, name, offset, source, offset, checkpoint_group_bitmap=stale,
                   channel_name=channel),
    )  # fmt: skip
    for record in records:
        read = parse(type(record), encode(record, "8.0") + stale, "8.0")
        assert (read.record, read.stale) == (record, stale)
        assert from_row(type(record), to_row(record, "9.7"), "9.7") == record


def test_what_a_server_makes_of_damage() -> None:
    """Less strict, but a line without an end is none: test_real_servers.py shows that real servers
    do so."""
    text = FORMS["5.7"][0]
    cut = text[: text.index(b"251") + 2]
    with pytest.raises(InfoError, match="cut off in the middle"):
        parse(RelayLogInfo, cut, "5.7")
    with pytest.raises(InfoError, match="ends before the line of Master_log_pos"):
        parse(RelayLogInfo, cut, "5.7", as_server=True)
    with pytest.raises(InfoError, match="ends before the line of Master_log_pos"):
        parse(RelayLogInfo, bytes(40), "5.7", as_server=True)
    for line, position in ((b"25x", 25), (b"x25", 0), (b"-25", (1 << 64) - 25)):
        changed = text.replace(b"251", line)
        assert parse(RelayLogInfo, changed, "5.7", as_server=True).record.relay_log_pos == position
    assert parse(RelayLogInfo, text.removesuffix(b"1\n\n"), "5.7", as_server=True).record.id == 1
    source = REAL_5_6_SOURCE.replace(b"6 1 2 3 1 2 3", b"4 1 2")
    assert parse(SourceInfo, source, "5.6", as_server=True).record.ignored_server_ids == (1, 2)


def test_what_a_version_does_not_have() -> None:
    with pytest.raises(CheckpointError, match=r"no relay-log\.info"):
        parse(RelayLogInfo, b"", "8.3")
    with pytest.raises(CheckpointError, match=r"taken away in 8\.3"):
        encode(RelayLogInfo(), "9.7")
    with pytest.raises(CheckpointError, match="no worker-relay-log"):
        encode(WorkerInfo(), "5.5")
    with pytest.raises(CheckpointError, match=r"no table mysql\.slave_master_info"):
        to_row(SourceInfo(), "5.5")
    with pytest.raises(CheckpointError, match=r"5\.6 has no Channel_name, which is 'x'"):
        encode(RelayLogInfo(channel_name="x"), "5.6")
    with pytest.raises(CheckpointError, match="only the default channel"):
        encode(RelayLogInfo(channel_name="x"), "5.7")
    with pytest.raises(CheckpointError, match="line feed"):
        encode(SourceInfo(user_password="a\nb"), "5.6")
    with pytest.raises(CheckpointError, match=r"no unsigned number.*column Relay_log_pos"):
        encode(RelayLogInfo(relay_log_pos=-1), "5.7")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Number_of_lines": 3}, "3 is not a number of lines"),
        ({"Relay_log_pos": "4"}, r"'4' is no unsigned number.*column Relay_log_pos"),
        ({"Require_row_format": 2}, "neither 0 nor 1"),
        ({"Require_table_primary_key_check": "MAYBE"}, "none of STREAM, ON, OFF, GENERATE"),
        ({"Extra": 1}, r"a column is not known to MySQL 9\.7.*column Extra"),
    ],
)
def test_bad_rows(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InfoError, match=message):
        from_row(RelayLogInfo, CHANNEL_9_7 | change, "9.7")


def test_bad_rows_of_other_tables() -> None:
    with pytest.raises(InfoError, match=r"a column is missing.*column Sql_delay"):
        from_row(
            RelayLogInfo,
            {name: value for name, value in CHANNEL_9_7.items() if name != "Sql_delay"},
            "9.7",
        )
    row = to_row(WorkerInfo(), "9.7") | {"Checkpoint_group_size": 8}
    with pytest.raises(InfoError, match="checkpoint_group_size is 8, but 64 fits"):
        from_row(WorkerInfo, row, "9.7")
    with pytest.raises(InfoError, match="announces 3 server ids and lists 2"):
        from_row(SourceInfo, SOURCE_9_7 | {"Ignored_server_ids": "3 1 2"}, "9.7")


@given(st.sets(st.integers(0, 63)), st.integers(0, 63), st.integers(0, 70))
def test_bitmaps(executed: set[int], group: int, by: int) -> None:
    bits = bitmap.of(executed, 64)
    assert len(bits) == 8
    assert set(bitmap.groups(bits)) == executed
    assert bitmap.executed(bits, group) == (group in executed)
    assert set(bitmap.groups(bitmap.with_group(bits, group))) == executed | {group}
    assert set(bitmap.groups(bitmap.shifted(bits, by))) == {
        number - by for number in executed if number >= by
    }
    assert WorkerInfo(checkpoint_group_bitmap=bits).executed_groups == tuple(sorted(executed))


def test_a_real_bitmap() -> None:
    """my57_table_mts4lc_gtid_ap1_rec1: worker 2 executed group 16 and worker 1 all others of the
    first 20."""
    first, second = bytes.fromhex("ffff0e"), bytes.fromhex("000001")
    assert tuple(bitmap.groups(first)) == (*range(16), 17, 18, 19)
    assert tuple(bitmap.groups(second)) == (16,)
    assert not bitmap.executed(first, 4096)
