"""pytest plugin for CI (BINLAG_RERUN=1): a test of real processes that fails is run once more, with
everything that it uses made anew.

A test that passes then is listed as flaky, to be mended next. More than three of them fail the run:
that is no coincidence any more.
"""

from __future__ import annotations

import gc
import os
import warnings

import pytest
from pytest_rerunfailures import suspended_finalizers

MOST_FLAKY = 3
PROCESSES = frozenset({"multiprocessing", "signal", "socket", "subprocess", "threading"})
"""A module that has one of these starts processes, or waits for what they do."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of real processes."""
    if os.environ.get("BINLAG_RERUN") == "1":
        for item in items:
            if uses_processes(item):
                item.add_marker(pytest.mark.flaky(reruns=1))


def uses_processes(item: pytest.Item) -> bool:
    """Whether its module imports what processes are run with, or it starts servers: by a fixture,
    or by itself."""
    names = vars(item.module) if isinstance(item, pytest.Function) else {}
    return (
        not PROCESSES.isdisjoint(names)
        or "ServerFactory" in names
        or "server_factory" in getattr(item, "fixturenames", ())
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """The second run gets servers of its own, since the first left its rows in those of the
    module."""
    if getattr(item, "execution_count", 1) > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect()  # what the first run left open is not the fault of a later test
        state = item.session._setupstate
        state.stack.update(suspended_finalizers)  # the plugin would keep the module's fixtures
        suspended_finalizers.clear()
        state.teardown_exact(item.session)  # all but what the whole session shares


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Too many flaky tests are a failure."""
    if not hasattr(session.config, "workerinput") and len(_flaky(session.config)) > MOST_FLAKY:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Lists the flaky tests."""
    found = _flaky(config)
    for name in found:
        terminalreporter.write_line(f"flaky, to be mended: {name}")
    if len(found) > MOST_FLAKY:
        terminalreporter.write_line(
            f"{len(found)} tests are flaky, more than {MOST_FLAKY}: this run fails", red=True
        )


def _flaky(config: pytest.Config) -> list[str]:
    """What failed first and passed then."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    stats = reporter.stats if reporter else {}
    passed = {report.nodeid for report in stats.get("passed", [])}
    return sorted({report.nodeid for report in stats.get("rerun", [])} & passed)
