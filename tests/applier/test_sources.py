"""Files to read from: what they are compressed with is told by their content, and an end that is
missing is said."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from applier.errors import InputError
from applier.sources import open_source

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
}
CONTENT = bytes(range(256)) * 5000


@pytest.mark.parametrize("packer", PACKERS.values(), ids=PACKERS)
def test_a_compressed_file_whatever_its_name(
    tmp_path: Path, packer: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "dump.sql"
    path.write_bytes(packer(CONTENT))
    with open_source(path) as file:
        assert file.read() == CONTENT


@pytest.mark.parametrize("packer", PACKERS.values(), ids=PACKERS)
def test_members_one_behind_the_other_and_padding(
    tmp_path: Path, packer: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "joined"
    path.write_bytes(packer(b"one") + packer(b"") + packer(CONTENT) + bytes(1024))
    with open_source(path) as file:
        assert file.read() == b"one" + CONTENT


def test_a_frame_of_zstd_that_is_to_be_skipped(tmp_path: Path) -> None:
    path = tmp_path / "parallel.zst"
    path.write_bytes(b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + zstandard.compress(CONTENT))
    with open_source(path) as file:
        assert file.read() == CONTENT


@pytest.mark.parametrize("packer", PACKERS.values(), ids=PACKERS)
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-9],
        lambda data: data[:40] + bytes(20) + data[60:],
        lambda data: data + b"junk",
    ],
)
def test_damage_is_said(
    tmp_path: Path, packer: Callable[[bytes], bytes], damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "damaged"
    path.write_bytes(damage(packer(os.urandom(5000))))
    with open_source(path) as file, pytest.raises(InputError) as caught:
        file.read()
    assert (caught.value.code, caught.value.file) == ("BL121", str(path))


def test_a_plain_file_can_be_mapped_and_a_short_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "plain"
    for content in (b"", b"a", CONTENT):
        path.write_bytes(content)
        with open_source(path) as file:
            assert (file.fileno() > 0, file.read()) == (True, content)


@pytest.mark.parametrize("packer", [bytes, *PACKERS.values()], ids=["plain", *PACKERS])
def test_a_pipe(tmp_path: Path, packer: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(packer(CONTENT)))
    writer.start()
    with open_source(path) as file:
        assert file.read() == CONTENT
    writer.join()


@pytest.mark.parametrize("content", [CONTENT, gzip.compress(CONTENT)], ids=["plain", "gzip"])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    with open_source("-") as file:
        assert file.read() == CONTENT
