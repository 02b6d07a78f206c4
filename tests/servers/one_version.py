"""pytest plugin: of a test that is the same for several server versions, one is run, as long as
BINLAG_ALL_CASES=1 does not ask for all.

Which one follows from the test's name, so that all versions are met, each run has the same tests,
and `make test` takes some minutes. CI runs all; `-k 5.7` and the like take what they name.
"""

from __future__ import annotations

import os
import zlib
from collections import defaultdict

import pytest
from servers.table import NAMES

VERSIONS = frozenset(NAMES)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves one version of each out of the run; behind `-k`, which has chosen by then."""
    if os.environ.get("BINLAG_ALL_CASES") == "1":
        return
    alike: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if "server_factory" in getattr(item, "fixturenames", ()):
            alike[without_version(item)].append(item)
    left_out = {
        item
        for name, group in alike.items()
        for at, item in enumerate(group)
        if at != zlib.crc32(name.encode()) % len(group)
    }
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


def without_version(item: pytest.Item) -> str:
    """The test's name and arguments but for the server's version."""
    path, _, arguments = item.nodeid.partition("[")
    kept = [part for part in arguments.removesuffix("]").split("-") if part not in VERSIONS]
    return f"{path}[{'-'.join(kept)}]"


def pytest_report_header() -> list[str]:
    """Says so."""
    every = os.environ.get("BINLAG_ALL_CASES") == "1"
    said = "all of each test" if every else "one of each test; BINLAG_ALL_CASES=1 runs all"
    return [f"server versions: {said}"]
