"""The parts of the decode kernel that turn one value of a row image into one Arrow value.

Formats: `my_time.cc` and `decimal.c` of MySQL, and sql/field.cc 5.6 to 9.7. What cannot be an Arrow
value (zero dates, 30 February, a decimal with a digit group out of range) yields INVALID, and its
bytes are kept beside the column.
"""

from __future__ import annotations

from applier.binlog.columnar.memory import (
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

INVALID = -(1 << 62)
MICROSECONDS = 1_000_000
POWERS = (1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)


@kernel
def little(at: int, size: int) -> int:
    """An unsigned little-endian integer of 1 to 8 bytes (8: its bits)."""
    if size == 4:
        return load4(at)
    if size == 8:
        return load8(at)
    value = 0
    for byte in range(size):
        value |= load1(at + byte) << (8 * byte)
    return value


@kernel
def big(at: int, size: int) -> int:
    """An unsigned big-endian number of `size` bytes."""
    value = 0
    for byte in range(size):
        value = value << 8 | load1(at + byte)
    return value


@kernel
def put(at: int, width: int, value: int) -> None:
    """Writes a number as 1, 2, 4 or 8 bytes."""
    if width == 8:
        store8(at, value)
    elif width == 4:
        store4(at, value)
    elif width == 2:
        store2(at, value)
    else:
        store1(at, value)


@kernel
def days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar, INVALID for what is no date."""
    if year < 1 or year > 9999 or month < 1 or month > 12 or day < 1 or day > 31:
        return INVALID
    if day > 28:
        leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
        last = 31
        if month == 2:
            last = 29 if leap else 28
        elif month == 4 or month == 6 or month == 9 or month == 11:
            last = 30
        if day > last:
            return INVALID
    if month <= 2:
        year -= 1
        month += 12
    return (
        365 * year
        + year // 4
        - year // 100
        + year // 400
        + (153 * (month - 3) + 2) // 5
        + day
        - 719469
    )


@kernel
def date_value(at: int) -> int:
    """A DATE as days since 1970."""
    raw = load2(at) | load1(at + 2) << 16
    return days(raw >> 9, raw >> 5 & 15, raw & 31)


@kernel
def seconds(hour: int, minute: int, second: int, fraction: int) -> int:
    """A time of day or a duration in microseconds."""
    if minute > 59 or second > 59 or fraction >= MICROSECONDS:
        return INVALID
    return ((hour * 60 + minute) * 60 + second) * MICROSECONDS + fraction


@kernel
def moment(year: int, month: int, day: int, time: int) -> int:
    """A date and microseconds of its day as microseconds since 1970."""
    date = days(year, month, day)
    if date == INVALID or time < 0 or time >= 86400 * MICROSECONDS:
        return INVALID
    return date * 86400 * MICROSECONDS + time


@kernel
def fraction_value(at: int, digits: int) -> int:
    """Microseconds out of the bytes of fractional seconds."""
    if digits == 0:
        return 0
    if digits <= 2:
        return load1(at) * 10_000
    if digits <= 4:
        return big(at, 2) * 100
    return big(at, 3)


@kernel
def datetime_value(at: int, digits: int) -> int:
    """A DATETIME2 as microseconds since 1970, in no time zone."""
    packed = big(at, 5) - 0x8000000000
    if packed < 0:
        return INVALID
    months = packed >> 22
    time = seconds(packed >> 12 & 31, packed >> 6 & 63, packed & 63, fraction_value(at + 5, digits))
    return moment(months // 13, months % 13, packed >> 17 & 31, time)


@kernel
def timestamp_value(at: int, digits: int) -> int:
    """A TIMESTAMP2 as microseconds since 1970."""
    fraction = fraction_value(at + 4, digits)
    if fraction >= MICROSECONDS:
        return INVALID
    value = big(at, 4) * MICROSECONDS + fraction
    return INVALID if value == 0 else value


@kernel
def time_value(at: int, digits: int) -> int:
    """A negative TIME with up to four digits has its whole part rounded down and a fraction that
    counts up from there."""
    if digits > 4:
        packed = big(at, 6) - 0x800000000000
    else:
        whole = big(at, 3) - 0x800000
        fraction = 0
        if digits > 0:
            size = (digits + 1) // 2
            fraction = big(at + 3, size)
            if whole < 0 and fraction:
                whole += 1
                fraction -= 1 << (8 * size)
            fraction *= 10_000 if size == 1 else 100
        packed = whole * (1 << 24) + fraction
    magnitude = -packed if packed < 0 else packed
    time = magnitude >> 24
    value = seconds(time >> 12 & 0x3FF, time >> 6 & 63, time & 63, magnitude & 0xFFFFFF)
    if value == INVALID or time >> 22:
        return INVALID
    return -value if packed < 0 else value


@kernel
def old_time_value(at: int) -> int:
    """3 bytes, hhmmss as a signed decimal number."""
    raw = load2(at) | load1(at + 2) << 16
    if raw >= 1 << 23:
        raw -= 1 << 24
    magnitude = -raw if raw < 0 else raw
    value = seconds(magnitude // 10_000, magnitude // 100 % 100, magnitude % 100, 0)
    return -value if raw < 0 and value != INVALID else value


@kernel
def old_datetime_value(at: int) -> int:
    """8 bytes, yyyymmddhhmmss as a decimal number."""
    raw = load8(at)
    if raw < 0:
        return INVALID
    date = raw // 1_000_000
    time = seconds(raw // 10_000 % 100, raw // 100 % 100, raw % 100, 0)
    return moment(date // 10_000, date // 100 % 100, date % 100, time)


@kernel
def old_timestamp_value(at: int) -> int:
    """A TIMESTAMP of before 5.6.4 as microseconds since 1970."""
    value = load4(at)
    return INVALID if value == 0 else value * MICROSECONDS


@kernel
def multiply_add(limbs: int, count: int, factor: int, addend: int) -> None:
    """limbs = limbs * factor + addend; 32-bit limbs, lowest first."""
    carry = addend
    for limb in range(count):
        value = load4(limbs + 4 * limb) * factor + carry
        store4(limbs + 4 * limb, value)
        carry = value >> 32


@kernel
def negate(limbs: int, count: int) -> None:
    """Two's complement of a number of `count` limbs of 32 bits, in place."""
    carry = 1
    for limb in range(count):
        value = (load4(limbs + 4 * limb) ^ 0xFFFFFFFF) + carry
        store4(limbs + 4 * limb, value)
        carry = value >> 32


@kernel
def decimal_value(at: int, whole: int, fraction: int, target: int, width: int) -> bool:
    """Writes a NEWDECIMAL as a two's complement integer of `width` bytes; False when a digit group
    is out of range."""
    flip = 0 if load1(at) & 0x80 else 0xFFFFFFFF
    first = 0x80
    small = whole + fraction <= 18
    number = 0
    for word in range(0, width, 8):
        store8(target + word, 0)
    groups = (whole + 8) // 9 + (fraction + 8) // 9
    for group in range(groups):
        digits = 9
        if group == 0 and whole % 9:
            digits = whole % 9
        elif group == groups - 1 and fraction % 9:
            digits = fraction % 9
        size = 4 if digits == 9 else (digits + 1) // 2
        value = (big(at, size) ^ (first << (8 * size - 8)) ^ flip) & ((1 << (8 * size)) - 1)
        first = 0
        at += size
        if value >= POWERS[digits]:
            return False
        if small:
            number = number * POWERS[digits] + value
        else:
            multiply_add(target, width // 4, POWERS[digits], value)
    if small:
        if flip:
            number = -number
        store8(target, number)
        for word in range(8, width, 8):
            store8(target + word, number >> 63)
    elif flip:
        negate(target, width // 4)
    return True
