"""The kernel that writes the events of plain transactions as the lines of `binlag events`.

It follows transactions as `applier.binlog.transactions.TransactionTracker` does, and writes what it
was told of: table maps and heads of rows events that Python has met before. Before any other event
it stops: that one is Python's, and behind it the kernel goes on, inside a transaction, too. Values
that it cannot write are left as holes.
"""

from __future__ import annotations

from applier.binlog.columnar.control import GtidKind, Id, Loads, LoadsClass, Summed
from applier.binlog.columnar.loads_kernel import (
    BODY,
    COMMIT_ID_FLAG,
    HEAD,
    OUTSIDE,
    find_head,
    is_begin,
    is_known_map,
    is_sound,
    prefix,
    read_gtid,
    read_mariadb_gtid,
)
from applier.binlog.columnar.memory import (
    copy_block,
    kernel,
    load1,
    load2,
    load4,
    load8,
    store1,
    store4,
    store8,
)
from applier.binlog.columnar.packet_kernel import HEADER
from applier.binlog.columnar.scan_kernel import id_entry, read_id
from applier.binlog.columnar.text.text_columns import put_value
from applier.binlog.columnar.text.text_control import (
    LENGTH_FIRST,
    NAME_WIDTH,
    WORD_WIDTH,
    Hole,
    TextBlock,
    TextColumn,
    TextMap,
    TextShape,
    TextStatus,
    Word,
)
from applier.binlog.columnar.text.text_values import (
    QUOTE,
    VALUE_ROOM,
    has_byte,
    is_printable,
    put_bytes,
    put_number,
    put_padded,
    put_uuid,
)

LINE_ROOM = 250
"""More than a line takes beside the file's name and an Info that was given."""
LINE_END, BACKTICK = 0x0A, 0x60
ROWS_QUERY, SUPPRESS_USE = 29, 0x08
DAMAGED, NO_ROOM = -1, -2


@kernel
def put_word(control: int, at: int, word: int) -> int:
    """One of the words that the lines have in common."""
    slot = load8(control + 8 * TextBlock.WORDS) + WORD_WIDTH * word
    copy_block(at, slot)
    copy_block(at + 16, slot + 16)
    return at + load1(slot + WORD_WIDTH - 1)


@kernel
def has_room(control: int, at: int, size: int) -> bool:
    """Whether so many bytes can be written."""
    return at + size <= load8(control + 8 * TextBlock.OUT) + load8(control + 8 * TextBlock.ROOM)


@kernel
def put_head(control: int, event: int, position: int) -> int:
    """The columns before Info."""
    at = put_bytes(
        load8(control + 8 * TextBlock.AT),
        load8(control + 8 * TextBlock.FILE),
        load8(control + 8 * TextBlock.FILE_LENGTH),
    )
    at = put_padded(at, position, 10)
    at = put_word(control, at, Word.GAP)
    at = put_bytes(
        at, load8(control + 8 * TextBlock.NAMES) + NAME_WIDTH * load1(event + 4), NAME_WIDTH
    )
    at = put_word(control, at, Word.GAP)
    at = put_padded(at, load4(event + 5), 10)
    at = put_word(control, at, Word.GAP)
    at = put_padded(at, load4(event + 13), 11)
    return put_word(control, at, Word.GAP)


@kernel
def end_line(control: int, at: int) -> int:
    """What is written up to here stays."""
    store1(at, LINE_END)
    store8(control + 8 * TextBlock.AT, at + 1)
    return TextStatus.DONE + 0


@kernel
def status_variables_end(control: int, at: int, end: int) -> int:
    """Where the status variables of a QUERY event end; 0 where Python has to read them, as for one
    that changes its Info."""
    while at < end:
        size = load1(load8(control + 8 * TextBlock.VARIABLES) + load1(at))
        at += 1
        if size == LENGTH_FIRST and at < end:
            size = 1 + load1(at)
        elif size == 0 or size == LENGTH_FIRST:
            return 0
        at += size
    return at


@kernel
def is_plain_begin(control: int, event: int, end: int) -> bool:
    """Whether a QUERY event is a BEGIN whose Info says no more than that, and a database."""
    if not is_begin(event, end):
        return False
    start = event + HEADER + 13
    database = start + load2(event + HEADER + 11)
    database_end = database + load1(event + HEADER + 8)
    if database_end >= end or status_variables_end(control, start, database) != database:
        return False
    if database == database_end:
        return True
    return is_printable(database, database_end) and not has_byte(database, database_end, BACKTICK)


