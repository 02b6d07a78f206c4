"""The kernels as callable machine code: loaded from the cache on disk, or compiled by Numba and put
there, each when it is wanted.

The kernels take one integer and call nothing of Python, so their object code can be kept and loaded
by llvmlite alone. That spares the import of Numba (a third of a second) as well as the compilation
(some seconds). The cache is a convenience: when it cannot be written, or what it holds does not fit
this machine, the kernels are compiled again and all else stays the same.

Folder: $NUMBA_CACHE_DIR when set, else $XDG_CACHE_HOME/binlag, else ~/.cache/binlag.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm

SOURCES = (
    "control.py", "memory.py", "checksum_tables.py", "crc_kernel.py", "scan_kernel.py",
    "value_kernels.py", "decode_kernel.py", "packet_kernel.py", "loads_kernel.py",
    "text/text_control.py", "text/text_values.py", "text/text_doubles.py", "text/text_json.py",
    "text/text_columns.py", "text/text_kernel.py", "../types/json.py", "cache.py",
)  # fmt: skip
MODULES = {
    "scan": "scan_kernel", "decode": "decode_kernel", "unpack": "packet_kernel",
    "loads": "loads_kernel", "lines": "text.text_kernel",
}  # fmt: skip
"""Kernel -> the module with the function of that name."""
PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
NEVER_CALLED = (
    "NRT_Free", "NRT_decref", "NRT_incref", "numba_do_raise", "numba_gil_ensure",
    "numba_gil_release", "numba_runtime_build_excinfo_struct",
    "numba_unpickle",
)  # fmt: skip
"""Helpers of Numba that the object code names on the path of a Python exception. The kernels raise
none."""


class Kernel(NamedTuple):
    """`call` takes the address of a control block. `origin`: "cache", "compiled" or "compiled, not
    cached"; `keep` owns the code."""

    call: Callable[[int], int]
    origin: str
    keep: object


def cache_directory() -> Path:
    """Where compiled kernels are kept: NUMBA_CACHE_DIR, or a folder of our own in the user's
    cache."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base) / "binlag" if base else Path.home() / ".cache" / "binlag"


@cache
def _key() -> str:
    """What the machine code depends on: the kernels' source, the compiler, the processor."""
    digest = hashlib.sha256()
    for name in SOURCES:
        digest.update((Path(__file__).parent / name).read_bytes())
    for package in ("numba", "llvmlite"):
        digest.update(_version(package))
    digest.update(llvm.get_process_triple().encode())
    digest.update(llvm.get_host_cpu_name().encode())
    digest.update(llvm.get_host_cpu_features().flatten().encode())
    for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT"):
        digest.update(os.environ.get(name, "").encode())
    return digest.hexdigest()[:32]


def _version(package: str) -> bytes:
    """The package's generated version file; importing Numba, or the metadata of packages, to ask
    takes too long."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return b""
    return Path(spec.origin).with_name("_version.py").read_bytes()


def cached_file(name: str) -> Path | None:
    """Where a kernel stands on disk, None when it is not there (or no home folder is known)."""
    try:
        path = cache_directory() / _file_name(name)
        return path if path.is_file() else None
    except (OSError, RuntimeError):
        return None


def _file_name(name: str) -> str:
    return f"{name}-{_key()}.bin"


@cache
def load_kernel(name: str) -> Kernel:
    """A kernel, from the cache when it is there. `name`: one of MODULES."""
    path = cached_file(name)
    code = _read(path) if path is not None else None
    if code is not None:
        try:
            return _link(*code)
        except RuntimeError:
            pass
    return _compile(name)


def _read(path: Path) -> tuple[str, bytes] | None:
    """(Symbol, object code). None when the file is damaged or not this user's."""
    try:
        if hasattr(os, "getuid") and path.stat().st_uid not in (os.getuid(), 0):
            return None
        content = path.read_bytes()
    except OSError:
        return None
    digest, body = content[:32], content[32:]
    if hashlib.sha256(body).digest() != digest:
        return None
    symbol, _, code = body.partition(b"\n")
    return symbol.decode(), code


def _link(symbol: str, code: bytes) -> Kernel:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    abort = ctypes.cast(ctypes.CDLL(None).abort, ctypes.c_void_p).value
    for helper in NEVER_CALLED:
        if not llvm.address_of_symbol(helper):
            llvm.add_symbol(helper, abort)
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Kernel(PROTOTYPE(engine.get_function_address(symbol)), "cache", engine)


def _compile(name: str) -> Kernel:
    from numba import cfunc, types

    kernel = getattr(import_module(f"applier.binlog.columnar.{MODULES[name]}"), name)
    compiled: Any = cfunc(types.int64(types.int64), error_model="numpy")(kernel.py_func)
    is_kept = _write(name, compiled._wrapper_name, compiled._library._get_compiled_object())
    return Kernel(
        PROTOTYPE(compiled.address), "compiled" if is_kept else "compiled, not cached", compiled
    )


def _write(name: str, symbol: str, code: bytes) -> bool:
    """Puts object code into the cache; a half-written file is never seen under its name."""
    import tempfile

    body = symbol.encode() + b"\n" + code
    try:
        directory = cache_directory()
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=directory, prefix="kernels-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(body).digest() + body)
            Path(temporary).replace(directory / _file_name(name))
        except BaseException:
            Path(temporary).unlink()
            raise
    except (OSError, RuntimeError):
        return False
    return True
