"""Phrases that a reader stumbles over, and every text that a person reads: pages, help, messages,
error pages.

A message is a string in the code that is no docstring and holds a blank; of commands the docstring
is their help.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import PAGES

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("applier", "checkpoints", "lookup")
BANNED = {
    r"\bwho looks? on\b": "say what the callback or reader does",
    r"\b(is|are|was|were) none\b(?! of)": "say 'is not valid', 'is missing', 'does not exist'",
    r"(?<!there )\bis no (?!longer\b|more\b|such\b|need\b)\w+": "say 'is not a …'",
    r"\bgraver\b": "say 'this level and above'",
    r"\bdear(er|est)?\b(?! reader)": "say 'expensive', 'costs most'",
    r"\bnobody\b": "say who: 'the log does not say', 'no client'",
    r"\bsomebody\b": "say who: 'another client', 'a user'",
    r"(?<!rows )\bfound at once\b": "say 'found in no time', 'with a perfect key'",
    r"(?<!\(s\) )\bin vain\b": "say what does not work",
    r"\banew\b": "say 'again'",
    r"\bbearable\b": "give the number",
    r"\bto blame\b": "say 'the cause'",
    r"\bmends?\b": "say 'fixes'",
    r"\bmended\b": "say 'fixed'",
    r"\bis all the same\b": "say 'does not matter'",
    r"\bbeyond doubt\b": "say 'certain'",
    r"\bof yours\b": "say 'your …'",
    r"\bat home in\b": "say where it is",
    r"\b(come|comes|came) of it\b": "say 'results'",
    r"\bas it pleases\b": "say 'in any order'",
    r"\btaken for granted\b": "say 'assumed'",
    r"\bknows? nothing of\b": "say 'does not support'",
    r"\bforeign text\b": "say 'text from elsewhere'",
}
"""Regular expression -> what to write instead."""


def pages() -> Iterator[tuple[str, str]]:
    """(Place, text) of each paragraph of the documentation; output and code are left out."""
    for page in PAGES:
        text = re.sub(
            r"(?ms)^ {0,3}```.*?^ {0,3}```",
            lambda block: "\n" * block[0].count("\n"),
            page.read_text(),
        )
        for number, line in enumerate(text.splitlines(), 1):
            if not line.startswith("    "):
                yield f"{page.relative_to(ROOT)}:{number}", re.sub(r"`[^`]*`", "``", line)


def messages() -> Iterator[tuple[str, str]]:
    """(Place, text) of each string of the code that a person may read."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(path.read_text())
            skipped = set(map(id, docstrings(tree)))
            for node in ast.walk(tree):
                text = text_of(node)
                if text is not None and " " in text and id(node) not in skipped:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", text  # type: ignore[attr-defined]


def docstrings(tree: ast.Module) -> Iterator[ast.AST]:
    """Strings that only readers of the code see: docstrings, but for those of commands; and the
    parts of other strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield from (
                part
                for part in ast.walk(node)
                if part is not node and isinstance(part, ast.Constant)
            )
        body = getattr(node, "body", None)
        for one in body if isinstance(body, list) else []:
            is_text = isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
            if is_text and not (isinstance(node, ast.FunctionDef) and is_command(node)):
                yield one.value


def is_command(node: ast.FunctionDef) -> bool:
    """Whether click shows the docstring."""
    return any(
        "command" in ast.unparse(one) or "group" in ast.unparse(one) for one in node.decorator_list
    )


def text_of(node: ast.AST) -> str | None:
    """The text of a string, with … for what an f-string puts in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values
        )
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def stumbles(texts: Iterator[tuple[str, str]]) -> list[str]:
    """A line for each banned phrase: place, phrase, what to write."""
    return [
        f"{place}: {found[0]!r}: {instead}  <- {text.strip()[:160]}"
        for place, text in texts
        for pattern, instead in BANNED.items()
        if (found := re.search(pattern, text, re.IGNORECASE))
    ]