@kernel
def put_use(control: int, event: int, at: int) -> int:
    """The database of a QUERY event, where it has one that counts."""
    length = load1(event + HEADER + 8)
    if length == 0 or load2(event + 17) & SUPPRESS_USE:
        return at
    start = event + HEADER + 13 + load2(event + HEADER + 11)
    return put_word(
        control, put_bytes(put_word(control, at, Word.USE), start, length), Word.USE_END
    )


@kernel
def begin_transaction(control: int, position: int, state: int) -> None:
    """The table maps of the one before mean nothing any more."""
    store8(control + 8 * TextBlock.TRANSACTION, load8(control + 8 * TextBlock.TRANSACTION) + 1)
    store8(control + 8 * TextBlock.OPENING, position)
    store8(control + 8 * TextBlock.SECOND, -1)
    store8(control + 8 * TextBlock.STATE, state)


@kernel
def write_gtid(control: int, event: int, end: int, position: int) -> int:
    """A GTID event of MySQL without a tag."""
    found = load8(control + 8 * TextBlock.GTID)
    if load8(control + 8 * TextBlock.STATE) != OUTSIDE or not read_gtid(found, event, end):
        return TextStatus.LOOK + 0
    at = put_word(control, put_head(control, event, position), Word.SET_GTID)
    if load8(found + 8 * Summed.KIND) == GtidKind.NONE:
        at = put_word(control, at, Word.ANONYMOUS)
    else:
        at = put_uuid(at, load8(found + 8 * Summed.LOW), load8(found + 8 * Summed.HIGH))
        store1(at, 0x3A)
        at = put_number(at + 1, load8(found + 8 * Summed.NUMBER))
    store1(at, QUOTE)
    begin_transaction(control, position, HEAD)
    return end_line(control, at + 1)


@kernel
def write_mariadb_gtid(control: int, event: int, end: int, position: int) -> int:
    """MariaDB's, where it is a BEGIN as well."""
    found, body = load8(control + 8 * TextBlock.GTID), event + HEADER
    if load8(control + 8 * TextBlock.STATE) != OUTSIDE or not read_mariadb_gtid(found, event, end):
        return TextStatus.LOOK + 0
    at = put_word(control, put_head(control, event, position), Word.BEGIN_GTID)
    at = put_number(at, load8(found + 8 * Summed.LOW))
    store1(at, 0x2D)
    at = put_number(at + 1, load8(found + 8 * Summed.HIGH))
    store1(at, 0x2D)
    at = put_number(at + 1, load8(found + 8 * Summed.NUMBER))
    if load1(body + 12) & COMMIT_ID_FLAG:
        at = put_number(put_word(control, at, Word.COMMIT_ID), load8(body + 13))
    begin_transaction(control, position, BODY)
    return end_line(control, at)


@kernel
def write_begin(control: int, event: int, end: int, position: int) -> int:
    """BEGIN, the first event of a transaction or the one behind its GTID."""
    state = load8(control + 8 * TextBlock.STATE)
    if state == BODY or not is_plain_begin(control, event, end):
        return TextStatus.LOOK + 0
    room = load8(control + 8 * TextBlock.FILE_LENGTH) + LINE_ROOM + load1(event + HEADER + 8)
    if not has_room(control, load8(control + 8 * TextBlock.AT), room):
        return TextStatus.FULL + 0
    at = put_word(control, put_use(control, event, put_head(control, event, position)), Word.BEGIN)
    if state == OUTSIDE:
        begin_transaction(control, position, BODY)
    else:
        store8(control + 8 * TextBlock.SECOND, position)
        store8(control + 8 * TextBlock.STATE, BODY)
    return end_line(control, at)


@kernel
def write_xid(control: int, event: int, end: int, position: int) -> int:
    """The end of a transaction."""
    if end - event < HEADER + 8:
        return TextStatus.LOOK + 0
    at = put_word(control, put_head(control, event, position), Word.COMMIT)
    at = put_word(control, put_number(at, load8(event + HEADER)), Word.COMMENT_END)
    begin_transaction(control, -1, OUTSIDE)
    store8(control + 8 * TextBlock.ENDED, 1)
    return end_line(control, at)


@kernel
def write_statement(control: int, event: int, end: int, position: int) -> int:
    """The statement behind rows events, of printable ASCII."""
    start = event + HEADER
    is_query = load1(event + 4) == ROWS_QUERY
    if is_query:
        start += 1
    if not is_printable(start, end):
        return TextStatus.LOOK + 0
    if not has_room(
        control,
        load8(control + 8 * TextBlock.AT),
        load8(control + 8 * TextBlock.FILE_LENGTH) + LINE_ROOM + end - start,
    ):
        return TextStatus.FULL + 0
    at = put_head(control, event, position)
    if is_query:
        at = put_word(control, at, Word.HASH)
    return end_line(control, put_bytes(at, start, end - start))


