"""No password in what is printed. Passwords come from files and variables, so none should be there;
this is the second lock.

Every text that leaves the program because of an error goes through `mask`: a password in a URL,
which somebody gave where a file was expected, and the passwords of accounts in statements of a log.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

MASK = "***"
SECRET_VARIABLES = ("BINLAG_PASSWORD", "MYSQL_PWD")
_PATTERNS = (
    re.compile(r"(?P<before>//[^\s:/@]*:)\S+(?=@)"),
    re.compile(r"(?P<before>\b[\w.%-]+:)[^\s:/@]+(?=@[\w\[])"),
    re.compile(
        r"(?P<before>(?:identified\b.{0,80}?\b(?:by|as)|password\b\s*[=(]?)\s*)(?:'[^']*'|\"[^\"]*\")",
        re.IGNORECASE,
    ),
)
"""`before` stays, what follows it is masked."""


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without passwords. `secrets` are masked wherever they stand as a word of their
    own."""
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\g<before>{MASK}", text)
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", MASK, text)
    return text


def secrets_of(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The passwords that the environment holds."""
    return [environment[name] for name in SECRET_VARIABLES if environment.get(name)]
