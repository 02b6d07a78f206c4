"""What the options of a replay choose."""

from __future__ import annotations

from pathlib import Path

import pytest

import applier
from applier.errors import UsageError
from applier.options import parse_options
from tests.applier.logs import INT_TABLE, insert
from tests.binlog.build import log, query, write


def test_a_filter_that_nothing_passes_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, log(*insert(1, 5)))
    for chosen, hint in {
        "d.T": "did you mean d.t? the log has d.t",
        "other.x": "the log has d.t",
    }.items():
        with pytest.raises(UsageError) as caught:
            applier.replay([path], into=applier.load_schema(INT_TABLE), table=chosen)
        assert (caught.value.code, caught.value.hint) == ("BL315", hint)
    for given in ({"database": "other"}, {"exclude_database": "%"}, {"exclude_table": ["d.t"]}):
        with pytest.raises(UsageError):
            applier.replay([path], into=applier.load_schema(INT_TABLE), **given)
    assert applier.replay([path], into=applier.load_schema(INT_TABLE), table="d.t").notes == {}
    with pytest.raises(UsageError, match="none of these"):
        applier.replay(
            [path],
            into=applier.load_schema(INT_TABLE),
            include_gtids="3e11fa47-71ca-11e1-9e33-c80aa9429562:1",
        )


def test_names_of_the_target_are_told_from_those_of_the_log(tmp_path: Path) -> None:
    path = write(tmp_path, log(*insert(1, 5)))
    with pytest.raises(UsageError) as caught:
        applier.replay([path], into=applier.load_schema(INT_TABLE), table="e.t", rewrite_db="d:e")
    assert caught.value.hint == "filters take the log's names, before --rewrite-db; the log has d.t"


def test_what_one_of_several_names_misses_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, log(*insert(1, 5)))
    notes = applier.replay([path], into=applier.load_schema(INT_TABLE), table=["d.t", "d.u"]).notes
    assert notes == {"--table d.u names nothing in the log": 1}


def test_a_database_alone_is_something(tmp_path: Path) -> None:
    path = write(tmp_path, log(query(b"CREATE DATABASE e")))
    assert "e" in replayed_databases(path, database="e")
    with pytest.raises(UsageError):
        applier.replay([path], table="e.t")


def replayed_databases(path: Path, **options: str) -> list[str]:
    tables = applier.load_schema(INT_TABLE)
    applier.replay([path], into=tables, **options)
    return list(tables.databases)


def test_a_database_whose_name_is_no_text_can_be_named() -> None:
    assert parse_options(database="\udcff").wants("\udcff", "t")
