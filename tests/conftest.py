"""What all tests share: the report's header, and how long hypothesis looks."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from tests.captures_support import CAPTURES

pytest_plugins = ["tests.servers.fixtures", "tests.docs.pages"]

settings.register_profile("short", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
settings.register_profile("long", deadline=None, max_examples=20_000, suppress_health_check=[HealthCheck.too_slow], database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


def pytest_report_header() -> list[str]:
    source = "BINLAG_CAPTURES" if os.environ.get("BINLAG_CAPTURES") else "the committed subset"
    return [f"captures: {len(list((CAPTURES / 'open').glob('*/meta.json')))} logs of real servers ({source})"]
