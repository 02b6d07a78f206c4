"""Texts of others inside Markdown."""

from __future__ import annotations

import re

_MARKS = {"&": "&amp;", "<": "&lt;", "@": "&#64;"} | {mark: f"\\{mark}" for mark in "|[*"}
_MARK = re.compile("|".join(map(re.escape, _MARKS)) + r"|\b_|_\b")


def plain(text: str) -> str:
    """Names open no tag, table cell, link or emphasis, and stay on their line."""
    text = _MARK.sub(lambda found: _MARKS.get(found[0], r"\_"), text)
    return " ".join(text.split())


def code(text: str) -> str:
    """A statement as a code span of one line, which may stand in a table."""
    return f"`` {' '.join(text.splitlines())} ``".replace("|", "\\|")
