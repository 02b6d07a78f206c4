"""One process at a time, by a lock on a file: two test workers must not bring or initialise the
same server at once."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, *, shared: bool = False, wait: bool = True) -> Iterator[bool]:
    """Holds the lock, or gives False at once when it is not to be waited for and another has it.

    It is free again when the block ends, however it ends, and when the process dies.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(
                file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
            )
        except BlockingIOError:
            yield False
        else:
            yield True
