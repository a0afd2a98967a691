"""The page as text: it shows the values and nothing else, no catalog text can run, and its size is
bounded.
"""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from pegboard.store.releases import ReleaseStore
from tasks.report.data import report_data
from tasks.report.page import report_page


@pytest.fixture(scope="module")
def text(held_data):
    return report_page(held_data)


class Parsed(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, html):
        super().__init__()
        self.words = []
        self.tags = []
        self._script = False
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        self._script = tag in ("script", "style")

    def handle_data(self, data):
        if not self._script:
            self.words.append(data)

    def handle_endtag(self, tag):
        self._script = False


def test_catalog_text_is_escaped_and_names_are_those_of_the_catalog(text):
    parsed = Parsed(text)

    tags = {tag for tag, _ in parsed.tags}
    assert not tags & {"img", "important", "iframe", "object", "script"}
    attributes = {name for _, attributes in parsed.tags for name in attributes}
    assert not {name for name in attributes if name.startswith("on") or name == "style"}
    shown = "".join(parsed.words)
    assert "<img src=x onerror=document.title='gotcha'>" in shown
    assert "</script><script>document.title='gotcha'</script>" in shown
    assert "%3Cimg" not in shown  # ids are percent-encoded, names are not


def test_only_the_style_of_the_page_applies_and_nothing_is_loaded(board, text):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.replace("&#39;", "'").split(";"))
    [style] = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    tags = Parsed(text).tags
    names = ("src", "href", "action", "xlink:href")
    targets = [own[name] for _, own in tags for name in names if name in own]

    assert rules == {
        "default-src": "'none'",
        "style-src": f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert {target for target in targets if not target.startswith("#")} == {f"{board.held.id}.json"}
    ids = {own["id"] for _, own in tags if "id" in own}
    assert {target[1:] for target in targets if target.startswith("#")} <= ids
    assert "url(" not in style


def test_verdict_findings_and_changes_are_at_the_top(held_data, text):
    shown = re.sub(r"<[^>]*>", "", text[text.index("<body>") : text.index('id="measures"')])

    assert shown.index("Held, not live") < shown.index("1 of 2 rules failed")
    lost = held_data["queries"]["lost"]["total"]
    twins = held_data["twins"]["total"]
    for section in (f"Queries {lost}", "Safety 1", f"Twins {twins}", "Sources 2"):
        assert section in shown
    assert (
        f"{held_data['counts']['tools']} tools of {held_data['counts']['agents']} agents" in shown
    )
    chosen = held_data["gate"]["chosen"]
    assert f"{chosen['value']:.3f}" in text
    assert "<del>Cleans the door of a customer.</del> <ins>Endpoint 7.</ins>" in text


def test_a_missing_or_empty_part_is_one_line_or_absent(held_data, board_uri):
    parts = ("changes", "twins", "flagged")
    gone = {part: {"missing": f"no {part} because <it> is gone"} for part in parts}
    first = ReleaseStore(board_uri).channel().release

    poor = report_page({**held_data, **gone, "run": None})
    new = report_page(report_data(board_uri, first))

    for part in parts:
        assert f"no {part} because &lt;it&gt; is gone" in poor
    for section in ("changes", "queries", "safety", "collisions"):
        assert f'id="{section}"' not in new
    assert new.count("Not measured") == 1


def test_findings_of_the_release_and_captured_queries_are_shown(held_data):
    fence = "kit/fence/sell_fence"
    door = "kit/door/sell_door"
    examples = ["sell <b>it</b>", "open it"]
    stuffing = {"flag": "stuffing", "nearer": 0.61, "examples": examples}
    copy = {"flag": "near-copy", "of": door, "similarity": 0.97}
    captured = {"query": "sell my door", "tool": fence, "before": door, "flags": ["stuffing"]}
    suspicious = {"total": 1, "shown": [{"id": fence, "findings": [stuffing, copy]}]}
    shown = {"total": 1, "of": 20, "most": 1, "shown": [captured]}
    queries = {**held_data["queries"], "captured": shown}

    page = report_page({**held_data, "suspicious": suspicious, "queries": queries})

    words = " ".join("".join(Parsed(page).words).split())
    assert (
        "0.610 of other tools are nearer to its examples than it is, such as “sell <b>it</b>”, "
        "“open it”"
    ) in words
    assert "repeats sell_door door, similarity 0.970" in words
    assert "Captured queries 1 of 20, 1 allowed" in words
