"""What happens to the files of a killed replica before it starts again, as a machine's crash or a
hand does it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path


def _newest(folder: Path) -> Path:
    return max(folder.glob("relay.0*"))


def _cut(folder: Path, rnd: random.Random) -> None:
    newest = _newest(folder)
    content = newest.read_bytes()
    newest.write_bytes(content[: max(300, len(content) - rnd.randrange(1, 3000))])


def _zeros(folder: Path, rnd: random.Random) -> None:
    newest = _newest(folder)
    content = newest.read_bytes()
    size = min(rnd.randrange(1, 3000), max(0, len(content) - 300))
    newest.write_bytes(content[: len(content) - size] + bytes(size))


def _empty(folder: Path, _rnd: random.Random) -> None:
    _newest(folder).write_bytes(b"")


def _cut_head(folder: Path, rnd: random.Random) -> None:
    newest = _newest(folder)
    newest.write_bytes(newest.read_bytes()[: rnd.randrange(5, 100)])


def _missing(folder: Path, rnd: random.Random) -> None:
    """Not the newest: its number is given again, so that the index names it twice, which is not
    compared here."""
    older = sorted(folder.glob("relay.0*"))[:-1]
    if older:
        rnd.choice(older).unlink()


def _few_bytes(folder: Path, rnd: random.Random) -> None:
    newest = _newest(folder)
    content = newest.read_bytes()
    newest.write_bytes(content[: max(300, len(content) - rnd.randrange(1, 31))])


def _more(folder: Path, rnd: random.Random) -> None:
    newest = _newest(folder)
    newest.write_bytes(newest.read_bytes() + rnd.randbytes(rnd.randrange(1, 200)))


def _flipped(folder: Path, rnd: random.Random) -> None:
    """In the second half of a relay log, behind its head."""
    path = rnd.choice(sorted(folder.glob("relay.0*")))
    content = bytearray(path.read_bytes())
    if len(content) > 700:
        content[rnd.randrange(len(content) // 2, len(content))] ^= 1 << rnd.randrange(8)
    path.write_bytes(content)


def _older_cut(folder: Path, rnd: random.Random) -> None:
    older = sorted(folder.glob("relay.0*"))[:-1]
    if older:
        path = rnd.choice(older)
        content = path.read_bytes()
        path.write_bytes(content[: max(300, len(content) - rnd.randrange(1, 400))])


def _record_empty(folder: Path, rnd: random.Random) -> None:
    for path in rnd.sample(sorted(folder.glob("*.info")), 1):
        path.write_bytes(b"")


def _record_cut(folder: Path, rnd: random.Random) -> None:
    for path in rnd.sample(sorted(folder.glob("*.info")), 1):
        content = path.read_bytes()
        path.write_bytes(content[: rnd.randrange(len(content) or 1)])


IN_RECORDS = frozenset({"a record empty", "a record cut"})
"""What needs records that are files."""
DAMAGES: dict[str, Callable[[Path, random.Random], None]] = {
    "end cut off": _cut,
    "zeros at the end": _zeros,
    "newest relay log empty": _empty,
    "newest relay log cut in its head": _cut_head,
    "a relay log missing": _missing,
    "a few bytes cut off": _few_bytes,
    "garbage behind the end": _more,
    "a bit flipped": _flipped,
    "an older relay log cut": _older_cut,
    "a record empty": _record_empty,
    "a record cut": _record_cut,
}
