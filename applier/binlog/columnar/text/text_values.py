"""The parts of the text kernel that write one value of a row image as `binlag events --rows` shows
it.

Each writes at an address and gives the one behind; 0 stands for a value that Python has to write.
The caller sees to it that there is room: VALUE_ROOM bytes, and twice the bytes of a string.
"""

from __future__ import annotations

from applier.binlog.columnar.memory import (
    copy_bytes,
    kernel,
    load1,
    load2,
    load8,
    store1,
    store2,
    store8,
)
from applier.binlog.columnar.value_kernels import POWERS, big, fraction_value

VALUE_ROOM = 100
"""More than any number or time takes; a DECIMAL has 65 digits at most."""
MICROSECONDS = 1_000_000
FIRST_YEAR = 1900
QUOTE, MINUS, POINT, COLON, SPACE, ZERO = 0x27, 0x2D, 0x2E, 0x3A, 0x20, 0x30
DOUBLE_QUOTE, BACKSLASH = 0x22, 0x5C
ONES, HIGH_BITS = 0x0101010101010101, -0x7F7F7F7F7F7F7F80
SPACES, QUOTES, DELETES = 0x2020202020202020, 0x2727272727272727, 0x7F7F7F7F7F7F7F7F
HEX_MARK = 0x7830
"""0x, little-endian."""


@kernel
def put_number(at: int, value: int) -> int:
    """An unsigned number, all of its 64 bits."""
    if value < 0:
        tenth = ((value >> 1) & 0x7FFFFFFFFFFFFFFF) // 5
        at = put_number_of(at, tenth, 1)
        value -= tenth * 10
    return put_number_of(at, value, 1)


@kernel
def digit_count(value: int) -> int:
    """Digits of a number that is not negative."""
    count, rest = 1, value // 10
    while rest:
        count += 1
        rest //= 10
    return count


@kernel
def put_digits(end: int, value: int, count: int) -> int:
    """The last `count` digits of a number, up to `end`; what is left of the number."""
    while count > 0:
        end -= 1
        count -= 1
        tenth = value // 10
        store1(end, ZERO + value - tenth * 10)
        value = tenth
    return value


@kernel
def put_number_of(at: int, value: int, width: int) -> int:
    """A number of at least `width` digits; it is not negative."""
    digits = max(digit_count(value), width)
    put_digits(at + digits, value, digits)
    return at + digits


@kernel
def put_signed(at: int, value: int) -> int:
    """A number with its sign."""
    if value < 0:
        store1(at, MINUS)
        return put_number(at + 1, -value)
    return put_number_of(at, value, 1)


@kernel
def signed(value: int, size: int) -> int:
    """An integer of `size` bytes with its sign."""
    shift = 64 - 8 * size
    return (value << shift) >> shift


@kernel
def is_plain_word(word: int) -> bool:
    """Whether eight bytes are printable ASCII without a quote."""
    quotes, deletes = word ^ QUOTES, word ^ DELETES
    odd = (
        word
        | ((word - SPACES) & ~word)
        | ((quotes - ONES) & ~quotes)
        | ((deletes - ONES) & ~deletes)
    )
    return odd & HIGH_BITS == 0


@kernel
def is_continued(start: int, end: int) -> bool:
    """Whether the bytes [start, end) go on with a character of UTF-8."""
    while start < end:
        if load1(start) & 0xC0 != 0x80:
            return False
        start += 1
    return True


@kernel
def character_size(start: int, end: int, printable: int) -> int:
    """Bytes of a printable character in UTF-8 that takes two or three of them; 0 for any other, and
    for what is none."""
    byte = load1(start)
    size = 2 if byte < 0xE0 else 3
    if (
        byte < 0xC2
        or byte > 0xEF
        or start + size > end
        or not is_continued(start + 1, start + size)
    ):
        return 0
    point = (byte & 0x1F) << 6 | load1(start + 1) & 0x3F
    if size == 3:
        point = (byte & 0xF) << 12 | (load1(start + 1) & 0x3F) << 6 | load1(start + 2) & 0x3F
        if point < 0x800:
            return 0
    return size if load1(printable + (point >> 3)) >> (point & 7) & 1 else 0


