"""The page in a real browser: from the disk, without a network, wide and narrow, light and dark,
with and without scripts.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tasks.report.page import report_page
from tests.browser import WIDTHS, Opened, opened_page

pytestmark = pytest.mark.slow
TITLE = "Held, not live"
FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture(scope="module")
def file(held_data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the held release, alone in a folder."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(report_page(held_data), "utf-8")
    return path


@contextmanager
def opened(
    chromium: Any, file: Path, width: str = "wide", scheme: str = "light", *, scripts: bool = True
) -> Generator[Opened]:
    options = {"offline": True, "java_script_enabled": scripts}
    with opened_page(chromium, width, scheme, **options) as result:
        result.page.goto(file.as_uri())
        if scripts:
            result.page.wait_for_selector("html[data-ready]")
        yield result


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_it_opens_from_the_disk_and_nothing_is_wider_than_the_screen(chromium, file, width, scheme):
    with opened(chromium, file, width, scheme) as browser:
        browser.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")

        assert browser.console == []
        assert browser.requests == [file.as_uri()]
        assert browser.page.title().startswith(TITLE)
        cut = browser.page.evaluate(
            "[...document.querySelectorAll('body *')].filter(part => !part.closest('nav') && "
            "!part.closest('.sr') && part.getBoundingClientRect().right > innerWidth + 1)"
            ".map(part => part.outerHTML.slice(0, 80))"
        )
        assert cut == []
        box = browser.page.locator("svg.map").bounding_box()
        assert min(box["width"], box["height"]) > 250


@pytest.mark.parametrize("scripts", [True, False])
def test_everything_is_read_without_scripts_and_controls_appear_with_them(chromium, file, scripts):
    with opened(chromium, file, scripts=scripts) as browser:
        page = browser.page
        assert page.locator("#filters").is_visible() == scripts
        assert page.locator(".legend button").first.is_enabled() == scripts
        assert page.locator("h1").inner_text() == TITLE
        description = page.locator("#tools").get_by_text("Opens the roof of a customer.")
        assert description.is_visible()
        page.locator('#tools details[data-agent="roof"] summary').click()
        assert not description.is_visible()


def test_the_list_and_the_map_are_filtered_by_text_and_by_agent(chromium, file):
    def names(page):
        return page.locator("#tools li:not([hidden]) b").all_text_contents()

    def points(page):
        return page.locator("svg.map circle:not(.faint)").count()

    with opened(chromium, file) as browser:
        page = browser.page
        assert (len(names(page)), points(page)) == (22, 22)
        page.fill("#filter", "PAINT roof")
        assert (names(page), points(page)) == (["paint_roof"], 1)
        assert page.locator("#filter-count").text_content() == "1 of 22 shown"
        page.press("#filter", "Escape")
        page.select_option("#filter-agent", "window")
        assert (len(names(page)), points(page)) == (4, 4)
        page.select_option("#filter-agent", "")
        button = page.locator(".legend button", has_text="fence")
        button.focus()
        page.keyboard.press("Enter")
        assert (button.get_attribute("aria-pressed"), points(page)) == ("true", 7)


@pytest.mark.parametrize("width", WIDTHS)
def test_pointing_at_the_map_shows_a_tool_with_its_agent_and_description(chromium, file, width):
    with opened(chromium, file, width) as browser:
        page = browser.page
        number = page.locator("#tools li", has_text="sell_bicycle").get_attribute("data-n")
        circle = page.locator(f'svg.map circle[data-t="{number}"]')
        circle.scroll_into_view_if_needed()
        page.evaluate(FRAMES)  # the event of this scrolling would hide what is shown
        box = circle.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        if width == "phone":
            page.touchscreen.tap(x, y)
        else:
            page.mouse.move(x, y)

        text = page.locator("#tip").inner_text()
        assert "sell_bicycle" in text
        assert "Sells the bicycle of a customer." in text
        tip = page.locator("#tip").bounding_box()
        assert tip["x"] >= 0
        assert tip["x"] + tip["width"] <= WIDTHS[width][0]
