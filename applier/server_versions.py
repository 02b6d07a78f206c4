"""Whose rules hold: what a user, a log or a server says of its version becomes a row of
`lookup.versions` here, or an error that names all.

What is newer than all rows follows the newest, and `remark` says so. What is older than all follows
the oldest where it is a fact, as the version of a log is, and `remark` says so too; where it is a
wish it is refused: nobody asks for 4.0 to be told what 5.6 would do.
"""

from __future__ import annotations

from collections.abc import Iterable

from applier.error_codes import Code
from applier.errors import InputError, UsageError
from lookup.versions import NEWEST, OLDEST, RULES, ServerRules, outside, rules_for

KNOWN = ", ".join(RULES)
"""All that can be named, as it is listed for a user."""
_LIKE_MARIADB = ("10.", "11.", "12.")
"""MySQL has no such versions yet, MariaDB has; who names one without its word may mean either."""
_ENDS = {"older": (OLDEST, "oldest"), "newer": (NEWEST, "newest")}


def asked_rules(version: str, *, offered: Iterable[str] = RULES) -> ServerRules:
    """The rules of a version that the user named. Raises UsageError for what is no version, and for
    one older than all that are known; its next step names those that are `offered`."""
    hint = f"name one of {', '.join(offered)}"
    try:
        older = outside(version) == "older"
        rules = rules_for(version)
    except ValueError as error:
        raise UsageError(f"--server: {error}", code=Code.UNKNOWN_VERSION, hint=hint) from None
    if older:
        raise UsageError(
            f"--server: {version} is older than {OLDEST}, the oldest version known",
            code=Code.UNKNOWN_VERSION,
            hint=hint,
        )
    return rules


def found_rules(version: str, whose: str) -> ServerRules:
    """The rules of a version that `whose` ("the log") has. Raises InputError for what is no
    version."""
    try:
        return rules_for(version)
    except ValueError as error:
        raise InputError(
            f"{whose}'s version: {error}",
            code=Code.UNKNOWN_VERSION,
            hint=f"give --server, one of {KNOWN}",
        ) from None


def remark(version: str, whose: str) -> str | None:
    """What a user has to know of a version that is older or newer than all that are known; None for
    others. `whose`: "--server"."""
    beyond = outside(version)
    if beyond is None:
        return None
    known, end = _ENDS[beyond]
    meant = "; MariaDB is named mariadb" if version.startswith(_LIKE_MARIADB) else ""
    return (
        f"{whose}: {version} is {beyond} than {known}, the {end} version known: {known}'s rules are"
        f" taken{meant}"
    )
