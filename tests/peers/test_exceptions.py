"""The table of known exceptions: it holds what is observed, each with a reason, and only
shrinks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peers.exceptions import (
    EQUAL,
    Case,
    KnownException,
    Observed,
    grave,
    read_cases,
    read_exceptions,
    read_observed,
    updated,
    verdicts,
    write_exceptions,
    write_observed,
)
from tests.peers.suites import FORMATS, SERVERS

CASE = Case("9.7", "ROW", "t/a.test")
KNOWN = {CASE: KnownException("refused 1235", "partitions by an expression")}


def test_a_case_as_the_table_says() -> None:
    assert verdicts([Observed(CASE, "refused 1235", "x")], KNOWN) == []
    assert verdicts([Observed(CASE, EQUAL)], {}) == []


def test_an_exception_that_is_none_any_more() -> None:
    assert verdicts([Observed(CASE, EQUAL)], KNOWN) == [
        "9.7 ROW t/a.test: it is equal now; remove it from exceptions.tsv"
    ]


def test_a_new_outcome_and_another_one() -> None:
    assert verdicts([Observed(CASE, "difference", "row count differs")], {}) == [
        "9.7 ROW t/a.test: difference: row count differs"
    ]
    assert verdicts([Observed(CASE, "crash", "KeyError")], KNOWN) == [
        "9.7 ROW t/a.test: crash, known as refused 1235: KeyError"
    ]


def test_what_fails_ci() -> None:
    other = Case("9.7", "ROW", "t/b.test")
    difference = Observed(CASE, "difference", "row count differs")
    assert grave([difference], {}, [CASE]) == [difference]
    assert grave([difference], KNOWN, [CASE]) == [difference]
    assert grave([difference], {CASE: KnownException("difference", "known")}, [CASE]) == []
    assert grave([difference], {}, [other]) == []
    assert (
        grave([Observed(CASE, "refused 1235", "x"), Observed(other, EQUAL)], {}, [CASE, other])
        == []
    )


def test_the_table_anew(tmp_path: Path) -> None:
    others = [Case("5.7", "ROW", f"t/{name}.test") for name in "bcd"]
    known = KNOWN | {
        others[0]: KnownException("crash", "old"),
        others[1]: KnownException("hang", "kept: it was not run"),
    }
    observed = [
        Observed(CASE, "refused 1235", "another text"),
        Observed(others[0], EQUAL),
        Observed(others[2], "crash", "a\tb\nc"),
    ]
    write_observed(tmp_path / "observed", observed)
    write_exceptions(updated(read_observed(tmp_path / "observed"), known), tmp_path / "table")
    assert read_exceptions(tmp_path / "table") == {
        **KNOWN,
        others[1]: known[others[1]],
        others[2]: KnownException("crash", "a b c"),
    }


def test_a_row_without_a_reason(tmp_path: Path) -> None:
    (tmp_path / "table").write_text("9.7\tROW\tt/a.test\tcrash\t \n")
    with pytest.raises(ValueError, match="table:1"):
        read_exceptions(tmp_path / "table")


def test_the_tables_that_are_committed() -> None:
    assert len(read_cases()) == len(set(read_cases())) > 400
    for case in (*read_cases(), *read_exceptions()):
        assert case.server in SERVERS
        assert case.log_format in FORMATS
        assert case.script.endswith(".test")