@kernel
def map_of(control: int, body: int) -> int:
    """Address of the entry of the table map that a table id stands for; 0 where it stands for none
    in this transaction."""
    table_id = read_id(body, load8(control + 8 * Loads.ID_SIZE))
    entry = id_entry(load8(control + 8 * Loads.IDS), load8(control + 8 * Loads.IDS_MASK), table_id)
    number = load8(entry + 8 * Id.SCHEMA)
    return (
        load8(control + 8 * TextBlock.MAPS) + 8 * TextMap.SIZE_OF_ENTRY * number
        if number >= 0
        else 0
    )


@kernel
def write_map(control: int, event: int, end: int, position: int) -> int:
    """A table map that is known."""
    if not is_known_map(control, event, end):
        return TextStatus.LOOK + 0
    table = map_of(control, event + HEADER)
    length = load8(table + 8 * TextMap.INFO_LENGTH)
    if not has_room(
        control,
        load8(control + 8 * TextBlock.AT),
        load8(control + 8 * TextBlock.FILE_LENGTH) + LINE_ROOM + length,
    ):
        return TextStatus.FULL + 0
    store8(table + 8 * TextMap.TRANSACTION, load8(control + 8 * TextBlock.TRANSACTION))
    return end_line(
        control,
        put_bytes(put_head(control, event, position), load8(table + 8 * TextMap.INFO), length),
    )


@kernel
def add_hole(control: int, at: int, column: int, start: int, end: int) -> bool:
    """Leaves a value to Python. False: there is no room."""
    count = load8(control + 8 * TextBlock.HOLES_COUNT)
    if count == load8(control + 8 * TextBlock.HOLES_CAPACITY):
        return False
    hole = load8(control + 8 * TextBlock.HOLES) + 8 * Hole.SIZE_OF_ENTRY * count
    out = load8(control + 8 * TextBlock.OUT)
    store8(hole + 8 * Hole.AT, at - out)
    store8(hole + 8 * Hole.NUMBER, load8(column + 8 * TextColumn.NUMBER))
    store8(hole + 8 * Hole.START, start)
    store8(hole + 8 * Hole.LENGTH, end - start)
    store8(hole + 8 * Hole.LINE, load8(control + 8 * TextBlock.AT) - out)
    store8(control + 8 * TextBlock.HOLES_COUNT, count + 1)
    return True


@kernel
def image(control: int, at: int, end: int, out: int, columns: int, count: int, ends: int) -> int:
    """Writes the image at `at` to `out`. Where its text ends, NO_ROOM or DAMAGED; `ends` is where
    the image's end goes."""
    bitmap = at
    at += (count + 7) // 8
    if at > end:
        return DAMAGED
    for number in range(count):
        column = columns + 8 * TextColumn.SIZE_OF_ENTRY * number
        is_null = load1(bitmap + (number >> 3)) >> (number & 7) & 1
        length = load8(column + 8 * TextColumn.SIZE)
        if is_null:
            length = 0
        elif load8(column + 8 * TextColumn.PREFIXED):
            if length > end - at:
                return DAMAGED
            start = at + length
            length = prefix(at, length)
            at = start
        if length > end - at:
            return DAMAGED
        name_length = load8(column + 8 * TextColumn.NAME_LENGTH)
        if not has_room(
            control,
            out,
            name_length + VALUE_ROOM + 2 * max(length, load8(column + 8 * TextColumn.FIRST)),
        ):
            return NO_ROOM
        out = put_bytes(out, load8(column + 8 * TextColumn.NAME), name_length)
        if is_null:
            store4(out, 0x4C4C554E)
            out += 4
            continue
        written = put_value(control, out, column, at, at + length)
        if written:
            out = written
        elif not add_hole(control, out, column, at, at + length):
            return NO_ROOM
        at += length
    store8(ends, at)
    return out


@kernel
def put_rows(control: int, shape: int, at: int, end: int, out: int) -> int:
    """A line for each row of an event. Where the text ends, NO_ROOM or DAMAGED."""
    before, before_count = (
        load8(shape + 8 * TextShape.BEFORE),
        load8(shape + 8 * TextShape.BEFORE_COUNT),
    )
    after, after_count = (
        load8(shape + 8 * TextShape.AFTER),
        load8(shape + 8 * TextShape.AFTER_COUNT),
    )
    line, line_length = load8(shape + 8 * TextShape.LINE), load8(shape + 8 * TextShape.LINE_LENGTH)
    ends = load8(control + 8 * TextBlock.GTID)
    if before_count == 0:
        return DAMAGED
    while at < end:
        if not has_room(control, out, line_length + WORD_WIDTH):
            return NO_ROOM
        out = image(control, at, end, put_bytes(out, line, line_length), before, before_count, ends)
        if out < 0:
            return out
        at = load8(ends)
        if after_count:
            if not has_room(control, out, WORD_WIDTH):
                return NO_ROOM
            out = image(
                control, at, end, put_word(control, out, Word.ARROW), after, after_count, ends
            )
            if out < 0:
                return out
            at = load8(ends)
        if not has_room(control, out, WORD_WIDTH):
            return NO_ROOM
        store1(out, LINE_END)
        out += 1
    return out


