"""The page in a real browser: wide and narrow, light and dark, by keyboard, with hostile texts."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pegboard.evaluation.golden import read_queries
from pegboard.serve.settings import GatewaySettings, ServeSettings
from tests.browser import WIDTHS, Opened, opened_page

pytestmark = pytest.mark.slow
HOSTILE = "<img src=x onerror=document.title='gotcha'>"
SCHEMA = {
    "type": "object",
    "required": ["city"],
    "properties": {
        "city": {"type": "string", "description": HOSTILE},
        "a_very_long_name_of_an_argument_that_is_wider_than_a_phone_is": {"enum": ["x" * 300]},
        "days": {"$ref": "#/$defs/Days"},
        "again": {"$ref": "#"},
    },
    "$defs": {"Days": {"type": "object", "properties": {"first": {"type": "integer"}}}},
}
TOOLS = {
    "weather": [
        {"name": "get_forecast", "description": "The weather forecast of a city.",
         "inputSchema": SCHEMA},
        {"name": "get_tides", "description": "High and low tide at a harbour."},
    ],
    "desk": [
        {"name": "book_room", "description": f"Books a meeting room. {HOSTILE}"},
        {"name": HOSTILE, "description": f"</script><b>{HOSTILE}</b>" + " long" * 200},
        {"name": "list_rooms", "description": "Lists the meeting rooms that are free."},
    ],
}  # fmt: skip
VIEWS = {
    "start": "#/ask",
    "asked": "#/ask?q=book+a+meeting+room",
    "compare": "#/compare?q=book+a+meeting+room&b_strategy=search&k=5",
    "browse": "#/browse",
    "tool": "#/browse?tool=kit/weather/get_forecast",
    "servers": "#/servers",
    "missing": "#/browse?tool=kit/weather/none",
}


@pytest.fixture(scope="module")
def page_of(served: Any) -> Any:
    """A function: a gateway on loopback; gives the address of its page."""

    @contextmanager
    def serving(uri: str, catalogs: Any = None, **serve: Any) -> Generator[str]:
        serve_settings = ServeSettings.model_validate(serve)
        with served(uri, GatewaySettings(serve=serve_settings, catalogs=catalogs or {})) as (
            url,
            _,
        ):
            yield url.removesuffix("mcp")

    return serving


@pytest.fixture(scope="module")
def board(workshop_type: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    workshop = workshop_type(tmp_path_factory.mktemp("page"))
    workshop.publish(TOOLS)
    return workshop.uri


@pytest.fixture(scope="module")
def url(board: str, page_of: Any) -> Iterator[str]:
    with page_of(board, golden=str(Path(board).with_name("golden.jsonl"))) as address:
        yield address


class Views:
    """An open page of the gateway."""

    def __init__(self, opened: Opened, url: str) -> None:
        self.page, self.console, self.requests = opened.page, opened.console, opened.requests
        self._url = url

    def go(self, fragment: str) -> None:
        """Show a view, and wait until it is there."""
        self.page.goto("about:blank")
        self.page.goto(self._url + fragment)
        self.page.wait_for_selector("main:not([aria-busy]):not(:empty)")


@contextmanager
def opened(chromium: Any, url: str, width: str = "wide", scheme: str = "light") -> Generator[Views]:
    with opened_page(chromium, width, scheme) as result:
        yield Views(result, url)


def hits_of(page):
    return page.locator(".hit .name b").all_text_contents()


@pytest.mark.parametrize(("width", "scheme"), [("wide", "light"), ("phone", "dark")])
def test_every_page_view_fits_the_screen_and_contacts_only_the_gateway(
    chromium, url, width, scheme
):
    with opened(chromium, url, width, scheme) as browser:
        for name, fragment in VIEWS.items():
            browser.go(fragment)
            browser.page.evaluate(
                "document.querySelectorAll('[aria-expanded=false], summary')"
                ".forEach((closed) => closed.click())"
            )

            page_width = browser.page.evaluate("document.documentElement.scrollWidth")
            assert page_width <= WIDTHS[width][0], name
            assert [line for line in browser.console if "404" not in line] == []
            unnamed = browser.page.evaluate(
                "[...document.querySelectorAll('input, select, textarea, button, a')].filter(one =>"
                "!(one.labels?.length || one.ariaLabel || one.textContent.trim()))"
                ".map(one => one.outerHTML)"
            )
            assert unnamed == [], name
        assert {address.startswith(url) for address in browser.requests} == {True}


def test_a_request_is_sent_and_its_results_are_read_by_keyboard(chromium, url):
    with opened(chromium, url) as browser:
        page = browser.page
        browser.go("#/browse")
        page.locator("nav a", has_text="Ask").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("textarea:focus")
        page.keyboard.type("book a meeting room")
        page.keyboard.press("Enter")
        page.wait_for_selector(".hit")

        assert hits_of(page)[0] == "book_room"
        assert "tools in" in page.locator("#says").text_content()
        while page.evaluate("document.activeElement.className") != "name":
            page.keyboard.press("Tab")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        assert page.locator(".hit .why").is_visible()
        assert page.locator(".features li").count() > 2
        page.keyboard.press("Escape")
        assert not page.locator(".hit .why").is_visible()
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement.id") == "q"


def test_the_address_describes_the_page_view_and_the_back_button_returns(chromium, url):
    with opened(chromium, url) as browser, opened(chromium, url) as other:
        page = browser.page
        browser.go("#/ask?q=book+a+meeting+room")
        page.select_option("select[name=k]", "3")
        page.wait_for_selector(".hits:not(:has(> :nth-child(4)))")
        page.locator(".hit .name").first.click()
        page.locator(".panel a").first.click()
        page.wait_for_selector("article h1")
        page.go_back()
        page.wait_for_selector(".hit")

        assert len(hits_of(page)) == 3
        other.page.goto(page.url)
        other.page.wait_for_selector(".hit")
        assert hits_of(other.page) == hits_of(page)
        assert not any("meeting" in address for address in other.requests)


def test_two_strategies_are_compared_side_by_side(chromium, url):
    with opened(chromium, url) as browser:
        page = browser.page
        browser.go("#/compare?q=list+the+free+meeting+rooms+and+the+weather")
        page.select_option("select[name=b_strategy]", "search")
        page.wait_for_selector(".column.b .ranks li")

        marks = page.locator(".column.b .move").count()
        assert marks == page.locator(".column.b .ranks li").count() > 0
        assert page.locator(".column.b .move.down").count() == page.locator(".lines .down").count()
        assert "b_strategy=search" in page.url


def test_tools_are_filtered_and_opened_with_their_arguments(chromium, url):
    with opened(chromium, url, "phone") as browser:
        page = browser.page
        browser.go("#/browse")
        page.fill("#q", "weather forecast")
        page.wait_for_selector(".tools li:only-child")
        page.locator(".tools a").click()
        page.wait_for_selector("article h1")

        assert page.locator("article h1").text_content() == "get_forecast"
        names = page.locator(".arguments .name").all_text_contents()
        assert names[0] == "city"
        assert names.count("city") == 1  # although the schema is in itself
        assert {*SCHEMA["properties"], "first"} <= set(names)
        assert page.evaluate("document.activeElement.tagName") == "H1"


def test_hostile_texts_are_shown_literally_and_are_not_executed(chromium, url):
    with opened(chromium, url) as browser:
        page = browser.page
        for fragment in ("#/browse", f"#/ask?q={HOSTILE}", VIEWS["tool"]):
            browser.go(fragment)
            assert page.locator("img, main script, main b b").count() == 0
            assert HOSTILE in page.locator("main").inner_text()
            assert page.title().endswith("· Pegboard")
        assert not any(address.endswith("/x") for address in browser.requests)


def test_right_tools_are_saved_as_a_golden_query(chromium, board, url):
    with opened(chromium, url, "phone") as browser:
        page = browser.page
        browser.go("#/ask?q=where+can+ten+people+meet")
        page.locator(".hit", has_text="list_rooms").locator(".right input").check()
        page.locator(".save button", has_text="Save").click()
        page.wait_for_selector(".toast")

        assert "Saved" in page.locator("#says").text_content()
        assert page.locator(".save").count() == 0
        assert page.locator(".right input:checked").count() == 0
    [query] = read_queries(Path(board).with_name("golden.jsonl"))
    assert (query.query, query.tools) == ("where can ten people meet", ("kit/desk/list_rooms",))


def test_tools_are_called_from_the_page_and_destructive_ones_only_with_consent(
    chromium, desk_uri, desk, page_of
):
    with page_of(desk_uri, desk) as url, opened(chromium, url, "phone") as browser:
        page = browser.page
        browser.go("#/browse?tool=kit/desk/burn_archive")
        for field in page.locator(".try textarea").all():
            field.fill("all of it")
        page.locator(".try button").click()
        assert page.locator(".answer > *").count() == 0
        page.locator(".try .agree input").check()
        page.locator(".try button").click()
        page.wait_for_selector(".answer pre")

        assert page.locator(".answer pre").first.inner_text() == "Burnt."
        browser.go("#/servers")
        assert "kit/desk" in page.locator("main").inner_text()


def test_the_page_asks_for_a_token_and_shows_what_its_client_may_see(
    chromium, board, page_of, tmp_path, monkeypatch
):
    monkeypatch.setenv("DESK_TOKEN", "let-the-desk-in-7731")
    desk = {"token": "${DESK_TOKEN}", "allow": [{"agent": "kit/desk"}]}
    serve = {"golden": str(tmp_path / "golden.jsonl"), "clients": {"desk": desk}}
    with page_of(board, **serve) as url, opened(chromium, url) as browser:
        page = browser.page
        browser.go("#/browse")
        page.fill("#token", "wrong")
        page.keyboard.press("Enter")
        page.get_by_text("not known").wait_for()
        page.fill("#token", "let-the-desk-in-7731")
        page.keyboard.press("Enter")
        page.wait_for_selector(".tools li")

        assert page.locator(".owners a span:first-child").all_text_contents() == [
            "All agents",
            "desk",
        ]
        assert "7731" not in page.url
        page.goto(f"{url}#/ask?q=book+a+meeting+room")
        page.wait_for_selector(".hit")
        assert page.locator(".right input").count() == 0  # for operators
