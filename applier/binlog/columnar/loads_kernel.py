"""The kernel that sums up plain transactions: how many rows each of their rows events holds, and of
how many key values.

It reads what it was told of: table maps and heads of rows events that Python has seen before,
between a GTID event or BEGIN and an XID event. Before each transaction with anything else in it, it
stops: that one is Python's.
"""

from __future__ import annotations

from applier.binlog.columnar.control import (
    GtidKind,
    Id,
    Loads,
    LoadsClass,
    LoadsStatus,
    Summed,
    SummedEvent,
    SummedShape,
)
from applier.binlog.columnar.crc_kernel import crc32
from applier.binlog.columnar.memory import kernel, load1, load2, load4, load8, same_bytes, store8
from applier.binlog.columnar.packet_kernel import (
    ANONYMOUS_GTID,
    BEGIN,
    HEADER,
    STANDALONE,
    XA_FLAGS,
    is_word,
    text_of,
)
from applier.binlog.columnar.scan_kernel import id_entry, read_id

TIMESTAMP_FLAG = 1 << 55
VERSION_FLAG = 1 << 31
COMMIT_ID_FLAG = 0x02
PREFIXED, WANTED, SIZE_SHIFT = 1, 2, 2
"""An image's column: its bytes (or those of its length prefix) above the two flags."""
SEED, NULL = 0x2545F4914F6CDD1D, 0x5851F42D4C957F2D
FACTOR = 0x369DEA0F31A53F85
LOW_HALF = 0xFFFFFFFF
OUTSIDE, HEAD, BODY = 0, 1, 2


@kernel
def packed_size(at: int, end: int) -> int:
    """Bytes of a packed integer; 0 where it does not fit."""
    first = load1(at)
    size = 1
    if first == 252:
        size = 3
    elif first == 253:
        size = 4
    elif first == 254:
        size = 9
    elif first >= 251:
        size = 0
    return size if size and at + size <= end else 0


@kernel
def read_gtid(transaction: int, event: int, end: int) -> bool:
    """The fields of a GTID event, as `parse_gtid` has them. False: Python has to look."""
    body = event + HEADER
    if end - body < 25:
        return False
    number = load8(body + 17)
    kind = GtidKind.MYSQL + 0
    if load1(event + 4) == ANONYMOUS_GTID:
        kind = GtidKind.NONE + 0
    elif number <= 0 or number == 0x7FFFFFFFFFFFFFFF:
        return False
    store8(transaction + 8 * Summed.KIND, kind)
    store8(transaction + 8 * Summed.LOW, load8(body + 1))
    store8(transaction + 8 * Summed.HIGH, load8(body + 9))
    store8(transaction + 8 * Summed.NUMBER, number)
    at = body + 25
    if end - at < 17 or load1(at) != 2:
        return True
    store8(transaction + 8 * Summed.LAST_COMMITTED, load8(at + 1))
    store8(transaction + 8 * Summed.SEQUENCE_NUMBER, load8(at + 9))
    at += 17
    if end - at >= 7:
        stamp = load4(at) | load2(at + 4) << 32 | load1(at + 6) << 48
        at += 7
        if stamp & TIMESTAMP_FLAG:
            stamp ^= TIMESTAMP_FLAG
            at += 7
        store8(transaction + 8 * Summed.STAMP, stamp)
    if at < end:
        length = packed_size(at, end)
        if length == 0:
            return False
        at += length
    if end - at >= 4:
        at += 8 if load4(at) & VERSION_FLAG else 4
    return at <= end


@kernel
def read_mariadb_gtid(transaction: int, event: int, end: int) -> bool:
    """The fields of MariaDB's GTID event, which is a BEGIN as well. False: Python has to look."""
    body = event + HEADER
    if end - body < 13:
        return False
    flags = load1(body + 12)
    if flags & (STANDALONE | XA_FLAGS) or (flags & COMMIT_ID_FLAG and end - body < 21):
        return False
    store8(transaction + 8 * Summed.KIND, GtidKind.MARIADB + 0)
    store8(transaction + 8 * Summed.LOW, load4(body + 8))
    store8(transaction + 8 * Summed.HIGH, load4(event + 5))
    store8(transaction + 8 * Summed.NUMBER, load8(body))
    store8(transaction + 8 * Summed.COMMIT_ID, load8(body + 13) if flags & COMMIT_ID_FLAG else 0)
    store8(transaction + 8 * Summed.FLAGS, flags)
    return True


@kernel
def mixed(value: int, word: int) -> int:
    """One step of the hash of a key value."""
    value = (value ^ word) * FACTOR
    return value ^ (value >> 32 & LOW_HALF)


@kernel
def hashed(value: int, at: int, length: int) -> int:
    """The hash with `length` more bytes in it."""
    value = mixed(value, length)
    end = at + length
    while at + 8 <= end:
        value = mixed(value, load8(at))
        at += 8
    rest = 0
    while at < end:
        rest = rest << 8 | load1(at)
        at += 1
    return mixed(value, rest)