@kernel
def write_rows(control: int, event: int, end: int, position: int) -> int:
    """A rows event whose head is known, and its rows where they are asked for."""
    number = find_head(control, event, end, 8 * TextShape.SIZE_OF_ENTRY)
    if number < 0:
        return TextStatus.LOOK + 0
    table = map_of(control, event + HEADER)
    if load8(table + 8 * TextMap.TRANSACTION) != load8(control + 8 * TextBlock.TRANSACTION):
        return TextStatus.LOOK + 0
    shape = load8(control + 8 * TextBlock.SHAPES) + 8 * TextShape.SIZE_OF_ENTRY * number
    length = load8(shape + 8 * TextShape.INFO_LENGTH)
    if not has_room(
        control,
        load8(control + 8 * TextBlock.AT),
        load8(control + 8 * TextBlock.FILE_LENGTH) + LINE_ROOM + length,
    ):
        return TextStatus.FULL + 0
    at = put_bytes(put_head(control, event, position), load8(shape + 8 * TextShape.INFO), length)
    if load8(control + 8 * TextBlock.WITH_ROWS) == 0:
        return end_line(control, at)
    store1(at, LINE_END)
    holes = load8(control + 8 * TextBlock.HOLES_COUNT)
    at = put_rows(
        control, shape, event + HEADER + load8(shape + 8 * TextShape.HEAD_LENGTH), end, at + 1
    )
    if at < 0:
        store8(control + 8 * TextBlock.HOLES_COUNT, holes)
        return TextStatus.FULL + 0 if at == NO_ROOM else TextStatus.LOOK + 0
    for hole in range(holes, load8(control + 8 * TextBlock.HOLES_COUNT)):
        entry = load8(control + 8 * TextBlock.HOLES) + 8 * Hole.SIZE_OF_ENTRY * hole
        store8(entry + 8 * Hole.SHAPE, number)
        store8(entry + 8 * Hole.POSITION, position)
    store8(control + 8 * TextBlock.AT, at)
    return TextStatus.DONE + 0


@kernel
def write_event(control: int, event: int, end: int, position: int, category: int) -> int:
    """Writes one event; a TextStatus."""
    if category == LoadsClass.LOOK:
        return TextStatus.LOOK + 0
    if not has_room(
        control,
        load8(control + 8 * TextBlock.AT),
        load8(control + 8 * TextBlock.FILE_LENGTH) + LINE_ROOM,
    ):
        return TextStatus.FULL + 0
    if category == LoadsClass.GTID:
        return write_gtid(control, event, end, position)
    if category == LoadsClass.MARIADB_GTID:
        return write_mariadb_gtid(control, event, end, position)
    if category == LoadsClass.QUERY:
        return write_begin(control, event, end, position)
    if load8(control + 8 * TextBlock.STATE) != BODY:
        return TextStatus.LOOK + 0
    if category == LoadsClass.ROWS:
        return write_rows(control, event, end, position)
    if category == LoadsClass.TABLE_MAP:
        return write_map(control, event, end, position)
    if category == LoadsClass.XID:
        return write_xid(control, event, end, position)
    return write_statement(control, event, end, position)


@kernel
def lines(control: int) -> int:
    """Goes on from POSITION; returns a TextStatus."""
    buffer, size = load8(control + 8 * TextBlock.BUFFER), load8(control + 8 * TextBlock.SIZE)
    limit, trailer = load8(control + 8 * TextBlock.LIMIT), load8(control + 8 * TextBlock.TRAILER)
    classes, position = load8(control + 8 * Loads.CLASSES), load8(control + 8 * TextBlock.POSITION)
    status = TextStatus.DONE + 0
    while position < limit:
        event = buffer + position
        status = TextStatus.LOOK + 0
        if is_sound(control, event, size - position):
            length = load4(event + 9)
            category = load1(classes + load1(event + 4))
            status = write_event(control, event, event + length - trailer, position, category)
        if status != TextStatus.DONE:
            break
        position += length
    store8(control + 8 * TextBlock.POSITION, position)
    return status
