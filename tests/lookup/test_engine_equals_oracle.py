"""The fast lookup does what a naive, literal one does: rows in scan order, counters, errors; and the table in memory is a table."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from lookup.versions import RULES
from tests.oracle.cases import Case, cases, outcomes

QUICK = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("version", RULES)
def test_fast_and_naive_engine_do_the_same(version: str) -> None:
    @QUICK
    @given(cases((version,)))
    def compare(case: Case) -> None:
        fast, naive = outcomes(case)
        assert fast == naive

    compare()
