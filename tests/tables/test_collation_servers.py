"""Keys of texts against real servers: weights of code points, weights and order of random texts, in
every collation that is known."""

from __future__ import annotations

import os
import random
import unicodedata
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from servers.server import Server

from applier.tables.collations.collation import (
    UNICODE,
    collation_key,
    full_name,
    rule_of,
    weight_keys,
)
from applier.tables.collations.weight_keys import Incomparable
from tests.servers.fixtures import ServerFactory
from tests.tables.collation_characters import characters_of

ALL = os.environ.get("BINLAG_EVERY_VALUE") == "1"
"""All characters of all collations, which takes hours; CI and the default take samples."""
THOROUGH = os.environ.get("BINLAG_ALL_CASES") == "1"
USUAL = (
    "utf8mb4_0900_ai_ci",
    "utf8mb4_general_ci",
    "utf8mb4_unicode_ci",
    "latin1_swedish_ci",
    "utf8mb4_0900_as_cs",
    "gbk_chinese_ci",
)
SERVERS = ("5.7", "9.7", "mariadb") if ALL or THOROUGH else ("9.7",)
REFUSED = frozenset(
    {
        "cp1250_czech_cs",
        "latin2_czech_cs",
        "tis620_thai_ci",
        "utf8mb4_thai_520_w2",
        "utf8mb4_myanmar_ci",
    }
)
"""Collations whose order is not known: their rules are more than weights of characters. Their kin
in other character sets, too."""
BY_CODE = "big5_chinese_ci"
"""It compares by the bytes of a character, though WEIGHT_STRING (and ORDER BY without a key) go by
strokes; seen on 9.7.4 and 10.11.18."""
DISPUTED = "MySQL and MariaDB differ"
PAIRS_OF_CROATIAN = ("lJ", "nJ", "dŽ")
CHUNK = 50_000


class Asked:
    """One server, and one table of texts for each character set."""

    def __init__(self, server: Server) -> None:
        self.connection = server.connect(autocommit=True)
        self.name = server.installed.recipe.name
        self.query("SET sql_log_bin = 0, sql_mode = '', group_concat_max_len = 1 << 26")
        self.query("CREATE DATABASE IF NOT EXISTS weights")
        self.query("USE weights")
        source = "full_collation_name FROM information_schema.collation_character_set_applicability"
        if self.name != "mariadb":
            source = "collation_name FROM information_schema.collations"
        names = [full_name(row[0], "") for row in self.query(f"SELECT {source}")]
        self.collations = sorted(
            name for name in names if name != "binary" and not is_refused(name) and is_wanted(name)
        )

    def query(self, sql: str) -> tuple[tuple[Any, ...], ...]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return tuple(cursor.fetchall())

    def fill(self, charset: str, texts: list[bytes]) -> list[bytes]:
        """A table of texts; gives those that the server took for well formed, in the order of their
        numbers."""
        self.query("DROP TABLE IF EXISTS texts")
        self.query(
            f"CREATE TABLE texts (n int PRIMARY KEY, t varchar(200) CHARACTER SET {charset}) "
            "ENGINE = InnoDB"
        )
        for start in range(0, len(texts), 5000):
            rows = [
                f"({start + at}, x'{text.hex()}')"
                for at, text in enumerate(texts[start : start + 5000])
            ]
            self.query(f"INSERT IGNORE INTO texts VALUES {', '.join(rows)}")
        longer = int(any(len(text) > 4 for text in texts))
        taken = {
            n: bytes.fromhex(text)
            for n, text in self.query(
                f"SELECT n, HEX(t) FROM texts WHERE CHAR_LENGTH(t) = 1 OR {longer}"
            )
        }
        wrong = [str(n) for n, text in enumerate(texts) if taken.get(n) != text]
        if wrong:
            self.query(f"DELETE FROM texts WHERE n IN ({', '.join(wrong)})")
        return [text for n, text in enumerate(texts) if taken.get(n) == text]

    def weights(self, collation: str) -> list[str]:
        """WEIGHT_STRING of each text of the table, in hexadecimal digits."""
        weight = f"HEX(WEIGHT_STRING(t COLLATE {collation}))"
        groups = self.query(
            f"SELECT GROUP_CONCAT({weight} ORDER BY n) FROM texts GROUP BY n DIV {CHUNK} ORDER BY "
            f"n DIV {CHUNK}"
        )
        return [weights for (group,) in groups for weights in group.split(",")]

    def signs(self, collation: str) -> list[int]:
        """How each text of an even number compares with the next one."""
        one, two = (f"{side}.t COLLATE {collation}" for side in ("a", "b"))
        sql = (
            f"SELECT ({one} > {two}) - ({one} < {two}) FROM texts a JOIN texts b ON b.n = a.n + 1 "
            "WHERE a.n % 2 = 0 ORDER BY a.n"
        )
        return [row[0] for row in self.query(sql)]


