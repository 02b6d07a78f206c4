"""Rows events straight into Arrow. `read_batches` is the way in; nothing is imported before it is
asked for, since the receiver wants a kernel alone."""

TYPE_CHECKING = False  # as in typing, which takes a while to import
if TYPE_CHECKING:
    from typing import Any

    from applier.binlog.columnar.batches import read_batches
    from applier.binlog.columnar.table_batch import TableBatch

_HOMES = {"TableBatch": "table_batch", "read_batches": "batches"}
__all__ = ["TableBatch", "read_batches"]


def __getattr__(name: str) -> "Any":
    if name not in _HOMES:
        raise AttributeError(f"module 'applier.binlog.columnar' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"applier.binlog.columnar.{_HOMES[name]}"), name)
