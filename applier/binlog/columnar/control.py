"""The memory that Python and the kernels share: blocks of 64-bit integers, and what stands where in
them.

A kernel takes one argument, the address of its control block. So its machine code needs nothing of
Numba to be called, and can be kept on disk and loaded without importing Numba at all.
"""

from __future__ import annotations

from enum import IntEnum


class Scan(IntEnum):
    """Control block of the scan kernel."""

    BUFFER = 0
    POSITION = 1
    LIMIT = 2
    """no event that starts here or later is read"""
    SIZE = 3
    HEADER_LENGTH = 4
    TRAILER = 5
    VERIFY = 6
    CRC_TABLES = 7
    CLASSES = 8
    KINDS = 9
    POST_HEADERS = 10
    IDS = 11
    IDS_MASK = 12
    SCHEMAS = 13
    SHAPES = 14
    REFS = 15
    REFS_CAPACITY = 16
    REFS_COUNT = 17
    ORDINAL = 18
    GTID_POSITION = 19
    FIXED_POSITION = 20
    """file position of all events when they stand in a decompressed buffer, else -1"""
    DETAIL = 21
    DETAIL_START = 22
    DETAIL_LENGTH = 23
    LAST = 24
    """offset of the event passed last"""
    SIZE_OF_BLOCK = 25


class ScanStatus(IntEnum):
    """What the scan kernel stopped for."""

    DONE = 0
    REFS_FULL = 1
    SPECIAL = 2
    """an event that Python reads; POSITION stands before it"""
    NEW_MAP = 3
    NEW_SHAPE = 4
    HEADER_CUT = 10
    BAD_LENGTH = 11
    EVENT_CUT = 12
    NO_CHECKSUM_ROOM = 13
    BAD_CHECKSUM = 14
    BAD_ROWS_HEAD = 15
    NO_TABLE_MAP = 16
    UNKNOWN_TYPE = 17


class Class(IntEnum):
    """What the scan kernel does with an event type."""

    UNKNOWN = 0
    PLAIN = 1
    SPECIAL = 2
    TABLE_MAP = 3
    GTID = 4
    ROWS_V1 = 5
    ROWS_V2 = 6


class EventKind(IntEnum):
    """Kinds of rows events, by the type of the event."""

    WRITE = 0
    UPDATE = 1
    DELETE = 2
    PARTIAL_UPDATE = 3


class RowKind(IntEnum):
    """What a row of a batch is."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3


class Id(IntEnum):
    """An entry of the open-addressing hash from table id to schema; SCHEMA is -1 in a free one."""

    TABLE_ID = 0
    SCHEMA = 1
    BODY = 2
    """address of the table map's bytes behind id and flags"""
    LENGTH = 3
    SIZE_OF_ENTRY = 4


class SchemaEntry(IntEnum):
    """A schema as the scan kernel sees it."""

    FIRST_SHAPE = 0
    WANTED = 1
    SIZE_OF_ENTRY = 2


class ShapeEntry(IntEnum):
    """A shape (width and bitmaps) as the scan kernel sees it, in a chain per schema."""

    NEXT = 0
    BYTES = 1
    LENGTH = 2
    BITMAPS = 3
    SIZE_OF_ENTRY = 4


class Ref(IntEnum):
    """A rows event found by the scan."""

    START = 0
    END = 1
    SCHEMA = 2
    SHAPE = 3
    KIND = 4
    POSITION = 5
    ORDINAL = 6
    TIMESTAMP = 7
    GTID_POSITION = 8
    SIZE_OF_ENTRY = 9


class Decode(IntEnum):
    """Control block of the decode kernel."""

    REFS = 0
    ORDER = 1
    COUNT = 2
    AT = 3
    RESUME = 4
    """address of the image to go on with, 0 = start of the event"""
    HALF = 5
    ROW_IN_EVENT = 6
    ROW = 7
    ROW_CAPACITY = 8
    COLUMNS = 9
    IMAGES = 10
    JSON_COLUMNS = 11
    OUT_POSITION = 12
    OUT_EVENT = 13
    OUT_ROW = 14
    OUT_KIND = 15
    OUT_TIMESTAMP = 16
    OUT_GTID = 17
    OUT_PRESENT = 18
    NOTES = 19
    NOTES_CAPACITY = 20
    NOTES_COUNT = 21
    DETAIL = 22
    DETAIL_LENGTH = 23
    SIZE_OF_BLOCK = 24


