"""The page in a real browser: from the disk, without a network, wide and narrow, light and dark.

Needs Chromium or Chrome: on the path, or where PEGBOARD_CHROMIUM says.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tasks.report.page import report_page, resolve

pytestmark = pytest.mark.slow
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTHS = {"wide": (1280, 900), "phone": (390, 844)}
PIXELS = "document.querySelector('#chart-map canvas').toDataURL()"
PADDING = {"left": 2, "right": 6, "top": 4, "bottom": 2}
"""Of charts, as page.js has it; the map's scales go from -.02 to 1.02."""


@dataclass
class Opened:
    """An open page, the lines of its console, and the addresses that it requested."""

    page: Any
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    path = os.environ.get("PEGBOARD_CHROMIUM") or next(
        (found for name in NAMES if (found := shutil.which(name))), None
    )
    if path is None:
        pytest.skip("there is no Chromium: put one on the path, or name it in PEGBOARD_CHROMIUM")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def file(held_data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the held release, alone in a folder."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(report_page(held_data), "utf-8")
    return path


@contextmanager
def opened(
    chromium: Any, file: Path, width: str = "wide", scheme: str = "light"
) -> Iterator[Opened]:
    size = dict(zip(("width", "height"), WIDTHS[width], strict=True))
    context = chromium.new_context(
        viewport=size, color_scheme=scheme, has_touch=width == "phone", offline=True
    )
    opened_page = Opened(context.new_page())
    opened_page.page.on("console", lambda message: opened_page.console.append(message.text))
    opened_page.page.on("pageerror", lambda error: opened_page.console.append(str(error)))
    opened_page.page.on("request", lambda request: opened_page.requests.append(request.url))
    try:
        opened_page.page.goto(file.as_uri())
        opened_page.page.wait_for_selector(f"html[data-drawn={scheme}]")
        yield opened_page
    finally:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_it_opens_from_the_disk_with_its_charts_and_without_complaint(
    chromium, file, tmp_path, width, scheme
):
    with opened(chromium, file, width, scheme) as opened_page:
        opened_page.page.screenshot(path=tmp_path / f"{width}-{scheme}.png", full_page=True)

        assert opened_page.console == []
        assert opened_page.requests == [file.as_uri()]
        assert opened_page.page.title().endswith("Held back by the gate")
        assert opened_page.page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width][0]
        for chart in (
            "#chart-measures svg",
            "#chart-curve svg",
            "#chart-history svg",
            "#chart-map canvas",
        ):
            box = opened_page.page.locator(chart).bounding_box()
            assert min(box["width"], box["height"]) > 100, chart
            assert box["x"] + box["width"] <= WIDTHS[width][0], chart
        assert (tmp_path / f"{width}-{scheme}.png").stat().st_size > 20_000


def test_its_colours_follow_the_scheme(chromium, file):
    with opened(chromium, file) as opened_page:
        before = _colours(opened_page.page)
        opened_page.page.emulate_media(color_scheme="dark")
        opened_page.page.wait_for_selector("html[data-drawn=dark]")
        after = _colours(opened_page.page)

    assert [one != other for one, other in zip(before, after, strict=True)] == [True, True]


def test_every_number_that_is_seen_is_the_one_of_the_json(chromium, file, held_data):
    with opened(chromium, file) as opened_page:
        seen = opened_page.page.evaluate(
            "[...document.querySelectorAll('[data-json]')].map(one => [one.dataset.json, "
            "one.dataset.style, one.textContent])"
        )

    digits = {"count": 0, "share": 3, "percent": 3, "seconds": 1, "usd": 4}
    assert len(seen) > 150
    for place, style, text in seen:
        value = resolve(held_data, place)
        if value is None:
            assert text == "–"
            continue
        wanted = 100 * value if style == "percent" else value
        assert float(text.replace(",", "")) == pytest.approx(
            wanted, abs=0.5001 * 10 ** -digits[style]
        ), place


def test_the_chart_of_measures_shows_the_values_of_the_measure_that_is_chosen(
    chromium, file, held_data
):
    with opened(chromium, file) as opened_page:
        opened_page.page.select_option("#measure", "nDCG@10")
        opened_page.page.wait_for_function(
            "document.querySelector('#chart-measures svg').textContent.length > 0"
        )
        marks = opened_page.page.locator("#chart-measures svg [aria-roledescription=circle]")
        drawn = [marks.nth(at).get_attribute("aria-label") for at in range(marks.count())]

    values = sorted(float(re.search(r"mean: ([\d.]+)", one)[1]) for one in drawn)
    rows = [*held_data["measures"]["rows"], *held_data["measures"]["live"]]
    wanted = sorted(row["value"] for row in rows if row["measure"] == "nDCG@10")
    assert values == pytest.approx(wanted, abs=0.0005)


