"""How many words a log's changes put into FULLTEXT indexes, and what that costs."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import applier
from applier.forecast.answers.words import split
from applier.forecast.inventory.facts import TableFacts, Texts, facts_of_tables
from applier.forecast.plan import ForecastPlan, run
from applier.forecast.prices.calibration import default_calibration
from applier.forecast.workload.full_text import FREE_DOUBLINGS, STOPWORDS, words_of
from applier.forecast.workload.index_changes import with_index_changes
from tests.binlog.build import gtid, log, query, rows, table_map, write, xid

MAP = table_map(types=b"\3\xfc\x0f", metadata=b"\2\x64\0")
WRITE, UPDATE, DELETE = 30, 31, 32
TABLE = "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, body TEXT, title VARCHAR(100){});"
MANY = " ".join(f"word{at}" for at in range(1 << FREE_DOUBLINGS + 2))


def facts(keys: str = ", FULLTEXT (body)", charset: str = "utf8mb4") -> dict[str, TableFacts]:
    statements = TABLE.format(keys).replace("body TEXT", f"body TEXT CHARACTER SET {charset}")
    return facts_of_tables(applier.load_schema(statements))


def image(number: int, body: str | None, title: str = "", codec: str = "utf-8") -> bytes:
    name = title.encode()
    if body is None:
        return b"\2" + struct.pack("<i", number) + bytes([len(name)]) + name
    text = body.encode(codec)
    return b"\0" + struct.pack("<iH", number, len(text)) + text + bytes([len(name)]) + name


def logged(folder: Path, kind: int, *images: bytes) -> str:
    events = gtid(1), query(b"BEGIN"), MAP, rows(kind, b"".join(images), width=3), xid()
    return str(write(folder, log(*events)))


def texts(
    folder: Path, known: dict[str, TableFacts], kind: int, *images: bytes
) -> dict[str, Texts]:
    return dict(with_index_changes(known, [logged(folder, kind, *images)]).facts["d.t"].texts)


def test_words_are_those_that_an_index_keeps() -> None:
    assert words_of("The old Man, an OLD sea; ab 84_x") == {"old", "man", "sea", "84_x"}
    assert words_of("où est l'Été dernier") == {"est", "été", "dernier"}
    assert not words_of(" ".join(STOPWORDS)) and not words_of("a" * 85)


@pytest.mark.parametrize(
    ("kind", "images", "expected"),
    [
        (WRITE, [image(1, MANY)], {"write": (1, 64 * 2)}),
        (WRITE, [image(1, MANY), image(2, None)], {"write": (0.5, 32 * 2)}),
        (WRITE, [image(1, "few words")], {"write": (1, 0)}),
        (UPDATE, [image(1, "old"), image(1, MANY)], {"update": (1, 64 * 2)}),
        (UPDATE, [image(1, MANY), image(1, MANY, "new")], {"update": (0, 0)}),
        (DELETE, [image(1, MANY)], {}),
    ],
)
def test_what_a_change_brings(
    kind: int, images: list[bytes], expected: dict[str, Texts], tmp_path: Path
) -> None:
    assert texts(tmp_path, facts(), kind, *images) == expected


def test_each_index_takes_its_columns(tmp_path: Path) -> None:
    both = facts(", FULLTEXT (body), FULLTEXT (title, body)")
    found = texts(tmp_path, both, WRITE, image(1, MANY, "another thing"))["write"]
    assert found == (2, pytest.approx(64 * 2 + 66 * (math.log2(66) - FREE_DOUBLINGS)))
    changed = texts(tmp_path, both, UPDATE, image(1, MANY), image(1, MANY, "another thing"))
    assert changed["update"].texts == 1


def test_words_in_wide_characters(tmp_path: Path) -> None:
    wide = facts(charset="utf16")
    assert texts(tmp_path, wide, WRITE, image(1, MANY, codec="utf-16-be")) == {"write": (1, 64 * 2)}


def test_a_table_without_such_an_index_brings_none(tmp_path: Path) -> None:
    assert texts(tmp_path, facts(", KEY (title)"), WRITE, image(1, MANY)) == {}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 99), max_size=60), min_size=1, max_size=6))
def test_as_the_texts_say(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[list[int]]
) -> None:
    bodies = [" ".join(f"word{number}" for number in one) for one in numbers]
    images = [image(at, body) for at, body in enumerate(bodies)]
    found = texts(tmp_path_factory.mktemp("log"), facts(), WRITE, *images)["write"]
    different = len({number for one in numbers for number in one})
    words = sum(len(set(one)) for one in numbers)
    weight = max(math.log2(different) - FREE_DOUBLINGS, 0) if different else 0
    assert found == (1, pytest.approx(words * weight / len(numbers)))


def test_they_cost_what_the_prices_say(tmp_path: Path) -> None:
    path = logged(tmp_path, WRITE, image(1, MANY))
    seconds = {}
    for keys in ("", ", FULLTEXT (body)"):
        done = run(ForecastPlan(files=[path], facts=facts(keys), server="9.7"))
        seconds[keys] = done.summary()["worst"][0]["seconds"]
    prices = default_calibration("9.7").prices
    more = prices["text"] + 64 * 2 * prices["word"] + prices["index entry"]
    assert seconds[", FULLTEXT (body)"] - seconds[""] == pytest.approx(more, rel=0.01)
    replica = done.summary()["replica"]
    assert (replica["texts"], replica["text_seconds"]) == (
        1,
        pytest.approx(prices["text"] + 64 * 2 * prices["word"]),
    )
    assert "of it to put the words of 1 texts into FULLTEXT indexes" in split(done.summary())
    assert not [text for text in done.forecast.assumptions() if "FULLTEXT" in text]