@kernel
def put_quoted(at: int, start: int, end: int, printable: int, mark: int) -> int:
    """Printable text between quotation marks, each single quote in it twice; 0 for any other text.

    `printable`: address of a bit for each code point, where bytes beyond ASCII are UTF-8; else 0.
    `mark`: that of JSON is DOUBLE_QUOTE; what needs an escape there is not written here.
    """
    store1(at, mark)
    at += 1
    while start < end:
        if mark == QUOTE and start + 8 <= end and is_plain_word(load8(start)):
            store8(at, load8(start))
            at += 8
            start += 8
            continue
        byte, size = load1(start), 1
        if byte >= 0x80 and printable:
            size = character_size(start, end, printable)
            if size == 0:
                return 0
            copy_bytes(at, start, size)
        elif byte < SPACE or byte > 0x7E or (mark != QUOTE and byte in (DOUBLE_QUOTE, BACKSLASH)):
            return 0
        else:
            store1(at, byte)
        at += size
        start += size
        if byte == QUOTE:
            store1(at, byte)
            at += 1
    store1(at, mark)
    return at + 1


@kernel
def put_text(at: int, start: int, end: int, printable: int) -> int:
    """A string, as `put_quoted` writes it; 0 also for what looks like hexadecimal digits."""
    if end - start >= 2 and load2(start) == HEX_MARK:
        return 0
    return put_quoted(at, start, end, printable, QUOTE)


@kernel
def hex_digit(value: int) -> int:
    """A digit of a number to base 16."""
    return 0x30 + value if value < 10 else 0x37 + value


@kernel
def put_hex(at: int, start: int, end: int, width: int) -> int:
    """0x and the digits of the bytes, filled up with zeros to `width` bytes."""
    store2(at, HEX_MARK)
    at += 2
    stop = start + width
    while start < end:
        byte = load1(start)
        store1(at, hex_digit(byte >> 4))
        store1(at + 1, hex_digit(byte & 15))
        at += 2
        start += 1
    while start < stop:
        store2(at, 0x3030)
        at += 2
        start += 1
    return at


