"""Output files that are complete or not there: written under another name, renamed at the end.

Who is interrupted, or killed, never leaves half a file under the name that somebody asked for.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from applier.errors import BinlagError

SUFFIX = ".partial"


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives the path to write to; it becomes `path` when the block ends, or ends with an error that is said to the user.

    With any other exception the file is removed and what stood at `path` stays. What is no regular file (a pipe, /dev/stdout) is written
    to directly. Raises OSError as `open` does.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        yield target
        return
    partial = target.with_name(f".{secrets.token_hex(8)}{SUFFIX}")
    try:
        yield partial
    except BinlagError:
        if partial.exists():
            partial.replace(target)
        raise
    except BaseException:
        with suppress(FileNotFoundError):
            partial.unlink()
        raise
    partial.replace(target)


def can_write(path: str | os.PathLike[str]) -> bool:
    """Whether this user may, as far as the system tells beforehand; for what takes long before it is written."""
    target = Path(os.path.realpath(path))
    direct = target.exists() and not target.is_file()
    return os.access(target if direct else target.parent, os.W_OK)


def can_write_into(folder: str | os.PathLike[str]) -> bool:
    """The same of files in a folder, which is made when it is not there."""
    place = Path(os.path.realpath(folder))
    while not place.exists():
        place = place.parent
    return place.is_dir() and os.access(place, os.W_OK)


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Writes a whole file, text in UTF-8."""
    with whole_file(path) as partial:
        partial.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
