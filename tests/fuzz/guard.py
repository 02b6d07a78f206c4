"""Memory that ends at a page nobody may touch: a compiled kernel that reads one byte too far dies
at once instead of finding zeros."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

PAGE = mmap.PAGESIZE
_LIBC = ctypes.CDLL(None, use_errno=True)


def guarded(size: int) -> np.ndarray[Any, Any]:
    """`size` bytes of memory whose last byte is the last one before a page without any access.
    Lives as long as the array."""
    pages = -(-size // PAGE)
    region = mmap.mmap(-1, (pages + 1) * PAGE)
    whole = np.frombuffer(region, np.uint8)
    fence = ctypes.c_void_p(int(whole.ctypes.data) + pages * PAGE)
    if _LIBC.mprotect(fence, ctypes.c_size_t(PAGE), 0):
        raise OSError(ctypes.get_errno(), "mprotect")
    return whole[pages * PAGE - size : pages * PAGE]


def guarded_copy(content: bytes) -> np.ndarray[Any, Any]:
    memory = guarded(len(content))
    memory[:] = np.frombuffer(content, np.uint8)
    return memory


class _Log(bytes):
    """The content of a log as the readers slice it; numpy sees the guarded copy of it."""

    memory: np.ndarray[Any, Any]


class _Numpy:
    """numpy, but for the two functions that say where a kernel reads and writes."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def frombuffer(self, content: bytes, kind: Any) -> np.ndarray[Any, Any]:
        if isinstance(content, _Log):
            return content.memory
        return guarded_copy(bytes(content)) if kind is np.uint8 else np.frombuffer(content, kind)

    def empty(self, shape: Any, kind: Any) -> np.ndarray[Any, Any]:
        return guarded(shape) if kind is np.uint8 else np.empty(shape, kind)


@contextmanager
def kernels_on_guarded_memory() -> Iterator[None]:
    """Logs, decompressed content and output buffers of the columnar reader all end at a guard
    page."""
    from applier.binlog.columnar import fast, registry, scanner
    from applier.binlog.reader import open_log

    def opened(path: Path, size: int = 0) -> bytes:
        log = _Log(open_log(path, size)[:])
        log.memory = guarded_copy(log)
        return log

    numpy = _Numpy()
    with (
        mock.patch.object(scanner, "open_log", opened),
        mock.patch.object(scanner, "np", numpy),
        mock.patch.object(fast, "np", numpy),
        mock.patch.object(registry, "np", numpy),
    ):
        yield
