"""SQL mode on real servers where finding a row is hard: rows that are almost twins, keys that
change places, partial images.

The log of a source is replayed by statements into a server of the same version, which must then
hold what the replay in memory does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import applier
from applier.tables.catalog import Tables
from tests.mysql.server_support import VERSIONS, Servers
from tests.mysql.test_sql_servers import differences, replay_sql, written
from tests.servers.fixtures import ServerFactory

Case = tuple[str, str, tuple[str, ...]]
"""Name, version and statements."""


def cases() -> Iterator[Case]:
    _, *sections = Path(__file__).with_name("hard_rows.sql").read_text().split("\n-- ")
    for section in sections:
        head, *statements = section.strip().split("\n")
        name, versions = head.split(": ")
        yield from (
            (name, version, tuple(statements))
            for version in versions.split()
            if version in VERSIONS
        )


@pytest.fixture(scope="module")
def targets(server_factory: ServerFactory) -> Iterator[Servers]:
    targets = Servers(server_factory)
    yield targets
    targets.close()


@pytest.fixture(scope="module")
def sources(server_factory: ServerFactory) -> Iterator[Servers]:
    sources = Servers(server_factory)
    yield sources
    sources.close()


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("case", list(cases()), ids=lambda case: f"{case[0]}-{case[1]}")
def test_hard_rows_are_found(
    case: Case, targets: Servers, sources: Servers, tmp_path: Path
) -> None:
    name, version, statements = case
    source, target = sources.empty(version), targets.empty(version)
    file = written(source, tmp_path, (), "CREATE DATABASE d", *statements)
    tables = Tables()
    assert applier.replay([file], into=tables).error is None
    assert differences(source, tables) == []
    outcome = replay_sql(target, [file], name)
    assert outcome.error is None
    assert [note for note in outcome.notes if "differ" in note] == []
    assert differences(target, tables) == []
