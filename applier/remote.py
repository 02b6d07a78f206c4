"""Files on object stores and Hadoop: `s3://`, `gs://`, `hdfs://`, `abfs://` by pyarrow, other
schemes by fsspec.

Credentials come from the environment, as those libraries take them; an address that holds some is
refused. A file is read by ranges: nobody fetches more of it than is looked at.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import IO, Any, TypeVar

from applier.error_codes import Code
from applier.errors import InputError, UsageError
from applier.lazy_imports import needed

T = TypeVar("T")
_URL = re.compile(r"([a-z][a-z0-9+.-]+):/{1,2}([^/]*)/*(.*)", re.DOTALL)
"""Scheme, bucket (or host), key. `pathlib` makes one slash of two, so one is enough."""
_RECEIVE = (
    "binlag receive mysql://USER@HOST:PORT --dir DIR fetches the logs of a server; then name DIR"
)
_CREDENTIALS = {
    "s3": (
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the role of the machine;"
        " AWS_ENDPOINT_URL and AWS_DEFAULT_REGION"
    ),
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or the account of the machine",
    "gcs": "GOOGLE_APPLICATION_CREDENTIALS, or the account of the machine",
    "abfs": (
        "AZURE_STORAGE_ACCOUNT_KEY, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or the identity of the"
        " machine"
    ),
    "abfss": (
        "AZURE_STORAGE_ACCOUNT_KEY, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or the identity of the"
        " machine"
    ),
    "hdfs": (
        "HADOOP_HOME, JAVA_HOME, ARROW_LIBHDFS_DIR and CLASSPATH (`hadoop classpath --glob`); kinit"
        " for Kerberos"
    ),
    "viewfs": (
        "HADOOP_HOME, JAVA_HOME, ARROW_LIBHDFS_DIR and CLASSPATH (`hadoop classpath --glob`); kinit"
        " for Kerberos"
    ),
}
"""Scheme -> what of the environment the library looks at."""
_URI_OPTIONS = dict.fromkeys(("gs", "gcs"), "?retry_limit_seconds=30")
"""Scheme -> options of pyarrow's. Google's library would try for 15 minutes, and not hear Ctrl-C,
where there is no network or nobody says who we are."""
_LONGEST = 200
MAGIC_CHARACTERS = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Address:
    """Where a remote file or folder is. `key` is "" for the whole bucket."""

    scheme: str
    bucket: str
    key: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.key}"

    def at(self, key: str) -> Address:
        """Another key of the bucket."""
        return Address(self.scheme, self.bucket, key)


def address_of(path: str | os.PathLike[str]) -> Address | None:
    """The address that a path is, None for a path on this machine. Raises UsageError for one that
    holds a password."""
    match = _URL.fullmatch(os.fspath(path))
    if match is None or match[1] == "file":
        return None
    scheme, bucket, key = match.groups()
    if "@" in bucket and ":" in bucket.rpartition("@")[0]:
        hint = (
            "leave it out; the environment has it:"
            f" {_CREDENTIALS.get(scheme, 'see the library of this scheme')}"
        )
        raise UsageError(
            f"a password stands in an address {scheme}://…", code=Code.PASSWORD_IN_URL, hint=hint
        )
    return Address(scheme, bucket or "default", key)


class RemoteFile:
    """One file. Raises InputError that names it when it cannot be opened or read."""

    def __init__(self, address: Address) -> None:
        self.address = address
        filesystem, root = _filesystem(address.scheme, address.bucket)
        path = _joined(root, address.key)
        self._open: Callable[[], Any] = lambda: filesystem.open_input_stream(path, compression=None)
        self._file = _asked(address, lambda: filesystem.open_input_file(path))
        self.size: int = _asked(address, self._file.size)

    def read_at(self, size: int, position: int) -> bytes:
        """That many bytes from a position on; fewer at the end."""
        data: bytes = _asked(self.address, lambda: self._file.read_at(size, position))
        return data

    def close(self) -> None:
        """Nothing is read any more."""
        self._file.close()

    def stream(self) -> IO[bytes]:
        """The file from its beginning on."""
        return _Stream(self.address, _asked(self.address, self._open))  # type: ignore[return-value]


class _Stream:
    """As much of a file object as readers use, with errors that name the file."""

    def __init__(self, address: Address, file: Any) -> None:
        self._address = address
        self._file = file

    def read(self, size: int = -1) -> bytes:
        data: bytes = _asked(self._address, lambda: self._file.read(None if size < 0 else size))
        return data

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self._file.close()


def is_folder(address: Address) -> bool:
    """Whether there are files below this key, and none of this name."""
    filesystem, root = _filesystem(address.scheme, address.bucket)
    path = _joined(root, address.key.rstrip("/"))
    kind: str = _asked(address, lambda: filesystem.get_file_info(path)).type.name
    return kind == "Directory"


def inside(address: Address) -> list[tuple[str, bool]]:
    """(Key, whether it is a folder) of what stands directly in a folder. Raises InputError for one
    that is not there."""
    from pyarrow.fs import FileSelector

    filesystem, root = _filesystem(address.scheme, address.bucket)
    base = _joined(root, address.key.rstrip("/"))
    infos = _asked(
        address, lambda: filesystem.get_file_info(FileSelector(base or "/", recursive=False))
    )
    prefix = address.key.rstrip("/")
    return sorted(
        (f"{prefix}/{info.base_name}".lstrip("/"), info.type.name == "Directory") for info in infos
    )


def fitting(address: Address) -> list[Address]:
    """Files whose key fits a pattern (`*`, `?`, `[…]` within one part of it), in the order of their
    names."""
    return [address.at(key) for key in sorted(_fitting(address, "", address.key.split("/")))]


def _fitting(address: Address, folder: str, parts: list[str]) -> Iterator[str]:
    """Goes down part by part: only folders that fit are listed."""
    plain = 0
    while plain < len(parts) and not MAGIC_CHARACTERS.search(parts[plain]):
        plain += 1
    if plain == len(parts):
        key = "/".join([folder, *parts]).lstrip("/")
        if not is_folder(address.at(key)):
            yield key
        return
    base = "/".join([folder, *parts[:plain]]).lstrip("/")
    pattern, rest = parts[plain], parts[plain + 1 :]
    for key, is_a_folder in inside(address.at(base)):
        if fnmatch.fnmatchcase(key.rpartition("/")[2], pattern) and is_a_folder == bool(rest):
            if rest:
                yield from _fitting(address, key, rest)
            else:
                yield key


def _joined(root: str, key: str) -> str:
    return f"{root.rstrip('/')}/{key}" if root else key


@cache
def _filesystem(scheme: str, bucket: str) -> tuple[Any, str]:
    """(The filesystem, the bucket's path in it.) Raises InputError for an unknown scheme,
    UsageError without a library."""
    address = Address(scheme, bucket, "")
    with needed(f"reading {scheme}:// needs pyarrow", "binlag[arrow]"):
        from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem
        from pyarrow.lib import ArrowInvalid
    try:
        found: tuple[Any, str] = _asked(
            address,
            lambda: FileSystem.from_uri(f"{address}{_URI_OPTIONS.get(scheme, '')}"),
            ArrowInvalid,
        )
        return found
    except ArrowInvalid:
        pass
    try:
        import fsspec

        filesystem, root = _asked(
            address, lambda: fsspec.core.url_to_fs(str(address)), (ImportError, ValueError)
        )
    except (ImportError, ValueError):
        stores = ", ".join(f"{one}://" for one in _CREDENTIALS)
        raise InputError(
            f"no library here knows the scheme {scheme}://",
            code=Code.REMOTE,
            file=str(address),
            hint=(
                _RECEIVE
                if scheme == "mysql"
                else f"one of {stores}; for others install fsspec and its package"
            ),
        ) from None
    return PyFileSystem(FSSpecHandler(filesystem)), root


def _asked(address: Address, ask: Callable[[], T], passed: Any = ()) -> T:
    """What a library answers; its errors, but for those that are `passed` on, become one line that
    names the address."""
    try:
        return ask()
    except passed:
        raise
    except FileNotFoundError:
        raise InputError(
            "there is no such file", code=Code.CANNOT_READ, file=str(address)
        ) from None
    except Exception as error:  # each library has its own
        said = " ".join(str(error).split()) or type(error).__name__
        said = said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"
        hint = (
            "the environment says who you are and where:"
            f" {_CREDENTIALS.get(address.scheme, 'see the library of this scheme')}"
        )
        raise InputError(
            f"the store does not give it: {said}", code=Code.REMOTE, file=str(address), hint=hint
        ) from None
