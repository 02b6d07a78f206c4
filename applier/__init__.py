"""The replica itself: log in, rows out.

    import applier
    tables = applier.load_schema("before.sql")
    result = applier.replay("binlog.*", into=tables, server="5.7",
    row_search="INDEX_SCAN,HASH_SCAN")

A log is named as a text or a Path, as a pattern, as a folder with an index, or as a list of those;
it may be compressed.
"""

TYPE_CHECKING = False  # as in typing, which takes a while to import
if TYPE_CHECKING:
    from typing import Any

    from applier.crashtest.crash_points import crash_points
    from applier.errors import BinlagError, InputError, ReplicationError, UsageError
    from applier.event_list import events
    from applier.fleets.run import fleet
    from applier.forecast.schema_forecast import forecast
    from applier.forecast.schema_verdicts import explain
    from applier.replay_loop import replay
    from applier.replica.replica import Replica
    from applier.schema_source import load_schema
    from applier.tables.catalog import Tables

_HOMES = {
    "crash_points": "applier.crashtest.crash_points",
    "events": "applier.event_list",
    "explain": "applier.forecast.schema_verdicts",
    "fleet": "applier.fleets.run",
    "forecast": "applier.forecast",
    "replay": "applier.replay_loop",
    "Replica": "applier.replica.replica",
    "load_schema": "applier.schema_source",
    "Tables": "applier.tables.catalog",
    "BinlagError": "applier.errors",
    "InputError": "applier.errors",
    "ReplicationError": "applier.errors",
    "UsageError": "applier.errors",
}
__all__ = [
    "BinlagError",
    "InputError",
    "Replica",
    "ReplicationError",
    "Tables",
    "UsageError",
    "crash_points",
    "events",
    "explain",
    "fleet",
    "forecast",
    "load_schema",
    "replay",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> "Any":
    """Public names are imported when they are used, so that the command line starts quickly."""
    if name not in _HOMES:
        raise AttributeError(f"module 'applier' has no attribute {name!r}")
    import importlib

    module = importlib.import_module(_HOMES[name])
    return module if module.__name__ == f"applier.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    """The public names, for completion in a shell or a notebook."""
    return sorted([*__all__, "__version__"])
