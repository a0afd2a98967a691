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


@pytest.mark.parametrize("scripts", [True, False])
def test_everything_is_read_without_scripts_and_controls_appear_with_them(chromium, file, scripts):
    with opened(chromium, file, scripts=scripts) as browser:
        page = browser.page
        assert page.locator("#filters").is_visible() == scripts
        assert page.locator("h1").inner_text() == TITLE
        description = page.locator("#tools").get_by_text("Opens the roof of a customer.")
        assert description.is_visible()
        page.locator('#tools details[data-agent="roof"] summary').click()
        assert not description.is_visible()


def test_the_list_is_filtered_by_text_and_by_agent(chromium, file):
    def names(page):
        return page.locator("#tools li:not([hidden]) b").all_text_contents()

    with opened(chromium, file) as browser:
        page = browser.page
        assert len(names(page)) == 22
        page.fill("#filter", "PAINT roof")
        assert names(page) == ["paint_roof"]
        assert page.locator("#filter-count").text_content() == "1 of 22 shown"
        page.press("#filter", "Escape")
        page.select_option("#filter-agent", "window")
        assert len(names(page)) == 4
        page.select_option("#filter-agent", "")
        assert len(names(page)) == 22
