"""Output files are complete or not there, whatever ends the writing."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from applier.error_codes import Code
from applier.errors import InputError
from applier.whole_file import can_write, can_write_into, whole_file, whole_files, write_whole
from tests.hardening.runner import ROOT

WRITES = """
import sys
from applier.whole_file import whole_file
with whole_file(sys.argv[1]) as partial:
    partial.write_text('half')
    print('begun', flush=True)
    sys.stdin.read()
"""


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with whole_file(target) as partial:
        partial.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("end", [KeyboardInterrupt, MemoryError, OSError])
def test_an_interrupt_leaves_what_was_there(end: type[BaseException], tmp_path: Path) -> None:
    target = tmp_path / "out"
    write_whole(target, "old")
    with pytest.raises(end), whole_file(target) as partial:
        partial.write_text("half")
        raise end
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_stands_before_an_error_that_is_said_is_kept(tmp_path: Path) -> None:
    with pytest.raises(InputError), whole_file(tmp_path / "out") as partial:
        partial.write_text("before")
        raise InputError("damage", code=Code.BAD_EVENT)
    assert (tmp_path / "out").read_text() == "before"


def test_links_and_pipes(tmp_path: Path) -> None:
    """A link stays one; what is no regular file is written to as it is."""
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    write_whole("/dev/null", "nothing")
    assert not Path("/dev/null").is_file()


def test_what_cannot_be_written_is_known_beforehand(tmp_path: Path) -> None:
    """A path in a folder that is there, or something that is written to directly; a folder may have
    to be made."""
    paths = [tmp_path / "new", tmp_path / "missing" / "new", Path("/dev/null")]
    assert [can_write(path) for path in paths] == [True, False, True]
    (tmp_path / "file").touch()
    folders = [tmp_path, tmp_path / "missing" / "new", tmp_path / "file", tmp_path / "file" / "new"]
    assert [can_write_into(folder) for folder in folders] == [True, True, False, False]
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def begun(target: Path) -> subprocess.Popen[str]:
    """A process that has written half of a file."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", WRITES, str(target)]
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def test_the_next_run_removes_what_a_killed_one_leaves(tmp_path: Path) -> None:
    """What another process is writing at the same time stays, and becomes its file."""
    (tmp_path / ".theirs.partial").mkdir()
    alive, killed = begun(tmp_path / "alive"), begun(tmp_path / "killed")
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert len(list(tmp_path.iterdir())) == 3
    write_whole(tmp_path / "out", "new")
    assert len(list(tmp_path.iterdir())) == 3
    alive.communicate()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".theirs.partial", "alive", "out"]
    assert (tmp_path / "alive").read_text() == "half"


def test_the_files_of_a_folder_appear_together(tmp_path: Path) -> None:
    """A link is followed; what is no regular file is written to as it is; a name to which nothing
    was written does not appear."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("elsewhere/real")
    (tmp_path / "null").symlink_to("/dev/null")
    with whole_files(tmp_path) as place:
        for name in ("one", "two", "link", "null"):
            place(name).write_text(name)
        place("none")
        assert not (tmp_path / "one").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "elsewhere",
        "link",
        "null",
        "one",
        "two",
    ]
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "elsewhere" / "real").read_text() == "link"
    assert (tmp_path / "null").is_char_device()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as error, whole_file(tmp_path / "missing" / "out"):
        pass
    assert error.value.filename == str(tmp_path / "missing")


def test_a_full_disk_is_said_with_the_name_that_was_asked_for(tmp_path: Path) -> None:
    """pyarrow's error has the number and no name, that of `open` the hidden name."""
    folder = os.path.realpath(tmp_path)
    for name in (None, "hidden"):
        with (
            pytest.raises(OSError, match="No space") as full,
            whole_file(tmp_path / "a.parquet") as partial,
        ):
            raise OSError(errno.ENOSPC, "Error writing bytes", *([partial] if name else []))
        assert (full.value.errno, full.value.filename) == (errno.ENOSPC, f"{folder}/a.parquet")
    with pytest.raises(FileNotFoundError) as other, whole_file(tmp_path / "a.parquet"):
        Path("/nowhere/x").read_bytes()
    assert other.value.filename == "/nowhere/x"
    assert list(tmp_path.iterdir()) == []
