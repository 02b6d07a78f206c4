"""Every code of every character set, shown as a real server's CONVERT(… USING utf8mb4) shows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pymysql.cursors import Cursor
from servers.server import Server

from applier.binlog.charsets import CHARSETS, Charset, charset, charset_of_collation, collation_name
from tests.mysql.server_shapes import log_of, shape_in_memory, shape_on
from tests.mysql.server_support import THOROUGH
from tests.servers.fixtures import ServerFactory

UNICODE = frozenset({"binary", "utf8mb3", "utf8mb4", "ucs2", "utf16", "utf16le", "utf32"})
THREE_BYTES = frozenset({"ujis", "eucjpms"})
NO_CODES = {"ujis": {b"\x8e\xa0"}, "eucjpms": {b"\x8e\xa0"}}
"""Bytes that a server takes and makes two question marks of."""


def codes(own: Charset) -> Iterator[bytes]:
    """All of one byte; where there are longer ones, those of two, of three behind 0x8F, and some
    thousands of gb18030's four."""
    if own.max_bytes == 1:
        yield from (bytes([code]) for code in range(256))
        return
    yield from (bytes([code]) for code in range(128))
    yield from (
        bytes([first, second]) for first in range(0x81, 0xFF) for second in range(0x40, 0xFF)
    )
    if own.name == "gb18030":
        yield from (
            bytes([first, second, third, fourth])
            for first in (0x81, 0x84, 0x85, 0x90, 0xE3, 0xE4, 0xFE)
            for second in (0x30, 0x31, 0x35, 0x39)
            for third in range(0x81, 0xFF)
            for fourth in range(0x30, 0x3A)
        )
    if own.name in THREE_BYTES:
        yield from (
            bytes([0x8F, first, second])
            for first in range(0xA1, 0xFF)
            for second in range(0xA1, 0xFF)
        )


