"""The report is one file that needs nothing else; charts are drawn in a real browser, on a desk and
on a phone."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from applier.fleets.results import FleetResult, Outcome
from applier.fleets.run import fleet
from applier.forecast.inventory.facts import facts_of_file
from applier.forecast.plan import ForecastPlan, run
from applier.page_colours import DARK, LIGHT
from applier.pages.fleet_report import fleet_page, write_fleet_report
from applier.pages.report import page, write_report
from applier.pages.report_charts import charts, images
from tests.forecast.logs import UPDATE, calibration, file, schema, transaction
from tests.report.test_page_colours import rgb

STORY = Path(__file__).parent.parent / "captures" / "forecast"
IMAGES = Path(__file__).parent.parent.parent / "docs" / "images"
CHROMIUM = os.environ.get("BINLAG_CHROMIUM") or shutil.which("chromium")
BROWSER_MILLISECONDS = 300_000
"""A browser that takes longer for one thing hangs."""
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def summary() -> dict[str, Any]:
    facts = facts_of_file(STORY / "schema.sql")
    rows = ["shop.audit_log=1000000", "*=500000"]
    return run(
        ForecastPlan(
            [str(STORY / "binlog.000001")],
            facts=facts,
            row_counts=rows,
            what_ifs=["primary-key", "workers=4"],
        )
    ).summary()


@pytest.fixture(scope="module")
def report(summary: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(summary, path)
    return path


class Outside(HTMLParser):
    """What a page asks for from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [
            str(value)
            for name, value in attrs
            if name in ("src", "href", "srcset", "data") and value != "data:,"
        ]


def test_it_needs_no_other_file(report: Path) -> None:
    text = report.read_text()
    outside = Outside()
    outside.feed(text)
    assert outside.found == []
    assert "shop.audit_log has no key" in text and "add a primary key" in text
    assert 500_000 < len(text) < 2_000_000


def test_names_of_tables_cannot_break_the_page(tmp_path: Path) -> None:
    name = b"</script><b>x"
    text = "CREATE DATABASE d; USE d; CREATE TABLE `</script><b>x` (a INT);"
    log = file(tmp_path, transaction(1, name, UPDATE, 1))
    plan = ForecastPlan(
        [log],
        facts=facts_of_file(schema(tmp_path, text)),
        row_counts=["*=5"],
        calibration=calibration(),
    )
    made = page(run(plan).summary())
    assert made.count("</script>") == 1
    assert "<b>x" not in re.sub(r"<script.*</script>", "", made, flags=re.DOTALL)


def test_a_forecast_of_nothing_makes_a_page(tmp_path: Path) -> None:
    plan = ForecastPlan(
        [file(tmp_path)], facts=facts_of_file(schema(tmp_path)), calibration=calibration()
    )
    assert "no complete transaction" in page(run(plan).summary())


def test_charts_say_what_they_show(summary: dict[str, Any]) -> None:
    drawn = charts(summary)
    assert list(drawn) == ["lag", "tables", "heat"]
    for chart in drawn.values():
        assert chart["width"] == "container"
        assert "$schema" in chart
    lag = drawn["lag"]["data"]["values"]
    assert {row["replica"] for row in lag} == {"as it is", "add a primary key", "workers 4"}


def test_images_need_no_browser(summary: dict[str, Any], tmp_path: Path) -> None:
    written = images(summary, tmp_path)
    assert sorted(path.name for path in written) == [
        "heat.png",
        "heat.svg",
        "lag.png",
        "lag.svg",
        "tables.png",
        "tables.svg",
    ]
    assert (tmp_path / "lag.svg").read_text().startswith("<svg")
    assert (tmp_path / "lag.png").read_bytes()[:4] == b"\x89PNG"


def test_times_of_day_have_24_hours(summary: dict[str, Any], tmp_path: Path) -> None:
    start = summary["curve"]["points"][0][0]
    images(
        {
            **summary,
            "curve": {"points": [(start + hour * 3600, hour) for hour in range(9)]},
            "curves": {},
        },
        tmp_path,
    )
    times = re.findall(r">(\d\d:\d\d|\d\d [AP]M)<", (tmp_path / "lag.svg").read_text())
    assert len(times) > 3
    assert [time for time in times if time.endswith("M")] == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip(
            "no browser: apt-get install chromium fonts-dejavu-core, or BINLAG_CHROMIUM=path"
        )
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no playwright: pip install playwright"
    )
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=BROWSER_MILLISECONDS
        )
        yield opened
        opened.close()


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_a_browser_draws_it(browser: Any, report: Path, size: dict[str, int]) -> None:
    context = browser.new_context(viewport=size, device_scale_factor=2, offline=True)
    context.set_default_timeout(BROWSER_MILLISECONDS)
    told: list[str] = []
    opened = context.new_page()
    opened.on(
        "console",
        lambda message: told.append(message.text) if message.type in ("error", "warning") else None,
    )
    opened.on("pageerror", lambda error: told.append(str(error)))
    asked: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(report.as_uri())
    opened.wait_for_function("window.drawn === 3")
    assert told == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    for name, marks in (("lag", "path"), ("tables", "path"), ("heat", "text")):
        box = opened.locator(f"#{name} svg").bounding_box()
        assert box["width"] > size["width"] * 0.6 or size is DESK
        assert box["width"] <= size["width"] and box["height"] > 60
        assert opened.locator(f"#{name} svg {marks}").count() > 3
    assert opened.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert (
        opened.evaluate("parseFloat(getComputedStyle(document.querySelector('p')).fontSize)") >= 12
    )
    if folder := os.environ.get("BINLAG_SCREENSHOTS"):
        opened.screenshot(path=f"{folder}/report-{size['width']}.png", full_page=True)
    context.close()