@pytest.mark.parametrize("width", WIDTHS)
def test_pointing_at_the_map_shows_a_tool_with_its_agent_and_description(
    chromium, file, held_data, width
):
    tool = next(one for one in held_data["map"]["tools"] if one["name"] == "sell_bicycle")
    with opened(chromium, file, width) as opened_page:
        _point(opened_page.page, tool, touch=width == "phone")

        assert opened_page.page.locator("#tip b").text_content() == "sell_bicycle"
        assert "bicycle" in opened_page.page.locator("#tip i").text_content()
        assert "Sells the bicycle of a customer." in opened_page.page.locator("#tip").text_content()
        box = opened_page.page.locator("#tip").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= WIDTHS[width][0]


def test_the_map_is_filtered_by_text_and_by_agent(chromium, file, held_data):
    other = next(one for one in held_data["map"]["tools"] if one["name"] == "sell_bicycle")
    with opened(chromium, file) as opened_page:
        everything = opened_page.page.locator("#map-count").text_content()
        whole = _pixels(opened_page.page)
        opened_page.page.fill("#map-text", "PAINT roof")
        text = opened_page.page.locator("#map-count").text_content()
        names = opened_page.page.locator("#map-list b").all_text_contents()
        opened_page.page.wait_for_function(f"{PIXELS} !== {json.dumps(whole)}")
        _point(opened_page.page, other)
        hidden = opened_page.page.locator("#tip").is_hidden()
        opened_page.page.fill("#map-text", "")
        opened_page.page.select_option("#map-agent", label="window (4)")
        agent = opened_page.page.locator("#map-count").text_content()

    assert (everything, text, agent) == ("22 tools", "1 of 22 tools shown", "4 of 22 tools shown")
    assert names == ["paint_roof"]
    assert hidden


def test_unfriendly_names_are_shown_as_they_are_and_do_nothing(chromium, file, held_data):
    hostile = next(one for one in held_data["map"]["tools"] if one["name"].startswith("<img"))
    with opened(chromium, file) as opened_page:
        opened_page.page.fill("#map-text", "<img")
        listed = opened_page.page.locator("#map-list b").all_text_contents()
        _point(opened_page.page, hostile)
        tip = opened_page.page.locator("#tip").text_content()
        for one in opened_page.page.locator("details").all():
            one.evaluate("one => { one.open = true; }")
        _settle(opened_page.page)

        assert listed == [hostile["name"]]
        assert hostile["name"] in tip
        assert "</script>" in tip
        assert opened_page.page.locator("img, important").count() == 0
        assert opened_page.page.title().endswith("Held back by the gate")
        assert (opened_page.console, opened_page.requests) == ([], [file.as_uri()])


def test_a_script_that_got_into_the_page_after_all_would_not_run(chromium, file, tmp_path):
    spoilt = tmp_path / "spoilt.html"
    injected = (
        "<script>document.title='gotcha'</script><img src=x "
        "onerror=\"document.title='gotcha'\"></footer>"
    )
    spoilt.write_text(file.read_text("utf-8").replace("</footer>", injected), "utf-8")

    with opened(chromium, spoilt) as opened_page:
        _settle(opened_page.page)

        assert opened_page.page.title().endswith("Held back by the gate")
        assert any("Content Security Policy" in one for one in opened_page.console)


def _point(page: Any, place: dict[str, Any], *, touch: bool = False) -> None:
    """Point at, or tap on, a place of the map."""
    page.locator("#chart-map canvas").scroll_into_view_if_needed()
    box = page.locator("#chart-map canvas").bounding_box()
    across, down = (place["x"] + 0.02) / 1.04, 1 - (place["y"] + 0.02) / 1.04
    x = box["x"] + PADDING["left"] + across * (box["width"] - PADDING["left"] - PADDING["right"])
    y = box["y"] + PADDING["top"] + down * (box["height"] - PADDING["top"] - PADDING["bottom"])
    if touch:
        page.touchscreen.tap(x, y)
    else:
        page.mouse.move(x, y)
        page.mouse.move(x + 1, y)


def _settle(page: Any) -> None:
    """Wait until scripts and failed images had their turn: two frames, and a task after them."""
    page.wait_for_load_state("load")
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => "
        "setTimeout(done))))"
    )


def _colours(page: Any) -> list[str]:
    """The background, and the colour of a chart's text."""
    return page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, document.querySelector('#chart-curve "
        "svg text').getAttribute('fill')]"
    )


def _pixels(page: Any) -> str:
    return page.evaluate(PIXELS)
