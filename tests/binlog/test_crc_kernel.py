"""CRC-32 in the kernels gives what zlib gives, whatever the length and the address."""

from __future__ import annotations

import ctypes
import random
import zlib
from collections.abc import Callable
from typing import Any

from numba import cfunc, types

from applier.binlog.columnar import crc_kernel
from applier.binlog.columnar.checksum_tables import crc_tables

LONG, START = types.int64, 0xFFFFFFFF
BYTES = random.Random(32).randbytes(20_000)
BUFFER = ctypes.create_string_buffer(BYTES, len(BYTES))


def called(function: Any, numbers: int) -> Callable[..., int]:
    """A kernel as a function of Python."""
    compiled: Any = cfunc(LONG(*[LONG] * numbers))(function.py_func)
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * numbers)
    call: Callable[..., int] = kind(compiled.address)
    call.keep = compiled  # type: ignore[attr-defined]
    return call


def test_any_length_and_address() -> None:
    crc32, chance = called(crc_kernel.crc32, 3), random.Random(7)
    tables, base = ctypes.addressof(crc_tables()), ctypes.addressof(BUFFER)
    for length in [*range(400), *(chance.randrange(len(BYTES)) for _ in range(300))]:
        begin = chance.randrange(len(BYTES) - length)
        found = crc32(tables, base + begin, base + begin + length)
        assert found == zlib.crc32(BYTES[begin : begin + length]), (begin, length)


def test_tables_agree_with_what_this_processor_does() -> None:
    both = called(crc_kernel.by_tables, 4), called(crc_kernel.of_long, 4)
    tables, base = ctypes.addressof(crc_tables()), ctypes.addressof(BUFFER)
    for length in range(64, 1000, 7):
        folded, looked_up = (one(tables, base, base + length, START) for one in both)
        assert folded == looked_up
