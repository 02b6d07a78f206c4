"""What a user may have meant by a name that is not there."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(wrong: str, names: Iterable[str], *, before: str = "") -> str | None:
    """ "did you mean shop.orders?", or None if no name is near. Case does not count, nor does what
    stands `before` each name."""
    from difflib import get_close_matches

    by_lower = {name.lower(): name for name in names}
    close = get_close_matches(wrong.lower(), by_lower, 1)
    return f"did you mean {before}{by_lower[close[0]]}?" if close else None