class DecodeStatus(IntEnum):
    """What the decode kernel stopped for."""

    DONE = 0
    ROWS_FULL = 1
    BYTES_FULL = 2
    """column DETAIL needs room for DETAIL_LENGTH more bytes"""
    NOTES_FULL = 3
    CORRUPT = 10
    BAD_JSON_OPTIONS = 11


class Image(IntEnum):
    """One image of a shape: which columns it holds, which not. A shape has two entries, before and
    after."""

    PRESENT_COUNT = 0
    PRESENT = 1
    ABSENT_COUNT = 2
    ABSENT = 3
    NUMBER = 4
    SIZE_OF_ENTRY = 5


class Col(IntEnum):
    """A column as the decode kernel sees it: how it stands in the image, and where its Arrow
    buffers are."""

    KIND = 0
    SIZE = 1
    WIDTH = 2
    FIRST = 3
    SECOND = 4
    JSON = 5
    DATA = 6
    VALID = 7
    OFFSETS = 8
    CAPACITY = 9
    NULLS = 10
    SIZE_OF_ENTRY = 11


class Note(IntEnum):
    """What a row has besides its values: bytes no Arrow value can hold (CODE 0), or a JSON diff
    instead of a value (1)."""

    ROW = 0
    COLUMN = 1
    CODE = 2
    START = 3
    LENGTH = 4
    SIZE_OF_ENTRY = 5


class ConversionKind(IntEnum):
    """How the kernel turns a value of the row image into an Arrow value of WIDTH bytes."""

    COPY = 0
    """SIZE little-endian bytes as they stand"""
    SIGNED24 = 1
    UNSIGNED = 2
    """SIZE little-endian bytes, widened; at most FIRST when that is not 0"""
    BITS = 3
    """SIZE big-endian bytes"""
    YEAR = 4
    DATE = 5
    TIME = 6
    """FIRST = digits of fractional seconds, for this and the next two"""
    DATETIME = 7
    TIMESTAMP = 8
    OLD_TIME = 9
    OLD_DATETIME = 10
    OLD_TIMESTAMP = 11
    DECIMAL = 12
    """FIRST = digits before the point, SECOND = behind"""
    BYTES = 13
    """SIZE bytes of length, then the bytes"""


class Stream(IntEnum):
    """Control block of the kernel that unpacks a replication stream."""

    BUFFER = 0
    POSITION = 1
    """offset of the next packet in the buffer"""
    SIZE = 2
    """bytes in the buffer"""
    OUT = 3
    """address of the events without their packets; as long as the buffer"""
    WRITTEN = 4
    TRAILER = 5
    CRC_TABLES = 6
    CLASSES = 7
    OFFSET = 8
    """where the next event stands in the source's log"""
    ROOM = 9
    """it stops behind the first transaction that ends beyond so many bytes written"""
    STATE = 10
    OPENING = 11
    """offset in OUT of the first event of the transaction that is open; -1 where it began before,
    or none is open"""
    SECOND = 12
    """offset in OUT of its BEGIN behind a GTID event, else -1"""
    ENDED_INHERITED = 13
    """the transaction that was open at the start has ended"""
    EVENTS = 14
    RUNS = 15
    RUNS_CAPACITY = 16
    RUNS_COUNT = 17
    SIZE_OF_BLOCK = 18


class StreamStatus(IntEnum):
    """What the kernel stopped for."""

    CUT = 0
    """the buffer ends inside a packet"""
    LOOK = 1
    """a packet that Python reads"""
    FULL = 2
    """ROOM is used up, or the runs are"""


class StreamState(IntEnum):
    """Where in a transaction the stream is; the first three are those of a TransactionTracker."""

    NONE = 0
    HEAD = 1
    BODY = 2
    ENDED = 3
    """only between two events"""


