"""The tables of CRC-32 that the kernels look bytes up in (slicing-by-16)."""

from __future__ import annotations

import ctypes
from functools import cache

POLYNOMIAL = 0xEDB88320
"""CRC-32's, its bits from the lowest power's on at the top."""


@cache
def crc_tables() -> ctypes.Array[ctypes.c_uint32]:
    """Sixteen tables of 256, one behind the other: entry b of table k is the CRC of byte b followed
    by k zero bytes."""
    first = []
    for crc in range(256):
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
        first.append(crc)
    tables = [first]
    for _ in range(15):
        tables.append([first[crc & 0xFF] ^ crc >> 8 for crc in tables[-1]])
    return (ctypes.c_uint32 * (16 * 256))(*(crc for table in tables for crc in table))
