"""Chances and expected places of rows drawn without repetition: the arithmetic under lookup.cost.

Numbers may be as large as tables are and need not be whole (a mean is drawn from a mean): binomial
ratios are summed as logarithms, and order statistics are what they are for whole numbers.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, expm1, lgamma, log1p

EXACT_SUM_TERMS = 1000
"""Key values up to which the end of a hash scan over an index is summed exactly; with more a limit
is as good."""
DIRECT_FACTORS = 512
"""Factors of a binomial ratio that are multiplied one by one; with more, their middle one stands
for all."""


def furthest(drawn: float, places: float, copies: float = 1.0) -> float:
    """The expected position of the furthest of `drawn` rows among `places`; of each the first of
    `copies` that are alike.

    Order statistics: R(N+1)/(R+1) without copies; with c copies (N+1)(1 - B(1/c, R+1)/c).
    """
    if drawn <= 0 or places <= 0:
        return 0.0
    if copies <= 1:
        return drawn * (places + 1) / (drawn + 1)
    part = 1 / copies
    return (places + 1) * (
        1 - part * exp(lgamma(part) + lgamma(drawn + 1) - lgamma(part + drawn + 1))
    )


def touched(total: float, group: float, drawn: float) -> float:
    """The chance that `drawn` of `total` rows, without repetition, hold one of a group: 1 -
    C(total-group, drawn)/C(total, drawn).

    Chances near 0 are what large tables have, so logarithms of factors are summed; numbers need not
    be whole.
    """
    few, many = min(group, drawn), max(group, drawn)
    if few <= 0:
        return 0.0
    if few + many > total:
        return 1.0
    if few <= DIRECT_FACTORS:
        whole = int(few)
        logarithm = sum(log1p(-many / (total - at)) for at in range(whole) if total - at > many)
        if few > whole and total - whole > many:
            logarithm += (few - whole) * log1p(-many / (total - whole))
    elif many < total / 20:
        logarithm = few * log1p(-many / (total - (few - 1) / 2))
    else:
        logarithm = (
            lgamma(total - few + 1)
            - lgamma(total - few - many + 1)
            - lgamma(total + 1)
            + lgamma(total - many + 1)
        )
    return -expm1(logarithm)


@lru_cache(maxsize=4096)
def unread_of_group(group: float, total: float, rows: float) -> float:
    """Of `total` entries in groups of `group`, `rows` are drawn: the mean number of entries between
    the last drawn and its group's end.

    Sum over the values v of P(the last drawn entry stands in a value up to v) = C(vm,R)/C(N,R).
    """
    values = total / group
    if values > EXACT_SUM_TERMS or abs(values - round(values)) > 1e-9 or rows != round(rows):
        return unread_by_chance(group, min(rows / total, 1.0))
    below = 0.0
    for behind in range(1, round(values)):
        chance = 1 - touched(total, behind * group, rows)
        below += chance
        if chance < 1e-12:
            break
    return max(group * (round(values) - below) - furthest(rows, total), 0.0)


def unread_by_chance(group: float, share: float) -> float:
    """The same when each entry is drawn with this chance, and at least one of the group is."""
    if share >= 1:
        return 0.0
    if share * group < 1e-4:
        return (group - 1) / 2 * (1 - share * (group + 1) / 6)
    none = group * log1p(-share)
    return max((1 - share) / share + group * exp(none) / expm1(none), 0.0)
