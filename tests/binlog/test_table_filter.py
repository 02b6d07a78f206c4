"""Which tables and statements the filters want."""

from __future__ import annotations

import pytest

from applier.binlog.selection.table_filter import (
    EVERYTHING,
    FilterTally,
    StatementNames,
    TableFilter,
)
from applier.errors import UsageError


def statement(*tables: str) -> StatementNames:
    return StatementNames(tuple((name.split(".")[0], name.split(".")[1]) for name in tables))


def test_tables() -> None:
    both = TableFilter.of("a", ["b.u", "b.v"])
    assert [
        both.wants_table(*name) for name in (("a", "t"), ("b", "u"), ("b", "t"), ("A", "t"))
    ] == [True, True, False, False]
    without = TableFilter.of("a", (), (), "a.log%")
    assert [without.wants_table("a", name) for name in ("t", "log", "log_2026", "Log")] == [
        True,
        False,
        False,
        True,
    ]
    assert [
        EVERYTHING.wants_table(*name) for name in (("a", "t"), ("mysql", "user"), ("mtr", "x"))
    ] == [True, False, False]
    assert TableFilter.of("mysql").wants_table("mysql", "user")
    assert TableFilter.of((), (), "a").wants_table("b", "t")
    assert not TableFilter.of((), (), "a").wants_table("mysql", "user")


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("a.t_", ("a", "t1"), True), ("a.t_", ("a", "t"), False), (r"a.t\_", ("a", "t1"), False),
        (r"a.t\_", ("a", "t_"), True),
        ("a%.%", ("abc", "x"), True), (r"a\%.t", ("a%", "t"), True), (r"a\%.t", ("ab", "t"), False),
        ("`a.b`.`t``.x`", ("a.b", "t`.x"), True),
        ("a.[t]", ("a", "[t]"), True), ("a.[t]", ("a", "t"), False),
        ("a.%", ("a", "two\nlines"), True),
    ],
)  # fmt: skip
def test_patterns(pattern: str, name: tuple[str, str], expected: bool) -> None:
    assert TableFilter.of((), pattern).wants_table(*name) is expected


@pytest.mark.parametrize("text", ["t", "a.", ".t", "a.b.c", ""])
def test_what_names_no_table(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not DATABASE\.TABLE"):
        TableFilter.of((), text)


def test_the_first_table_with_a_rule_decides() -> None:
    """Rpl_filter::tables_ok: one that no rule names says nothing, unless there is no other."""
    only, without = TableFilter.of((), "a.t"), TableFilter.of((), (), (), "a.t")
    for names, chosen, kept in (
        (("a.t",), True, False), (("a.u",), False, True), (("a.u", "a.t"), True, False),
        (("a.t", "a.u"), True, False), ((), False, True),
        (("mysql.user",), False, False), (("mysql.user", "a.u"), False, True),
    ):  # fmt: skip
        assert (
            only.wants_statement(statement(*names)),
            without.wants_statement(statement(*names)),
        ) == (chosen, kept), names


def test_databases_and_control() -> None:
    of_a, control = StatementNames(databases=("a",)), StatementNames(control=True)
    given: list[tuple[object, ...]] = [
        ("a",),
        ((), "a.t"),
        ((), "b.t"),
        ((), (), "a"),
        ((), (), (), "a.%"),
    ]
    filters = [TableFilter.of(*one) for one in given]
    assert [one.wants_statement(of_a) for one in filters] == [True, True, False, False, True]
    assert all(one.wants_statement(control) for one in filters)
    assert not EVERYTHING.wants_statement(StatementNames(databases=("mtr",)))


def test_the_tally_says_what_was_left_out() -> None:
    tally = FilterTally()
    assert not tally.wants_table("mysql", "time_zone")
    for _ in range(1200):
        tally.left_out_rows("mysql")
    assert not tally.wants_statement(statement("mysql.time_zone"))
    assert tally.wants_table("a", "t")
    assert list(tally.notes()) == [
        "left out: mysql (1,200 rows events, 1 statement); name it with --database to replay it"
    ]


def test_the_tally_says_what_was_not_renamed() -> None:
    tally = FilterTally(rewritten={"a": "b", "c": "d", "e": "f"})
    assert tally.wants_table("a", "t")
    assert tally.wants_statement(StatementNames(databases=("e",)))
    assert list(tally.notes()) == ["--rewrite-db c:d: the log does not name c"]


def test_the_tally_says_what_may_surprise() -> None:
    tally = FilterTally(TableFilter.of((), ["a.user_log", "a.x"]))
    for name in ("user_log", "userXlog"):
        tally.wants_table("a", name)
    assert tally.wants_statement(statement("a.y", "a.user_log"))
    assert not tally.wants_statement(StatementNames())
    assert set(tally.notes()) == {
        "left out by the filters: 1 statement without the name of a table or database",
        "a statement that changes a.user_log was carried out as a whole; it also changes a.y",
        r"--table a.user_log also names a.userXlog: _ stands for any character, \_ for itself",
        "--table a.x names nothing in the log",
    }
