"""The scripts of a day: no more than wanted, the same all day, and each known one within some
days."""

from __future__ import annotations

from datetime import date, timedelta

from tests.peers.choice import of_the_day
from tests.peers.exceptions import Case

KNOWN = [Case("9.7", "ROW", f"t/known{at}.test") for at in range(50)]
OTHERS = [*KNOWN[:10], *(Case("5.7", "MIXED", f"t/other{at}.test") for at in range(500))]
DAY = date(2026, 1, 1)


def test_a_day_has_its_scripts() -> None:
    chosen = of_the_day(KNOWN, OTHERS, DAY, 20)
    assert chosen == of_the_day(KNOWN[::-1], OTHERS[::-1], DAY, 20)
    assert len(chosen) == len(set(chosen)) == 20
    assert len(set(chosen) & set(KNOWN)) == 15
    assert not set(chosen) & set(of_the_day(KNOWN, OTHERS, DAY + timedelta(days=1), 20))


def test_known_ones_have_their_turn() -> None:
    days = [of_the_day(KNOWN, OTHERS, DAY + timedelta(days=at), 20) for at in range(4)]
    assert set(KNOWN) <= {case for day in days for case in day}


def test_more_than_there_are() -> None:
    assert set(of_the_day(KNOWN, OTHERS, DAY, 10_000)) == {*KNOWN, *OTHERS}
    assert len(of_the_day([], OTHERS, DAY, 20)) == 20
    assert of_the_day([], [], DAY, 20) == []
