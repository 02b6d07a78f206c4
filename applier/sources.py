"""Files to read from: plain, compressed (gzip, zstd, xz, bzip2), a pipe, on a store (s3://…), or
`-` for standard input.

What a file is compressed with is told by its first bytes, not by its name: a pipe has none, and
`dump.sql` may be a gzip file all the same. A compressed file that ends before its own end mark is
an error, never a shorter file.
"""

from __future__ import annotations

import bz2
import glob
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path, PurePath
from typing import IO, Any, Protocol

from applier.error_codes import Code
from applier.errors import InputError
from applier.remote import (
    MAGIC_CHARACTERS,
    Address,
    RemoteFile,
    address_of,
    fitting,
    inside,
    is_folder,
)

STANDARD_INPUT = "-"
PACKED_SUFFIXES = frozenset({".gz", ".zst", ".zstd", ".xz", ".bz2"})
INDEX_SUFFIX = ".index"
_CHUNK_BYTES = 256 << 10
_DAMAGED = (zlib.error, lzma.LZMAError, EOFError, OSError)


class _Decompressor(Protocol):
    """What the decompressors of all four libraries have in common."""

    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, /) -> bytes: ...


class _Zstd:
    """One frame of zstd, whose library is imported for it alone. Implements `_Decompressor`."""

    def __init__(self) -> None:
        import zstandard

        self._error = zstandard.ZstdError
        self._frame = zstandard.ZstdDecompressor().decompressobj()

    @property
    def eof(self) -> bool:
        return self._frame.eof

    @property
    def unused_data(self) -> bytes:
        return self._frame.unused_data

    def decompress(self, data: bytes, /) -> bytes:
        try:
            return self._frame.decompress(data)
        except self._error as error:
            raise EOFError(str(error)) from None


_GZIP = zlib.MAX_WBITS | 16
PACKINGS: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(_GZIP),
    b"\x28\xb5\x2f\xfd": _Zstd,
    b"\x50\x2a\x4d\x18": _Zstd,
    b"\xfd7zXZ\0": lzma.LZMADecompressor,
    b"BZh": bz2.BZ2Decompressor,
}
"""First bytes -> a decompressor of one member (frame, stream) of the file. zstd has two: pzstd
begins with a frame to be skipped."""
MAGIC_BYTES = max(map(len, PACKINGS))


def source_name(path: str | os.PathLike[str]) -> str:
    """How messages call the file."""
    if os.fspath(path) == STANDARD_INPUT:
        return "standard input"
    return str(address_of(path) or path)


def log_name(path: str | os.PathLike[str]) -> str:
    """A log's own name: that of its file, but for what compressing it added."""
    name = Path(path).name
    stem, dot, suffix = name.rpartition(".")
    return stem if dot and f".{suffix}" in PACKED_SUFFIXES else name


def names_in_index(content: bytes) -> list[str]:
    """The logs that an index of logs names, without their folders."""
    lines = content.decode("utf-8", "surrogateescape").split("\n")
    return [PurePath(line).name for line in lines if line]


def next_log_name(name: str) -> str | None:
    """How the log behind this one is called; None for a name without a number."""
    match = re.fullmatch(r"(.*\.)(\d+)", name)
    return None if match is None else f"{match[1]}{int(match[2]) + 1:0{len(match[2])}d}"


def are_listed_in_order(first: Path, second: Path) -> bool:
    """Whether an index of logs that lies beside both files names the second right behind the first:
    then one server wrote them, whatever its server_id was."""
    if first.parent != second.parent:
        return False
    pair = log_name(first), log_name(second)
    try:
        indexes = [index.read_bytes() for index in first.parent.glob(f"*{INDEX_SUFFIX}")]
    except OSError:
        return False
    return any(pair in pairwise(names_in_index(content)) for content in indexes)


def by_number(name: str) -> tuple[str, int, str]:
    """The order of logs: binlog.1000000 comes behind binlog.999999."""
    match = re.search(r"\.(\d+)(\.\w+)?$", name)
    return (name, 0, "") if match is None else (name[: match.start()], int(match[1]), name)


def expanded(name: str) -> list[str]:
    """The files that are meant, in the order of logs: those that fit a pattern; on a store those in
    a folder, too.

    A folder of a store that has one index holds the logs that the index names. Raises InputError
    where nothing fits, and for a name that no file can have.
    """
    check_name(name)
    address = address_of(name)
    if address is None:
        name = name.removeprefix("file://")
        if name == STANDARD_INPUT or not glob.has_magic(name) or Path(name).exists():
            return [name]
        found = glob.glob(name)  # noqa: PTH207 - a pattern with its own root
    elif MAGIC_CHARACTERS.search(address.key):
        found = [str(one) for one in fitting(address)]
    elif address.key.endswith("/") or not address.key or is_folder(address):
        return _in_folder(address)
    else:
        return [str(address)]
    if not found:
        raise InputError("no file fits this pattern", code=Code.NOTHING_TO_READ, file=name)
    return sorted(found, key=by_number)


def check_name(path: str | os.PathLike[str]) -> None:
    """Raises InputError for a name that the system would refuse with a ValueError."""
    if "\0" in os.fspath(path):
        raise InputError(
            "the name of a file cannot hold a NUL byte",
            code=Code.CANNOT_READ,
            file=repr(os.fspath(path)),
            hint="give the name of a file",
        )


