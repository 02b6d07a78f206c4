"""No page, help text or message holds a phrase that a reader stumbles over."""

from __future__ import annotations

import ast

import pytest

from tests.docs.plain_english import messages, pages, stumbles, text_of


def test_pages() -> None:
    assert stumbles(pages()) == []


def test_messages_and_help() -> None:
    found = list(messages())
    assert any("Log to stderr at this level and above" in text for _, text in found), (
        "help is read, too"
    )
    assert any(text == "…: the GTID tag is not valid" for _, text in found), (
        "so are texts with values in them"
    )
    assert stumbles(iter(found)) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Two who look on.", 1),
        ("the tag of 7 is none", 1),
        ("'x' is no number", 1),
        ("there is no server", 0),
        ("with a key it is no longer late", 0),
        ("Somebody deleted it: start anew", 2),
    ],
)
def test_a_phrase_is_found(text: str, count: int) -> None:
    assert len(stumbles(iter([("here:1", text)]))) == count


def test_the_text_of_an_f_string() -> None:
    assert text_of(ast.parse("f'{name!r} is no number'", mode="eval").body) == "… is no number"
