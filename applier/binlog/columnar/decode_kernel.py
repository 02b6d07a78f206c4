"""The kernel that turns row images into Arrow buffers, steered by a description of the columns: one
for all tables.

Every length is checked against the end of the event before it is followed, and every buffer against
its capacity. When one is full the kernel stops at the start of an image, the batch is closed, and
the next one goes on there.
"""

from __future__ import annotations

from applier.binlog.columnar.control import (
    Col,
    ConversionKind,
    Decode,
    DecodeStatus,
    EventKind,
    Image,
    Note,
    Ref,
    RowKind,
)
from applier.binlog.columnar.memory import (
    copy_block,
    copy_bytes,
    fill_ones,
    kernel,
    load1,
    load2,
    load4,
    load8,
    store1,
    store2,
    store4,
    store8,
)
from applier.binlog.columnar.value_kernels import (
    INVALID,
    big,
    date_value,
    datetime_value,
    decimal_value,
    little,
    old_datetime_value,
    old_time_value,
    old_timestamp_value,
    put,
    time_value,
    timestamp_value,
)

COPY_SLACK = 16
"""Short strings are copied in blocks of this size, so a buffer must have as much room behind its
last byte."""


@kernel
def put_null(control: int, column: int, row: int) -> None:
    """The bitmap of a column is only written once there is a NULL."""
    valid = load8(column + 8 * Col.VALID)
    if load8(column + 8 * Col.NULLS) == 0:
        fill_ones(valid, (load8(control + 8 * Decode.ROW_CAPACITY) + 7) // 8)
        store8(column + 8 * Col.NULLS, 1)
    at = valid + (row >> 3)
    store1(at, load1(at) & ~(1 << (row & 7)))
    if load8(column + 8 * Col.KIND) == ConversionKind.BYTES:
        offsets = load8(column + 8 * Col.OFFSETS) + 4 * row
        store4(offsets + 4, load4(offsets))
        return
    width = load8(column + 8 * Col.WIDTH)
    target = load8(column + 8 * Col.DATA) + width * row
    if width <= 8:
        put(target, width, 0)
    else:
        for word in range(0, width, 8):
            store8(target + word, 0)


@kernel
def add_note(control: int, row: int, column: int, code: int, start: int, length: int) -> bool:
    """Notes a value that Python has to make. False: there is no room for more notes."""
    count = load8(control + 8 * Decode.NOTES_COUNT)
    if count == load8(control + 8 * Decode.NOTES_CAPACITY):
        return False
    note = load8(control + 8 * Decode.NOTES) + 8 * Note.SIZE_OF_ENTRY * count
    store8(note + 8 * Note.ROW, row)
    store8(note + 8 * Note.COLUMN, column)
    store8(note + 8 * Note.CODE, code)
    store8(note + 8 * Note.START, start)
    store8(note + 8 * Note.LENGTH, length)
    store8(control + 8 * Decode.NOTES_COUNT, count + 1)
    return True


@kernel
def put_bytes(column: int, row: int, at: int, end: int) -> int:
    """A string. Returns the address behind it, -CORRUPT or -BYTES_FULL."""
    size = load8(column + 8 * Col.SIZE)
    if at + size > end:
        return -DecodeStatus.CORRUPT
    length = load1(at) if size == 1 else load2(at) if size == 2 else little(at, size)
    source = at + size
    if source + length > end:
        return -DecodeStatus.CORRUPT
    offsets = load8(column + 8 * Col.OFFSETS) + 4 * row
    used = load4(offsets)
    if used + length + COPY_SLACK > load8(column + 8 * Col.CAPACITY):
        return -DecodeStatus.BYTES_FULL
    target = load8(column + 8 * Col.DATA) + used
    store4(offsets + 4, used + length)
    copied = 0
    if length <= 128:
        while copied < length and source + copied + 16 <= end:
            copy_block(target + copied, source + copied)
            copied += 16
    if copied < length:
        copy_bytes(target + copied, source + copied, length - copied)
    return source + length


@kernel
def put_copy(size: int, target: int, at: int) -> None:
    """Copies `size` bytes, of the sizes that values have."""
    if size == 4:
        store4(target, load4(at))
    elif size == 8:
        store8(target, load8(at))
    elif size == 1:
        store1(target, load1(at))
    else:
        store2(target, load2(at))


@kernel
def temporal_value(kind: int, at: int, digits: int) -> int:
    """A temporal value as Arrow holds it: days, or microseconds. INVALID where Arrow has none, such
    as a zero date."""
    if kind == ConversionKind.DATETIME:
        return datetime_value(at, digits)
    if kind == ConversionKind.TIMESTAMP:
        return timestamp_value(at, digits)
    if kind == ConversionKind.DATE:
        return date_value(at)
    if kind == ConversionKind.TIME:
        return time_value(at, digits)
    if kind == ConversionKind.OLD_DATETIME:
        return old_datetime_value(at)
    if kind == ConversionKind.OLD_TIMESTAMP:
        return old_timestamp_value(at)
    return old_time_value(at)


@kernel
def put_fixed(kind: int, column: int, target: int, at: int) -> bool:
    """A value of fixed width that is not just copied. False when Arrow has no such value."""
    size = load8(column + 8 * Col.SIZE)
    first = load8(column + 8 * Col.FIRST)
    width = load8(column + 8 * Col.WIDTH)
    if kind == ConversionKind.DECIMAL:
        return decimal_value(at, first, load8(column + 8 * Col.SECOND), target, width)
    if kind == ConversionKind.UNSIGNED:
        value = little(at, size)
        if first and value > first:
            return False
    elif kind == ConversionKind.SIGNED24:
        value = little(at, 3)
        value -= (value & 0x800000) << 1
    elif kind == ConversionKind.BITS:
        value = big(at, size)
    elif kind == ConversionKind.YEAR:
        value = load1(at)
        if value:
            value += 1900
    else:
        value = temporal_value(kind, at, first)
        if value == INVALID:
            return False
    put(target, width, value)
    return True


@kernel
def decode_image(control: int, image: int, at: int, end: int, row: int, json_bits: int) -> int:
    """One image into `row`. Returns the address behind it, or a negated DecodeStatus."""
    columns = load8(control + 8 * Decode.COLUMNS)
    present = load8(image + 8 * Image.PRESENT)
    count = load8(image + 8 * Image.PRESENT_COUNT)
    nulls = at
    at += (count + 7) // 8
    if at > end:
        return -DecodeStatus.CORRUPT
    for index in range(count):
        number = load8(present + 8 * index)
        column = columns + 8 * Col.SIZE_OF_ENTRY * number
        if load1(nulls + (index >> 3)) >> (index & 7) & 1:
            put_null(control, column, row)
            continue
        kind = load8(column + 8 * Col.KIND)
        if kind == ConversionKind.BYTES:
            following = put_bytes(column, row, at, end)
            if following < 0:
                store8(control + 8 * Decode.DETAIL, number)
                store8(control + 8 * Decode.DETAIL_LENGTH, end - at)
                return following
            if json_bits:
                bit = load8(column + 8 * Col.JSON)
                diff = bit >= 0 and load1(json_bits + (bit >> 3)) >> (bit & 7) & 1
                if diff and not add_note(control, row, number, 1, at, 0):
                    return -DecodeStatus.NOTES_FULL
            at = following
            continue
        size = load8(column + 8 * Col.SIZE)
        if at + size > end:
            return -DecodeStatus.CORRUPT
        target = load8(column + 8 * Col.DATA) + load8(column + 8 * Col.WIDTH) * row
        if kind == ConversionKind.COPY:
            put_copy(size, target, at)
        elif not put_fixed(kind, column, target, at):
            put_null(control, column, row)
            if not add_note(control, row, number, 0, at, size):
                return -DecodeStatus.NOTES_FULL
        at += size
    absent = load8(image + 8 * Image.ABSENT)
    for index in range(load8(image + 8 * Image.ABSENT_COUNT)):
        put_null(control, columns + 8 * Col.SIZE_OF_ENTRY * load8(absent + 8 * index), row)
    return at


@kernel
def put_origin(
    control: int, ref: int, row: int, row_in_event: int, row_kind: int, number: int
) -> None:
    """The columns that say where a row comes from."""
    store8(load8(control + 8 * Decode.OUT_POSITION) + 8 * row, load8(ref + 8 * Ref.POSITION))
    store8(load8(control + 8 * Decode.OUT_EVENT) + 8 * row, load8(ref + 8 * Ref.ORDINAL))
    store4(load8(control + 8 * Decode.OUT_ROW) + 4 * row, row_in_event)
    store1(load8(control + 8 * Decode.OUT_KIND) + row, row_kind)
    store8(load8(control + 8 * Decode.OUT_TIMESTAMP) + 8 * row, load8(ref + 8 * Ref.TIMESTAMP))
    store8(load8(control + 8 * Decode.OUT_GTID) + 8 * row, load8(ref + 8 * Ref.GTID_POSITION))
    store2(load8(control + 8 * Decode.OUT_PRESENT) + 2 * row, number)


@kernel
def decode_event(control: int, ref: int, images: int) -> int:
    """The rows of one event, from RESUME on. Returns a DecodeStatus."""
    end = load8(ref + 8 * Ref.END)
    kind = load8(ref + 8 * Ref.KIND)
    update = kind == EventKind.UPDATE or kind == EventKind.PARTIAL_UPDATE
    at = load8(control + 8 * Decode.RESUME)
    half = load8(control + 8 * Decode.HALF)
    row_in_event = load8(control + 8 * Decode.ROW_IN_EVENT)
    row = load8(control + 8 * Decode.ROW)
    capacity = load8(control + 8 * Decode.ROW_CAPACITY)
    if at == 0:
        at = load8(ref + 8 * Ref.START)
        half = 0
        row_in_event = 0
    # An image without columns takes no bytes; such an event counts as one row, as in the server,
    # whose loop tests at the end.
    second = images + 8 * Image.SIZE_OF_ENTRY
    empty = load8(images + 8 * Image.PRESENT_COUNT) == 0 and (
        not update or load8(second + 8 * Image.PRESENT_COUNT) == 0
    )
    once = empty and kind != EventKind.PARTIAL_UPDATE
    status = 0
    if once and at < end:  # nothing of an image would ever bring it nearer to the end
        status = DecodeStatus.CORRUPT + 0
    while status == 0 and (at < end or half or once):
        if row >= capacity:
            status = DecodeStatus.ROWS_FULL + 0
            break
        following = at
        json_bits = 0
        if kind == EventKind.PARTIAL_UPDATE and half:
            if at >= end or load1(at) > 1:
                status = DecodeStatus.BAD_JSON_OPTIONS + 0
                break
            following += 1
            if load1(at):
                json_bits = following
                following += (load8(control + 8 * Decode.JSON_COLUMNS) + 7) // 8
                if following > end:
                    status = DecodeStatus.CORRUPT + 0
                    break
        image = second if half else images
        notes = load8(control + 8 * Decode.NOTES_COUNT)
        following = decode_image(control, image, following, end, row, json_bits)
        if following < 0:
            store8(control + 8 * Decode.NOTES_COUNT, notes)
            status = -following
            break
        row_kind = RowKind.DELETE + 0
        if update:
            row_kind = RowKind.UPDATE_AFTER + 0 if half else RowKind.UPDATE_BEFORE + 0
        elif kind == EventKind.WRITE:
            row_kind = RowKind.INSERT + 0
        put_origin(control, ref, row, row_in_event, row_kind, load8(image + 8 * Image.NUMBER))
        row += 1
        at = following
        if update and half == 0:
            half = 1
        else:
            half = 0
            row_in_event += 1
            once = False
    if status == 0 and at != end:
        status = DecodeStatus.CORRUPT + 0
    store8(control + 8 * Decode.ROW, row)
    store8(control + 8 * Decode.RESUME, at if status else 0)
    store8(control + 8 * Decode.HALF, half)
    store8(control + 8 * Decode.ROW_IN_EVENT, row_in_event)
    return status


@kernel
def decode(control: int) -> int:
    """The events ORDER[AT:COUNT], all of one schema. Returns a DecodeStatus; AT is the event it
    stopped in."""
    refs = load8(control + 8 * Decode.REFS)
    order = load8(control + 8 * Decode.ORDER)
    count = load8(control + 8 * Decode.COUNT)
    at = load8(control + 8 * Decode.AT)
    status = 0
    while at < count:
        ref = refs + 8 * Ref.SIZE_OF_ENTRY * load8(order + 8 * at)
        images = load8(control + 8 * Decode.IMAGES) + 8 * 2 * Image.SIZE_OF_ENTRY * load8(
            ref + 8 * Ref.SHAPE
        )
        status = decode_event(control, ref, images)
        if status:
            break
        at += 1
    store8(control + 8 * Decode.AT, at)
    return status
