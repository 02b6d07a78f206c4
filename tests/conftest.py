"""What all tests share: the report's header, and how long hypothesis looks."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.captures_support import CAPTURES

pytest_plugins = [
    "tests.servers.fixtures",
    "tests.servers.chosen_cases",
    "tests.servers.servers_first",
    "tests.servers.reruns",
    "tests.docs.pages",
]

settings.register_profile(
    "short",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
settings.register_profile(
    "long",
    deadline=None,
    max_examples=20_000,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))

if settings().derandomize:
    # One value in twenty is a constant from the source of our modules that are imported by then,
    # and which these are depends on the tests that ran before in the same process. Without those
    # constants the examples are the same in each run (test_repeatable.py).
    # the pool as it begins: empty
    providers._get_local_constants = lambda: providers._local_constants


def pytest_report_header() -> list[str]:
    source = "BINLAG_CAPTURES" if os.environ.get("BINLAG_CAPTURES") else "the committed subset"
    return [
        (
            f"captures: {len(list((CAPTURES / 'open').glob('*/meta.json')))} logs of real servers "
            f"({source})"
        )
    ]
