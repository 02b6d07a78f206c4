"""The replica itself: log in, rows out.

    import applier
    tables = applier.load_schema("before.sql")
    result = applier.replay(["binlog.000001"], into=tables, server="5.7", row_search="INDEX_SCAN,HASH_SCAN")
"""

TYPE_CHECKING = False  # as in typing, which takes a while to import
if TYPE_CHECKING:
    from typing import Any

    from applier.errors import BinlagError, InputError, ReplicationError, UsageError
    from applier.replay_loop import replay
    from applier.tables.catalog import Tables
    from applier.tables.load import load_schema

_HOMES = {
    "replay": "applier.replay_loop",
    "load_schema": "applier.tables.load",
    "Tables": "applier.tables.catalog",
    "BinlagError": "applier.errors",
    "InputError": "applier.errors",
    "ReplicationError": "applier.errors",
    "UsageError": "applier.errors",
}
__all__ = ["BinlagError", "InputError", "ReplicationError", "Tables", "UsageError", "load_schema", "replay"]
__version__ = "0.1.0"


def __getattr__(name: str) -> "Any":
    """Public names are imported when they are used, so that the command line starts quickly."""
    if name not in _HOMES:
        raise AttributeError(f"module 'applier' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
