"""The kernel's parts that write one value, beside what Python writes for it."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applier.binlog.columnar.known_heads import address
from applier.binlog.columnar.text import text_lines
from applier.binlog.columnar.text.text_control import Open, powers_of_ten
from applier.binlog.columnar.text.text_doubles import load_float, put_double
from applier.binlog.columnar.text.text_json import put_json
from applier.binlog.columnar.text.text_values import VALUE_ROOM, kernel, put_text
from applier.binlog.images.row_values import value_text
from applier.binlog.types import json
from applier.errors import InputError

TENS = np.array(powers_of_ten(), np.int64)
PRINTABLE = text_lines._printable()
FRAMES = np.zeros((json.MAX_DEPTH + 1, Open.SIZE_OF_ENTRY), np.int64)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.integers(-70_000, 70_000)
    | st.integers(0, (1 << 64) - 1).map(json.Unsigned)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-1e6, 1e6).map(lambda number: round(number, 2))
    | st.text(max_size=20)
    | st.sampled_from(["", "it's", 'a"b', "a\\b", "é한", "x" * 200])
    | st.binary(max_size=8).map(lambda data: json.OpaqueValue(json.DATETIME, data))
)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=12,
)
BITS = st.integers(0, (1 << 64) - 1)


@kernel
def double_of_float(at: int, start: int, tens: int) -> int:
    return put_double(at, load_float(start), tens)


def written(kernel_part: Any, data: bytes, *more: int) -> str | None:
    """What a part of the kernel writes for these bytes; None where it leaves them to Python."""
    room = VALUE_ROOM + 2 * len(data)
    out = np.full(room + 16, 0xAA, np.uint8)
    source = np.frombuffer(data + bytes(8), np.uint8)
    start = address(source)
    end = kernel_part(address(out), start, start + len(data), *more)
    assert out[room:].tobytes() == b"\xaa" * 16, "nothing is written beyond the room there is"
    return out[: end - address(out)].tobytes().decode() if end else None


def double_text(value: float) -> str:
    out = np.zeros(64, np.uint8)
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return out[: put_double(address(out), bits, address(TENS)) - address(out)].tobytes().decode()


def float_text(data: bytes) -> str:
    out, source = np.zeros(64, np.uint8), np.frombuffer(data + bytes(8), np.uint8)
    end = double_of_float(address(out), address(source), address(TENS))
    return out[: end - address(out)].tobytes().decode()


def json_text(data: bytes) -> str | None:
    return written(put_json, data, *map(address, (FRAMES, PRINTABLE, TENS)))


def test_doubles_of_all_sizes_are_written_as_python_writes_them() -> None:
    edges = [0.0, -0.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 9007199254740993.0]
    edges += [sign * base * 10.0**power for power in range(-323, 309) for base in (1, 2.5, 9.999)
              for sign in (1, -1)]  # fmt: skip
    edges += [2.0**power for power in range(-1074, 1024)]
    random = np.random.default_rng(20261126)
    some = random.integers(-(1 << 63), (1 << 63) - 1, 100_000).astype(np.int64).view(np.float64)
    short = [
        round(number, digits)
        for digits in range(8)
        for number in (random.random(2000) * 1e6).tolist()
    ]
    for value in filter(math.isfinite, [*edges, *some.tolist(), *short]):
        assert double_text(value) == repr(value)
    for value in (float("nan"), float("inf"), float("-inf")):
        assert double_text(value).lstrip("-") == "0.0"


@given(BITS)
@settings(max_examples=500)
def test_any_float(bits: int) -> None:
    data = struct.pack("<Q", bits)[:4]
    (value,) = struct.unpack("<f", data)
    if value == value and abs(value) != float("inf"):
        assert float_text(data) == repr(value)


@given(
    st.text()
    | st.text("'aé€한\x7f\u00ad😀 x0")
    | st.binary().map(lambda data: data.decode("latin-1"))
)
@settings(max_examples=500)
def test_any_text(text: str) -> None:
    found = written(put_text, text.encode("utf-8", "surrogatepass"), address(PRINTABLE))
    if found is None:
        is_plain = text.isprintable() and all(ord(char) < 0x10000 for char in text)
        assert not is_plain or text.startswith("0x")
    else:
        assert found == value_text(text)


@given(st.binary(max_size=12))
@settings(max_examples=500)
def test_any_bytes_as_text(data: bytes) -> None:
    found = written(put_text, data, address(PRINTABLE))
    if found is not None:
        assert found == value_text(data.decode("utf-8"))
    ascii_only = written(put_text, data, 0)
    if ascii_only is not None:
        assert data.isascii()
        assert ascii_only == found


@given(DOCUMENTS)
@settings(max_examples=500)
def test_any_document(document: Any) -> None:
    data = json.encode(document)
    found = json_text(data)
    if found is not None:
        assert found == value_text(json.to_text(json.decode(data)))


PLAIN = """
{"n": 1, "tags": ["x", 7]} # [] # {} # [[], {}, [{}]] # -5 # "it's" # null # [true, false, null] #
[1.5, -0.001, 123456.75] # {"é": "한"} # [4294967296] # {"a": 1, "b": 2, "aa": -70000}
"""


def test_plain_documents_are_written_by_the_kernel() -> None:
    for text in (*PLAIN.split("#"), "[" * 100 + "]" * 100, str([70000] * 30000)):
        data = json.encode(json.parse_text(text))
        assert json_text(data) == value_text(json.to_text(json.decode(data))), text


@given(DOCUMENTS, st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=3))
@settings(max_examples=1000)
def test_a_damaged_document_is_left_to_python_or_read_alike(
    document: Any, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(json.encode(document))
    for at, byte in changes:
        data[at % len(data)] = byte
    found = json_text(bytes(data))
    if found is not None:
        assert found == value_text(json.to_text(json.decode(bytes(data))))


def test_values_that_share_their_bytes_are_left_to_python() -> None:
    inner = json.encode([])[1:]
    entries = b"".join(bytes([json.SMALL_ARRAY]) + struct.pack("<H", 10) for _ in range(2))
    data = bytes([json.SMALL_ARRAY]) + struct.pack("<HH", 2, 14) + entries + inner
    assert json_text(data) is None
    with pytest.raises(InputError, match="share their bytes"):
        json.decode(data)