def is_wanted(collation: str) -> bool:
    """All of them, those that stand for themselves in CI, each twelfth of these by default."""
    if ALL:
        return True
    return is_of_its_own(collation) and (
        THOROUGH or zlib.crc32(collation.encode()) % 12 == 0 or collation in USUAL
    )


def is_of_its_own(collation: str) -> bool:
    """Not one that another character set, or MariaDB with fewer levels, has too."""
    charset, _, rest = collation.partition("_")
    if "uca1400" in rest:
        return (
            charset == "utf8mb4"
            and rest.endswith(("_as_cs", "_nopad_ai_cs"))
            and ("nopad" not in rest or "uca1400_nopad" in rest)
        )
    return (
        charset == "utf8mb4"
        or charset not in UNICODE
        or rest in ("bin", "general_ci", "unicode_ci", "unicode_520_ci")
    )


def is_refused(collation: str) -> bool:
    return any(collation.replace("_nopad", "").endswith(name.partition("_")[2]) for name in REFUSED)


def expected(collation: str, text: bytes) -> str:
    """What WEIGHT_STRING would say, as we know it. MariaDB puts nothing between the levels."""
    rule = rule_of(collation)
    assert rule is not None and rule.table is not None
    if collation not in KEYS:
        KEYS[collation] = weight_keys(collation, rule)
    keys = KEYS[collation]
    try:
        levels = keys.weigh(text)
    except Incomparable:
        return (
            DISPUTED
            if any(text_of(collation, text).count(pair) for pair in PAIRS_OF_CROATIAN)
            else "refused"
        )
    if len(levels) == 4 and not levels[3]:
        levels.pop()
    unit = "latin-1" if keys.unit == 1 else "utf-16-be"
    between = "" if "uca1400" in collation else "0000"
    return between.join(level.encode(unit, "surrogatepass").hex().upper() for level in levels)


KEYS: dict[str, Any] = {}


def text_of(collation: str, text: bytes) -> str:
    return text.decode(UNICODE.get(collation.partition("_")[0], "latin-1"))


