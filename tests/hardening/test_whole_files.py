"""Output files are complete or not there, whatever ends the writing."""

from __future__ import annotations

from pathlib import Path

import pytest

from applier.error_codes import Code
from applier.errors import InputError
from applier.whole_file import can_write, can_write_into, whole_file, write_whole


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
    """A path in a folder that is there, or something that is written to directly; a folder may have to be made."""
    paths = [tmp_path / "new", tmp_path / "missing" / "new", Path("/dev/null")]
    assert [can_write(path) for path in paths] == [True, False, True]
    (tmp_path / "file").touch()
    folders = [tmp_path, tmp_path / "missing" / "new", tmp_path / "file", tmp_path / "file" / "new"]
    assert [can_write_into(folder) for folder in folders] == [True, True, False, False]
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
