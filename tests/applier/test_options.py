"""What the options of a replay choose."""

from __future__ import annotations

import pytest

from applier.options import ReplayOptions


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (ReplayOptions(), [True, True, True, True]),
        (ReplayOptions(databases=frozenset({"d"})), [True, False, False, False]),
        (ReplayOptions(tables=frozenset({"e.t"})), [False, True, False, False]),
        (ReplayOptions(databases=frozenset({"d"}), tables=frozenset({"e.t"})), [True, True, False, False]),
    ],
)
def test_statements_go_by_their_default_database(options: ReplayOptions, expected: list[bool]) -> None:
    assert [options.wants_statement(database) for database in (b"d", b"e", b"\xff", b"")] == expected


def test_a_database_whose_name_is_no_text_can_be_named() -> None:
    assert ReplayOptions(databases=frozenset({"\udcff"})).wants_statement(b"\xff")