@pytest.fixture(scope="module", params=SERVERS)
def asked(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Iterator[Asked]:
    server = server_factory(
        request.param, options={"innodb_flush_log_at_trx_commit": 0, "sync_binlog": 0}
    )
    yield Asked(server)
    server.close()


def sample(charset: str) -> list[bytes]:
    """All characters, or a sample with more of those that have weights of their own."""
    if ALL:
        return list(characters_of(charset))
    if charset in UNICODE:
        texts = enumerate(characters_of(charset))
        return [
            text
            for at, text in texts
            if at % 9973 == 0 or (at < 0x3000 and is_likely(text.decode(UNICODE[charset])))
        ]
    return [
        text
        for at, text in enumerate(characters_of(charset))
        if at < 256 or at % (23 if at < 40_000 else 1999) == 0
    ]


def is_likely(char: str) -> bool:
    """A letter with case, a mark, a sign; of the others every seventh."""
    return unicodedata.category(char) not in ("Cn", "Co", "Lo", "So", "Sm") or ord(char) % 17 == 0


def by_charset(collations: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in collations:
        found.setdefault(name.partition("_")[0], []).append(name)
    return found


def test_every_collation_is_known(asked: Asked) -> None:
    assert [name for name in asked.collations if rule_of(name) is None] == []


def test_weights_of_characters(asked: Asked) -> None:
    wrong: list[tuple[Any, ...]] = []
    count = 0
    for charset, collations in by_charset(asked.collations).items():
        texts = asked.fill(charset, sample(charset))
        for collation in collations:
            rule = rule_of(collation)
            if rule is None or rule.table in (None, BY_CODE):
                continue
            count += len(texts)
            for text, weights in zip(texts, asked.weights(collation), strict=True):
                if expected(collation, text) != weights:
                    wrong.append((collation, text, weights, expected(collation, text)))
                    break
    print(asked.name, count)
    assert wrong == []


def random_texts(charset: str, count: int, rng: random.Random) -> list[str]:
    """Pairs of texts that are nearly the same: of letters that contract, marks, spaces, and what
    comes before a space."""
    letters = "aAbcChHdDzZžŽlLnNjJsStyYgkAaßæÆøåÄöüÜéñ"
    others = " \t\x01-_ \xa0\u0300\u0301\u0303\u0307\u030c\u0323\u0338"
    others += "·ıİŁłĳŉΑαЙйиёьアかガーゝヽヾ゙ㄅ中文阿一가각힣"
    others += "\u0e40\u0e01\u0e33\u0dd9\u0dca\U0001f600\U00020000\ufdfa\ufffd"
    texts = []
    for _ in range(count):
        kinds = [letters, others, "cChHdDzZsSlLnNjJaA", "  \tab", "ーゝヽヾむかガ"]
        one = [rng.choice(rng.choice(kinds)) for _ in range(rng.randrange(9))]
        if rng.random() < 0.2:
            one.append(chr(rng.choice([*range(0xD800), *range(0xE000, 0x110000)])))
        two = list(one)
        for _ in range(rng.randrange(3)):
            at = rng.randrange(len(two) + 1)
            two[at : at + rng.randrange(2)] = rng.choice(
                ("", " ", "  ", "\u0301", rng.choice(letters), rng.choice(others))
            )
        if rng.random() < 0.3:
            two = list("".join(two).swapcase())
        texts += ["".join(one), "".join(two)]
    if (UNICODE[charset] == "utf-16-be" and charset == "ucs2") or charset == "utf8mb3":
        texts = ["".join(char for char in text if char < "\U00010000") for text in texts]
    return texts


def random_bytes(characters: list[bytes], count: int, rng: random.Random) -> list[bytes]:
    texts = []
    for _ in range(count):
        one_text = [
            rng.choice((b" ", b"\t", b"a", b"A", b"s", b"S", rng.choice(characters)))
            for _ in range(rng.randrange(7))
        ]
        two_text = list(one_text)
        for _ in range(rng.randrange(3)):
            at = rng.randrange(len(two_text) + 1)
            two_text[at : at + rng.randrange(2)] = [
                rng.choice((b" ", b"\x1f", b"!", rng.choice(characters)))
            ]
        if rng.random() < 0.3:
            two_text = [char.swapcase() if len(char) == 1 else char for char in two_text]
        texts += [b"".join(one_text), b"".join(two_text)]
    return texts


def test_weights_and_order_of_texts(asked: Asked) -> None:
    rng = random.Random(12)
    pairs = 20_000 if ALL else 60
    wrong: list[tuple[Any, ...]] = []
    count = 0
    for charset, collations in by_charset(asked.collations).items():
        if charset in UNICODE:
            texts = [text.encode(UNICODE[charset]) for text in random_texts(charset, pairs, rng)]
        else:
            characters = asked.fill(charset, sample(charset))
            texts = random_bytes(characters, pairs, rng)
        if asked.fill(charset, texts) != texts:
            known = set(asked.fill(charset, texts))
            texts = [
                text
                for at in range(0, len(texts), 2)
                if {*texts[at : at + 2]} <= known
                for text in texts[at : at + 2]
            ]
            assert asked.fill(charset, texts) == texts
        for collation in collations:
            key = collation_key(collation)
            rule = rule_of(collation)
            if rule is not None and rule.table not in (None, BY_CODE):
                for text, weights in zip(texts, asked.weights(collation), strict=True):
                    if expected(collation, text) not in (weights, DISPUTED):
                        wrong.append((collation, text, weights, expected(collation, text)))
                        break
            for at, sign in enumerate(asked.signs(collation)):
                one, two = texts[2 * at], texts[2 * at + 1]
                if (
                    rule is not None
                    and rule.table == "croatian_ci"
                    and DISPUTED in (expected(collation, one), expected(collation, two))
                ):
                    continue
                count += 1
                if (key(one) > key(two)) - (key(one) < key(two)) != sign:
                    wrong.append(
                        (
                            collation,
                            one.decode(UNICODE.get(charset, "latin-1")),
                            two.decode(UNICODE.get(charset, "latin-1")),
                            sign,
                        )
                    )
                    break
    print(asked.name, count)
    assert wrong == []
