"""The page in a real browser: from the disk, without a network, wide and narrow, light and dark."""

from pathlib import Path
from typing import Any

import pytest

from tasks.report.page import report_page
from tests.browser import WIDTHS, opened_page

pytestmark = pytest.mark.slow
TITLE = "Held, not live"


@pytest.fixture(scope="module")
def file(held_data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the held release, alone in a folder."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(report_page(held_data), "utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_opens_from_disk_and_fits_the_width_of_the_screen(chromium, file, width, scheme):
    with opened_page(chromium, width, scheme, offline=True) as browser:
        browser.page.goto(file.as_uri())
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