def _in_folder(address: Address) -> list[str]:
    keys = [key for key, is_a_folder in inside(address) if not is_a_folder]
    indexes = [key for key in keys if key.endswith(INDEX_SUFFIX)]
    if len(indexes) == 1:
        names = names_in_index(RemoteFile(address.at(indexes[0])).stream().read())
        folder = indexes[0].rpartition("/")[0]
        return [str(address.at(f"{folder}/{name}".lstrip("/"))) for name in names]
    logs = [key for key in keys if re.search(r"\.\d{6,}$", log_name(key))]
    if not logs:
        raise InputError(
            "the folder holds no log: none is named like binlog.000001",
            code=Code.NOTHING_TO_READ,
            file=str(address),
        )
    return [str(address.at(key)) for key in sorted(logs, key=by_number)]


def packing(head: bytes) -> Callable[[], Any] | None:
    """What makes a decompressor for a file that begins with `head`; None where the file is not
    compressed."""
    return next((make for magic, make in PACKINGS.items() if head.startswith(magic)), None)


def open_source(path: str | os.PathLike[str]) -> IO[bytes]:
    """The content of a file, or of standard input for "-", decompressed as it is read.

    A plain regular file is handed out as it was opened, so it can be mapped; all else can only be
    read forwards. Raises OSError as `open` does; reading raises InputError that names the file
    where its compressed content is damaged or cut off.
    """
    file = _opened(path)
    head = file.read(MAGIC_BYTES)
    make = packing(head)
    if make is None and file.seekable():
        file.seek(-len(head), os.SEEK_CUR)
        return file
    raw = _Joined(file, head) if make is None else _Unpacked(file, head, make, source_name(path))
    return io.BufferedReader(raw, _CHUNK_BYTES)


class LocalFile:
    """A file of this machine, read at any position. Implements `RandomAccess`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = Path(path).open("rb")  # noqa: SIM115 - closed by `close`
        self.size = os.fstat(self._file.fileno()).st_size

    def read_at(self, size: int, position: int) -> bytes:
        """That many bytes from a position on; fewer at the end."""
        return os.pread(self._file.fileno(), size, position)

    def close(self) -> None:
        """Nothing is read any more."""
        self._file.close()


class RandomAccess(Protocol):
    """A file of which any part can be read: of this machine, or on a store."""

    size: int

    def read_at(self, size: int, position: int) -> bytes:
        """At most `size` bytes from `position` on; none at the end."""

    def close(self) -> None:
        """Nothing is read any more."""


def open_at(path: str | os.PathLike[str]) -> RandomAccess:
    """A file to read parts of, as it is stored: what is compressed comes compressed. Raises OSError
    or InputError."""
    address = address_of(path)
    return LocalFile(path) if address is None else RemoteFile(address)


def _opened(path: str | os.PathLike[str]) -> IO[bytes]:
    if os.fspath(path) == STANDARD_INPUT:
        return sys.stdin.buffer
    check_name(path)
    address = address_of(path)
    return Path(path).open("rb") if address is None else RemoteFile(address).stream()


class _Joined(io.RawIOBase):
    """A file of which `head` was read already."""

    def __init__(self, file: IO[bytes], head: bytes) -> None:
        self._file = file
        self._head = head

    def readable(self) -> bool:
        """As io.RawIOBase has it, and the two below."""
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        data = self._piece(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()

    def _piece(self, most: int) -> bytes:
        data = self._head[:most] or self._file.read(most)
        self._head = self._head[most:]
        return data


class _Unpacked(_Joined):
    """The decompressed content; members that stand one behind the other are one file."""

    def __init__(
        self, file: IO[bytes], head: bytes, make: Callable[[], _Decompressor], name: str
    ) -> None:
        super().__init__(file, head)
        self._make = make
        self._name = name
        self._member: _Decompressor | None = make()
        self._ready = memoryview(b"")

    def _piece(self, most: int) -> bytes:
        while not self._ready and self._member is not None:
            self._ready = memoryview(self._decompressed())
        piece = bytes(self._ready[:most])
        self._ready = self._ready[most:]
        return piece

    def _decompressed(self) -> bytes:
        """The next piece; empty where there is none yet, or at the end, when there is no member any
        more."""
        member = self._member
        assert member is not None
        packed = super()._piece(_CHUNK_BYTES) if not member.eof else self._behind(member)
        if member.eof:
            packed = packed.lstrip(b"\0")  # padding of tapes and of xz
            if not packed:
                self._member = None
                return b""
            self._member = member = self._make()
        elif not packed:
            raise self._damage("it ends before its end mark")
        try:
            return member.decompress(packed)
        except _DAMAGED as error:
            raise self._damage(str(error) or type(error).__name__) from None

    def _behind(self, member: _Decompressor) -> bytes:
        """What stands behind the end of a member: another one, padding, or nothing."""
        packed = member.unused_data
        while not packed.lstrip(b"\0"):
            packed = super()._piece(_CHUNK_BYTES)
            if not packed:
                break
        return packed

    def _damage(self, why: str) -> InputError:
        return InputError(
            f"the compressed file is damaged: {why}", code=Code.COMPRESSED_FILE, file=self._name
        )
