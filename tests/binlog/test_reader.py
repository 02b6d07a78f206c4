"""Files into events: order, checksums, lengths, positions, relay logs, and what is refused."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from applier.binlog.header import EventType
from applier.binlog.reader import LogReader
from applier.errors import InputError
from tests.binlog.build import (
    MAGIC,
    UUID,
    compressed,
    event,
    format_description,
    int_image,
    log,
    packed,
    payload,
    query,
    rows,
    table_map,
    write,
    xid,
)

FIRST = len(log())
"""Where the first event behind the format description stands."""
SECOND = len(log(xid()))


def types(path: Path | list[Path], **options: object) -> list[int]:
    return [
        event.type for event in LogReader([path] if isinstance(path, Path) else path, **options)
    ]  # type: ignore[arg-type]


def rotate(name: bytes, position: int = 4) -> tuple[int, bytes]:
    return 4, struct.pack("<Q", position) + name


@pytest.mark.parametrize("version", ["5.0.96", "5.7.29", "8.0.36", "9.7.0", "10.11.6-MariaDB"])
@pytest.mark.parametrize("checksum", [True, False])
def test_events_of_every_version(tmp_path: Path, version: str, checksum: bool) -> None:
    path = write(
        tmp_path, log(query(b"BEGIN"), query(b"INSERT"), xid(), version=version, checksum=checksum)
    )
    found = list(LogReader([path]))
    assert [event.type for event in found] == [15, 2, 2, 16]
    assert [event.position + event.length for event in found][:-1] == [
        event.position for event in found
    ][1:]
    assert found[-1].log_pos == path.stat().st_size
    assert found[2].data.endswith(b"d\0INSERT")
    assert found[0].file == "binlog.000001"


def test_description_in_use_is_verified_with_the_flag_cleared(tmp_path: Path) -> None:
    assert types(write(tmp_path, MAGIC + format_description(in_use=True))) == [15]


@pytest.mark.parametrize(
    ("content", "word", "position"),
    [
        (b"", "empty", None),
        (b"-- MySQL dump", "not a binary log", 0),
        (b"\xfdbin" + bytes(600), "encrypted", None),
        (MAGIC + event(2, b"x"), "before the format description", 4),
        (log((20, b"")), "pre-GA", FIRST),
        (log((99, b"")), "unknown event type 99", FIRST),
        (log((164, bytes(17)), version="10.11.6-MariaDB"), "encrypted",
         len(log(version="10.11.6-MariaDB"))),
        (log(query(b"BEGIN"))[:-1], "ends in the middle of a Query event", FIRST),
        (log(query(b"BEGIN")) + b"\0" * 7, "in the middle of an event header",
         len(log(query(b"BEGIN")))),
        (log() + struct.pack("<IBIIIH", 0, 2, 1, 0, 0, 0), "length of 0 bytes", FIRST),
        (log() + struct.pack("<IBIIIH", 0, 2, 1, 18, 0, 0), "length of 18 bytes", FIRST),
        (log() + struct.pack("<IBIIIH", 0, 2, 1, 22, 0, 0) + b"abc", "length of 22 bytes", FIRST),
        (log() + struct.pack("<IBIIIH", 0, 2, 1, 0xFFFFFFFF, 0, 0),
         "in the middle of a Query event of 4294967295", FIRST),
    ],
)  # fmt: skip
def test_refused_with_file_and_position(
    tmp_path: Path, content: bytes, word: str, position: int | None
) -> None:
    path = write(tmp_path, content)
    with pytest.raises(InputError, match=word) as caught:
        types(path)
    assert Path(caught.value.file or "").name == "binlog.000001"
    assert caught.value.position == position
    assert caught.value.exit_code == 2


def test_missing_file_and_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the file"):
        types(tmp_path / "binlog.000001")
    with pytest.raises(InputError, match="no binary log"):
        LogReader([])


def test_checksum_found_wrong_or_left_alone(tmp_path: Path) -> None:
    content = bytearray(log(query(b"BEGIN"), xid()))
    content[-10] ^= 1
    path = write(tmp_path, bytes(content))
    with pytest.raises(InputError, match="checksum of a Xid event is wrong"):
        types(path)
    assert types(path, verify_checksum=False) == [15, 2, 16]


def test_unknown_type_is_handed_out_when_it_may_be_ignored(tmp_path: Path) -> None:
    found = list(LogReader([write(tmp_path, log((99, b"abc", 0x80), xid()))]))
    assert [(event.type, event.name) for event in found] == [
        (15, "Format_desc"),
        (99, "Unknown(99)"),
        (16, "Xid"),
    ]


def test_positions(tmp_path: Path) -> None:
    path = write(tmp_path, log(query(b"BEGIN"), query(b"x"), xid()))
    places = [event.position for event in LogReader([path])]
    assert [event.position for event in LogReader([path], start_position=places[2])] == [
        4,
        *places[2:],
    ]
    assert [event.position for event in LogReader([path], stop_position=places[2])] == places[:2]
    assert [event.position for event in LogReader([path], start_position=path.stat().st_size)] == [
        4
    ]
    with pytest.raises(InputError, match="behind the end of the file"):
        types(path, start_position=path.stat().st_size + 1)
    with pytest.raises(InputError, match="start position is not the start of an event"):
        types(path, start_position=places[2] + 1)


def test_positions_count_in_the_first_and_the_last_file(tmp_path: Path) -> None:
    first = write(tmp_path, log(xid(1), rotate(b"binlog.000002")))
    second = write(tmp_path, log(xid(2), xid(3)), "binlog.000002")
    assert types([first, second], start_position=SECOND, stop_position=SECOND) == [15, 4, 15, 16]


def relay_log(*, source_checksum: bool) -> bytes:
    """Own format description, fake rotate of the source, the source's format description, events of
    the source."""
    out = MAGIC + format_description("9.7.0", server_id=9)
    out += event(35, bytes(8), at=len(out), server_id=9)
    out += event(4, struct.pack("<Q", 4) + b"source.000007", timestamp=0, flags=0x20)
    out += format_description("5.7.29", checksum=source_checksum)
    for kind, body in (query(b"BEGIN"), xid()):
        out += event(kind, body, checksum=source_checksum)
    return out


@pytest.mark.parametrize("source_checksum", [True, False])
def test_relay_log_follows_the_format_of_its_source(tmp_path: Path, source_checksum: bool) -> None:
    path = write(tmp_path, relay_log(source_checksum=source_checksum), "relay.000002")
    reader = LogReader([path])
    seen = [
        (event.type, reader.format.server_version if reader.format else "", len(event.data))
        for event in reader
    ]
    assert [kind for kind, _, _ in seen] == [15, 35, 4, 15, 2, 16]
    assert [version for _, version, _ in seen] == ["9.7.0"] * 3 + ["5.7.29"] * 3
    assert seen[-1][2] == 8


def test_start_inside_a_relay_log_keeps_the_format_of_the_source(tmp_path: Path) -> None:
    path = write(tmp_path, relay_log(source_checksum=False), "relay.000002")
    last = list(LogReader([path]))[-1]
    found = list(LogReader([path], start_position=last.position))
    assert [event.type for event in found] == [15, 15, 16]
    assert len(found[-1].data) == 8


def test_next_relay_log_after_a_rotate_event_of_the_source(tmp_path: Path) -> None:
    first = (
        MAGIC
        + format_description(server_id=9)
        + event(4, struct.pack("<Q", 4) + b"source.000002", server_id=1)
    )
    paths = [
        write(tmp_path, first, "relay.000001"),
        write(tmp_path, log(server_id=9), "relay.000002"),
    ]
    assert types(paths) == [15, 4, 15]


@pytest.mark.parametrize(
    ("first", "second", "name", "word"),
    [
        (log(), log(), "binlog.000003", "followed by binlog.000002"),
        (log(rotate(b"binlog.000002")), log(), "binlog.000003", "followed by binlog.000002"),
        (log(rotate(b"other.000001")), log(), "binlog.000002", "followed by other.000001"),
        (log(), log(server_id=2), "binlog.000002", "written by server id 2"),
        (
            log((35, struct.pack("<Q16sQQQ", 1, UUID, 1, 1, 5))),
            log((35, struct.pack("<Q16sQQQ", 1, UUID[::-1], 1, 1, 9))),
            "binlog.000002",
            "does not know the transactions 00010203-0405-0607-0809-0a0b0c0d0e0f:1-4",
        ),
    ],
)
def test_gap_or_foreign_file(
    tmp_path: Path, first: bytes, second: bytes, name: str, word: str
) -> None:
    with pytest.raises(InputError, match=word) as caught:
        types([write(tmp_path, first), write(tmp_path, second, name)])
    assert caught.value.file == name
    assert caught.value.hint is not None


@pytest.mark.parametrize(
    ("index", "is_one_log"),
    [
        ("./binlog.000001\n./binlog.000002\n", True),
        ("/data/binlog.000001\n/data/binlog.000002\n", True),
        ("./binlog.000001\n", False),
        ("./binlog.000002\n./binlog.000001\n", False),
        ("./binlog.000001\n./binlog.000003\n./binlog.000002\n", False),
    ],
)
def test_a_changed_server_id(tmp_path: Path, index: str, is_one_log: bool) -> None:
    """The server's index says that both files are its own."""
    files = [write(tmp_path, log()), write(tmp_path, log(server_id=2), "binlog.000002")]
    (tmp_path / "binlog.index").write_text(index)
    if is_one_log:
        assert types(files) == [15, 15]
        return
    with pytest.raises(InputError, match="written by server id 2") as caught:
        types(files)
    assert "its index beside the files" in str(caught.value.hint)