@kernel
def put_decimal(at: int, start: int, whole: int, fraction: int) -> int:
    """A DECIMAL with all digits of its fraction."""
    flip = 0 if load1(start) & 0x80 else 0xFFFFFFFF
    first = 0x80
    store1(at, QUOTE)
    at += 1
    if flip:
        store1(at, MINUS)
        at += 1
    shown = 0
    groups = (whole + 8) // 9
    for group in range(groups + (fraction + 8) // 9):
        digits = 9
        if group == 0 and whole % 9:
            digits = whole % 9
        elif group == groups + (fraction + 8) // 9 - 1 and group >= groups and fraction % 9:
            digits = fraction % 9
        size = 4 if digits == 9 else (digits + 1) // 2
        value = (big(start, size) ^ (first << (8 * size - 8)) ^ flip) & ((1 << (8 * size)) - 1)
        first = 0
        start += size
        if value >= POWERS[digits]:
            return 0
        if group == groups:
            if shown == 0:
                store1(at, ZERO)
                at += 1
            store1(at, POINT)
            at += 1
        if group >= groups:
            at = put_number_of(at, value, digits)
            shown = 1
        elif shown:
            at = put_number_of(at, value, digits)
        elif value:
            at = put_number_of(at, value, 1)
            shown = 1
    if shown == 0:
        store1(at, ZERO)
        at += 1
    store1(at, QUOTE)
    return at + 1


@kernel
def put_day(at: int, year: int, month: int, day: int) -> int:
    """2026-11-22, from the opening quote on."""
    store1(at, QUOTE)
    at = put_number_of(at + 1, year, 4)
    store1(at, MINUS)
    at = put_number_of(at + 1, month, 2)
    store1(at, MINUS)
    return put_number_of(at + 1, day, 2)


@kernel
def put_clock(at: int, hour: int, minute: int, second: int, fraction: int, digits: int) -> int:
    """18:04:05.123, up to the closing quote. The fraction is in microseconds."""
    at = put_number_of(at, hour, 2)
    store1(at, COLON)
    at = put_number_of(at + 1, minute, 2)
    store1(at, COLON)
    at = put_number_of(at + 1, second, 2)
    if digits:
        store1(at, POINT)
        put_number_of(at + 1, fraction, 6)
        at += 1 + digits
    store1(at, QUOTE)
    return at + 1


@kernel
def put_date(at: int, value: int) -> int:
    """A DATE."""
    at = put_day(at, value >> 9, value >> 5 & 15, value & 31)
    store1(at, QUOTE)
    return at + 1


@kernel
def put_datetime(at: int, start: int, digits: int) -> int:
    """A DATETIME."""
    packed, fraction = big(start, 5) - 0x8000000000, fraction_value(start + 5, digits)
    if packed < 0 or fraction >= MICROSECONDS:
        return 0
    months = packed >> 22
    at = put_day(at, months // 13, months % 13, packed >> 17 & 31)
    store1(at, SPACE)
    return put_clock(at + 1, packed >> 12 & 31, packed >> 6 & 63, packed & 63, fraction, digits)


@kernel
def put_timestamp(at: int, start: int, digits: int) -> int:
    """A TIMESTAMP in UTC; the zero timestamp is the zero date."""
    moment, fraction = big(start, 4), fraction_value(start + 4, digits)
    if fraction >= MICROSECONDS:
        return 0
    year = month = day = 0
    if moment or fraction:
        # days since 1 March of the year 0, in eras of 400 years
        days = moment // 86400 + 719468
        era = days // 146097
        day_of_era = days - era * 146097
        year_of_era = (
            day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096
        ) // 365
        day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
        turned = (5 * day_of_year + 2) // 153
        day = day_of_year - (153 * turned + 2) // 5 + 1
        month = turned + 3 if turned < 10 else turned - 9
        year = year_of_era + era * 400 + (1 if month <= 2 else 0)
    at = put_day(at, year, month, day)
    store1(at, SPACE)
    return put_clock(at + 1, moment // 3600 % 24, moment // 60 % 60, moment % 60, fraction, digits)


@kernel
def put_time(at: int, start: int, digits: int) -> int:
    """A TIME: hours, minutes and seconds are those of the sum, whatever stands in the fields."""
    extra = (digits + 1) // 2
    packed = big(start, 3 + extra) - (1 << (8 * (3 + extra) - 1))
    magnitude = -packed if packed < 0 else packed
    whole, fraction = magnitude >> (8 * extra), magnitude & ((1 << (8 * extra)) - 1)
    if extra == 1:
        fraction *= 10_000
    elif extra == 2:
        fraction *= 100
    if fraction >= MICROSECONDS:
        return 0
    seconds = (whole >> 12 & 0x3FF) * 3600 + (whole >> 6 & 63) * 60 + (whole & 63)
    store1(at, QUOTE)
    at += 1
    if packed < 0 and (seconds or fraction):
        store1(at, MINUS)
        at += 1
    return put_clock(at, seconds // 3600, seconds // 60 % 60, seconds % 60, fraction, digits)


@kernel
def put_bytes(at: int, start: int, length: int) -> int:
    """Bytes as they are."""
    copy_bytes(at, start, length)
    return at + length


@kernel
def put_padded(at: int, value: int, width: int) -> int:
    """A number that is not negative, to the right of a field."""
    digits = digit_count(value)
    while digits < width:
        store1(at, SPACE)
        at += 1
        digits += 1
    return put_number_of(at, value, 1)


@kernel
def put_uuid(at: int, low: int, high: int) -> int:
    """A UUID whose bytes are two words, as a GTID shows it."""
    for number in range(16):
        if number == 4 or number == 6 or number == 8 or number == 10:
            store1(at, MINUS)
            at += 1
        byte = (low if number < 8 else high) >> (8 * (number & 7)) & 0xFF
        for digit in (byte >> 4, byte & 15):
            store1(at, 0x30 + digit if digit < 10 else 0x57 + digit)
            at += 1
    return at


@kernel
def is_printable(start: int, end: int) -> bool:
    """Whether bytes are printable ASCII, and the last one no space."""
    if start >= end or load1(end - 1) == SPACE:
        return False
    while start < end:
        if load1(start) < SPACE or load1(start) > 0x7E:
            return False
        start += 1
    return True


@kernel
def has_byte(start: int, end: int, byte: int) -> bool:
    """Whether a byte stands among others."""
    while start < end:
        if load1(start) == byte:
            return True
        start += 1
    return False
