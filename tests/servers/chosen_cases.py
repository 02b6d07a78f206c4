"""pytest plugin: of tests with many cases some are run, as long as BINLAG_ALL_CASES=1 does not ask
for all.

Of a test that is the same for several server versions one is run; of one that is marked
`one_case_in(n)`, one in n of its cases; none of one that is marked `in_ci`, which takes ten seconds
and more by itself. Which follows from the test's name, so that all versions are met, each run has
the same tests, and `make test` takes some minutes. CI runs all; `-k 5.7`, or a test's whole name,
takes what it names.
"""

from __future__ import annotations

import os
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable

import pytest
from servers.table import NAMES

VERSIONS = frozenset(NAMES)


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marks."""
    config.addinivalue_line("markers", "one_case_in(n): one in n of its cases is run; CI runs all")
    config.addinivalue_line("markers", "in_ci: CI runs it, and who names it")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the others out of the run; behind `-k`, which has chosen by then."""
    if os.environ.get("BINLAG_ALL_CASES") == "1":
        return
    left_out = set[pytest.Item]()
    if not config.option.keyword and not any("::" in one for one in config.args):
        left_out = {one for one in items if one.get_closest_marker("in_ci")}
    on_servers = [one for one in items if "server_factory" in getattr(one, "fixturenames", ())]
    left_out.update(not_chosen(on_servers, without_version, len))
    marked = [one for one in items if one.get_closest_marker("one_case_in") and one not in left_out]
    left_out.update(not_chosen(marked, without_arguments, cases_for_one))
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


def not_chosen(
    items: Iterable[pytest.Item],
    name_of: Callable[[pytest.Item], str],
    steps: Callable[[list[pytest.Item]], int],
) -> Iterable[pytest.Item]:
    """Of the items of one name, all but one in so many steps."""
    alike: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        alike[name_of(item)].append(item)
    for name, group in alike.items():
        step = steps(group)
        chosen = zlib.crc32(name.encode()) % step
        yield from (item for at, item in enumerate(group) if at % step != chosen)


def cases_for_one(group: list[pytest.Item]) -> int:
    """What the mark says, where there are as many."""
    (number,) = next(group[0].iter_markers("one_case_in")).args
    return min(int(number), len(group))


def without_arguments(item: pytest.Item) -> str:
    """The test's name."""
    return item.nodeid.partition("[")[0]


def without_version(item: pytest.Item) -> str:
    """The test's name and arguments but for the server's version."""
    path, _, arguments = item.nodeid.partition("[")
    kept = [part for part in arguments.removesuffix("]").split("-") if part not in VERSIONS]
    return f"{path}[{'-'.join(kept)}]"


def number_drawn(whole: int) -> int:
    """How many cases a test draws by chance that draws so many in CI: a quarter, or as many as
    DRAWN says."""
    few = whole if os.environ.get("BINLAG_ALL_CASES") == "1" else whole // 4
    return int(os.environ.get("DRAWN", few))


def pytest_report_header() -> list[str]:
    """Says so."""
    every = os.environ.get("BINLAG_ALL_CASES") == "1"
    said = "all" if every else "one version of each test; BINLAG_ALL_CASES=1 runs all"
    return [f"cases: {said}"]
