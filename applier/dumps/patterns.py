"""Parts of the regular expressions that read dumps: repeats that never go back, and SQL's quoted
texts."""

from __future__ import annotations

import sys

_HAS_POSSESSIVE_GROUPS = sys.version_info >= (3, 11, 5)
"""Before, a possessive repeat of a group lost its place where a turn matched in part
(gh-106052)."""


def repeated(turn: bytes) -> bytes:
    """Any number of turns, as many as there are; what was passed over is passed over for good.

    Where Python's possessive repeats can be trusted they also need no memory for each turn.
    """
    return rb"(?:" + turn + rb")*+" if _HAS_POSSESSIVE_GROUPS else rb"(?>(?:" + turn + rb")*)"


def enclosed(quote: bytes, escape: bytes = b"") -> bytes:
    """A text in quotes, where two of them stand for one. `escape`: what else may stand before a
    quote."""
    inside = rb"[^" + quote + (rb"\\" if escape else b"") + rb"]*+"
    return quote + inside + repeated(rb"(?:" + escape + quote * 2 + rb")" + inside) + quote


STRING = enclosed(b"'", rb"\\.|")
QUOTED = enclosed(b'"', rb"\\.|")
IDENTIFIER = enclosed(b"`")
QUOTED_IDENTIFIER = enclosed(b'"')
