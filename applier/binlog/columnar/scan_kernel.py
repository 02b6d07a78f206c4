"""The kernel that walks from event to event: lengths and checksums verified, rows events noted
down, all else skipped.

It stops for what Python has to read: a format description, compressed content, a table map or a
column bitmap not seen before. Table maps repeat before every statement, so a known one is
recognised by its bytes and costs one comparison.
"""

from __future__ import annotations

from applier.binlog.columnar.control import (
    Class,
    EventKind,
    Id,
    Ref,
    Scan,
    ScanStatus,
    SchemaEntry,
    ShapeEntry,
)
from applier.binlog.columnar.crc_kernel import crc32
from applier.binlog.columnar.memory import kernel, load1, load2, load4, load8, same_bytes, store8

IGNORABLE = 0x80
FORMAT_DESCRIPTION = 15
MAX_COLUMNS = 4096


@kernel
def id_entry(ids: int, mask: int, table_id: int) -> int:
    """Address of the entry of `table_id`, or of the free one where it would stand. The hash always
    has a free entry."""
    slot = table_id & mask
    while True:
        entry = ids + 8 * Id.SIZE_OF_ENTRY * slot
        if load8(entry + 8 * Id.SCHEMA) < 0 or load8(entry + 8 * Id.TABLE_ID) == table_id:
            return entry
        slot = (slot + 1) & mask


@kernel
def schema_entry(control: int, table_id: int) -> int:
    """The entry in the hash of a scan."""
    return id_entry(load8(control + 8 * Scan.IDS), load8(control + 8 * Scan.IDS_MASK), table_id)


@kernel
def read_id(at: int, id_size: int) -> int:
    """A table id, of 4 or 6 bytes."""
    return load4(at) if id_size == 4 else load4(at) | load2(at + 4) << 32


@kernel
def table_map_known(control: int, body: int, end: int, post_header: int) -> bool:
    """Whether this table map stands in the registry already; then its table id refers to it from
    here on."""
    id_size = 4 if post_header == 6 else 6
    start = body + id_size + 2 + max(post_header - 8, 0)
    if start > end:
        return False
    entry = schema_entry(control, read_id(body, id_size))
    if load8(entry + 8 * Id.SCHEMA) < 0 or load8(entry + 8 * Id.LENGTH) != end - start:
        return False
    return same_bytes(load8(entry + 8 * Id.BODY), start, end - start)


@kernel
def find_shape(control: int, schema: int, bitmaps: int, start: int, length: int) -> int:
    """The shape of `schema` with these bytes, -1 when it is new."""
    shapes = load8(control + 8 * Scan.SHAPES)
    shape = load8(
        load8(control + 8 * Scan.SCHEMAS)
        + 8 * (SchemaEntry.SIZE_OF_ENTRY * schema + SchemaEntry.FIRST_SHAPE)
    )
    while shape >= 0:
        entry = shapes + 8 * ShapeEntry.SIZE_OF_ENTRY * shape
        alike = (
            load8(entry + 8 * ShapeEntry.LENGTH) == length
            and load8(entry + 8 * ShapeEntry.BITMAPS) == bitmaps
        )
        if alike and same_bytes(load8(entry + 8 * ShapeEntry.BYTES), start, length):
            return shape
        shape = load8(entry + 8 * ShapeEntry.NEXT)
    return -1


@kernel
def rows_event(control: int, event: int, body: int, end: int, position: int, count: int) -> int:
    """Notes one rows event down as number `count`. 0: noted; -1: passed over; else a status to stop
    with."""
    type_code = load1(event + 4)
    post_header = load1(load8(control + 8 * Scan.POST_HEADERS) + type_code)
    id_size = 4 if post_header == 6 else 6
    at = body + id_size + 2
    if load1(load8(control + 8 * Scan.CLASSES) + type_code) == Class.ROWS_V2:
        if at + 2 > end or load2(at) < 2:
            return ScanStatus.BAD_ROWS_HEAD
        at += load2(at)
    start = at
    if at + 3 > end and (at + 1 > end or load1(at) >= 251):
        return ScanStatus.BAD_ROWS_HEAD
    width = load1(at)
    at += 1
    if width == 252:
        width = load2(at)
        at += 2
    if width > MAX_COLUMNS or load1(start) > 252 or load1(start) == 251:
        return ScanStatus.BAD_ROWS_HEAD
    kind = load1(load8(control + 8 * Scan.KINDS) + type_code)
    bitmaps = 2 if kind == EventKind.UPDATE or kind == EventKind.PARTIAL_UPDATE else 1
    at += (width + 7) // 8 * bitmaps
    if at > end:
        return ScanStatus.BAD_ROWS_HEAD
    table_id = read_id(body, id_size)
    schema = load8(schema_entry(control, table_id) + 8 * Id.SCHEMA)
    if schema < 0:
        return -1 if table_id == 0xFFFFFF or table_id == 0xFFFFFFFFFFFF else ScanStatus.NO_TABLE_MAP
    wanted = 8 * (SchemaEntry.SIZE_OF_ENTRY * schema + SchemaEntry.WANTED)
    if load8(load8(control + 8 * Scan.SCHEMAS) + wanted) == 0:
        return -1
    shape = find_shape(control, schema, bitmaps, start, at - start)
    if shape < 0:
        store8(control + 8 * Scan.DETAIL, schema)
        store8(control + 8 * Scan.DETAIL_START, start)
        store8(control + 8 * Scan.DETAIL_LENGTH, at - start)
        return ScanStatus.NEW_SHAPE
    ref = load8(control + 8 * Scan.REFS) + 8 * Ref.SIZE_OF_ENTRY * count
    store8(ref + 8 * Ref.START, at)
    store8(ref + 8 * Ref.END, end)
    store8(ref + 8 * Ref.SCHEMA, schema)
    store8(ref + 8 * Ref.SHAPE, shape)
    store8(ref + 8 * Ref.KIND, kind)
    store8(ref + 8 * Ref.POSITION, position)
    store8(ref + 8 * Ref.TIMESTAMP, load4(event))
    return 0