def test_relay_log_recovery_empties_the_received_set(tmp_path: Path) -> None:
    received = struct.pack("<Q16sQQQ", 1, UUID, 1, 1, 5)
    first = write(tmp_path, log((35, received, 0x40)), "relay.000001")
    second = write(tmp_path, log((35, bytes(8), 0x40)), "relay.000002")
    assert types([first, second]) == [15, 35, 15, 35]


def test_files_in_order(tmp_path: Path) -> None:
    growing = [struct.pack("<Q16sQQQ", 1, UUID, 1, 1, end) for end in (5, 9)]
    first = write(tmp_path, log((35, growing[0]), rotate(b"binlog.1000000")), "binlog.999999")
    second = write(tmp_path, log((35, growing[1])), "binlog.1000000")
    assert types([first, second]) == [15, 35, 4, 15, 35]


# compressed content


def inner(*events: tuple[int, bytes]) -> bytes:
    return b"".join(event(kind, body, checksum=False) for kind, body in events)


@pytest.mark.parametrize("compression", [0, 255])
def test_payload_hands_out_its_events(tmp_path: Path, compression: int) -> None:
    content = log(
        payload(inner(query(b"BEGIN"), (31, bytes(100)), xid(5)), compression=compression), xid()
    )
    found = list(LogReader([write(tmp_path, content)]))
    assert [(event.type, event.inner_index) for event in found] == [
        (15, -1),
        (40, -1),
        (2, 0),
        (31, 1),
        (16, 2),
        (16, -1),
    ]
    assert {(event.position, event.log_pos) for event in found[1:5]} == {(FIRST, found[1].log_pos)}
    assert found[4].data == struct.pack("<Q", 5)
    assert found[5].position == found[1].log_pos


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (payload(inner(xid()), data=b"no zstd frame"), "cannot be decompressed"),
        (payload(inner(xid())[:-1], size=27), "ends in the middle of an event"),
        (payload(inner(xid()), size=54), "has 27 bytes instead of the 54"),
        (payload(inner(xid())[:7]), "ends in the middle of an event"),
        (payload(inner(xid()), size=5), "claims 27 bytes"),
        (
            payload(struct.pack("<IBIIIH", 0, 2, 1, 0xFFFFFFFF, 0, 0), size=1 << 40),
            "claims 4294967295 bytes",
        ),
        (
            payload(struct.pack("<IBIIIH", 0, 2, 1, 1 << 29, 0, 0), size=1 << 40),
            "ends in the middle",
        ),
        (payload(inner((99, b""))), "unknown event type 99"),
        (payload(b"", compression=7), "unknown compression type 7"),
        ((40, b"\0abc"), "does not name its compression"),
        ((40, packed(2) + b"\x01\0" + packed(1) + b"\x01\x40\0"), "claims 64 bytes"),
        ((40, packed(2) + b"\x40"), "runs past the end"),
    ],
)
def test_payload_refused(tmp_path: Path, bad: tuple[int, bytes], word: str) -> None:
    with pytest.raises(InputError, match=word) as caught:
        types(write(tmp_path, log(bad)))
    assert caught.value.position == FIRST


