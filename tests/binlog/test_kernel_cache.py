"""The cache of compiled kernels, and what a process imports for them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from applier.binlog.columnar import cache as kernel_cache
from tests.binlog import build


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return done.stdout.strip()


def test_a_small_log_loads_no_compiler(tmp_path: Path) -> None:
    log = build.write(tmp_path, build.log(build.table_map(), build.rows(30, build.int_image(1))))
    code = (
        "import sys; from applier.binlog.columnar import read_batches;"
        f"print(sum(b.data.num_rows for b in read_batches([{str(log)!r}])), 'numba' in "
        "sys.modules, 'llvmlite' in sys.modules)"
    )
    assert run(code) == "1 False False"


@pytest.mark.in_ci
def test_kernels_work_where_no_cache_can_be_written(tmp_path: Path) -> None:
    log = build.write(tmp_path, build.log(build.table_map(), build.rows(30, build.int_image(1))))
    code = (
        "from applier.binlog.columnar import read_batches; from applier.binlog.columnar.cache "
        "import load_kernel;"
        f"print(sum(b.data.num_rows for b in read_batches([{str(log)!r}], compiled=True)), "
        "load_kernel('scan').origin)"
    )
    assert run(code, NUMBA_CACHE_DIR=str(log / "below a file")) == "1 compiled, not cached"


def test_cached_kernels_need_no_numba() -> None:
    kernel_cache.load_kernel("scan")
    code = (
        "import sys; from applier.binlog.columnar.cache import load_kernel; "
        "print(load_kernel('scan').origin, 'numba' in sys.modules)"
    )
    if kernel_cache.cached_file("scan") is None:
        pytest.skip("no cache can be written here")
    assert run(code) == "cache False"


def test_a_damaged_cache_is_not_used(tmp_path: Path) -> None:
    body = b"symbol\ncode\n"
    path = tmp_path / "scan.bin"
    path.write_bytes(hashlib.sha256(body).digest() + body)
    assert kernel_cache._read(path) == ("symbol", b"code\n")
    path.write_bytes(path.read_bytes()[:-1])
    assert kernel_cache._read(path) is None


def test_pandas_is_not_imported(tmp_path: Path) -> None:
    """Where it is installed it would be most of the start: pyarrow imports it to look at a list."""
    from tests.binlog.build import gtid, int_image, log, query, rows, table_map, write, xid

    path = write(
        tmp_path, log(gtid(1), query(b"BEGIN"), table_map(), rows(30, int_image(5)), xid())
    )
    code = f"""
import sys
from applier.binlog.columnar import read_batches
batches = read_batches([{str(path)!r}], compiled=True, threads=1)
print(sum(batch.data.num_rows for batch in batches), 'pandas' in sys.modules)"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["1", "False"]