def test_no_column_is_out_of_sight_on_a_phone(browser: Any, report: Path, tmp_path: Path) -> None:
    """A box that scrolls sideways hides its columns; a heat map has to have one, a list has not."""
    write_fleet_report(
        fleet(STORY.parent.parent.parent / "examples" / "fleet.yaml"), tmp_path / "fleet.html", 60
    )
    context = browser.new_context(viewport=PHONE, offline=True)
    opened = context.new_page()
    for path in (report, tmp_path / "fleet.html"):
        opened.goto(path.as_uri())
        opened.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        boxes = opened.evaluate(
            "[...document.querySelectorAll('.wide:not(.heat)')].map(one => [one.scrollWidth, "
            "one.clientWidth])"
        )
        assert len(boxes) > 2
        assert [(needed, given) for needed, given in boxes if needed > given] == []
        beyond = (
            "[...document.querySelectorAll('.rows td')].filter(one => "
            "one.getBoundingClientRect().right > innerWidth).length"
        )
        assert opened.evaluate(beyond) == 0
        assert opened.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        heads = opened.evaluate(
            "[...document.querySelectorAll('.rows td')].map(one => getComputedStyle(one, "
            "'::before').content)"
        )
        assert "none" not in heads and '"peak lag"' in heads
    context.close()


@pytest.mark.parametrize(
    ("scheme", "medium", "is_dark"),
    [("light", "screen", False), ("dark", "screen", True), ("dark", "print", False)],
)
def test_it_is_dark_where_the_reader_wants_it_and_light_on_paper(
    browser: Any, report: Path, scheme: str, medium: str, is_dark: bool
) -> None:
    """The charts follow, although they are drawn before."""
    context = browser.new_context(viewport=DESK, offline=True)
    context.set_default_timeout(BROWSER_MILLISECONDS)
    opened = context.new_page()
    opened.goto(report.as_uri())
    opened.wait_for_function("window.drawn === 3")
    opened.emulate_media(color_scheme=scheme, media=medium)
    colours = DARK if is_dark else LIGHT

    def used(selector: str, what: str) -> str:
        return str(
            opened.evaluate(f"getComputedStyle(document.querySelector({selector!r})).{what}")
        )

    assert used("body", "backgroundColor") == rgb(colours["paper"])
    assert used("body", "color") == rgb(colours["text"])
    assert used("#lag svg .role-axis text", "fill") == rgb(colours["text"])
    assert used("#lag svg .role-legend text", "fill") == rgb(colours["text"])
    assert used("#lag svg .mark-line path", "stroke") == rgb(colours["lag"])
    assert used("#tables svg .mark-rect.role-mark path", "fill") == rgb(colours["lag"])
    context.close()


def test_closed_sections_of_a_fleet_are_open_on_paper(
    browser: Any, summary: dict[str, Any]
) -> None:
    sources = [Outcome(name, "", summary=summary) for name in ("one", "two")]
    opened = browser.new_page()
    opened.set_content(fleet_page(FleetResult(sources)))
    visible = "[...document.querySelectorAll('details h3')].map((one) => one.checkVisibility())"
    headings = opened.evaluate(visible)
    assert len(headings) > 4
    assert not any(headings)
    opened.emulate_media(media="print")
    assert all(opened.evaluate(visible))
    opened.close()


@pytest.mark.parametrize("picture", sorted(IMAGES.glob("*.svg")), ids=lambda path: path.stem)
def test_no_label_of_a_picture_is_cut(browser: Any, picture: Path) -> None:
    opened = browser.new_page(viewport={"width": 1600, "height": 900})
    opened.set_content(picture.read_text())
    cut = """() => { const box = document.querySelector("svg").getBoundingClientRect();
        return [...document.querySelectorAll("text")].filter((one) => {
            const own = one.getBoundingClientRect();
            return own.left < box.left || own.right > box.right
                || own.top < box.top || own.bottom > box.bottom;
        }).map((one) => one.textContent); }"""
    assert opened.evaluate(cut) == []
    opened.close()
