"""Every page takes its colours from one place, and a reader can tell them apart, light and dark."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from applier.crashtest.heat_map import heat_map
from applier.fleets.results import FleetResult
from applier.page_colours import COLOURS, DARK, LIGHT
from applier.pages.fleet_report import fleet_page
from applier.pages.report import STYLE

GROUNDS = ("paper", "panel", "safe", "lucky", "stops", "twice", "loses", "chosen")
"""What text stands on."""
LINES = ("lag", "cured", "other-1", "other-2", "other-3", "other-4", "rest")
PAGES = {
    "forecast": f"<style>{STYLE}</style>",
    "fleet": fleet_page(FleetResult([])),
    "crash tests": heat_map([], "Crash tests", lambda *_: ""),
}
BOTH = pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])


def channels(colour: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue


def rgb(colour: str) -> str:
    """As a browser says it."""
    return "rgb({}, {}, {})".format(*channels(colour))


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, "contrast ratio"."""

    def luminance(colour: str) -> float:
        shares = (channel / 255 for channel in channels(colour))
        red, green, blue = (
            share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4
            for share in shares
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast() -> None:
    assert contrast("#000000", "#ffffff") == 21
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@BOTH
def test_text_can_be_read(colours: Mapping[str, str]) -> None:
    pairs = [("text", ground) for ground in GROUNDS] + [("quiet", "paper"), ("alarm", "paper")]
    assert {
        pair: ratio
        for pair in pairs
        if (ratio := contrast(colours[pair[0]], colours[pair[1]])) < 4.5
    } == {}


@BOTH
def test_lines_of_a_chart_can_be_seen(colours: Mapping[str, str]) -> None:
    assert {
        name: ratio for name in LINES if (ratio := contrast(colours[name], colours["paper"])) < 3
    } == {}


def test_both_have_every_name() -> None:
    assert LIGHT.keys() == DARK.keys()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_its_colours(name: str) -> None:
    """A colour of its own would stay light in the dark."""
    page = PAGES[name]
    assert COLOURS in page
    own = "".join(re.findall(r"<style>(.*?)</style>", page, re.DOTALL)).replace(COLOURS, "")
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b|\brgba?\(", own) == []
    assert set(re.findall(r"var\(--([\w-]+)\)", own)) <= LIGHT.keys()
