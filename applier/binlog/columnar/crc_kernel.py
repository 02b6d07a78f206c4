"""CRC-32 for the kernels: by carry-less multiplication where the processor has it, else by tables.

A CRC is the rest of a division of polynomials, and so is a product's: sixteen bytes that stand n
bits before others weigh as much as their product with x^n mod P added to those. Four times sixteen
bytes a step are folded onto the next sixty-four, and the last sixteen are looked up in tables as
any others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from applier.binlog.columnar.checksum_tables import POLYNOMIAL
from applier.binlog.columnar.memory import I64, kernel, load1, load4, load8

MULTIPLIES = bool(llvm.get_host_cpu_features().get("pclmul", False))
"""PCLMULQDQ, of nearly every x86-64; other processors' instructions are named otherwise."""
STEP = 64
_PAIR = ir.VectorType(I64, 2)
_BYTE = ir.IntType(8)


def weight(bits: int) -> int:
    """x^bits mod P, as the multiplication takes it: bits in reverse, and one to the left."""
    rest = 1 << 31
    for _ in range(bits):
        rest = rest >> 1 ^ (POLYNOMIAL if rest & 1 else 0)
    return rest << 1


def _weights(distance: int) -> ir.Constant:
    """Of the first and the second half of sixteen bytes that are moved by so many bits."""
    moves = (distance + 32, distance - 32)
    return ir.Constant(_PAIR, [ir.Constant(I64, weight(bits)) for bits in moves])


def _moved(builder: Any, block: Any, weights: Any) -> Any:
    kind = ir.FunctionType(_PAIR, [_PAIR, _PAIR, _BYTE])
    multiply = builder.module.declare_intrinsic("llvm.x86.pclmulqdq", (), kind)
    halves = [ir.Constant(_BYTE, which) for which in (0x00, 0x11)]
    first, second = (builder.call(multiply, [block, weights, half]) for half in halves)
    return builder.xor(first, second)


def _loaded(builder: Any, address: Any, offset: int) -> Any:
    at = builder.add(address, ir.Constant(I64, offset))
    block = builder.load(builder.inttoptr(at, _PAIR.as_pointer()))
    block.align = 1
    return block


def _folded(_context: Any, _start: Any, _end: Any, _crc: Any) -> Any:
    def generate(_target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, end, crc = arguments
        nothing = ir.Constant(_PAIR, [ir.Constant(I64, 0)] * 2)
        initial = builder.insert_element(nothing, crc, ir.Constant(ir.IntType(32), 0))
        blocks = [_loaded(builder, start, 16 * number) for number in range(4)]
        blocks[0] = builder.xor(blocks[0], initial)
        begin = builder.add(start, ir.Constant(I64, STEP))
        before = builder.basic_block
        test, body, after = (builder.append_basic_block(name) for name in ("test", "body", "after"))
        builder.branch(test)

        builder.position_at_end(test)
        at = builder.phi(I64)
        sums = [builder.phi(_PAIR) for _ in range(4)]
        for phi, value in zip([at, *sums], [begin, *blocks], strict=True):
            phi.add_incoming(value, before)
        following = builder.add(at, ir.Constant(I64, STEP))
        builder.cbranch(builder.icmp_signed("<=", following, end), body, after)

        builder.position_at_end(body)
        far = _weights(8 * STEP)
        for number, phi in enumerate(sums):
            block = _loaded(builder, at, 16 * number)
            phi.add_incoming(builder.xor(_moved(builder, phi, far), block), body)
        at.add_incoming(following, body)
        builder.branch(test)

        builder.position_at_end(after)
        total = sums[0]
        for phi in sums[1:]:
            total = builder.xor(_moved(builder, total, _weights(128)), phi)
        places = [ir.Constant(ir.IntType(32), half) for half in (0, 1)]
        halves = [builder.extract_element(total, place) for place in places]
        return cgutils.pack_array(builder, halves)  # type: ignore[no-untyped-call]

    two: Any = types.UniTuple(types.int64, 2)  # type: ignore[no-untyped-call]
    return two(types.int64, types.int64, types.int64), generate


folded = cast(Callable[[int, int, int], tuple[int, int]], intrinsic(_folded))
"""(start, end, crc): two numbers, the sixteen bytes that weigh as much as all whole 64 from start
on; there is one at least.
"""


@kernel
def behind(tables: int, low: int, high: int) -> int:
    """The CRC behind sixteen bytes, the one before them added to their beginning."""
    return (
        load4(tables + 15 * 1024 + 4 * (low & 255))
        ^ load4(tables + 14 * 1024 + 4 * ((low >> 8) & 255))
        ^ load4(tables + 13 * 1024 + 4 * ((low >> 16) & 255))
        ^ load4(tables + 12 * 1024 + 4 * ((low >> 24) & 255))
        ^ load4(tables + 11 * 1024 + 4 * ((low >> 32) & 255))
        ^ load4(tables + 10 * 1024 + 4 * ((low >> 40) & 255))
        ^ load4(tables + 9 * 1024 + 4 * ((low >> 48) & 255))
        ^ load4(tables + 8 * 1024 + 4 * ((low >> 56) & 255))
        ^ load4(tables + 7 * 1024 + 4 * (high & 255))
        ^ load4(tables + 6 * 1024 + 4 * ((high >> 8) & 255))
        ^ load4(tables + 5 * 1024 + 4 * ((high >> 16) & 255))
        ^ load4(tables + 4 * 1024 + 4 * ((high >> 24) & 255))
        ^ load4(tables + 3 * 1024 + 4 * ((high >> 32) & 255))
        ^ load4(tables + 2 * 1024 + 4 * ((high >> 40) & 255))
        ^ load4(tables + 1 * 1024 + 4 * ((high >> 48) & 255))
        ^ load4(tables + 4 * ((high >> 56) & 255))
    )


@kernel
def by_tables(tables: int, start: int, end: int, crc: int) -> int:
    """The CRC behind all whole 64 bytes from `start` on; there are some."""
    for at in range(start, start + (end - start) // STEP * STEP, 16):
        crc = behind(tables, load8(at) ^ crc, load8(at + 8))
    return crc


@kernel
def by_multiplication(tables: int, start: int, end: int, crc: int) -> int:
    """The same, for processors that can."""
    low, high = folded(start, end, crc)
    return behind(tables, low, high)


of_long = by_multiplication if MULTIPLIES else by_tables


@kernel
def crc32(tables: int, start: int, end: int) -> int:
    """CRC-32 of [start, end)."""
    crc = 0xFFFFFFFF
    at = start
    if end - start >= STEP:
        crc = of_long(tables, start, end, crc)
        at += (end - start) // STEP * STEP
    while at + 16 <= end:
        crc = behind(tables, load8(at) ^ crc, load8(at + 8))
        at += 16
    while at < end:
        crc = load4(tables + 4 * ((crc ^ load1(at)) & 255)) ^ (crc >> 8)
        at += 1
    return crc ^ 0xFFFFFFFF
