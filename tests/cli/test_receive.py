"""`binlag receive` and `binlag replay --follow` on the command line, as far as that needs no
server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_replay import Run, binlag, small_log

__all__ = ["binlag"]
URL = "mysql://root@127.0.0.1:1"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "mysql://USER@HOST:PORT"), ((URL,), "--dir"),
        (("nonsense", "--dir", "x"), "SOURCE: 'nonsense' is not a server address"),
        (("mysql://root:s3cret@h", "--dir", "x"), "a password in the URL"),
        ((URL, "--dir", "x", "--from", "binlog.000001"),
         "--from: 'binlog.000001' is not FILE:POSITION"),
        ((URL, "--dir", "x", "--from", "binlog.000001:3"), "is not FILE:POSITION"),
        ((URL, "--dir", "x", "--from", "binlog.000001:4", "--auto-position"),
         "either a position or GTIDs"),
        ((URL, "--dir", "x", "--executed-gtids", "0-1-2"), "add --auto-position"),
        ((URL, "--dir", "x", "--auto-position", "--executed-gtids", "what"),
         "--executed-gtids: not a GTID set: 'what'"),
        ((URL, "--dir", "x", "--server-id", "0"), "--server-id"),
        ((URL, "--dir", "x", "--heartbeat", "0"), "--heartbeat"),
    ],
)  # fmt: skip
def test_bad_options(
    binlag: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    says: str,
) -> None:
    """Exit code 2 and the option's name; no folder is made, no password repeated."""
    monkeypatch.chdir(tmp_path)
    code, out, err = binlag("receive", *arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert "s3cret" not in err
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_is_not_there(
    binlag: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, not after thousands of tries: most likely the address is wrong."""
    monkeypatch.setenv("BINLAG_PASSWORD", "s3cret")
    code, out, err = binlag("receive", URL, "--dir", tmp_path / "relay")
    assert (code, out) == (2, "")
    assert err.startswith(f"binlag: error BL401: {URL} cannot be reached")
    assert len(err.splitlines()) == 1
    assert "s3cret" not in err
    assert sorted(path.name for path in (tmp_path / "relay").iterdir()) == [
        "auto.cnf",
        "relay-bin.index",
    ]


def test_what_can_be_followed(binlag: Run, tmp_path: Path) -> None:
    log = small_log(tmp_path)
    (tmp_path / "logs.index").write_text("")
    for arguments, says in (
        ((log, "--follow"), "--follow: files do not say which log comes next"),
        ((log, tmp_path), "a folder stands alone"),
        ((tmp_path, "--follow"), "names no log yet"),
        ((tmp_path, "--follow", "--stop-position", "400"), "--stop-position"),
    ):
        code, out, err = binlag("replay", *arguments)
        assert (code, out) == (2, "")
        assert says in err
