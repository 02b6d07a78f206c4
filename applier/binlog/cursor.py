"""A read position in a buffer that never leaves its bounds."""

from __future__ import annotations

from applier.error_codes import Code
from applier.errors import InputError


class Cursor:
    """Reads little-endian fields from `buffer[at:end]`. Raises InputError where a field would run
    past the end."""

    __slots__ = ("at", "buffer", "end")

    def __init__(self, buffer: bytes, start: int = 0, end: int | None = None) -> None:
        self.buffer = buffer
        self.at = start
        self.end = len(buffer) if end is None else end

    @property
    def left(self) -> int:
        """Bytes that are still to be read."""
        return self.end - self.at

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        at = self.at
        if size < 0 or at + size > self.end:
            raise InputError(
                f"an event field of {size} bytes runs past the end of the event",
                code=Code.BAD_EVENT,
            )
        self.at = at + size
        return self.buffer[at : at + size]

    def skip(self, size: int) -> None:
        """Passes over `size` bytes."""
        if size < 0 or self.at + size > self.end:
            raise InputError(
                f"an event field of {size} bytes runs past the end of the event",
                code=Code.BAD_EVENT,
            )
        self.at += size

    def rest(self) -> bytes:
        """All bytes that are left."""
        return self.take(self.end - self.at)

    def unsigned(self, size: int) -> int:
        """An unsigned number of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def u8(self) -> int:
        """An unsigned number of one byte."""
        return self.unsigned(1)

    def u16(self) -> int:
        """An unsigned number of two bytes."""
        return self.unsigned(2)

    def u32(self) -> int:
        """An unsigned number of four bytes."""
        return self.unsigned(4)

    def u64(self) -> int:
        """An unsigned number of eight bytes."""
        return self.unsigned(8)

    def packed(self) -> int:
        """A length-encoded integer (`net_field_length`): up to 250 in one byte, else 252/253/254
        and 2/3/8 bytes. Raises InputError."""
        first = self.unsigned(1)
        if first < 251:
            return first
        size = {252: 2, 253: 3, 254: 8}.get(first)
        if size is None:
            raise InputError(
                f"{first} is not the start of a length-encoded integer", code=Code.BAD_EVENT
            )
        return self.unsigned(size)

    def varlen(self) -> int:
        """An unsigned integer of mysql::serialization: the number of trailing one bits of the first
        byte tells its length."""
        first = self.unsigned(1)
        extra = 0
        while extra < 8 and first >> extra & 1:
            extra += 1
        if extra == 8:
            return self.unsigned(8)
        return int.from_bytes(bytes([first]) + self.take(extra), "little") >> (extra + 1)

    def varlen_signed(self) -> int:
        """A signed number in the same form, its sign in the lowest bit."""
        value = self.varlen()
        return (value >> 1) ^ -(value & 1)
