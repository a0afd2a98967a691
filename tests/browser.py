"""Chromium for the tests of pages.

Needs Chromium or Chrome: on the path, or where PEGBOARD_CHROMIUM says.
"""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTHS = {"wide": (1280, 900), "phone": (360, 780)}
"""Width and height of the screens that pages have to fit."""


@dataclass
class Opened:
    """An open page, the lines of its console, and the addresses that it requested."""

    page: Any
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def chromium() -> Generator[Any]:
    """A browser; skips the test without one."""
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


@contextmanager
def opened_page(chromium: Any, width: str, scheme: str, **options: Any) -> Generator[Opened]:
    """An empty page on one of the screens, in a context of its own."""
    context = chromium.new_context(
        viewport=dict(zip(("width", "height"), WIDTHS[width], strict=True)),
        color_scheme=scheme,
        has_touch=width == "phone",
        **options,
    )
    context.set_default_timeout(240_000)
    opened = Opened(context.new_page())
    opened.page.on("console", lambda message: opened.console.append(message.text))
    opened.page.on("pageerror", lambda error: opened.console.append(str(error)))
    opened.page.on("request", lambda request: opened.requests.append(request.url))
    try:
        yield opened
    finally:
        context.close()
