"""Wrong arguments from Python: one line that names the argument and what it should be, never a
message of Python's own."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import applier
from applier.errors import BinlagError, InputError, UsageError

DEMO = Path(__file__).parent.parent.parent / "demo"
LOG, SCHEMA = DEMO / "binlog.000001", DEMO / "before.sql"
ONE: dict[str, Any] = {
    "transactions": 1, "repository": "TABLE", "sync": 1, "recovery": True, "auto_position": True,
    "workers": 0, "engine": "InnoDB",
    "kinds": ["process"], "jobs": 1,
}  # fmt: skip
FLEET = {"sources": [{"name": "a", "logs": str(LOG), "schema": str(SCHEMA)}]}
CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "replay": (applier.replay, (LOG,)),
    "events": (applier.events, (LOG,)),
    "load_schema": (applier.load_schema, (SCHEMA,)),
    "explain": (applier.explain, (SCHEMA,)),
    "forecast": (applier.forecast, (LOG, SCHEMA)),
    "fleet": (applier.fleet, (FLEET,)),
    "crash_points": (functools.partial(applier.crash_points, **ONE), ()),
}
WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    ("replay", {"into": 5}, "into=5 does not fit", "the tables that applier.load_schema gives"),
    ("replay", {"server": 5.7}, "server=5.7", "a text"),
    ("replay", {"start_position": "154"}, "start_position='154'", "a whole number"),
    ("replay", {"start_position": -4}, "start_position: -4 is too small", "4 or more"),
    ("replay", {"row_search": ["INDEX_SCAN"]}, "row_search=", "a text"),
    ("replay", {"table": 5}, "table=5", "a text or a list of texts"),
    ("replay", {"table": [5]}, "table=[5]", "a text or a list of texts"),
    ("replay", {"skip_errors": ["x"]}, "skip_errors=['x']",
     "a text, a whole number or a list of whole numbers"),
    ("replay", {"rewrite_db": {"a": 5}}, "rewrite_db=", "or a dictionary"),
    ("replay", {"include_gtids": ["a:1"]}, "include_gtids=", "a text"),
    ("replay", {"start_datetime": [1]}, "start_datetime=[1]", "a text, a number or a datetime"),
    ("replay", {"start_datetime": float("nan")}, "'nan' is not a date and time", "write it like"),
    ("replay", {"verify_checksum": "no"}, "verify_checksum='no'", "True or False"),
    ("replay", {"on_rows": 5}, "on_rows=5", "a function"),
    ("replay", {"workers": 4}, "applier.replay has no 'workers'", "it has files, into"),
    ("replay", {"table_": "shop.parcel"}, "applier.replay has no 'table_'", "did you mean table?"),
    ("events", {"rows": "yes"}, "rows='yes'", "True or False"),
    ("events", {"start_datetime": "x"}, "'x' is not a date and time", "write it like"),
    ("events", {"include_gtids": "x"}, "not a GTID set", "write it like"),
    ("events", {"stop_position": 1}, "stop_position: 1 is too small", "4 or more"),
    ("load_schema", {"server": None}, "server=None", "a text"),
    ("load_schema", {"password_file": 5}, "password_file=5", "a text or a path"),
    ("load_schema", {"note": 5}, "note=5", "a function"),
    ("load_schema", {"foo": 1}, "applier.load_schema has no 'foo'", "it has source"),
    ("explain", {"row_images": ["x"]}, "row_images: 'x' is not known",
     "one of FULL, MINIMAL, NOBLOB"),
    ("explain", {"row_counts": {"shop.parcel": 5}}, "row_counts=", "a text or a list of texts"),
    ("explain", {"start_position": 5}, "applier.explain has no 'start_position'", "it has schema"),
    ("forecast", {"workers": "many"}, "workers='many'", "a whole number"),
    ("forecast", {"workers": 2.5}, "workers=2.5", "a whole number"),
    ("forecast", {"workers": 10**9}, "--workers: 1000000000 is not from 0 to 16383", ""),
    ("forecast", {"calibration": 5}, "calibration=5", "a text, a path or an object of Calibration"),
    ("forecast", {"settings": ["cores"]}, "settings=['cores']", "a dictionary"),
    ("forecast", {"settings": {"iops": "x"}}, "--iops: 'x' is not a number", "as the server does"),
    ("forecast", {"settings": {"cores": [1]}}, "--cores: [1] is not a number", ""),
    ("forecast", {"settings": {"log_replica_updates": 7}},
     "--log-replica-updates: 7 is not True or False", ""),
    ("forecast", {"what_ifs": "index"}, "what_ifs='index'", "a list of texts"),
    ("forecast", {"placement": "new"}, "placement: 'new' is not known",
     "one of anywhere, oldest, newest"),
    ("fleet", {"jobs": 0}, "jobs: 0 is too small", "1 or more"),
    ("fleet", {"on_error": "stop"}, "on_error: 'stop' is not known", "one of skip, fail"),
    ("fleet", {"output": 5}, "output=5", "a text or a path"),
    ("crash_points", {"workers": "many"}, "workers='many'",
     "a whole number or a list of whole numbers"),
    ("crash_points", {"recovery": "yes"}, "recovery='yes'", "True or False"),
    ("crash_points", {"kinds": ["x"]}, "kinds: 'x' is not known",
     "one of process, os, full disk, I/O error"),
    ("crash_points", {"coverage": "x"}, "coverage: 'x' is not known",
     "one of every, corners, edges"),
    ("crash_points", {"engine": "Aria"}, "engine: 'Aria' is not known", "one of InnoDB, MyISAM"),
    ("crash_points", {"transactions": 0}, "transactions: 0 is too small", "1 or more"),
    ("crash_points", {"schema": SCHEMA}, "the generated log has tables of its own", "give the log"),
]  # fmt: skip
"""Function, its wrong argument, what the message says, what the next step says."""


@pytest.mark.parametrize(
    ("name", "options", "says", "step"), WRONG, ids=lambda part: str(part)[:40]
)
def test_a_wrong_option_is_named(name: str, options: dict[str, Any], says: str, step: str) -> None:
    function, arguments = CALLS[name]
    with pytest.raises(UsageError) as caught:
        function(*arguments, **options)
    assert says in caught.value.message
    assert step in caught.value.next_step
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "crash_points"])
@pytest.mark.parametrize("wrong", [5, None, b"binlog.000001", [5]], ids=repr)
def test_the_first_argument_is_named(name: str, wrong: object) -> None:
    function, (_, *others) = CALLS[name]
    with pytest.raises(UsageError, match=r"does not fit.*Next: give a text"):
        function(wrong, *others)


@pytest.mark.parametrize("name", ["replay", "events", "forecast", "load_schema", "explain"])
def test_a_name_that_no_file_can_have(name: str) -> None:
    function, (_, *others) = CALLS[name]
    with pytest.raises(InputError, match="the name of a file cannot hold a NUL byte"):
        list(function("a\0b", *others))


def test_files_beside_the_first_have_names_too() -> None:
    for call in (
        lambda: applier.fleet(
            {"sources": [{"name": "a", "logs": str(LOG), "schema": str(SCHEMA)}]}, output="a\0b"
        ),
        lambda: applier.load_schema("mysql://root@127.0.0.1:1", password_file="a\0b"),
    ):
        with pytest.raises(InputError, match="the name of a file cannot hold a NUL byte"):
            call()


def test_a_folder_for_tables_and_an_empty_fleet() -> None:
    with pytest.raises(UsageError, match=r"applier\.Tables\.dump: directory=5 does not fit"):
        applier.load_schema(SCHEMA).dump(5)  # type: ignore[arg-type]
    with pytest.raises(BinlagError, match="the list is empty"):
        applier.fleet([])


def texts(*names: str) -> Iterable[str]:
    yield from names


def test_what_fits_in_other_forms() -> None:
    import numpy as np

    tables = applier.load_schema(SCHEMA, table=texts("shop.parcel"))
    result = applier.replay(
        (path for path in [LOG]),
        into=tables,
        start_position=np.int64(4),
        table={"shop.parcel"},
        skip_errors={1032},  # type: ignore[arg-type]
        start_datetime=datetime.date(2001, 1, 1),
        stop_datetime=datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC),
        verify_checksum=np.True_,  # type: ignore[arg-type]
    )
    assert result.transactions == 10
    assert applier.forecast(
        LOG, SCHEMA, settings={"buffer_pool": "8G", "log_replica_updates": "ON"}, what_ifs=()
    ).summary()
