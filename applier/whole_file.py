"""Output files that are complete or not there: written under another name, renamed at the end.

Who is interrupted, or killed, never leaves half a file under the name that somebody asked for. What
is not complete stands in a hidden folder beside it, which its writer keeps locked; a folder that
nobody locks is of a killed one, and the next who writes there removes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from applier.errors import BinlagError

PREFIX, SUFFIX = ".binlag-", ".partial"


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives the path to write to; it becomes `path` when the block ends, or ends with an error that
    is said to the user.

    With any other exception the file is removed and what stood at `path` stays. What is no regular
    file (a pipe, /dev/stdout) is written to directly. Raises OSError as `open` does.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        yield target
        return
    with whole_files(target.parent) as place:
        yield place(target.name)


@contextmanager
def whole_files(folder: str | os.PathLike[str]) -> Iterator[Callable[[str], Path]]:
    """The same for several files of one folder, which all appear at the end: gives a function from
    their names to where they are written.

    A name that is a link, or no regular file, stays what it is. Raises OSError for a folder that
    cannot be written to.
    """
    home = Path(os.path.realpath(folder))
    _remove_leftovers(home)
    with ExitStack() as elsewhere, _hidden_folder(home) as hidden:
        names = list[str]()

        def place(name: str) -> Path:
            target = home / name
            if target.is_symlink() or (target.exists() and not target.is_file()):
                return elsewhere.enter_context(whole_file(target))
            names.append(name)
            return hidden / name

        try:
            yield place
        except BinlagError:
            _appear(hidden, home, names)
            raise
        except OSError as error:
            raise _with_name(error, hidden, home, names) from None
        _appear(hidden, home, names)


def _with_name(error: OSError, hidden: Path, home: Path, names: list[str]) -> OSError:
    """A write to an open file fails without a name; the names of the hidden folder are nobody's.
    Errors of pyarrow have a number, and a text of their own around the system's.
    """
    name = error.filename
    if name is None and len(names) == 1:
        name = home / names[0]
    elif isinstance(name, str | os.PathLike) and Path(name).parent == hidden:
        name = home / Path(name).name
    if name is None or error.errno is None:
        return error
    return OSError(error.errno, os.strerror(error.errno), os.fspath(name))


def _appear(hidden: Path, home: Path, names: list[str]) -> None:
    for name in names:
        with suppress(FileNotFoundError):  # nothing was written
            (hidden / name).replace(home / name)


@contextmanager
def _hidden_folder(home: Path) -> Iterator[Path]:
    """A folder that is locked as long as this process has it. Raises OSError where none can be
    made."""
    hidden, lock = _make_locked(home)
    try:
        yield hidden
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
        os.close(lock)


def _make_locked(home: Path) -> tuple[Path, int]:
    """Again, when somebody took it for a leftover before it was locked."""
    while True:
        hidden = home / f"{PREFIX}{os.urandom(8).hex()}{SUFFIX}"
        try:
            hidden.mkdir()
        except OSError as error:
            raise type(error)(error.errno, error.strerror, str(home)) from None
        with suppress(FileNotFoundError):
            lock = os.open(hidden, os.O_RDONLY)
            if _lock(lock, fcntl.LOCK_SH) and os.fstat(lock).st_nlink:
                return hidden, lock
            os.close(lock)


def _lock(file: int, how: int) -> bool:
    """False when another process has it. On a file system without locks nobody has one."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return how == fcntl.LOCK_SH
    return True


def _remove_leftovers(home: Path) -> None:
    """Removes what killed processes were writing there."""
    for left in home.glob(f"{PREFIX}*{SUFFIX}"):
        with suppress(OSError):  # it is another user's, or gone
            lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            if _lock(lock, fcntl.LOCK_EX):
                shutil.rmtree(left, ignore_errors=True)
            os.close(lock)


def can_write(path: str | os.PathLike[str]) -> bool:
    """Whether this user may, as far as the system tells beforehand; for what takes long before it
    is written."""
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
