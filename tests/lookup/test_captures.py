"""Every transaction that real replicas applied costs the same here: handler counters, error, rows
and their order."""

from __future__ import annotations

import pytest

from tests.lookup_captures import Shape, disagreement, shapes


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    "shape", [pytest.param(shape, id=f"{shape.folder}-{shape.name}") for shape in shapes()]
)
def test_costs_what_it_cost_a_real_replica(shape: Shape) -> None:
    tables = shape.tables()
    cases = shape.cases()
    assert cases
    differing = {}
    for case in cases:
        found = disagreement(case, shape, tables.copy())
        if found:
            differing[case["case"]] = found
    assert not differing
