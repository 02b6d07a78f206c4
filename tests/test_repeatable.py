"""Random examples are the same in each run, whatever else ran before in the same process."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

LARGE = 1 << 40


def examples() -> list[int]:
    """What hypothesis thinks of."""
    found = []

    @settings(derandomize=True, database=None, max_examples=200)
    @given(st.lists(st.integers(0, LARGE), max_size=10))
    def look(numbers: list[int]) -> None:
        found.extend(numbers)

    look()
    return found


def test_examples_do_not_depend_on_what_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = examples()
    source = tmp_path / "many_constants.py"
    source.write_text(f"NUMBERS = {[LARGE - 1000 - number for number in range(200)]}\n")
    specification = spec_from_file_location("many_constants", source)
    assert specification is not None
    monkeypatch.setitem(sys.modules, "many_constants", module_from_spec(specification))
    assert len(first) > 200
    assert examples() == first or not settings().derandomize