@contextmanager
def charsets_of(server: Server) -> Iterator[tuple[Cursor, list[Charset]]]:
    """A cursor, and the server's character sets but those of Unicode."""
    with (
        server.connect(autocommit=True, charset="utf8mb4", database="mysql") as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT character_set_name FROM information_schema.character_sets")
        names = {row[0] for row in cursor.fetchall()} - UNICODE
        yield cursor, [own for own in CHARSETS.values() if own.name in names]


@pytest.mark.parametrize("name", ["5.7", "9.7", "mariadb"] if THOROUGH else ["9.7"])
def test_every_code_is_shown_as_by_the_server(name: str, server_factory: ServerFactory) -> None:
    wrong = []
    with charsets_of(server_factory.shared(name)) as (cursor, known):
        cursor.execute("CREATE TEMPORARY TABLE codes (code VARBINARY(4)) ENGINE=MyISAM")
        for own in known:
            cursor.execute("TRUNCATE TABLE codes")
            cursor.execute(
                "INSERT INTO codes VALUES " + ", ".join(f"(x'{code.hex()}')" for code in codes(own))
            )
            text = f"CONVERT(code USING {own.name})"
            cursor.execute(
                f"SELECT code, HEX(CONVERT({text} USING utf8mb4)) FROM codes WHERE HEX({text}) "
                "= HEX(code)"
            )
            for code, shown in cursor.fetchall():
                there = bytes.fromhex(shown or "").decode()
                if there and code not in NO_CODES.get(own.name, ()) and own.shown(code) != there:
                    wrong.append((own.name, code.hex(), own.shown(code), there))
    assert wrong == []


def stored(own: Charset, char: str) -> bytes | None:
    try:
        return own.encode(char)
    except UnicodeEncodeError:
        return None


ODD = frozenset({("big5", "\ufffd"), ("tis620", "\ufffd"), ("cp932", "\u6661")})
"""Characters of which servers make a code that they show as another one."""


@pytest.mark.parametrize("name", ["5.7", "9.7", "mariadb"] if THOROUGH else ["9.7"])
def test_every_character_is_stored_as_by_the_server(
    name: str, server_factory: ServerFactory
) -> None:
    wrong = []
    characters = [chr(code) for code in range(0x80, 0x10000) if not 0xD800 <= code <= 0xDFFF]
    with charsets_of(server_factory.shared(name)) as (cursor, known):
        cursor.execute("CREATE TEMPORARY TABLE texts (text VARBINARY(4)) ENGINE=MyISAM")
        values = ", ".join(f"(x'{char.encode().hex()}')" for char in characters)
        cursor.execute(f"INSERT INTO texts VALUES {values}")
        for own in known:
            code = f"HEX(CONVERT(CONVERT(text USING utf8mb4) USING {own.name}))"
            cursor.execute(f"SELECT text, {code} AS code FROM texts HAVING code <> '3F'")
            there = {text.decode(): bytes.fromhex(found) for text, found in cursor.fetchall()}
            wrong += [
                (own.name, char, there.get(char), stored(own, char))
                for char in characters
                if stored(own, char) != there.get(char) and (own.name, char) not in ODD
            ]
    assert wrong == []


@pytest.mark.parametrize("name", ["5.7", "9.7", "mariadb"])
def test_surrogates_are_shown_as_by_the_server(name: str, server_factory: ServerFactory) -> None:
    """In ucs2 and in utf32 up to 5.7 one may stand alone."""
    wrong, seen = [], 0
    lone = [0xD7FF, 0xD800, 0xD83C, 0xDBFF, 0xDC00, 0xDC80, 0xDF84, 0xDFFF, 0xE000]
    raw = {"autocommit": True, "charset": "utf8mb4", "database": "mysql", "use_unicode": False}
    with server_factory.shared(name).connect(**raw) as connection, connection.cursor() as cursor:
        for charset_name, width in (("ucs2", 2), ("utf32", 4), ("utf16", 2)):
            texts = [
                one.to_bytes(width) + other.to_bytes(width)
                for one in lone
                for other in (0x61, *lone)
            ]
            cursor.execute("SET sql_mode = ''")
            cursor.execute(
                f"CREATE TEMPORARY TABLE lone (a VARCHAR(2) CHARACTER SET {charset_name})"
            )
            for text in texts:
                cursor.execute(f"INSERT IGNORE INTO lone VALUES (x'{text.hex()}')")
            cursor.execute("SELECT HEX(a), a FROM lone WHERE a <> ''")
            for stored, shown in cursor.fetchall():
                seen += 1
                ours = (
                    CHARSETS[charset_name]
                    .shown(bytes.fromhex(stored.decode()))
                    .encode("utf-8", "surrogateescape")
                )
                if ours != shown:
                    wrong.append((charset_name, stored, shown, ours))
            cursor.execute("DROP TEMPORARY TABLE lone")
    assert seen > 90
    assert wrong == []


@pytest.mark.parametrize(
    "name",
    [
        "armscii8",
        "geostd8",
        "dec8",
        "keybcs2",
        "swe7",
        "hebrew",
        "greek",
        "cp1256",
        "tis620",
        "koi8u",
    ],
)
def test_what_is_shown_can_be_stored_again(name: str) -> None:
    own = CHARSETS[name]
    for code in range(256):
        text = own.decode(bytes([code]))
        if not any("\ud800" <= char <= "\udfff" or char == "\ufffd" for char in text):
            assert own.decode(own.encode(text)) == text


@pytest.mark.parametrize("name", ["5.6", "5.7", "9.7", "mariadb"])
def test_collations_have_the_servers_numbers(name: str, server_factory: ServerFactory) -> None:
    table, column = ("COLLATIONS", "COLLATION_NAME")
    if name == "mariadb":
        table, column = ("COLLATION_CHARACTER_SET_APPLICABILITY", "FULL_COLLATION_NAME")
    found = server_factory.shared(name).query(
        f"SELECT ID, {column}, CHARACTER_SET_NAME FROM information_schema.{table}"
    )
    assert len(found) > 200
    for number, collation, own in found:
        assert charset_of_collation(number) == charset(own)
        assert collation_name(number, mariadb=name == "mariadb") == collation.replace(
            "utf8_", "utf8mb3_"
        )


@pytest.mark.parametrize("name", ["5.7", "9.7", "mariadb"])
def test_a_database_has_the_collation_of_its_session(
    name: str, server_factory: ServerFactory, tmp_path: Path
) -> None:
    """The log has its number only. MariaDB's Croatian is another one than MySQL's of that name."""
    server = server_factory.shared(name)
    for collation in (
        "latin1_german2_ci",
        "utf8mb4_polish_ci",
        "utf16_croatian_ci",
        "cp1250_czech_cs",
    ):
        server.execute("DROP DATABASE IF EXISTS other")
        table = "CREATE TABLE other.t (a VARCHAR(10), UNIQUE KEY (a))"
        statements = (f"SET collation_server = {collation}", "CREATE DATABASE other", table)
        file, errors = log_of(server, tmp_path, statements, "d")
        assert errors == []
        assert collation in str(shape_on(server, "other"))
        assert shape_in_memory(file, "other") == shape_on(server, "other")
    server.execute("DROP DATABASE other")