@kernel
def check_event(control: int, event: int, length: int) -> int:
    """0, or why the event cannot be trusted. The format description is Python's to check."""
    trailer = load8(control + 8 * Scan.TRAILER)
    if length < load8(control + 8 * Scan.HEADER_LENGTH) + trailer:
        return ScanStatus.NO_CHECKSUM_ROOM if trailer else ScanStatus.BAD_LENGTH
    if trailer and load8(control + 8 * Scan.VERIFY):
        end = event + length - trailer
        if crc32(load8(control + 8 * Scan.CRC_TABLES), event, end) != load4(end):
            return ScanStatus.BAD_CHECKSUM
    return 0


@kernel
def scan(control: int) -> int:
    """Goes on from POSITION; returns a ScanStatus."""
    buffer = load8(control + 8 * Scan.BUFFER)
    position = load8(control + 8 * Scan.POSITION)
    limit = load8(control + 8 * Scan.LIMIT)
    size = load8(control + 8 * Scan.SIZE)
    header_length = load8(control + 8 * Scan.HEADER_LENGTH)
    trailer = load8(control + 8 * Scan.TRAILER)
    classes = load8(control + 8 * Scan.CLASSES)
    post_headers = load8(control + 8 * Scan.POST_HEADERS)
    fixed_position = load8(control + 8 * Scan.FIXED_POSITION)
    count = load8(control + 8 * Scan.REFS_COUNT)
    ordinal = load8(control + 8 * Scan.ORDINAL)
    gtid_position = load8(control + 8 * Scan.GTID_POSITION)
    status = 0
    while position < limit and status == 0:
        if position + 19 > size:
            status = ScanStatus.HEADER_CUT + 0
            break
        event = buffer + position
        type_code = load1(event + 4)
        length = load4(event + 9)
        if length < 19:
            status = ScanStatus.BAD_LENGTH + 0
            break
        if position + length > size:
            status = ScanStatus.EVENT_CUT + 0
            break
        category = load1(classes + type_code)
        if category == Class.UNKNOWN and load2(event + 17) & IGNORABLE == 0:
            status = ScanStatus.UNKNOWN_TYPE + 0
            break
        if type_code != FORMAT_DESCRIPTION:
            status = check_event(control, event, length)
            if status:
                break
        here = position if fixed_position < 0 else fixed_position
        body = event + header_length
        end = event + length - trailer
        if category == Class.ROWS_V1 or category == Class.ROWS_V2:
            if count == load8(control + 8 * Scan.REFS_CAPACITY):
                status = ScanStatus.REFS_FULL + 0
                break
            found = rows_event(control, event, body, end, here, count)
            if found > 0:
                status = found
                break
            if found == 0:
                ref = load8(control + 8 * Scan.REFS) + 8 * Ref.SIZE_OF_ENTRY * count
                store8(ref + 8 * Ref.ORDINAL, ordinal)
                store8(ref + 8 * Ref.GTID_POSITION, gtid_position)
                count += 1
        elif category == Class.TABLE_MAP:
            if not table_map_known(control, body, end, load1(post_headers + type_code)):
                status = ScanStatus.NEW_MAP + 0
                break
        elif category == Class.GTID:
            gtid_position = here
        elif category == Class.SPECIAL:
            status = ScanStatus.SPECIAL + 0
            break
        store8(control + 8 * Scan.LAST, position)
        position += length
        ordinal += 1
    store8(control + 8 * Scan.POSITION, position)
    store8(control + 8 * Scan.REFS_COUNT, count)
    store8(control + 8 * Scan.ORDINAL, ordinal)
    store8(control + 8 * Scan.GTID_POSITION, gtid_position)
    return status
