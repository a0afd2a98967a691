"""The headline of the results is what the pages of results have, and so is what README quotes."""

import re
from pathlib import Path

import pytest

from benchmarks.documents import write_result
from benchmarks.headline import HEADLINE, Results, headline

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MARKS = re.compile(r"<!-- bench ([\w-]+) -->\n(.*?)<!-- /bench \1 -->", re.DOTALL)
FIGURE = re.compile(r"(?<![\d,])\.\d+|\d+ %")


@pytest.fixture(scope="module")
def results():
    return Results(DOCS / "results")


def percent(figures):
    return [f"{float(figure):.0%}".replace("%", " %") for figure in figures.split(" / ")]


def _improved(what, before, after):
    """`first .1 to .2, among five .3 to .4`, of two pairs of figures."""
    (first, five), (later_first, later_five) = before.split(" / "), after.split(" / ")
    return f"{what}{first} to {later_first}, among five {five} to {later_five}"


def hundredths(figure):
    return f"{float(figure):.2f}".removeprefix("0")


def test_the_headline_is_what_the_pages_of_results_have():
    blocks = dict(MARKS.findall((DOCS / "results.md").read_text("utf-8")))

    assert blocks[HEADLINE] == headline(DOCS / "results")
    assert " - " not in re.sub(r"\| --- ", "", blocks[HEADLINE])


def test_a_page_that_is_written_renews_the_headline(tmp_path):
    page = "**seal-tools, all: 2 queries, 9 tools**\n\n| strategy | Recall@5 | Recall@10 |\n"
    row = "| --- | --- | --- |\n| clauses | 0.250 [0.100, 0.400] | 1.000 [1.000, 1.000] |\n"
    (tmp_path / "results").mkdir()
    for name, file in {HEADLINE: "results.md", "seal-tools": "results/seal-tools.md"}.items():
        (tmp_path / file).write_text(
            f"before\n<!-- bench {name} -->\n<!-- /bench {name} -->\nafter"
        )

    write_result(tmp_path, "seal-tools", page + row)

    assert f"before\n<!-- bench seal-tools -->\n{page}{row}<!-- /bench seal-tools -->\nafter" == (
        tmp_path / "results" / "seal-tools.md"
    ).read_text("utf-8")
    assert "| `clauses` .250 / 1.000; one search - / -; BM25 - / - |" in (
        tmp_path / "results.md"
    ).read_text("utf-8")


@pytest.mark.parametrize(
    "page", sorted((DOCS / "results").glob("*.md")), ids=lambda page: page.stem
)
def test_a_page_has_the_marks_of_its_own_name_only(page):
    marks = [name for name, _ in MARKS.findall(page.read_text("utf-8"))]

    assert marks in ([], [page.stem]) or all(name.startswith(f"{page.stem}-") for name in marks)


def test_each_row_of_times_has_the_figures_of_its_page():
    text = (DOCS / "results.md").read_text("utf-8")
    rows = re.findall(
        r"^\| \[[^|]+\]\((results/\w+\.md)[^)]*\)([^|]*\|[^|]+)\|$", text, re.MULTILINE
    )
    times = [(page, cells) for page, cells in rows if re.search(r"\d (?:s|ms|MB|minutes)\b", cells)]

    assert len(times) == 5
    for page, cells in times:
        figures = re.findall(r"[\d,]*\.?\d+", cells.replace("million", "").replace(" a ", ""))
        measured = (DOCS / page).read_text("utf-8")
        assert [figure for figure in figures if figure not in measured] == [], page


