"""The part of the text kernel that writes a JSON document as the server prints it.

It reads what `applier.binlog.types.json` reads, and leaves to it whatever is out of the ordinary:
documents that are damaged, MySQL's own types in JSON, escapes, doubles with an exponent.
"""

from __future__ import annotations

from applier.binlog.columnar.memory import (
    kernel,
    load1,
    load2,
    load8,
    store1,
    store2,
    store8,
)
from applier.binlog.columnar.text.text_control import Open
from applier.binlog.columnar.text.text_doubles import EXPONENT, put_double
from applier.binlog.columnar.text.text_values import (
    DOUBLE_QUOTE,
    QUOTE,
    VALUE_ROOM,
    has_byte,
    put_number,
    put_quoted,
    put_signed,
    signed,
)
from applier.binlog.columnar.value_kernels import little
from applier.binlog.types.json import (
    DOUBLE,
    INT16,
    INT32,
    INT64,
    LARGE_ARRAY,
    LARGE_OBJECT,
    LITERAL,
    MAX_DEPTH,
    SMALL_OBJECT,
    STRING,
    UINT16,
    UINT32,
    UINT64,
)

SCALAR_ROOM = 32
"""More than a number or a literal takes, with what stands between two values."""
COMMA_SPACE, COLON_SPACE = 0x202C, 0x203A
OPENING, CLOSING = (0x5B, 0x7B), (0x5D, 0x7D)
"""Of an array, and of an object."""
LITERAL_WORDS = (0x6C6C756E, 0x65757274, 0x736C6166)
"""The first four letters of null, true and false, little-endian."""
LARGEST_FIXED_BITS = 0x430C6BF526340000
"""Those of 1e15, from which on the server writes exponents before Python does."""


@kernel
def spend(left: int, size: int) -> bool:
    """Takes bytes from what a document has left, at this address. False: values share theirs."""
    store8(left, load8(left) - size)
    return load8(left) >= 0


@kernel
def put_string(at: int, stop: int, start: int, end: int, printable: int, left: int) -> int:
    """Text between double quotes; 0 where it needs an escape, or has no room before `stop`."""
    if at + 2 * (end - start) + 2 > stop or not spend(left, end - start):
        return 0
    return put_quoted(at, start, end, printable, DOUBLE_QUOTE)


@kernel
def put_sized(at: int, stop: int, start: int, end: int, printable: int, left: int) -> int:
    """A string behind its length, 7 bits a byte; of up to 2 MB."""
    size = shift = 0
    while start < end and shift < 21:
        byte = load1(start)
        size |= (byte & 0x7F) << shift
        start += 1
        shift += 7
        if byte < 0x80:
            if size > end - start:
                return 0
            return put_string(at, stop, start, start + size, printable, left)
    return 0


@kernel
def put_literal(at: int, code: int) -> int:
    """null, true or false."""
    if code > 2:
        return 0
    word = LITERAL_WORDS[code]
    for place in range(4):
        store1(at + place, word >> (8 * place) & 0xFF)
    if code < 2:
        return at + 4
    store1(at + 4, EXPONENT)
    return at + 5


@kernel
def put_plain_double(at: int, start: int, tens: int) -> int:
    """A double that the server and Python write alike."""
    bits = load8(start)
    if bits & 0x7FFFFFFFFFFFFFFF >= LARGEST_FIXED_BITS:
        return 0
    end = put_double(at, bits, tens)
    return 0 if has_byte(at, end, EXPONENT) else end


@kernel
def scalar_size(kind: int) -> int:
    """Bytes of a number; 0 for what is none."""
    if kind in (INT16, UINT16):
        return 2
    if kind in (INT32, UINT32):
        return 4
    return 8 if kind in (INT64, UINT64, DOUBLE) else 0


@kernel
def put_scalar(at: int, kind: int, start: int, end: int, tens: int) -> int:
    """A number or a literal."""
    if kind == LITERAL:
        return put_literal(at, load1(start)) if start < end else 0
    size = scalar_size(kind)
    if size == 0 or size > end - start:
        return 0
    if kind == DOUBLE:
        return put_plain_double(at, start, tens)
    value = little(start, size)
    if kind in (UINT16, UINT32, UINT64):
        return put_number(at, value)
    return put_signed(at, signed(value, size))


@kernel
def is_in_order(before: int, before_size: int, key: int, size: int) -> bool:
    """Whether a key comes behind another: the longer one, of two of one length the greater."""
    if before_size != size:
        return before_size < size
    for place in range(size):
        left, right = load1(before + place), load1(key + place)
        if left != right:
            return left < right
    return False


@kernel
def is_object(kind: int) -> int:
    """1 for an object, 0 for an array."""
    return 1 if kind in (SMALL_OBJECT, LARGE_OBJECT) else 0


