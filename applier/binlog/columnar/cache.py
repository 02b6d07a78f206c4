"""The kernels as callable machine code: loaded from the cache on disk, or compiled by Numba and put there.

The kernels take one integer and call nothing of Python, so their object code can be kept and loaded by llvmlite alone. That
spares the import of Numba (a third of a second) as well as the compilation (some seconds). The cache is a convenience: when
it cannot be written, or what it holds does not fit this machine, the kernels are compiled again and all else stays the same.

Folder: $NUMBA_CACHE_DIR when set, else $XDG_CACHE_HOME/binlag, else ~/.cache/binlag.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm

Kernel = Callable[[int], int]
SOURCES = ("control.py", "memory.py", "scan_kernel.py", "value_kernels.py", "decode_kernel.py", "cache.py")
NAMES = ("scan", "decode")
PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
NEVER_CALLED = (
    "NRT_Free", "NRT_decref", "NRT_incref", "numba_do_raise", "numba_gil_ensure", "numba_gil_release", "numba_runtime_build_excinfo_struct",
    "numba_unpickle",
)  # fmt: skip
"""Helpers of Numba that the object code names on the path of a Python exception. The kernels raise none."""


class Kernels(NamedTuple):
    """`origin` says where they come from: "cache", "compiled" or "compiled, not cached"."""

    scan: Kernel
    decode: Kernel
    origin: str
    keep: object
    """owner of the machine code"""


def cache_directory() -> Path:
    """Where compiled kernels are kept: NUMBA_CACHE_DIR, or a folder of our own in the user's cache."""
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
    """The package's generated version file; importing Numba, or the metadata of packages, to ask takes too long."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return b""
    return Path(spec.origin).with_name("_version.py").read_bytes()


def cached_file() -> Path | None:
    """Where the kernels stand on disk, None when they are not there (or no home folder is known)."""
    try:
        path = cache_directory() / f"kernels-{_key()}.bin"
        return path if path.is_file() else None
    except (OSError, RuntimeError):
        return None


@cache
def load_kernels() -> Kernels:
    """The kernels, from the cache when they are there."""
    path = cached_file()
    objects = _read(path) if path is not None else None
    if objects is not None:
        try:
            return _link(objects, "cache")
        except RuntimeError:
            pass
    return _compile()


def _read(path: Path) -> dict[str, tuple[str, bytes]] | None:
    """Name -> (symbol, object code). None when the file is damaged or not this user's."""
    try:
        if hasattr(os, "getuid") and path.stat().st_uid not in (os.getuid(), 0):
            return None
        content = path.read_bytes()
    except OSError:
        return None
    digest, body = content[:32], content[32:]
    if hashlib.sha256(body).digest() != digest:
        return None
    return _unpack(body)


def _pack(objects: dict[str, tuple[str, bytes]]) -> bytes:
    """One line a kernel, "name symbol length", an empty line, then the object code."""
    lines = [f"{name} {symbol} {len(code)}\n" for name, (symbol, code) in objects.items()]
    return "".join([*lines, "\n"]).encode() + b"".join(code for _, code in objects.values())


def _unpack(body: bytes) -> dict[str, tuple[str, bytes]] | None:
    head, _, rest = body.partition(b"\n\n")
    objects = {}
    for line in head.decode().splitlines():
        name, symbol, length = line.split(" ")
        objects[name] = (symbol, rest[: int(length)])
        rest = rest[int(length) :]
    return objects if set(objects) == set(NAMES) else None


def _link(objects: dict[str, tuple[str, bytes]], origin: str) -> Kernels:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    abort = ctypes.cast(ctypes.CDLL(None).abort, ctypes.c_void_p).value
    for symbol in NEVER_CALLED:
        if not llvm.address_of_symbol(symbol):
            llvm.add_symbol(symbol, abort)
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    for _, code in objects.values():
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    functions = [PROTOTYPE(engine.get_function_address(objects[name][0])) for name in NAMES]
    return Kernels(functions[0], functions[1], origin, engine)


def _compile() -> Kernels:
    from numba import cfunc, types

    from applier.binlog.columnar.decode_kernel import decode
    from applier.binlog.columnar.scan_kernel import scan

    signature = types.int64(types.int64)
    compiled: list[Any] = [cfunc(signature, error_model="numpy")(function.py_func) for function in (scan, decode)]  # type: ignore[attr-defined]
    objects = {}
    for name, function in zip(NAMES, compiled, strict=True):
        objects[name] = (function._wrapper_name, function._library._get_compiled_object())
    origin = "compiled" if _write(objects) else "compiled, not cached"
    return Kernels(PROTOTYPE(compiled[0].address), PROTOTYPE(compiled[1].address), origin, compiled)


def _write(objects: dict[str, tuple[str, bytes]]) -> bool:
    """Puts the object code into the cache; a half-written file is never seen under its name."""
    import tempfile

    body = _pack(objects)
    try:
        directory = cache_directory()
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=directory, prefix="kernels-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(body).digest() + body)
            Path(temporary).replace(directory / f"kernels-{_key()}.bin")
        except BaseException:
            Path(temporary).unlink()
            raise
    except (OSError, RuntimeError):
        return False
    return True
