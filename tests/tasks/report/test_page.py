"""The page as text: it shows the values and nothing else, and no catalog text can run."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from pegboard.store.releases import ReleaseStore
from tasks.report.charts import charts
from tasks.report.data import report_data
from tasks.report.page import format_number, number, report_page, resolve


@pytest.fixture(scope="module")
def text(held_data):
    return report_page(held_data)


class Numbers(HTMLParser):
    """The numbers of a page with their places, its tags, and its text."""

    def __init__(self, html):
        super().__init__()
        self.found, self.words, self.tags = [], [], []
        self._at, self._script = None, False
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        self._script = tag == "script"
        if "data-json" in attributes:
            self._at = (attributes["data-json"], attributes["data-style"])

    def handle_data(self, data):
        if not self._script:
            self.words.append(data)
        if self._at:
            self.found.append((*self._at, data))

    def handle_endtag(self, tag):
        self._at, self._script = None, False


def test_equal_values_give_an_equal_page(held_data, text):
    assert report_page(json.loads(json.dumps(held_data))) == text


def test_every_number_is_the_one_of_its_place_in_the_json(held_data, text):
    found = Numbers(text).found

    assert len(found) > 150
    for place, style, shown in found:
        value = resolve(held_data, place)
        assert shown == ("–" if value is None else format_number(value, style)), place
    numbers = [
        float(shown.replace(",", ""))
        for _, style, shown in found
        if style == "share" and shown != "–"
    ]
    assert max(numbers) <= 1


def test_all_places_that_are_shown_exist(held_data, text):
    missing = {place for place, _, shown in Numbers(text).found if shown == "–"}

    assert missing <= {"/gate/chosen/threshold/probability"}


def test_catalog_text_is_text(held_data, text):
    parsed = Numbers(text)

    assert not [tag for tag, _ in parsed.tags if tag in ("img", "important")]
    assert not [one for _, attributes in parsed.tags for one in attributes if one.startswith("on")]
    shown = "".join(parsed.words)
    assert "<img src=x onerror=document.title='gotcha'>" in shown
    assert "</script><script>document.title='gotcha'</script>" in shown


def test_the_values_within_the_page_cannot_end_a_script(held_data, text):
    inside = re.search(
        r'<script type="application/json" id="values">(.*?)</script>', text, re.DOTALL
    )[1]

    assert not re.search("[<>&\u2028\u2029]", inside)
    assert json.loads(inside)["map"] == held_data["map"]


def test_only_the_two_scripts_and_the_style_of_the_page_may_run_and_nothing_may_be_loaded(text):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1].replace(
        "&#39;", "'"
    )
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    digests = [f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in scripts]

    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert len(scripts) == 2
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == " ".join(digests)
    assert rules["style-src"] == f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'"
    assert "unsafe" not in policy
    assert "http" not in policy


def test_nothing_is_referred_to_but_the_json_beside_the_page(board, text):
    tags = Numbers(text).tags
    targets = [
        attributes[name]
        for _, attributes in tags
        for name in ("src", "href", "action")
        if name in attributes
    ]

    assert [one for one in targets if not one.startswith("#")] == [f"{board.held.id}.json"]
    places = {attributes["id"] for _, attributes in tags if "id" in attributes}
    assert {one[1:] for one in targets if one.startswith("#")} <= places


def test_charts_are_there_where_there_is_something_to_show(held_data, passed_data):
    names = ["chart-curve", "chart-history", "chart-map", "chart-measures"]
    assert sorted(charts(held_data)) == names
    assert "chart-measures" in charts(passed_data)
    empty = {"curve": [], "map": {"missing": "x"}, "history": {"total": 0, "shown": []}}
    measures = {**held_data["measures"], "rows": []}
    assert charts({**held_data, **empty, "measures": measures}) == {}


def test_a_list_that_is_cut_says_so(held_data):
    changes = {**held_data["changes"], "added": {**held_data["changes"]["added"], "total": 31_000}}
    collisions = {**held_data["collisions"], "total": 12_345}
    shown = {**held_data["map"], "of": 50_000}

    cut = report_page(
        {**held_data, "changes": changes, "collisions": collisions, "map": shown}, library=""
    )

    assert "The first 2 of 31,000." in cut
    assert re.search(r"The closest 1 of <span[^>]*>12,345</span>\.", cut)
    assert re.search(
        r">22</span> of <span[^>]*>50,000</span> tools, chosen evenly over the agents\.", cut
    )


def test_a_part_that_is_missing_says_why(held_data):
    parts = ("gate", "changes", "map", "collisions", "llm", "sources", "flagged")
    lost = {part: {"missing": f"no {part} because <it> is gone"} for part in parts}

    poor = report_page(
        {**held_data, **lost, "rejected": {"missing": "no rows"}, "run": None}, library=""
    )

    for part in parts:
        assert f"no {part} because &lt;it&gt; is gone" in poor
    assert "no rows" in poor
    assert "known only to the report that a build writes" in poor


def test_a_page_without_a_gate_or_a_run_can_be_made(board_uri):
    without = report_page(
        report_data(board_uri, ReleaseStore(board_uri).channel().release), library=""
    )

    assert "Nothing was measured before it was published" in without
    assert 'id="measures"' not in without


def test_a_number_names_its_place():
    assert number({"a": [{"b/c": 0.25}]}, "/a/0/b~1c", "share") == (
        '<span class="n" data-json="/a/0/b~1c" data-style="share">0.250</span>'
    )
    assert "–" in number({}, "/nowhere/1/x")
    assert resolve({"a": [1]}, "/a/7") is None