@kernel
def prefix(at: int, size: int) -> int:
    """A length of 1 to 4 bytes."""
    if size == 1:
        return load1(at)
    if size == 2:
        return load2(at)
    return load2(at) | load1(at + 2) << 16 if size == 3 else load4(at)


@kernel
def image_end(control: int, at: int, end: int, columns: int, count: int, has_key: int) -> int:
    """Where an image ends, -1 where it does not end in the event. With a key VALUE becomes the hash
    of its columns."""
    bitmap = at
    at += (count + 7) // 8
    if at > end:
        return -1
    value = SEED
    for number in range(count):
        column = load8(columns + 8 * number)
        if load1(bitmap + (number >> 3)) >> (number & 7) & 1:
            if column & WANTED:
                value = mixed(value, NULL)
            continue
        length = column >> SIZE_SHIFT
        if column & PREFIXED:
            if length > end - at:
                return -1
            start = at + length
            length = prefix(at, length)
            at = start
        if length > end - at:
            return -1
        if column & WANTED:
            value = hashed(value, at, length)
        at += length
    if has_key:
        store8(control + 8 * Loads.VALUE, value)
    return at


@kernel
def is_new_value(control: int, distinct: int) -> int:
    """1 for a key value that the event at hand had not; -1: there are too many."""
    values, mask = load8(control + 8 * Loads.VALUES), load8(control + 8 * Loads.VALUES_MASK)
    event, value = load8(control + 8 * Loads.EVENT_NUMBER), load8(control + 8 * Loads.VALUE)
    slot = value & mask
    while load8(values + 16 * slot + 8) == event:
        if load8(values + 16 * slot) == value:
            return 0
        slot = (slot + 1) & mask
    if 2 * distinct > mask:
        return -1
    store8(values + 16 * slot, value)
    store8(values + 16 * slot + 8, event)
    return 1


@kernel
def count_rows(control: int, shape: int, at: int, end: int) -> int:
    """Rows between two addresses, -1 where Python has to look; DISTINCT is how many key values they
    have."""
    store8(control + 8 * Loads.DISTINCT, 0)
    size = load8(shape + 8 * SummedShape.ROW_BYTES)
    if size:
        return -1 if (end - at) % size else (end - at) // size
    before, before_count = (
        load8(shape + 8 * SummedShape.BEFORE),
        load8(shape + 8 * SummedShape.BEFORE_COUNT),
    )
    after, after_count = (
        load8(shape + 8 * SummedShape.AFTER),
        load8(shape + 8 * SummedShape.AFTER_COUNT),
    )
    has_key = load8(shape + 8 * SummedShape.HAS_KEY)
    store8(control + 8 * Loads.EVENT_NUMBER, load8(control + 8 * Loads.EVENT_NUMBER) + 1)
    rows = distinct = 0
    while at < end:
        at = image_end(control, at, end, before, before_count, has_key)
        if at >= 0 and after_count:
            at = image_end(control, at, end, after, after_count, 0)
        if at < 0:
            return -1
        rows += 1
        if has_key:
            new = is_new_value(control, distinct)
            if new < 0:
                return -1
            distinct += new
    store8(control + 8 * Loads.DISTINCT, distinct)
    return rows


@kernel
def find_head(control: int, event: int, end: int, shape_bytes: int) -> int:
    """The shape of a rows event, -1 for one that Python has not shown. `shape_bytes`: of an entry
    that stands for one."""
    body = event + HEADER
    if end - body < 8:
        return -1
    table_id = read_id(body, load8(control + 8 * Loads.ID_SIZE))
    entry = id_entry(load8(control + 8 * Loads.IDS), load8(control + 8 * Loads.IDS_MASK), table_id)
    table = load8(entry + 8 * Id.SCHEMA)
    if table < 0:
        return -1
    number = load8(load8(control + 8 * Loads.FIRST_SHAPES) + 8 * table)
    while number >= 0:
        shape = load8(control + 8 * Loads.SHAPES) + shape_bytes * number
        length = load8(shape + 8 * SummedShape.HEAD_LENGTH)
        may_be = load8(shape + 8 * SummedShape.TYPE) == load1(event + 4) and length <= end - body
        if may_be and same_bytes(load8(shape + 8 * SummedShape.HEAD), body, length):
            return number
        number = load8(shape + 8 * SummedShape.NEXT)
    return -1


@kernel
def rows_event(control: int, event: int, end: int, count: int) -> bool:
    """Notes a rows event down as number `count`. False: Python has to look."""
    number = find_head(control, event, end, 8 * SummedShape.SIZE_OF_ENTRY)
    if number < 0 or count == load8(control + 8 * Loads.EVENTS_CAPACITY):
        return False
    shape = load8(control + 8 * Loads.SHAPES) + 8 * SummedShape.SIZE_OF_ENTRY * number
    start = event + HEADER + load8(shape + 8 * SummedShape.HEAD_LENGTH)
    rows = count_rows(control, shape, start, end)
    if rows < 0:
        return False
    noted = load8(control + 8 * Loads.EVENTS) + 8 * SummedEvent.SIZE_OF_ENTRY * count
    store8(noted + 8 * SummedEvent.SHAPE, number)
    store8(noted + 8 * SummedEvent.ROWS, rows)
    store8(noted + 8 * SummedEvent.DISTINCT, load8(control + 8 * Loads.DISTINCT))
    store8(noted + 8 * SummedEvent.BYTES, end - start)
    return True