def test_readme_quotes_the_figures_of_the_results(results):
    """A figure in the table of README without a source here fails, too."""
    section = (ROOT / "README.md").read_text("utf-8").partition("## What makes it different")[2]
    table = section.partition("\n## ")[0]
    card = (ROOT / "index/pegboard/encoders/minilm-tools-v1/CARD.md").read_text("utf-8")
    gate = (DOCS / "how-to" / "gate.md").read_text("utf-8")
    scale = (DOCS / "results" / "scale.md").read_text("utf-8")
    left_out = results.figures("ranker", "", ["mean of real catalogs"], ["left out: R@1", "R@5"])
    stock = re.search(
        r"hybrid search with a ranker fitted without that catalog \| (\S+ / \S+)", card
    )
    seal = results.figures("seal-tools", "seal-tools, all", ["clauses"], ["Recall@5"])
    linked = results.figures(
        "toollinkos", "toollinkos, all", ["dependencies-declared", "full"], ["mAP@10"]
    )
    published = {
        name: results.figures(page, f"{page}, all", [f"*{name}*"], [measure])
        for page, name, measure in (
            ("seal-tools", "Toolshed (GPT-4o, text-embedding-3-large)", "Recall@5"),
            ("toollinkos", "Graph RAG-Tool Fusion", "mAP@10"),
            ("toollinkos", "Graph RAG-Tool Fusion, reranked by GPT-4o", "mAP@10"),
        )
    }
    toolshed, linked_paper, reranked = published.values()
    none = results.table("abstention")
    accepted = {tuple(row[:2]): hundredths(row[3].split()[0]) for row in none.rows}
    without, with_examples = (
        results.figures("metatool", f"metatool, {task}", ["clauses"], ["Recall@5"])
        for task in ("single-without-examples", "single")
    )
    written_title = "Texts written once, offline"
    written = ["real, mean", "139", "default"]
    nothing, both = (
        results.figures("llm", written_title, [*written, texts], ["Recall@1", "Recall@5"])
        for texts in ("none", "both")
    )
    asked_title = "One call for each request, nothing written"
    unasked, asked = (
        results.figures(
            "llm", asked_title, ["real, mean", "373", strategy], ["Recall@1", "Recall@5"]
        )
        for strategy in ("default", "ask-as-agent")
    )
    first, among_five = percent(left_out)
    stock_first, stock_five = percent(stock[1])
    quotes = [
        _improved("the right tool first ", nothing, both),
        _improved("first ", unasked, asked),
        f"the right tool first for {first} of the requests, among five for {among_five}; with the "
        f"model it was trained from, {stock_first} and {stock_five} |",
        f"Recall@5 {seal} (Toolshed with GPT-4o: {toolshed})",
        f"mAP@10 {linked} (Graph RAG-Tool Fusion: {linked_paper}, reranked by GPT-4o {reranked})",
        "Recall@5 .009 lower, and held",
        "112 s of processor time, with nothing changed .9 s",
        f"where 95 % of answerable requests are accepted, so are "
        f"{accepted['real (8)', 'probability']} of unrelated ones",
        f"{accepted['papers (7)', 'probability']} on papers' boards; by the raw score "
        f"{accepted['real (8)', 'score']} and {accepted['papers (7)', 'score']} |",
        f"Recall@5 {without} to {with_examples} |",
    ]

    assert [quote for quote in quotes if quote not in table] == []
    assert FIGURE.findall(table) == [figure for quote in quotes for figure in FIGURE.findall(quote)]
    assert "0.009 worse" in gate
    assert "full 112 s of processor time" in scale
    assert "nothing changed .9 s" in scale
    assert "22,847 requests written for 4,220 tools" in card


def test_readme_says_what_the_reader_alone_weighs_as_it_was_measured():
    readme = (ROOT / "README.md").read_text("utf-8")
    said = readme.partition("## The reader alone")[2].partition("\n## ")[0]
    measured = (DOCS / "results" / "speed.md").read_text("utf-8")

    assert "610 MB in 35 packages" in said
    assert "610 MB of files in 35 packages" in measured
    assert "take .9 s together, later ones 8 ms, and the process then holds 228 MB" in said
    for row in ("all three, s | .9", "second `find`, ms | 8", "resident afterwards, MB | 228"):
        assert f"| {row} |" in measured
