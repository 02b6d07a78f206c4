"""Deterministic damage to inputs of a corpus, for runs that need no coverage: the same seed gives
the same inputs on every machine."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence

Mutation = Callable[[bytearray, int, random.Random, Sequence[bytes]], None]
NUMBERS = (
    0,
    1,
    18,
    19,
    0x7F,
    0x80,
    0xFB,
    0xFC,
    0xFE,
    0xFF,
    1 << 16,
    0x7FFFFFFF,
    0xFFFFFFFF,
    1 << 63,
    (1 << 64) - 1,
)


def _flip(content: bytearray, at: int, chance: random.Random, _others: Sequence[bytes]) -> None:
    content[at] ^= 1 << chance.randrange(8)


def _byte(content: bytearray, at: int, chance: random.Random, _others: Sequence[bytes]) -> None:
    content[at] = chance.choice(
        (0, 1, 0x7F, 0x80, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF, chance.randrange(256))
    )


def _number(content: bytearray, at: int, chance: random.Random, _others: Sequence[bytes]) -> None:
    width = chance.choice((2, 4, 8))
    packed = struct.pack("<Q", chance.choice(NUMBERS))[:width]
    content[at : at + width] = packed if chance.random() < 0.7 else packed[::-1]


def _cut(content: bytearray, at: int, chance: random.Random, _others: Sequence[bytes]) -> None:
    del content[at : at + chance.randrange(1, 40)]


def _double(content: bytearray, at: int, chance: random.Random, _others: Sequence[bytes]) -> None:
    content[at:at] = content[at : at + chance.randrange(1, 40)] * chance.choice((1, 1, 1, 30))


def _cross(content: bytearray, at: int, chance: random.Random, others: Sequence[bytes]) -> None:
    other = chance.choice(others)
    start = chance.randrange(len(other) + 1)
    content[at:at] = other[start : start + chance.randrange(1, 60)]


def _truncate(
    content: bytearray, at: int, _chance: random.Random, _others: Sequence[bytes]
) -> None:
    del content[at:]


MUTATIONS: tuple[Mutation, ...] = (_flip, _byte, _byte, _number, _cut, _double, _cross, _truncate)


def mutated(inputs: Sequence[bytes], count: int, seed: str) -> Iterator[bytes]:
    """`count` damaged copies of the inputs, one to four changes each."""
    chance = random.Random(seed)
    for _ in range(count):
        content = bytearray(chance.choice(inputs))
        for _ in range(chance.choice((1, 1, 2, 4))):
            if content:
                chance.choice(MUTATIONS)(content, chance.randrange(len(content)), chance, inputs)
        yield bytes(content)
