"""The memory that Python shares with the kernel that writes events as text; see `control`."""

from __future__ import annotations

from enum import IntEnum

from applier.binlog.columnar.control import Loads, SummedShape


class TextBlock(IntEnum):
    """Control block of the text kernel. It begins as that of the loads kernel does."""

    BUFFER = Loads.BUFFER
    POSITION = Loads.POSITION
    LIMIT = Loads.LIMIT
    SIZE = Loads.SIZE
    TRAILER = Loads.TRAILER
    SHAPES = Loads.SHAPES
    OUT = SHAPES + 1
    ROOM = SHAPES + 2
    """bytes of OUT"""
    AT = SHAPES + 3
    """address where the text goes on"""
    HOLES = SHAPES + 4
    HOLES_CAPACITY = SHAPES + 5
    HOLES_COUNT = SHAPES + 6
    STATE = SHAPES + 7
    """that of a TransactionTracker"""
    ENDED = SHAPES + 8
    """a transaction has ended, perhaps that which was open at the start"""
    OPENING = SHAPES + 9
    """position of the first event of the transaction that is open; -1 where it began before, or
    none is open"""
    SECOND = SHAPES + 10
    """position of its BEGIN behind a GTID event, else -1"""
    TRANSACTION = SHAPES + 11
    """number of the transaction; a table map counts in that which it stands in"""
    MAPS = SHAPES + 12
    FILE = SHAPES + 13
    """the first column of each line"""
    FILE_LENGTH = SHAPES + 14
    NAMES = SHAPES + 15
    """names of the event types, NAME_WIDTH bytes each"""
    WITH_ROWS = SHAPES + 16
    GTID = SHAPES + 17
    """room for a `Summed`, whose GTID is read into"""
    WORDS = SHAPES + 18
    """each in WORD_WIDTH bytes, of which the last is its length"""
    VARIABLES = SHAPES + 19
    """bytes of each status variable of a QUERY event, by its code; 0 for one that Python reads"""
    PRINTABLE = SHAPES + 20
    """a bit for each code point below 65,536"""
    TENS = SHAPES + 21
    """`powers_of_ten`"""
    FRAMES = SHAPES + 22
    """room for the containers of a JSON document that are open: `Open`"""
    SIZE_OF_BLOCK = SHAPES + 23


NAME_WIDTH = 20
WORD_WIDTH = 32
LENGTH_FIRST = 255
"""Among VARIABLES: a byte of length, then so many."""


class Word(IntEnum):
    """What the kernel writes besides values and names; see WORD_TEXTS."""

    GAP = 0
    SET_GTID = 1
    ANONYMOUS = 2
    BEGIN_GTID = 3
    COMMIT_ID = 4
    BEGIN = 5
    COMMIT = 6
    COMMENT_END = 7
    HASH = 8
    ARROW = 9
    USE = 10
    USE_END = 11


WORD_TEXTS = {
    Word.GAP: b"  ",
    Word.SET_GTID: b"SET @@SESSION.GTID_NEXT= '",
    Word.ANONYMOUS: b"ANONYMOUS",
    Word.BEGIN_GTID: b"BEGIN GTID ",
    Word.COMMIT_ID: b" cid=",
    Word.BEGIN: b"BEGIN",
    Word.COMMIT: b"COMMIT /* xid=",
    Word.COMMENT_END: b" */",
    Word.HASH: b"# ",
    Word.ARROW: b" -> ",
    Word.USE: b"use `",
    Word.USE_END: b"`; ",
}


class TextStatus(IntEnum):
    """What the kernel stopped for."""

    DONE = 0
    LOOK = 1
    """an event that Python reads; POSITION stands before it"""
    FULL = 2
    """OUT or HOLES has no room for the event at POSITION"""


class TextMap(IntEnum):
    """A table map: the transaction that it was met in last, and its Info."""

    TRANSACTION = 0
    INFO = 1
    INFO_LENGTH = 2
    SIZE_OF_ENTRY = 3


class TextShape(IntEnum):
    """Rows events that begin with the same bytes. It begins as that of the loads kernel does."""

    HEAD_LENGTH = SummedShape.HEAD_LENGTH
    INFO = HEAD_LENGTH + 1
    INFO_LENGTH = HEAD_LENGTH + 2
    LINE = HEAD_LENGTH + 3
    """how the line of a row begins"""
    LINE_LENGTH = HEAD_LENGTH + 4
    BEFORE = HEAD_LENGTH + 5
    BEFORE_COUNT = HEAD_LENGTH + 6
    """0 where the kernel does not read the rows"""
    AFTER = HEAD_LENGTH + 7
    AFTER_COUNT = HEAD_LENGTH + 8
    SIZE_OF_ENTRY = HEAD_LENGTH + 9


class TextColumn(IntEnum):
    """A column of an image: its bytes (SIZE, or those of its length prefix), and how it is
    written."""

    SIZE = 0
    PREFIXED = 1
    KIND = 2
    FIRST = 3
    SECOND = 4
    NUMBER = 5
    """which function writes it where the kernel does not"""
    NAME = 6
    """what stands before the value"""
    NAME_LENGTH = 7
    SIZE_OF_ENTRY = 8


class TextKind(IntEnum):
    """How the kernel writes a value."""

    HOLE = 0
    """not at all: it leaves a hole for Python"""
    SIGNED = 1
    UNSIGNED = 2
    BITS = 3
    TEXT = 4
    """printable ASCII between quotes, and with FIRST = 1 printable characters of UTF-8 in up to
    three bytes; for any other text a hole"""
    HEX = 5
    """FIRST = bytes to fill up to with zeros"""
    DECIMAL = 6
    """FIRST = digits before the point, SECOND = behind"""
    DATE = 7
    DATETIME = 8
    """FIRST = digits of fractional seconds, for this and the next two"""
    TIMESTAMP = 9
    TIME = 10
    YEAR = 11
    FLOAT = 12
    DOUBLE = 13
    JSON = 14


class Open(IntEnum):
    """An array or object of a JSON document that is being written."""

    KIND = 0
    DATA = 1
    END = 2
    WIDTH = 3
    """bytes of its offsets"""
    COUNT = 4
    NEXT = 5
    """which member comes next"""
    VALUES = 6
    """address of its first value's entry"""
    VALUE_KIND = 7
    VALUE_START = 8
    """of the member that is being written"""
    SIZE_OF_ENTRY = 9


class Hole(IntEnum):
    """A value for Python to write."""

    AT = 0
    """offset in OUT where it goes in"""
    NUMBER = 1
    START = 2
    """address of its bytes"""
    LENGTH = 3
    LINE = 4
    """offset in OUT where its event's text begins"""
    SHAPE = 5
    POSITION = 6
    """of its event"""
    SIZE_OF_ENTRY = 7


LEAST_POWER, MOST_POWER = -292, 324
"""Powers of ten that a double may have to be multiplied by."""


def powers_of_ten() -> list[tuple[int, int]]:
    """Each power as 128 bits, the first of which is set, rounded up: high and low half as signed
    numbers."""
    found = []
    for power in range(LEAST_POWER, MOST_POWER + 1):
        shift = 127 - whole_log2(power)
        bits = -(
            -(10 ** max(power, 0) << max(shift, 0)) // (10 ** max(-power, 0) << max(-shift, 0))
        )
        found.append((_signed(bits >> 64), _signed(bits & (1 << 64) - 1)))
    return found


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def whole_log2(power: int) -> int:
    """The whole part of the logarithm to base 2 of a power of ten, for all powers here."""
    return power * 1741647 >> 19
