"""Row changes of binary logs as Arrow record batches: the public side.

Large logs go through compiled kernels, small ones through Python, which needs no start-up; both
give the same batches.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from applier.binlog.columnar.table_batch import Paths, TableBatch, Wants

if TYPE_CHECKING:
    from applier.binlog.selection.table_filter import FilterTally, TableFilter

SMALL_LOG = 8_000_000
"""Logs of fewer bytes altogether are read by Python alone while the kernels would have to be
compiled first,"""
SMALL_LOG_CACHED = 500_000
"""and of fewer than this many when they are on disk."""
CHUNK_BYTES = 8_000_000
"""Bytes of a log that become one batch per table."""


def read_batches(
    paths: Paths,
    tables: Collection[str] | TableFilter | FilterTally | None = None,
    *,
    verify_checksum: bool = True,
    text: bool = True,
    threads: int | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    compiled: bool | None = None,
) -> Iterator[TableBatch]:
    """The row changes of `paths`, stretch by stretch; within a stretch table by table.

    tables: only these ("db.table"), or what a filter names. text: columns of utf8 and ascii
    character sets as string, else as binary. threads: how many decode at once (default: up to
    four). compiled: True or False forces the kernels or plain Python. Raises InputError naming file
    and position; what stands before the damage has been handed out by then.
    """
    wants = _chooser(tables)
    if compiled is None:
        compiled = worth_compiling(paths)
    if not compiled:
        from applier.binlog.columnar.plain import read_plain

        return read_plain(
            paths, wants, verify_checksum=verify_checksum, text=text, chunk_bytes=chunk_bytes
        )
    from applier.binlog.columnar.fast import read_fast

    workers = threads if threads is not None else min(4, os.cpu_count() or 1)
    return read_fast(
        paths,
        wants,
        verify_checksum=verify_checksum,
        text=text,
        chunk_bytes=chunk_bytes,
        threads=workers,
    )


def _chooser(tables: Collection[str] | TableFilter | FilterTally | None) -> Wants | None:
    if tables is None:
        return None
    from applier.binlog.selection.table_filter import FilterTally, TableFilter

    if isinstance(tables, TableFilter | FilterTally):
        return tables.wants_table if tables else None
    names = frozenset(tables)
    return lambda database, table: f"{database}.{table}" in names


def worth_compiling(paths: Paths) -> bool:
    """Whether the kernels pay off for these files. A file that cannot be read is for the reader to
    complain about."""
    total = 0
    for path in paths:
        try:
            total += Path(path).stat().st_size
        except OSError:
            return False
    if total < SMALL_LOG_CACHED or find_spec("numba") is None:
        return False
    if total >= SMALL_LOG:
        return True
    from applier.binlog.columnar.cache import cached_file

    return all(cached_file(name) is not None for name in ("scan", "decode"))
