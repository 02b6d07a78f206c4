"""pytest plugin: files whose tests start servers come first.

They take the longest, and pytest-xdist gives files out whole: at the end of the run they would
leave one worker alone at work. `--no-loadscope-reorder` in pyproject.toml keeps the order.
"""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Else keeps the order."""
    with_servers = {
        item.path for item in items if "server_factory" in getattr(item, "fixturenames", ())
    }
    items.sort(key=lambda item: item.path not in with_servers)
