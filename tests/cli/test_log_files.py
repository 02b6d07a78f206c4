"""Logs as people have them, in every command that takes one: compressed, through a pipe, as a
folder, a pattern; and cut off."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner, Result

from applier.cli.main import cli
from tests.applier.logs import INT_TABLE, insert
from tests.binlog.build import event, log

FIRST, SECOND = log(*insert(1, 1), (4, b"\4\0\0\0\0\0\0\0binlog.000002")), log(*insert(2, 2))
COMMANDS: dict[str, tuple[str, ...]] = {
    "replay": ("--schema", "before.sql"),
    "events": (),
    "forecast": ("--schema", "before.sql", "--json"),
    "clock": ("--json",),
}
PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress, ".zst": zstandard.compress, ".xz": lzma.compress, ".bz2": bz2.compress,
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "before.sql").write_text(INT_TABLE)
    (tmp_path / "logs").mkdir()
    for name, content in (
        ("binlog.000001", FIRST),
        ("binlog.000002", SECOND),
        ("binlog.index", b"./binlog.000001\n./binlog.000002\n"),
    ):
        (tmp_path / "logs" / name).write_bytes(content)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    return tmp_path


def run(command: str, *arguments: str, given: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, [command, *arguments, *COMMANDS[command]], input=given)


def shown(result: Result) -> str:
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_compressed(folder: Path, command: str) -> None:
    expected = shown(run(command, "logs/binlog.000001", "logs/binlog.000002"))
    for suffix, pack in PACKINGS.items():
        for name, content in (("binlog.000001", FIRST), ("binlog.000002", SECOND)):
            (folder / f"{name}{suffix}").write_bytes(pack(content))
        assert shown(run(command, f"binlog.000001{suffix}", f"binlog.000002{suffix}")) == expected
        assert shown(run(command, f"binlog.00000?{suffix}")) == expected
    assert list((folder / "scratch").iterdir()) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_folders_and_patterns(folder: Path, command: str) -> None:
    expected = shown(run(command, "logs/binlog.000001", "logs/binlog.000002"))
    for given in (
        ["logs"],
        ["logs/binlog.index"],
        ["logs/binlog.*"],
        ["logs/binlog.000001", "logs/binlog.000002", "logs/binlog.index"],
    ):
        assert shown(run(command, *given)) == expected, given
    assert "no file fits this pattern" in str(run(command, "nothing.*").exception)


@pytest.mark.parametrize("command", COMMANDS)
def test_pipes(folder: Path, command: str) -> None:
    (folder / "stdin").write_bytes(FIRST)
    (folder / "pipe").mkdir()
    (folder / "pipe" / "log").write_bytes(FIRST)
    expected = shown(run(command, "stdin"))
    assert shown(run(command, "-", given=FIRST)) == expected
    assert shown(run(command, "-", given=zstandard.compress(FIRST))) == expected
    expected = shown(run(command, "pipe/log"))
    os.mkfifo("log")
    writer = threading.Thread(target=Path("log").write_bytes, args=(FIRST,))
    writer.start()
    assert shown(run(command, "log")) == expected
    writer.join()


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_log_is_named_as_it_was_given(folder: Path, command: str) -> None:
    (folder / "x.gz").write_bytes(gzip.compress(b"hello"))
    (folder / "cut.gz").write_bytes(gzip.compress(FIRST)[:-9])
    for name, said in (("x.gz", "not a binary log"), ("cut.gz", "the compressed file is damaged")):
        result = run(command, name)
        assert said in str(result.exception)
        assert f"file {name}" in str(result.exception)


def test_a_log_that_is_cut_off_is_a_note_of_a_forecast(folder: Path) -> None:
    whole = len(FIRST)
    (folder / "cut").write_bytes(FIRST + event(2, bytes(50), at=whole)[:30])
    said = (
        f"cut is cut off at {whole}: the file ends in the middle of a Query event of 73 bytes; "
        "what came before it counts"
    )
    assert said in shown(run("forecast", "cut"))
    assert said in run("clock", "cut").stderr
    replayed = run("replay", "cut")
    assert "ends in the middle" in str(replayed.exception)


@pytest.mark.parametrize(
    ("command", "said"),
    [("forecast", "no event lies in these times"), ("clock", "no complete transaction")],
)
def test_parts_of_a_log(folder: Path, command: str, said: str) -> None:
    both, first, second = (
        "logs/binlog.000001 logs/binlog.000002".split(),
        "logs/binlog.000001",
        "logs/binlog.000002",
    )
    uuid = "00010203-0405-0607-0809-0a0b0c0d0e0f"
    alone = shown(run(command, first))
    assert shown(run(command, *both, "--include-gtids", f"{uuid}:1")) == alone
    assert shown(run(command, *both, "--exclude-gtids", f"{uuid}:2")) == alone
    assert shown(run(command, *both, "--stop-position", "4")) == alone
    nothing = run(command, second, "--start-datetime", "2100-01-01")
    assert said in (nothing.output + str(nothing.exception))


def test_tables_of_a_forecast(folder: Path) -> None:
    import json

    assert [one["table"] for one in json.loads(shown(run("forecast", "logs")))["tables"]] == ["d.t"]
    assert json.loads(shown(run("forecast", "logs", "--exclude-table", "d.t")))["tables"] == []