class StreamClass(IntEnum):
    """What the kernel does with an event type."""

    LOOK = 0
    QUIET = 1
    GTID = 2
    MARIADB_GTID = 3
    QUERY = 4
    XID = 5


class GtidRunKind(IntEnum):
    """Whose GTIDs a run holds."""

    MYSQL = 0
    MARIADB = 1


class GtidRun(IntEnum):
    """Transactions in a row. MySQL: LOW and HIGH are the UUID's bytes; MariaDB: domain and server
    id, LAST alone counts."""

    KIND = 0
    LOW = 1
    HIGH = 2
    FIRST = 3
    LAST = 4
    SIZE_OF_ENTRY = 5


class Loads(IntEnum):
    """Control block of the kernel that sums transactions up."""

    BUFFER = 0
    POSITION = 1
    """where the next transaction begins"""
    LIMIT = 2
    """no event that starts here or later is read"""
    SIZE = 3
    TRAILER = 4
    VERIFY = 5
    CRC_TABLES = 6
    CLASSES = 7
    ID_SIZE = 8
    """bytes of a table id"""
    IDS = 9
    IDS_MASK = 10
    FIRST_SHAPES = 11
    """the first shape of each table map, -1 for none"""
    SHAPES = 12
    TRANSACTIONS = 13
    TRANSACTIONS_CAPACITY = 14
    TRANSACTIONS_COUNT = 15
    EVENTS = 16
    EVENTS_CAPACITY = 17
    EVENTS_COUNT = 18
    VALUES = 19
    """the hash of key values of the event at hand: (value's hash, number of the event) in each
    slot"""
    VALUES_MASK = 20
    EVENT_NUMBER = 21
    DISTINCT = 22
    """key values of the event counted last"""
    VALUE = 23
    """hash of the key value of the row read last"""
    SIZE_OF_BLOCK = 24


class LoadsStatus(IntEnum):
    """What the kernel stopped for."""

    DONE = 0
    LOOK = 1
    """a transaction that Python reads; POSITION stands before it"""
    FULL = 2


class LoadsClass(IntEnum):
    """What the kernel does with an event type inside a transaction."""

    LOOK = 0
    QUIET = 1
    GTID = 2
    MARIADB_GTID = 3
    QUERY = 4
    TABLE_MAP = 5
    ROWS = 6
    XID = 7


class GtidKind(IntEnum):
    """Which GTID a transaction has."""

    NONE = 0
    MYSQL = 1
    MARIADB = 2


class Summed(IntEnum):
    """A transaction. MySQL's GTID: LOW and HIGH are the UUID's bytes; MariaDB's: domain and server
    id."""

    START = 0
    END = 1
    KIND = 2
    LOW = 3
    HIGH = 4
    NUMBER = 5
    SERVER_ID = 6
    LAST_COMMITTED = 7
    SEQUENCE_NUMBER = 8
    STAMP = 9
    """commit time in microseconds, 0 where the log has none"""
    TIMESTAMP = 10
    """of its last event, in seconds"""
    COMMIT_ID = 11
    """of MariaDB: its group commit, 0 where it was alone in it"""
    FLAGS = 12
    """of MariaDB's GTID event"""
    EVENTS = 13
    """how many of the rows events are its own"""
    SIZE_OF_ENTRY = 14


class SummedEvent(IntEnum):
    """A rows event: its shape, and what it holds."""

    SHAPE = 0
    ROWS = 1
    DISTINCT = 2
    BYTES = 3
    SIZE_OF_ENTRY = 4


class SummedShape(IntEnum):
    """The rows events that begin with the same bytes. Images are lists of columns, each as
    `image_end` reads it."""

    NEXT = 0
    TYPE = 1
    HEAD = 2
    HEAD_LENGTH = 3
    ROW_BYTES = 4
    """of a row, where all are equally long; else 0"""
    BEFORE = 5
    BEFORE_COUNT = 6
    AFTER = 7
    AFTER_COUNT = 8
    HAS_KEY = 9
    SIZE_OF_ENTRY = 10
