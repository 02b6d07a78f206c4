"""What a user may have meant by a name that is not there."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(wrong: str, names: Iterable[str]) -> str | None:
    """The name that is most like `wrong`, None if no name is near. Case does not count."""
    from difflib import get_close_matches  # only needed after a mistake

    by_lower = {name.lower(): name for name in names}
    close = get_close_matches(wrong.lower(), by_lower, 1)
    return by_lower[close[0]] if close else None


def did_you_mean(wrong: str, names: Iterable[str], *, before: str = "") -> str | None:
    """ "did you mean shop.orders?", or None if no name is near. What stands `before` each name does
    not count."""
    name = nearest(wrong, names)
    return f"did you mean {before}{name}?" if name is not None else None
