"""Loads, stores and copies at plain addresses, for the kernels. Little-endian, any alignment; the
caller checks bounds.

Numba's own array indexing pays for negative indexes and types each element width apart; these are
one instruction each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

I64 = ir.IntType(64)
Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Decorator of what the kernels are made of."""
    return cast(Function, njit(error_model="numpy", nogil=True)(function))


def _pointer(builder: Any, address: Any, bits: int) -> Any:
    return builder.inttoptr(address, ir.IntType(bits).as_pointer())


def _load(bits: int) -> Callable[[int], int]:
    def load(_context: Any, _address: Any) -> Any:
        def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            value = builder.load(_pointer(builder, arguments[0], bits))
            value.align = 1
            return value if bits == 64 else builder.zext(value, I64)

        return types.int64(types.int64), generate

    return cast(Callable[[int], int], intrinsic(load))


def _store(bits: int) -> Callable[[int, int], int]:
    def store(_context: Any, _address: Any, _value: Any) -> Any:
        def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            item = arguments[1] if bits == 64 else builder.trunc(arguments[1], ir.IntType(bits))
            written = builder.store(item, _pointer(builder, arguments[0], bits))
            written.align = 1
            return ir.Constant(I64, 0)

        return types.int64(types.int64, types.int64), generate

    return cast(Callable[[int, int], int], intrinsic(store))


load1, load2, load4, load8 = _load(8), _load(16), _load(32), _load(64)
store1, store2, store4, store8 = _store(8), _store(16), _store(32), _store(64)


def _copy_block() -> Callable[[int, int], int]:
    def copy_block(_context: Any, _target: Any, _source: Any) -> Any:
        def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            value = builder.load(_pointer(builder, arguments[1], 128))
            value.align = 1
            written = builder.store(value, _pointer(builder, arguments[0], 128))
            written.align = 1
            return ir.Constant(I64, 0)

        return types.int64(types.int64, types.int64), generate

    return cast(Callable[[int, int], int], intrinsic(copy_block))


def _copy_bytes() -> Callable[[int, int, int], int]:
    def copy_bytes(_context: Any, _target: Any, _source: Any, _size: Any) -> Any:
        def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            byte = ir.IntType(8).as_pointer()
            copy = builder.module.declare_intrinsic("llvm.memcpy", [byte, byte, I64])
            target, source = (builder.inttoptr(address, byte) for address in arguments[:2])
            builder.call(copy, [target, source, arguments[2], ir.Constant(ir.IntType(1), 0)])
            return ir.Constant(I64, 0)

        return types.int64(types.int64, types.int64, types.int64), generate

    return cast(Callable[[int, int, int], int], intrinsic(copy_bytes))


copy_block = _copy_block()
"""(target, source): 16 bytes"""
copy_bytes = _copy_bytes()
"""(target, source, size): memcpy"""


@kernel
def fill_ones(address: int, size: int) -> None:
    """Sets all bits of `size` bytes."""
    for at in range(size):
        store1(address + at, 0xFF)


@kernel
def same_bytes(left: int, right: int, size: int) -> bool:
    """Whether `size` bytes at two addresses are the same."""
    at = 0
    while at + 8 <= size:
        if load8(left + at) != load8(right + at):
            return False
        at += 8
    while at < size:
        if load1(left + at) != load1(right + at):
            return False
        at += 1
    return True