@kernel
def open_container(frame: int, kind: int, data: int, end: int, left: int) -> bool:
    """Begins with an array or an object whose bytes are in [data, end). False: it is damaged."""
    width = 4 if kind in (LARGE_OBJECT, LARGE_ARRAY) else 2
    if 2 * width > end - data:
        return False
    count, size = little(data, width), little(data + width, width)
    values = 2 * width + is_object(kind) * count * (width + 2)
    if size > end - data or values + count * (width + 1) > size:
        return False
    if not spend(left, values + count * (width + 1)):
        return False
    store8(frame + 8 * Open.KIND, kind)
    store8(frame + 8 * Open.DATA, data)
    store8(frame + 8 * Open.END, data + size)
    store8(frame + 8 * Open.WIDTH, width)
    store8(frame + 8 * Open.COUNT, count)
    store8(frame + 8 * Open.NEXT, 0)
    store8(frame + 8 * Open.VALUES, data + values)
    return True


@kernel
def put_key(at: int, stop: int, frame: int, number: int, printable: int, left: int) -> int:
    """The key of a member and what stands behind it."""
    data, width = load8(frame + 8 * Open.DATA), load8(frame + 8 * Open.WIDTH)
    entry = data + 2 * width + number * (width + 2)
    key, length = data + little(entry, width), load2(entry + width)
    if key + length > load8(frame + 8 * Open.END):
        return 0
    if number:
        entry -= width + 2
        if not is_in_order(data + little(entry, width), load2(entry + width), key, length):
            return 0
    at = put_string(at, stop, key, key + length, printable, left)
    if at:
        store2(at, COLON_SPACE)
        at += 2
    return at


@kernel
def begin_member(at: int, stop: int, frame: int, printable: int, left: int) -> int:
    """What stands before the next value of a container; where that is goes into the frame."""
    number, width = load8(frame + 8 * Open.NEXT), load8(frame + 8 * Open.WIDTH)
    store8(frame + 8 * Open.NEXT, number + 1)
    if number:
        store2(at, COMMA_SPACE)
        at += 2
    if is_object(load8(frame + 8 * Open.KIND)):
        at = put_key(at, stop, frame, number, printable, left)
    entry = load8(frame + 8 * Open.VALUES) + number * (width + 1)
    kind, start = load1(entry), entry + 1
    if kind != LITERAL and (scalar_size(kind) == 0 or scalar_size(kind) > width):
        start = load8(frame + 8 * Open.DATA) + little(start, width)
        if start >= load8(frame + 8 * Open.END):
            return 0
    store8(frame + 8 * Open.VALUE_KIND, kind)
    store8(frame + 8 * Open.VALUE_START, start)
    return at


@kernel
def put_document(
    at: int, stop: int, kind: int, data: int, end: int, frames: int, printable: int, tens: int
) -> int:
    """The value of a kind whose bytes are in [data, end). `frames`: room for MAX_DEPTH `Open` and
    one word."""
    depth, left = 0, frames + 8 * Open.SIZE_OF_ENTRY * MAX_DEPTH
    store8(left, end - data + 1)
    while at and at + SCALAR_ROOM <= stop:
        frame = frames + 8 * Open.SIZE_OF_ENTRY * depth
        if kind == STRING:
            at = put_sized(at, stop, data, end, printable, left)
        elif kind > LARGE_ARRAY:
            at = put_scalar(at, kind, data, end, tens)
        elif depth == MAX_DEPTH or not open_container(frame, kind, data, end, left):
            return 0
        else:
            store1(at, OPENING[is_object(kind)])
            at += 1
            depth += 1
        frame = frames + 8 * Open.SIZE_OF_ENTRY * (depth - 1)
        while at and depth and load8(frame + 8 * Open.NEXT) == load8(frame + 8 * Open.COUNT):
            store1(at, CLOSING[is_object(load8(frame + 8 * Open.KIND))])
            at = at + 1 if at < stop else 0
            depth -= 1
            frame -= 8 * Open.SIZE_OF_ENTRY
        if at == 0 or depth == 0:
            return at
        if at + SCALAR_ROOM > stop:
            return 0
        at = begin_member(at, stop, frame, printable, left)
        kind, data = load8(frame + 8 * Open.VALUE_KIND), load8(frame + 8 * Open.VALUE_START)
        end = load8(frame + 8 * Open.END)
    return 0


@kernel
def put_json(at: int, start: int, end: int, frames: int, printable: int, tens: int) -> int:
    """A document between quotes; 0 for one that Python has to write. `frames` as for
    `put_document`, `printable` and `tens` as for `put_text` and `put_double`."""
    if start >= end:
        return 0
    stop = at + VALUE_ROOM + 2 * (end - start) - 2
    store1(at, QUOTE)
    at = put_document(at + 1, stop, load1(start), start + 1, end, frames, printable, tens)
    if at == 0:
        return 0
    store1(at, QUOTE)
    return at + 1
