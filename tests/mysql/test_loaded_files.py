"""LOAD DATA as a statement, its file in the log: a replay sends each file along, and removes them
when it ends."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from applier.mysql.into import replay_into
from applier.mysql.into_options import IntoOptions
from applier.options import parse_options
from tests.mysql.server_support import VERSIONS, Servers, endpoint
from tests.servers.fixtures import ServerFactory


@pytest.fixture(scope="module")
def servers(server_factory: ServerFactory) -> Iterator[Servers]:
    with closing(Servers(server_factory)) as opened:
        yield opened


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("loads", [0, 2])
def test_files_travel_along(
    version: str, loads: int, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = servers.empty(version)
    source.execute("FLUSH BINARY LOGS")
    first = len(source.binlog_files()) - 1
    source.execute(
        "CREATE DATABASE loaded",
        "CREATE TABLE loaded.t (id INT PRIMARY KEY, a VARCHAR(20))",
        "INSERT INTO loaded.t VALUES (1, 'x')",
    )
    for number in range(loads):
        file = tmp_path / f"{number}.tsv"
        file.write_text("".join(f"{100 * number + row}\tä{row}\n" for row in range(1, 51)))
        how = ("IGNORE", "REPLACE")[number % 2]
        source.execute(
            "SET SESSION binlog_format = STATEMENT",
            f"LOAD DATA INFILE '{file}' {how} INTO TABLE loaded.t CHARACTER SET utf8",
        )
    source.execute("FLUSH BINARY LOGS")
    paths = [str(path) for path in _kept(source.binlog_files()[first:-1], tmp_path)]
    expected = source.query("SELECT * FROM loaded.t ORDER BY id")
    assert len(expected) == 1 + 50 * loads - (loads > 0)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    target = servers.empty(version)
    outcome = replay_into(paths, endpoint(target), parse_options(), IntoOptions())
    assert outcome.error is None
    assert target.query("SELECT * FROM loaded.t ORDER BY id") == expected
    assert list((tmp_path / "temporary").iterdir()) == []


def _kept(files: list[Path], folder: Path) -> list[Path]:
    for path in files:
        (folder / path.name).write_bytes(path.read_bytes())
    return [folder / path.name for path in files]