@kernel
def is_known_map(control: int, event: int, end: int) -> bool:
    """Whether its table id stands for this very table map already."""
    body = event + HEADER
    if end - body < 8:
        return False
    table_id = read_id(body, load8(control + 8 * Loads.ID_SIZE))
    entry = id_entry(load8(control + 8 * Loads.IDS), load8(control + 8 * Loads.IDS_MASK), table_id)
    if load8(entry + 8 * Id.SCHEMA) < 0 or load8(entry + 8 * Id.LENGTH) != end - body:
        return False
    return same_bytes(load8(entry + 8 * Id.BODY), body, end - body)


@kernel
def begins(transaction: int, event: int, end: int, category: int) -> int:
    """The state behind the first event of a transaction; OUTSIDE where Python has to look."""
    for item in range(Summed.SIZE_OF_ENTRY):
        store8(transaction + 8 * item, 0)
    store8(transaction + 8 * Summed.SERVER_ID, load4(event + 5))
    if category == LoadsClass.GTID:
        return HEAD if read_gtid(transaction, event, end) else OUTSIDE
    if category == LoadsClass.MARIADB_GTID:
        return BODY if read_mariadb_gtid(transaction, event, end) else OUTSIDE
    return BODY if category == LoadsClass.QUERY and is_begin(event, end) else OUTSIDE


@kernel
def is_begin(event: int, end: int) -> bool:
    """Whether a QUERY event is BEGIN."""
    start = text_of(event, end)
    return start != 0 and is_word(start, end, BEGIN, 5, 0xFFFFFFFFFF)


@kernel
def is_sound(control: int, event: int, left: int) -> bool:
    """Whether an event is there as a whole, with a right checksum. `left`: bytes to the end of the
    buffer."""
    trailer = load8(control + 8 * Loads.TRAILER)
    if left < HEADER:
        return False
    length = load4(event + 9)
    if length < HEADER + trailer or length > left:
        return False
    if trailer == 0 or load8(control + 8 * Loads.VERIFY) == 0:
        return True
    end = event + length - trailer
    return crc32(load8(control + 8 * Loads.CRC_TABLES), event, end) == load4(end)


@kernel
def loads(control: int) -> int:
    """Goes on from POSITION; returns a LoadsStatus."""
    buffer, size = load8(control + 8 * Loads.BUFFER), load8(control + 8 * Loads.SIZE)
    limit, trailer = load8(control + 8 * Loads.LIMIT), load8(control + 8 * Loads.TRAILER)
    start = position = load8(control + 8 * Loads.POSITION)
    count, events = 0, 0
    first, state = 0, OUTSIDE
    transaction = load8(control + 8 * Loads.TRANSACTIONS)
    status = LoadsStatus.DONE + 0
    while position < limit:
        event = buffer + position
        status = LoadsStatus.LOOK + 0
        if not is_sound(control, event, size - position):
            break
        length = load4(event + 9)
        end = event + length - trailer
        category = load1(load8(control + 8 * Loads.CLASSES) + load1(event + 4))
        if state == OUTSIDE:
            state = begins(transaction, event, end, category)
            if state == OUTSIDE:
                break
            start, first = position, events
        elif state == HEAD:
            if category != LoadsClass.QUERY or not is_begin(event, end):
                break
            state = BODY + 0
        elif category == LoadsClass.ROWS:
            if not rows_event(control, event, end, events):
                break
            events += 1
        elif category == LoadsClass.TABLE_MAP:
            if not is_known_map(control, event, end):
                break
        elif category == LoadsClass.XID:
            store8(transaction + 8 * Summed.START, start)
            store8(transaction + 8 * Summed.END, position + length)
            store8(transaction + 8 * Summed.TIMESTAMP, load4(event))
            store8(transaction + 8 * Summed.EVENTS, events - first)
            transaction += 8 * Summed.SIZE_OF_ENTRY
            count += 1
            start, first, state = position + length, events, OUTSIDE
        elif category != LoadsClass.QUIET:
            break
        position += length
        status = LoadsStatus.DONE + 0
        if count == load8(control + 8 * Loads.TRANSACTIONS_CAPACITY):
            status = LoadsStatus.FULL + 0
            break
    if (
        status == LoadsStatus.LOOK
        and count
        and events == load8(control + 8 * Loads.EVENTS_CAPACITY)
    ):
        status = LoadsStatus.FULL + 0
    store8(control + 8 * Loads.POSITION, start)
    store8(control + 8 * Loads.TRANSACTIONS_COUNT, count)
    store8(control + 8 * Loads.EVENTS_COUNT, first)
    return status
