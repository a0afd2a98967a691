"""`python -m benchmarks`: two small benchmarks through the pipeline, kept boards, and errors."""

import json
import shutil
from pathlib import Path

import pytest

SPECIMENS = Path(__file__).parents[1] / "benchmarks" / "specimens"


def make_pages(docs, *names):
    """Pages of results without a figure, and a page for the headline."""
    (docs / "results").mkdir(parents=True)
    pages = {name: docs / "results" / f"{name}.md" for name in names}
    for name, page in {"headline": docs / "results.md", **pages}.items():
        page.write_text(f"# Title\n<!-- bench {name} -->\n<!-- /bench {name} -->\n", "utf-8")


@pytest.fixture
def data(tmp_path):
    """Two benchmarks; of MetaTool one task only, and in UltraTool a name twice."""
    folder = tmp_path / "data"
    single = shutil.ignore_patterns("plugin_des.json", "single_tool*", "example*")
    shutil.copytree(SPECIMENS / "metatool", folder / "MetaTool", ignore=single)
    shutil.copytree(SPECIMENS / "ultratool", folder / "ultratool")
    tools = folder / "ultratool" / "tools.json"
    records = json.loads(tools.read_text("utf-8"))
    tools.write_text(json.dumps([*records, {**records[0], "description": "Another."}]), "utf-8")
    return folder


def test_two_benchmarks_are_built_measured_and_written_and_their_boards_found_again(
    command, data, tmp_path
):
    docs = tmp_path / "docs"
    out = tmp_path / "out.json"
    make_pages(docs, "metatool", "ultratool")
    boards = tmp_path / "kept"

    code, printed, err = command(
        "bench", "all", "--data", data, "--board", boards, "--json", out, "--write", docs
    )
    assert code == 0, err
    assert "ultratool, all: 1 queries, 2 tools" in printed
    assert "python -m benchmarks: seal-tools is skipped: " in err
    assert "ask ultratool: " in err
    written = json.loads(out.read_text("utf-8"))
    assert [one["benchmark"] for one in written["results"]] == ["metatool", "ultratool"]
    assert written["missing"][0] == "seal-tools"
    ultratool = written["results"][1]
    assert {
        "task": "all",
        "strategy": "hybrid",
        "index": "full",
        "encoder": "local/minilm-tools-v1",
        "measure": "Recall@1",
        "value": 0.5,
        "low": 0.5,
        "high": 0.5,
        "n": 1,
    } in ultratool["rows"]
    assert (ultratool["tools"], ultratool["queries"]) == (2, 1)
    assert set(ultratool["machine"]) == {"cpu", "cpus", "python", "platform", "memory_gib"}
    assert set(ultratool["seconds"]) == {"build", "ask", "measure", "total", "strategies"}
    assert any("instances.jsonl: 2 of 3 rows left out" in one for one in ultratool["problems"])
    assert any("another tool with the id" in one for one in ultratool["problems"])
    assert ultratool["boards"]["tools"]["outcome"] == "published"
    assert str(tmp_path) not in out.read_text("utf-8")
    metatool = (docs / "results" / "metatool.md").read_text("utf-8")
    assert metatool.startswith("# Title\n<!-- bench metatool -->\nToolshed and Re-Invoke write ")
    assert "**metatool, multi: 2 queries, 2 tools**" in metatool
    assert "ultratool" not in metatool
    headline = (docs / "results.md").read_text("utf-8")
    assert "Recall@5 of fewer tools: one search 1.000, `clauses` 1.000, " in headline
    assert "| `clauses` - / -; one search - / -; BM25 - / - |" in headline

    more = "--json --quiet --strategy BM25"
    code, printed, err = command(
        "bench", "ultratool", "--data", data, "--board", boards, *more.split()
    )
    again = json.loads(printed)
    assert (code, err) == (0, "")
    assert (again["boards"]["tools"]["outcome"], again["boards"]["tools"]["encoded"]) == (
        "unchanged",
        0,
    )
    assert {row["strategy"] for row in again["rows"]} == {"BM25"}
    assert again["differences"] == []


def test_nothing_is_measured_if_a_page_to_write_into_is_missing(command, data, tmp_path):
    docs = tmp_path / "docs"
    make_pages(docs, "metatool")

    code, printed, err = command("bench", "all", "--data", data, "--write", docs)

    assert (code, printed) == (2, "")
    assert f"{docs / 'results' / 'ultratool.md'} cannot be written into: No such file" in err
