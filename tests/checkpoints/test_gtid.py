"""GTID sets: text, bytes, and what sets can do, against Python's own sets of numbers."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.gtid import GtidError, GtidSet, MariadbGtid, MariadbGtidSet, parse_gtid_set

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        (f"{A}:1", f"{A}:1"),
        (f"{A.upper()}:1-3:4-5:9", f"{A}:1-5:9"),
        (f" {A} : 5 - 9 ,\n{A}:1-4 ", f"{A}:1-9"),
        (f"{B}:1,{A}:7", f"{A}:7,{B}:1"),
        (f"{A}:tag:3:1-2:other:4", f"{A}:other:4:tag:1-3"),
        (f"{A}:1-2:Tag:3", f"{A}:1-2:tag:3"),
        (f"{A.replace('-', '')}:9", f"{A}:9"),
        (f"{A}:9-5", ""),
        (f"{A}:9223372036854775806", f"{A}:9223372036854775806"),
    ],
)
def test_text(text: str, shown: str) -> None:
    assert str(GtidSet(text)) == shown
    assert GtidSet(shown) == GtidSet(text)
    assert GtidSet.decode(GtidSet(text).encode()) == GtidSet(text)


@pytest.mark.parametrize(
    "text",
    ["x:1", A, f"{A}:", f"{A}:0", f"{A}:-5", f"{A}:9tag:1", f"{A}:1;2", f"{A}:9223372036854775807",
     f"{A}:{'t' * 33}:1",
     f"{A}:{'9' * 5000}", f"{A}:٣"],
)  # fmt: skip
def test_text_refused(text: str) -> None:
    with pytest.raises(GtidError):
        GtidSet(text)


def test_bytes_as_the_server_writes_them() -> None:
    raw = bytes.fromhex(A.replace("-", ""))
    assert GtidSet(f"{A}:1-5:8").encode() == struct.pack("<Q", 1) + raw + struct.pack(
        "<QQQQQ", 2, 1, 6, 8, 9
    )
    tagged = (
        struct.pack("<Q", 2 << 8 | 1 | 1 << 56)
        + raw
        + b"\0"
        + struct.pack("<QQQ", 1, 1, 2)
        + raw
        + b"\x06tag"
        + struct.pack("<QQQ", 1, 3, 4)
    )
    assert GtidSet(f"{A}:1:tag:3").encode() == tagged
    assert GtidSet.decode(tagged) == GtidSet(f"{A}:1:tag:3")
    assert GtidSet().encode() == bytes(8)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"\0\0\0", "ends too early"),
        (struct.pack("<Q", 1), "ends too early"),
        (struct.pack("<Q", 1) + bytes(16) + struct.pack("<QQQ", 1, 5, 5), "out of order"),
        (struct.pack("<Q", 1) + bytes(16) + struct.pack("<QQQQQ", 2, 5, 7, 7, 9), "out of order"),
        (struct.pack("<Q", 1) + bytes(16) + struct.pack("<QQQ", 1, 0, 5), "out of order"),
        (struct.pack("<Q", 1) + bytes(16) + struct.pack("<QQQ", 1, 1, 1 << 63), "not an interval"),
        (struct.pack("<Q", 1) + bytes(16) + struct.pack("<QQQ", 1 << 60, 1, 2), "ends too early"),
        (struct.pack("<Q", 1 << 40), "ends too early"),
        (struct.pack("<Q", 2 << 56 | 1), "format 2"),
        (bytes(8) + b"x", "1 bytes follow"),
        (struct.pack("<Q", 1 << 8 | 1 | 1 << 56) + bytes(16) + b"\x06ta", "ends too early"),
        (
            struct.pack("<Q", 1 << 8 | 1 | 1 << 56)
            + bytes(16)
            + b"\x04\xff\xff"
            + struct.pack("<QQQ", 1, 1, 2),
            "ends too early",
        ),
    ],
)
def test_bytes_refused(data: bytes, word: str) -> None:
    with pytest.raises(GtidError, match=word):
        GtidSet.decode(data)


numbers = st.sets(
    st.tuples(st.sampled_from([(A, ""), (A, "t"), (B, "")]), st.integers(1, 40)), max_size=40
)


def gtids(members: set[tuple[tuple[str, str], int]]) -> GtidSet:
    result = GtidSet()
    for (uuid, tag), number in members:
        result.add(uuid, number, tag)
    return result


@given(numbers, numbers)
def test_sets_behave_as_sets(
    left: set[tuple[tuple[str, str], int]], right: set[tuple[tuple[str, str], int]]
) -> None:
    one, two = gtids(left), gtids(right)
    assert one.union(two) == gtids(left | right)
    assert one.subtract(two) == gtids(left - right)
    assert one.issubset(two) == (left <= right)
    assert one.count() == len(left)
    assert bool(one) == bool(left)
    assert all(
        one.contains(uuid, number, tag) == (((uuid, tag), number) in left)
        for (uuid, tag), number in right
    )
    assert GtidSet(str(one)) == one
    assert GtidSet.decode(one.encode()) == one
    assert hash(GtidSet(str(one))) == hash(one)


@given(st.binary(max_size=120))
def test_any_bytes_are_a_set_or_refused(data: bytes) -> None:
    try:
        found = GtidSet.decode(data)
    except GtidError:
        return
    assert GtidSet.decode(found.encode()) == found


def test_mariadb() -> None:
    position = MariadbGtidSet("0-1-100, 7-2-5")
    assert str(position) == "0-1-100,7-2-5"
    assert MariadbGtid.parse("0-9-100") in position
    assert MariadbGtid.parse("0-1-101") not in position
    assert MariadbGtid.parse("3-1-1") not in position
    position.add(MariadbGtid(0, 2, 101))
    assert str(position) == "0-2-101,7-2-5"
    assert not MariadbGtidSet()
    with pytest.raises(GtidError, match="not a MariaDB GTID"):
        MariadbGtidSet("0-1")


def test_either_form() -> None:
    assert isinstance(parse_gtid_set("0-1-2"), MariadbGtidSet)
    assert isinstance(parse_gtid_set(f"{A}:1"), GtidSet)
    assert str(parse_gtid_set("4294967295-1-2,0-1-1")) == "0-1-1,4294967295-1-2"


def test_many_intervals_take_one_pass() -> None:
    """Each of these would be 10^10 steps if intervals were put in and taken out one by one."""
    count = 100_000
    backwards = ":".join(str(3 * number + 1) for number in reversed(range(count)))
    odd, even = (
        GtidSet(f"{A}:{backwards}"),
        GtidSet(
            f"{A}:" + ":".join(f"{3 * number + 1}-{3 * number + 2}" for number in range(count))
        ),
    )
    assert odd.count() == count
    assert odd.issubset(even)
    assert not even.issubset(odd)
    assert even.subtract(odd).count() == count
    assert odd.union(even) == even
    assert GtidSet.decode(even.encode()) == even


@pytest.mark.parametrize("tag", [b"A", b"a b", b"9", b"x" * 33])
def test_a_tag_that_is_none_in_bytes(tag: bytes) -> None:
    raw = (
        struct.pack("<Q", 1 << 8 | 1 | 1 << 56)
        + bytes(16)
        + bytes([len(tag) << 1])
        + tag
        + struct.pack("<QQQ", 1, 1, 2)
    )
    with pytest.raises(GtidError, match="tag"):
        GtidSet.decode(raw)


@pytest.mark.parametrize(
    ("count", "end"), [(1 << 40, 2), ((1 << 64) - 1, 2), (1, 1 << 63), (1, (1 << 64) - 1)]
)
def test_bytes_that_claim_too_much(count: int, end: int) -> None:
    with pytest.raises(GtidError):
        GtidSet.decode(struct.pack("<Q", 1) + bytes(16) + struct.pack("<QQQ", count, 1, end))