def test_payload_that_would_unpack_to_gigabytes(tmp_path: Path) -> None:
    import zstandard

    compressor = zstandard.ZstdCompressor().compressobj()
    bomb = compressor.compress(struct.pack("<IBIIIH", 0, 2, 1, 3 << 30, 0, 0))
    bomb += b"".join(compressor.compress(bytes(1 << 20)) for _ in range(32)) + compressor.flush()
    with pytest.raises(InputError, match="claims 3221225472 bytes"):
        types(write(tmp_path, log(payload(b"", size=0, data=bomb))))


@pytest.mark.parametrize(("stored", "plain"), [(166, 23), (168, 25), (169, 30), (171, 32)])
def test_mariadb_compressed_rows(tmp_path: Path, stored: int, plain: int) -> None:
    _, whole = rows(plain, int_image(7) * 50)
    head = len(rows(plain, b"")[1])
    body = whole[:head] + compressed(whole[head:])
    found = list(
        LogReader([write(tmp_path, log(table_map(), (stored, body), version="10.11.6-MariaDB"))])
    )[-1]
    assert (found.type, found.stored_type, found.data) == (plain, stored, whole)
    assert found.name.endswith("_compressed" if plain >= 30 else "_compressed_v1")


def test_mariadb_compressed_query(tmp_path: Path) -> None:
    _, whole = query(b"CREATE TABLE " + b"t" * 500)
    head = len(query(b"")[1])
    path = write(
        tmp_path, log((165, whole[:head] + compressed(whole[head:])), version="10.11.6-MariaDB")
    )
    assert [(event.type, event.data) for event in LogReader([path])][1] == (EventType.QUERY, whole)


@pytest.mark.parametrize(
    ("block", "word"),
    [
        (b"", "known compression header"),
        (b"\x04\0\0\0\x09abc", "known compression header"),
        (b"\x94\0\0\0\x09abc", "known compression header"),
        (b"\x84\xff\xff\xff\xffabc", "claims 4294967295 bytes"),
        (b"\x84\0\0\0\x09abc", "cannot be decompressed"),
        (compressed(b"abc")[:4] + b"\x09" + compressed(b"abc")[5:], "has 3 bytes instead of the 9"),
        (
            compressed(bytes(5000))[:4] + b"\x09" + compressed(bytes(5000))[5:],
            "claims 4873 bytes|instead of the",
        ),
    ],
)
def test_mariadb_compressed_refused(tmp_path: Path, block: bytes, word: str) -> None:
    with pytest.raises(InputError, match=word):
        types(write(tmp_path, log((165, query(b"")[1] + block), version="10.11.6-MariaDB")))
