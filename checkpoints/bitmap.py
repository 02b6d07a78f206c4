"""Which groups a worker has executed since its checkpoint: the bitmap of the worker info.

Bit i, least significant first, stands for the group with sequence number i counted from the
checkpoint that the worker last heard of (sql/rpl_rli_pdb.cc, Slave_worker::commit_positions). It
has replica_checkpoint_group bits, so the usual 512 take 64 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

MAX_BYTES = 524280 // 8
"""The largest replica_checkpoint_group."""


def empty(checkpoint_group: int = 512) -> bytes:
    """No group executed."""
    return bytes((checkpoint_group + 7) // 8)


def of(groups: Iterable[int], checkpoint_group: int = 512) -> bytes:
    """The bitmap in which these groups are executed."""
    bits = bytearray(empty(checkpoint_group))
    for group in groups:
        bits[group // 8] |= 1 << group % 8
    return bytes(bits)


def groups(bitmap: bytes) -> Iterator[int]:
    """The executed groups, in order."""
    return (number for number in range(len(bitmap) * 8) if executed(bitmap, number))


def executed(bitmap: bytes, group: int) -> bool:
    """Whether the worker has executed this group; what lies outside of the bitmap was not
    executed."""
    return 0 <= group < len(bitmap) * 8 and bool(bitmap[group // 8] >> group % 8 & 1)


def with_group(bitmap: bytes, group: int) -> bytes:
    """The bitmap after the worker has executed one more group."""
    bits = bytearray(bitmap)
    bits[group // 8] |= 1 << group % 8
    return bytes(bits)


def shifted(bitmap: bytes, by: int) -> bytes:
    """The bitmap after a checkpoint took `by` groups off the front: group `by` becomes group 0."""
    return (int.from_bytes(bitmap, "little") >> by).to_bytes(len(bitmap), "little")
