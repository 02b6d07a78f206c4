"""Row changes as Arrow: the kernels against the row decoders, values known by hand, damaged
input."""

from __future__ import annotations

import datetime
import random
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from applier.binlog.columnar import read_batches
from applier.errors import InputError
from tests.binlog import build
from tests.binlog.columnar_support import SPECS, Spec, assert_same, collect
from tests.captures_support import captures, logs, shown_files

CAPTURES = [log for log in shown_files() if log.exists()]


@pytest.mark.parametrize("log", CAPTURES, ids=lambda path: f"{path.parent.name}-{path.name}")
@pytest.mark.parametrize(
    "options",
    [{}, {"chunk_bytes": 3000}, {"text": False, "threads": 1}],
    ids=["whole", "small chunks", "bytes"],
)
def test_kernels_and_row_decoders_give_the_same_batches(log: Path, options: dict[str, Any]) -> None:
    expected, error = collect([log], compiled=False, text=options.get("text", True))
    found, own_error = collect([log], compiled=True, **options)
    assert error is None and own_error is None
    assert_same(found, expected)


@pytest.mark.parametrize("capture", captures(), ids=lambda path: path.name)
def test_all_files_of_a_capture_are_read_in_order(capture: Path) -> None:
    expected, error = collect(logs(capture), compiled=False)
    found, own_error = collect(logs(capture), compiled=True)
    assert str(error) == str(own_error)
    assert_same(found, expected)


# Images made by chance


@st.composite
def made_logs(draw: st.DrawFn) -> bytes:
    """A log with one table of random columns and rows events of all kinds, some with partial
    images."""
    specs = draw(st.lists(st.sampled_from(SPECS), min_size=1, max_size=12))
    events = [build.gtid(1), _table_map(draw, specs)]
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from([30, 31, 32, 23, 24, 25]))
        bitmaps = [_bitmap(draw, len(specs)) for _ in range(2 if kind in (31, 24) else 1)]
        images = b""
        for _ in range(draw(st.integers(1, 4))):
            images += b"".join(_image(draw, specs, bitmap) for bitmap in bitmaps)
        head = (
            struct.pack("<IHH", 1, 0, 1)
            + (struct.pack("<H", 2) if kind >= 30 else b"")
            + bytes([len(specs)])
        )
        size = (len(specs) + 7) // 8
        events.append(
            (kind, head + b"".join(bitmap.to_bytes(size, "little") for bitmap in bitmaps) + images)
        )
    return build.log(*events)


