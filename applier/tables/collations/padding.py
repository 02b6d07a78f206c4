"""PAD SPACE: texts compare as if they went on with spaces for ever.

Spaces at the end are cut off, and one is put there as the end of all texts. That is the whole of it
but for a run of spaces before a weight that is less than a space: "a \\t" comes before "a", which
goes on with spaces, and behind "a\\t". Such a run is written as the weight just below a space, and
its length. Where that weight itself stands, a zero follows it.
"""

from __future__ import annotations

import re

_DIGIT = 7


class Padding:
    """The padding of weights, one character each, whose space is `space`; `below` is the weight
    before that."""

    def __init__(self, space: str) -> None:
        self._space = space
        self.below = chr(ord(space) - 1)
        lower, escaped = re.escape("\0") + "-" + re.escape(self.below), re.escape(self.below)
        self._special = re.compile(f"{re.escape(space)}+(?=[{lower}])|{escaped}")

    def end(self, weights: str) -> str:
        """The weights so that plain comparison puts them where padded comparison would."""
        weights = weights.rstrip(self._space)
        if self._special.search(weights):
            weights = self._special.sub(self._written, weights)
        return weights + self._space

    def _written(self, found: re.Match[str]) -> str:
        if found[0] == self.below:
            return self.below + "\0"
        length = len(found[0])
        return self.below + "".join(
            chr(1 + (length >> shift) % (1 << _DIGIT))
            for shift in (3 * _DIGIT, 2 * _DIGIT, _DIGIT, 0)
        )
