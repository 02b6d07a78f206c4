"""The part of the text kernel that writes a double with the fewest digits that read back as it,
as Python's repr does.

The digits are found with R. Giulietti's method (The Schubfach way to render doubles, 2020): of the
decimal numbers of one or two lengths next to the double, the nearest that is inside the interval
which rounds to it. Products of 128 bits and a table of powers of ten decide that exactly.
"""

from __future__ import annotations

from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from applier.binlog.columnar.memory import I64, kernel, load8, store1, store2
from applier.binlog.columnar.text.text_control import LEAST_POWER, whole_log2
from applier.binlog.columnar.text.text_values import MINUS, POINT, ZERO, digit_count, put_digits

FRACTION_BITS, LEAST_EXPONENT = 52, -1074
MOST_FIXED, LEAST_FIXED = 16, -3
"""Places of the point among the digits outside of which there is an exponent."""
EXPONENT, NOTHING_BEHIND = 0x65, 0x302E
"""The last is `.0`."""


def _wide(builder: Any, value: Any) -> Any:
    return builder.zext(value, ir.IntType(128))


def _round_to_odd(_context: Any, _high: Any, _low: Any, _factor: Any) -> Any:
    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        high, low, factor = (_wide(builder, value) for value in arguments)
        half = ir.Constant(ir.IntType(128), 64)
        carried = builder.lshr(builder.mul(low, factor), half)
        product = builder.add(builder.mul(high, factor), carried)
        rest = builder.icmp_unsigned(">", builder.trunc(product, I64), ir.Constant(I64, 1))
        whole = builder.trunc(builder.lshr(product, half), I64)
        return builder.or_(whole, builder.zext(rest, I64))

    return types.int64(types.int64, types.int64, types.int64), generate


def _load_float(_context: Any, _address: Any) -> Any:
    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        value = builder.load(builder.inttoptr(arguments[0], ir.FloatType().as_pointer()))
        value.align = 1
        return builder.bitcast(builder.fpext(value, ir.DoubleType()), I64)

    return types.int64(types.int64), generate


round_to_odd = cast(Any, intrinsic(_round_to_odd))
"""(high, low, factor): the 128 bits of high and low times a factor, without the lowest 128; the
last bit is set where those are not (almost) nothing"""
load_float = cast(Any, intrinsic(_load_float))
"""(address): the bits of the double that a FLOAT there is"""


log2_of_ten_to = kernel(whole_log2)
"""`whole_log2` for the kernel"""


@kernel
def shortest(bits: int, tens: int) -> tuple[int, int]:
    """(Digits, power of ten) of a finite double that is not 0 nor negative."""
    fraction, exponent = bits & (1 << FRACTION_BITS) - 1, bits >> FRACTION_BITS
    whole = fraction | (1 << FRACTION_BITS if exponent else 0)
    scale = LEAST_EXPONENT + (exponent - 1 if exponent else 0)
    if -FRACTION_BITS <= scale <= 0 and whole & (1 << -scale) - 1 == 0:
        return whole >> -scale, 0
    # below a power of two the doubles lie half as far apart
    is_closer = 1 if fraction == 0 and exponent > 1 else 0
    power = scale * 1262611 - 524031 * is_closer >> 22
    shift = scale + log2_of_ten_to(-power) + 1
    entry = tens + 16 * (-power - LEAST_POWER)
    high, low = load8(entry), load8(entry + 8)
    is_odd = whole & 1
    least = round_to_odd(high, low, 4 * whole - 2 + is_closer << shift) + is_odd
    value = round_to_odd(high, low, 4 * whole << shift)
    most = round_to_odd(high, low, 4 * whole + 2 << shift) - is_odd
    digits = value // 4
    if digits >= 10:
        shorter = digits // 10
        is_below, is_above = least <= 40 * shorter, 40 * shorter + 40 <= most
        if is_below != is_above:
            return shorter + (1 if is_above else 0), power + 1
    is_below, is_above = least <= 4 * digits, 4 * digits + 4 <= most
    if is_below != is_above:
        return digits + (1 if is_above else 0), power
    middle = 4 * digits + 2
    return digits + (1 if value > middle or (value == middle and digits & 1) else 0), power


@kernel
def put_exponent(at: int, digits: int, count: int, exponent: int) -> int:
    """1.25e-07"""
    end = at + count + (1 if count > 1 else 0)
    first = put_digits(end, digits, count - 1)
    if count > 1:
        store1(at + 1, POINT)
    store1(at, ZERO + first)
    store2(end, EXPONENT | (MINUS if exponent < 0 else 0x2B) << 8)
    size = abs(exponent)
    width = 3 if size > 99 else 2
    put_digits(end + 2 + width, size, width)
    return end + 2 + width


@kernel
def put_fixed(at: int, digits: int, count: int, power: int) -> int:
    """0.00125, 12.5, 1250.0"""
    if power >= 0:
        end = at + count + power
        put_digits(end, 0, power)
        put_digits(end - power, digits, count)
        store2(end, NOTHING_BEHIND)
        return end + 2
    before = max(count + power, 1)
    end = at + before + 1 - power
    rest = put_digits(end, digits, -power)
    store1(at + before, POINT)
    put_digits(at + before, rest, before)
    return end


@kernel
def put_double(at: int, bits: int, tens: int) -> int:
    """A double as Python's repr writes it; what is no number, or infinite, is 0. `tens`: address of
    `powers_of_ten`."""
    if bits >> FRACTION_BITS & 0x7FF == 0x7FF:
        bits = 0
    if bits < 0:
        store1(at, MINUS)
        at += 1
        bits &= 0x7FFFFFFFFFFFFFFF
    if bits == 0:
        return put_fixed(at, 0, 1, 0)
    digits, power = shortest(bits, tens)
    while digits % 10 == 0:
        digits //= 10
        power += 1
    count = digit_count(digits)
    point = count + power
    if LEAST_FIXED <= point <= MOST_FIXED:
        return put_fixed(at, digits, count, power)
    return put_exponent(at, digits, count, point - 1)