def _table_map(draw: st.DrawFn, specs: list[Spec]) -> tuple[int, bytes]:
    kind, body = build.table_map(
        types=bytes(spec.type_code for spec in specs),
        metadata=b"".join(spec.metadata for spec in specs),
    )
    numeric = sum(spec.type_code in (1, 2, 3, 8, 9, 13, 4, 5, 246) for spec in specs)
    signs = draw(st.binary(min_size=(numeric + 7) // 8, max_size=(numeric + 7) // 8))
    body += bytes([1, len(signs)]) + signs
    collations = b"".join(
        draw(st.sampled_from([b"\x2d", b"\x3f", b"\x08", b"\x0b"]))
        for spec in specs
        if spec.character
    )
    body += bytes([3, len(collations)]) + collations
    enums = sum(spec.type_code == 254 and spec.metadata[0] == 247 for spec in specs)
    if enums and draw(st.booleans()):
        labels = b"\x02\x01a\x02bc" * enums
        body += bytes([6, len(labels)]) + labels
    return kind, body


def _bitmap(draw: st.DrawFn, width: int) -> int:
    everything = (1 << width) - 1
    return draw(st.one_of(st.just(everything), st.integers(1, everything)))


def _image(draw: st.DrawFn, specs: list[Spec], bitmap: int) -> bytes:
    present = [spec for at, spec in enumerate(specs) if bitmap >> at & 1]
    nulls = draw(st.one_of(st.just(0), st.integers(0, (1 << len(present)) - 1)))
    values = b"".join(draw(spec.values) for at, spec in enumerate(present) if not nulls >> at & 1)
    return nulls.to_bytes((len(present) + 7) // 8, "little") + values


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(content=made_logs())
def test_any_image_is_decoded_alike(content: bytes, tmp_path: Path) -> None:
    log = build.write(tmp_path, content)
    expected, error = collect([log], compiled=False)
    found, own_error = collect([log], compiled=True, threads=1)
    assert error is None and own_error is None
    assert_same(found, expected)


# Values known by hand


def one_value(
    tmp_path: Path, spec: tuple[int, bytes], value: bytes, *, compiled: bool, optional: bytes = b""
) -> dict[str, Any]:
    kind, body = build.table_map(types=bytes([spec[0]]), metadata=spec[1])
    log = build.write(tmp_path, build.log((kind, body + optional), build.rows(30, b"\0" + value)))
    (batch,) = read_batches([log], compiled=compiled)
    row: dict[str, Any] = batch.data.to_pylist()[0]
    return row


NINES = bytes.fromhex("85f5e0ff" + "3b9ac9ff" * 6 + "03e7")
"""The largest DECIMAL(65,30)"""
VALUES: list[tuple[str, tuple[int, bytes], bytes, bytes, Any]] = [
    ("tinyint", (1, b""), b"\xff", b"", -1),
    ("tinyint unsigned", (1, b""), b"\xff", b"\x01\x01\x80", 255),
    ("mediumint", (9, b""), b"\x00\x00\x80", b"", -8388608),
    ("mediumint unsigned", (9, b""), b"\x00\x00\x80", b"\x01\x01\x80", 8388608),
    ("bigint unsigned", (8, b""), b"\xff" * 8, b"\x01\x01\x80", 2**64 - 1),
    ("bit", (16, b"\x04\x01"), b"\x0a\xbc", b"", 0xABC),
    ("year", (13, b""), b"\x7b", b"", 2023),
    ("year zero", (13, b""), b"\x00", b"", 0),
    ("decimal", (246, b"\x04\x02"), b"\x7f\xfe", b"", Decimal("0.01") * -1),
    ("decimal of 65 digits", (246, b"\x41\x1e"), NINES, b"", Decimal("9" * 35 + "." + "9" * 30)),
    ("negative", (246, b"\x41\x1e"), bytes(byte ^ 0xFF for byte in NINES), b"",
     Decimal("-" + "9" * 35 + "." + "9" * 30)),
    ("date", (10, b""), (2024 << 9 | 2 << 5 | 29).to_bytes(3, "little"), b"",
     datetime.date(2024, 2, 29)),
    ("datetime", (18, b"\x02"), bytes.fromhex("99b2bac8b8") + b"\x32", b"",
     datetime.datetime(2024, 2, 29, 12, 34, 56, 500_000)),
    ("time", (19, b"\x00"), bytes.fromhex("7fef58"), b"",
     -datetime.timedelta(hours=1, minutes=2, seconds=40)),
    ("time fraction", (19, b"\x02"), bytes.fromhex("7fffff") + b"\xff", b"",
     -datetime.timedelta(milliseconds=10)),
    ("timestamp", (17, b"\x00"), struct.pack(">I", 86400), b"",
     datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC)),
    ("enum", (254, b"\xf7\x01"), b"\x02", b"\x06\x06\x02\x01a\x02bc", b"bc"),
    ("set", (254, b"\xf8\x03"), b"\x01\x00\x80", b"", 0x800001),
    ("varchar utf8mb4", (15, b"\x50\x00"), b"\x03\xe2\x82\xac", b"\x03\x01\x2d", "€"),
    ("varchar latin1", (15, b"\x50\x00"), b"\x01\x80", b"\x03\x01\x08", b"\x80"),
]  # fmt: skip


@pytest.mark.parametrize("compiled", [True, False], ids=["kernels", "plain"])
@pytest.mark.parametrize(
    ("spec", "value", "optional", "expected"),
    [case[1:] for case in VALUES],
    ids=[case[0] for case in VALUES],
)
def test_a_value(
    tmp_path: Path,
    spec: tuple[int, bytes],
    value: bytes,
    optional: bytes,
    expected: Any,
    compiled: bool,
) -> None:
    row = one_value(tmp_path, spec, value, compiled=compiled, optional=optional)
    assert row["@1"] == expected
    assert row["binlog_raw"] is None


RAW: list[tuple[str, tuple[int, bytes], bytes, bytes, bytes]] = [
    ("zero date", (10, b""), b"\0\0\0", b"", b"\0\0\0"),
    ("30 February", (10, b""), (2024 << 9 | 2 << 5 | 30).to_bytes(3, "little"), b"",
     (2024 << 9 | 2 << 5 | 30).to_bytes(3, "little")),
    ("zero datetime", (18, b"\x00"), bytes.fromhex("8000000000"), b"", bytes.fromhex("8000000000")),
    ("zero timestamp", (17, b"\x03"), bytes(6), b"", bytes(6)),
    ("not UTF-8", (15, b"\x50\x00"), b"\x02a\xff", b"\x03\x01\x2d", b"a\xff"),
    ("decimal with a group of 10^9", (246, b"\x09\x00"), bytes.fromhex("bb9aca00"), b"",
     bytes.fromhex("bb9aca00")),
    ("enum beyond its labels", (254, b"\xf7\x01"), b"\x03", b"\x06\x06\x02\x01a\x02bc", b"\x03"),
]  # fmt: skip


@pytest.mark.parametrize("compiled", [True, False], ids=["kernels", "plain"])
@pytest.mark.parametrize(
    ("spec", "value", "optional", "kept"), [case[1:] for case in RAW], ids=[case[0] for case in RAW]
)
def test_what_arrow_cannot_hold_is_kept_beside(
    tmp_path: Path,
    spec: tuple[int, bytes],
    value: bytes,
    optional: bytes,
    kept: bytes,
    compiled: bool,
) -> None:
    row = one_value(tmp_path, spec, value, compiled=compiled, optional=optional)
    assert row["@1"] is None
    assert row["binlog_raw"] == [{"column": 0, "bytes": kept}]


@pytest.mark.parametrize("compiled", [True, False], ids=["kernels", "plain"])
def test_where_rows_come_from(tmp_path: Path, compiled: bool) -> None:
    pair = build.int_image(1) + build.int_image(2)
    changes = build.rows(31, pair + pair), build.rows(32, build.int_image(2))
    log = build.write(tmp_path, build.log(build.gtid(1), build.table_map(), *changes))
    (batch,) = read_batches([log], compiled=compiled)
    data = batch.data
    assert (batch.name, batch.file) == ("d.t", "binlog.000001")
    assert data["binlog_kind"].to_pylist() == ["update_before", "update_after"] * 2 + ["delete"]
    assert data["binlog_row"].to_pylist() == [0, 0, 1, 1, 0]
    assert data["binlog_event"].to_pylist() == [3] * 4 + [4]
    assert data["@1"].to_pylist() == [1, 2, 1, 2, 2]
    assert data["binlog_present"].to_pylist() == [b"\x01"] * 5
    content = log.read_bytes()
    position = data["binlog_position"][0].as_py()
    assert content[position + 4] == 31
    assert content[data["binlog_gtid_position"][0].as_py() + 4] == 33


@pytest.mark.parametrize("compiled", [True, False], ids=["kernels", "plain"])
def test_columns_that_an_image_lacks_are_null(tmp_path: Path, compiled: bool) -> None:
    head = struct.pack("<IHHH", 1, 0, 1, 2) + b"\x02\x01\x02"
    event = (31, head + build.int_image(7) + build.int_image(8))
    log = build.write(tmp_path, build.log(build.table_map(types=b"\x03\x03"), event))
    (batch,) = read_batches([log], compiled=compiled)
    assert batch.data["@1"].to_pylist() == [7, None]
    assert batch.data["@2"].to_pylist() == [None, 8]
    assert batch.data["binlog_present"].to_pylist() == [b"\x01", b"\x02"]


@pytest.mark.parametrize("compiled", [True, False], ids=["kernels", "plain"])
def test_a_json_diff_is_marked(tmp_path: Path, compiled: bool) -> None:
    document, diff = b"\x02\0\0\0\x04\x01", b"\x03\0\0\0\x02\x01$"
    kind, body = build.table_map(types=b"\xf5\xf5", metadata=b"\x04\x04")
    images = b"\0" + document + document + b"\x01\x02\0" + document + diff
    log = build.write(tmp_path, build.log((kind, body), build.rows(39, images, width=2)))
    (batch,) = read_batches([log], compiled=compiled)
    assert batch.data["@2"].to_pylist() == [document[4:], diff[4:]]
    assert batch.data["binlog_diff"].to_pylist() == [None, [1]]


@pytest.mark.parametrize("compiled", [True, False], ids=["kernels", "plain"])
def test_an_image_without_columns_is_one_row(tmp_path: Path, compiled: bool) -> None:
    event = (30, struct.pack("<IHHH", 1, 0, 1, 2) + b"\x01\x00")
    (batch,) = read_batches(
        [build.write(tmp_path, build.log(build.table_map(), event))], compiled=compiled
    )
    assert batch.data["@1"].to_pylist() == [None]


@pytest.mark.parametrize("compiled", [True, False], ids=["kernels", "plain"])
def test_compressed_events(tmp_path: Path, compiled: bool) -> None:
    inner = b"".join(
        build.event(*item, checksum=False)
        for item in (build.table_map(), build.rows(30, build.int_image(5) * 3))
    )
    payload = build.write(tmp_path, build.log(build.gtid(1), build.payload(inner)))
    (batch,) = read_batches([payload], compiled=compiled)
    assert batch.data["@1"].to_pylist() == [5, 5, 5]
    assert batch.data["binlog_event"].to_pylist() == [4] * 3
    assert payload.read_bytes()[batch.data["binlog_position"][0].as_py() + 4] == 40
    kind, body = build.rows(23, b"")
    mariadb = build.log(
        build.table_map(),
        (166, body + build.compressed(build.int_image(6))),
        version="10.11.6-MariaDB",
    )
    (batch,) = read_batches([build.write(tmp_path, mariadb)], compiled=compiled)
    assert (kind, batch.data["@1"].to_pylist()) == (23, [6])


def test_a_payload_larger_than_a_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is unpacked piece by piece, events longer than a piece included, and becomes several
    chunks."""
    from applier.binlog.columnar import scanner

    monkeypatch.setattr(scanner, "PIECE_BYTES", 50)
    monkeypatch.setattr(scanner, "REFS_PER_CHUNK", 3)
    events = [build.table_map()] + [
        build.rows(30, build.int_image(number) * number) for number in range(1, 40)
    ]
    inner = b"".join(build.event(*item, checksum=False) for item in events)
    log = build.write(
        tmp_path,
        build.log(build.payload(inner), build.table_map(), build.rows(30, build.int_image(7))),
    )
    expected, _ = collect([log], compiled=False)
    found, error = collect([log], compiled=True, chunk_bytes=200)
    assert error is None
    assert_same(found, expected)
    assert len(list(read_batches([log], compiled=True, chunk_bytes=200))) > 10


@pytest.mark.parametrize("claimed", [10, 100_000], ids=["more than it claims", "less"])
def test_a_payload_of_another_size_than_it_claims(tmp_path: Path, claimed: int) -> None:
    inner = build.event(*build.table_map(), checksum=False) + build.event(
        *build.rows(30, build.int_image(5)), checksum=False
    )
    log = build.write(tmp_path, build.log(build.payload(inner, size=claimed)))
    with pytest.raises(InputError, match="claims"):
        list(read_batches([log], compiled=True))


def test_large_values_need_several_batches(tmp_path: Path) -> None:
    """The first guess of the room for strings is too small here, also for a single value."""
    types, metadata = b"\xfc" * 40, b"\x04" * 40
    events = [build.table_map(types=types, metadata=metadata)]
    for size in (10, 300_000, 20, 500_000):
        values = b"".join(struct.pack("<I", length) + bytes(length) for length in [3] * 39 + [size])
        events.append(build.rows(30, bytes(5) + values, width=40))
    log = build.write(tmp_path, build.log(*events))
    expected, _ = collect([log], compiled=False)
    found, error = collect([log], compiled=True)
    assert error is None
    assert_same(found, expected)


def test_only_some_tables(tmp_path: Path) -> None:
    other = [build.table_map(2, table=b"u"), build.rows(30, build.int_image(2), 2)]
    events = [build.table_map(1), build.rows(30, build.int_image(1)), *other]
    log = build.write(tmp_path, build.log(*events))
    for compiled in (True, False):
        assert [batch.name for batch in read_batches([log], ["d.u"], compiled=compiled)] == ["d.u"]


# Damage


def damaged(content: bytes, seed: int) -> bytes:
    chance = random.Random(seed)
    data = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 5])):
        at = chance.randrange(4, len(data))
        what = chance.random()
        if what < 0.75:
            data[at] = chance.choice([0, 1, 255, 254, 252, chance.randrange(256)])
        elif what < 0.9:
            del data[at:]
            data += b"\0" * (len(data) < 6)
        else:
            del data[at : at + chance.randrange(1, 9)]
            data += b"\0" * 4
    return bytes(data)


@pytest.mark.parametrize("seed", range(60))
def test_damage_is_an_error_or_is_read_alike(seed: int, tmp_path: Path) -> None:
    sources = [
        log for capture in captures() for log in logs(capture) if log.stat().st_size < 60_000
    ]
    log = build.write(tmp_path, damaged(random.Random(seed).choice(sources).read_bytes(), seed))
    expected, error = collect([log], compiled=False, verify_checksum=False)
    found, own_error = collect([log], compiled=True, verify_checksum=False)
    assert (error is None) == (own_error is None)
    if error is None:
        assert_same(found, expected)
    assert own_error is None or own_error.file


@pytest.mark.parametrize("compiled", [True, False], ids=["kernels", "plain"])
def test_an_error_names_its_place_and_comes_after_the_good_rows(
    tmp_path: Path, compiled: bool
) -> None:
    good = build.log(build.table_map(), build.rows(30, build.int_image(1)))
    log = build.write(tmp_path, good + build.event(30, build.rows(30, b"\0\1\2")[1], at=len(good)))
    with pytest.raises(InputError) as caught:
        list(read_batches([log], compiled=compiled))
    assert (caught.value.file, caught.value.position, caught.value.table) == (
        "binlog.000001",
        len(good),
        "d.t",
    )
    log.write_bytes(
        good + build.event(30, build.rows(30, build.int_image(1), table_id=9)[1], at=len(good))
    )
    found, error = collect([log], compiled=compiled)
    assert error is not None and "table map" in error.message and error.position == len(good)
    assert [table.num_rows for table in found.values()] == [1]


@pytest.mark.parametrize("compiled", [True, False], ids=["kernels", "plain"])
def test_checksums_are_verified(tmp_path: Path, compiled: bool) -> None:
    content = bytearray(build.log(build.table_map(), build.rows(30, build.int_image(1))))
    content[-6] ^= 1
    log = build.write(tmp_path, bytes(content))
    with pytest.raises(InputError, match="checksum"):
        list(read_batches([log], compiled=compiled))
    assert len(list(read_batches([log], compiled=compiled, verify_checksum=False))) == 1


# The kernel cache


@pytest.mark.parametrize("kind", [34, 33, 15, 4, 3, 35])
def test_what_cannot_stand_inside_compressed_content_is_refused_by_both(
    kind: int, tmp_path: Path
) -> None:
    """A GTID event inside a payload was passed over by the kernels and refused by Python."""
    inner = b"".join(
        build.event(*event, checksum=False)
        for event in (build.query(b"BEGIN"), (kind, bytes(60)), build.xid())
    )
    path = build.write(tmp_path, build.log(build.gtid(1), build.payload(inner)))
    _, error = collect([path], compiled=False)
    _, own_error = collect([path], compiled=True)
    assert error is not None
    assert own_error is not None
    assert (own_error.file, own_error.position) == (error.file, error.position)


@pytest.mark.parametrize("kind", [30, 31, 32, 23, 24, 25])
@pytest.mark.parametrize("compiled", [True, False])
def test_rows_without_columns_that_have_bytes_all_the_same(
    kind: int, compiled: bool, tmp_path: Path
) -> None:
    """No image takes any of them: the kernel once made rows of nothing until the memory was used
    up."""
    bitmaps = b"\0" * (2 if kind in (31, 24) else 1)
    head = (
        struct.pack("<IHH", 1, 0, 1)
        + (struct.pack("<H", 2) if kind >= 30 else b"")
        + b"\x01"
        + bitmaps
    )
    path = build.write(
        tmp_path, build.log(build.gtid(1), build.table_map(), (kind, head + b"\0\x80\1\1"))
    )
    batches, error = collect([path], compiled=compiled)
    assert error is not None
    assert "runs past the end" in error.message
    assert not batches


@pytest.mark.parametrize(
    ("type_code", "metadata"),
    [
        (246, b"\0\0"),
        (246, b"\x42\0"),
        (246, b"\x05\x06"),
        (16, b"\0\0"),
        (16, b"\0\x09"),
        (16, b"\x09\x01"),
    ],
)
@pytest.mark.parametrize("compiled", [True, False])
def test_sizes_that_no_type_has(
    type_code: int, metadata: bytes, compiled: bool, tmp_path: Path
) -> None:
    """A DECIMAL without digits has no first byte to look at; a BIT has at most 64 bits."""
    made = build.table_map(types=bytes([type_code]), metadata=metadata)
    batches, error = collect(
        [build.write(tmp_path, build.log(build.gtid(1), made, build.rows(30, bytes(300))))],
        compiled=compiled,
    )
    assert error is not None
    assert error.position is not None
    assert not batches
