"""The repeats of a dump's expressions, in both forms: that of this Python, and that for one before
3.11.5."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.dumps import patterns

FORMS = [patterns._HAS_POSSESSIVE_GROUPS, False]


def end_of_string(text: bytes) -> int | None:
    """Where the quoted text at the beginning ends, byte by byte; None where nothing ends it."""
    at = 1
    while at < len(text):
        if text[at : at + 1] == b"\\" or text[at : at + 2] == b"''":
            at += 2
        elif text[at : at + 1] == b"'":
            return at + 1
        else:
            at += 1
    return None


@given(text=st.lists(st.sampled_from([b"'", b"\\", b"a", b"\n"]), max_size=12).map(b"".join))
@pytest.mark.parametrize("possessive", FORMS)
def test_a_quoted_text_ends_where_it_does_byte_by_byte(possessive: bool, text: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patterns, "_HAS_POSSESSIVE_GROUPS", possessive)
        pattern = re.compile(patterns.enclosed(b"'", rb"\\.|"), re.DOTALL)
    match = pattern.match(b"'" + text)
    assert (match and match.end()) == end_of_string(b"'" + text)
