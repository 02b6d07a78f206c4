"""Damaged real logs, replayed: one of the errors that are meant for the user, or a result; never
anything else, never silently wrong.

BINLAG_FUZZ multiplies the number of damaged files (default 1: about 1,500).
"""

from __future__ import annotations

import os
import random
import resource
from pathlib import Path

import pytest

import applier
from applier.errors import InputError, ReplicationError
from tests.applier.fuzz import (
    ALL_MUTATIONS,
    OPTION_SETS,
    contents,
    damaged,
    original,
    survives,
    with_checksums,
)
from tests.captures_support import captures

ROUNDS = int(os.environ.get("BINLAG_FUZZ") or 1)
FILES = 75 * ROUNDS
MEGABYTES = 300
"""More than a replay of any of these small logs may add to the process."""
CAPTURES = captures()[:12]
WITH_CHECKSUMS = [capture for capture in CAPTURES if "nochecksum" not in capture.name]


def peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.name)
def test_damage_that_gets_through(tmp_path: Path, capture: Path) -> None:
    """Without verifying, so that damage reaches every parser, every conversion and every table."""
    source = original(capture)
    path = tmp_path / "binlog.000001"
    before = peak_memory()
    for number in range(FILES):
        chance = random.Random(f"{capture.name} {number}")
        content = damaged(source, chance)
        path.write_bytes(with_checksums(content) if number % 3 == 0 else content)
        survives(path, source.tables.copy(), verify_checksum=False, **chance.choice(OPTION_SETS))
    assert peak_memory() - before < MEGABYTES


@pytest.mark.parametrize("capture", WITH_CHECKSUMS, ids=lambda path: path.name)
def test_no_damage_goes_unseen_under_a_checksum(tmp_path: Path, capture: Path) -> None:
    """Either the result is that of the undamaged log, or an error names an event and exactly the
    transactions before it were applied."""
    source = original(capture, 8_000)
    path, whole = tmp_path / "binlog.000001", tmp_path / "whole" / "binlog.000001"
    whole.parent.mkdir()
    whole.write_bytes(source.content)
    prefixes: dict[int | None, dict[str, list[object]]] = {}

    def until(position: int | None) -> dict[str, list[object]]:
        if position not in prefixes:
            tables = source.tables.copy()
            applier.replay([whole], into=tables, stop_position=position)
            prefixes[position] = contents(tables)
        return prefixes[position]

    chance = random.Random(capture.name)
    seen = 0
    for _ in range(FILES):
        content = bytearray(source.content)
        chance.choice(ALL_MUTATIONS)(content, chance.randrange(4, len(content) - 4), chance)
        path.write_bytes(content)
        tables = source.tables.copy()
        error = survives(path, tables)
        if error is None:
            cut = len(content) if source.content.startswith(content) else None
            assert (
                content == source.content
                or cut in source.starts
                or only_the_flag_in_use(content, source.content)
            )
            assert contents(tables) == until(cut)
            continue
        seen += 1
        assert isinstance(error, InputError), error
        assert error.position in source.starts or error.position == len(source.content)
        assert contents(tables) == until(
            error.position if error.position in source.starts and error.position > 4 else 4
        )
    assert seen > FILES // 2


def only_the_flag_in_use(content: bytes, undamaged: bytes) -> bool:
    """The flag of a log that was not closed is no part of its checksum."""
    in_use = 4 + 17
    return (
        len(content) == len(undamaged)
        and content[:in_use] == undamaged[:in_use]
        and content[in_use + 1 :] == undamaged[in_use + 1 :]
    )


@pytest.mark.parametrize("capture", CAPTURES[:4], ids=lambda path: path.name)
def test_tables_that_do_not_fit_the_log(tmp_path: Path, capture: Path) -> None:
    """The log of one server into the tables of another: errors of the applier, with the position
    and the table."""
    source = original(capture)
    path = tmp_path / "binlog.000001"
    path.write_bytes(source.content)
    for other in CAPTURES:
        for options in OPTION_SETS:
            error = survives(path, original(other).tables.copy(), **options)
            if error is not None and not options.get("skip_errors"):
                assert isinstance(error, ReplicationError)
                assert error.table is not None or error.number in (1007, 1064, 1235)
