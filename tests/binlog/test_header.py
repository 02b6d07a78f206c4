"""Format descriptions and the names of event types."""

from __future__ import annotations

import struct

import pytest

from applier.binlog.header import SERVER_NAMES, EventType, parse_format_description, version_number
from applier.errors import InputError
from tests.binlog.build import POST_HEADERS, format_description


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("5.7.29-log", 50729),
        ("8.0.36", 80036),
        ("9.7.4-2", 90704),
        ("10.11.19-MariaDB-0+deb12u1-log", 101119),
        ("5.6.300", 0),
        ("5.6", 0),
        ("", 0),
        ("x.y.z", 0),
    ],
)
def test_version_number(text: str, number: int) -> None:
    assert version_number(text) == number


@pytest.mark.parametrize("version", POST_HEADERS)
def test_format_description_of_each_version(version: str) -> None:
    fde = parse_format_description(format_description(version)[19:])
    assert fde.server_version == version
    assert fde.checksum == (None if version.startswith("5.0") else 1)
    assert fde.post_header_lengths == POST_HEADERS[version]
    assert fde.is_mariadb == ("MariaDB" in version)
    assert fde.post_header_length(EventType.QUERY) == 13
    assert fde.post_header_length(250) == 0


def test_checksum_of_the_description_is_there_although_the_log_has_none() -> None:
    fde = parse_format_description(format_description("5.7.29", checksum=False)[19:])
    assert fde.checksum == 0
    assert fde.checksum_length == 0
    assert len(fde.post_header_lengths) == 38


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"\x04\0" + bytes(20), "too short"),
        (struct.pack("<H50sIB", 3, b"4.1.22", 0, 19) + bytes(20), "version 3 is not supported"),
        (struct.pack("<H50sIB", 1, b"4.0.1", 0, 19) + bytes(20), "version 1 is not supported"),
        (struct.pack("<H50sIB", 4, b"8.0.36", 0, 13) + bytes(20), "13 bytes"),
        (struct.pack("<H50sIB", 4, b"8.0.36", 0, 19) + bytes(2), "too short"),
        (
            struct.pack("<H50sIB", 4, b"8.0.36", 0, 19) + bytes(40) + b"\x07" + bytes(4),
            "checksum algorithm 7",
        ),
    ],
)
def test_refused(body: bytes, word: str) -> None:
    with pytest.raises(InputError, match=word):
        parse_format_description(body)


def test_every_type_has_a_name() -> None:
    assert {int(member) for member in EventType} - {0} == {int(code) for code in SERVER_NAMES}
