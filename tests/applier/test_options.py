"""What the options of a replay choose."""

from __future__ import annotations

from pathlib import Path

import pytest

import applier
from applier.options import ReplayOptions
from tests.applier.logs import INT_TABLE, insert
from tests.binlog.build import log, write


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


def test_a_filter_that_nothing_passes_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, log(*insert(1, 5)))
    note = "--database, --table: no rows event of what they name was replayed"
    assert applier.replay([path], into=applier.load_schema(INT_TABLE), table="d.other").notes == {note: 1}
    assert applier.replay([path], into=applier.load_schema(INT_TABLE), database="other").notes == {note: 1}
    assert applier.replay([path], into=applier.load_schema(INT_TABLE), table="d.t").notes == {}


def test_a_database_whose_name_is_no_text_can_be_named() -> None:
    assert ReplayOptions(databases=frozenset({"\udcff"})).wants_statement(b"\xff")
