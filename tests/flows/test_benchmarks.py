"""`python -m benchmarks`: two small benchmarks through the pipeline, kept boards, and errors."""

import json

import pytest

ULTRATOOL = {
    "tools.json": [
        {
            "name": "oven_heat",
            "description": "Heats the oven.",
            "arguments": {"type": "object"},
            "results": {},
        },
        {
            "name": "dough_knead",
            "description": "Kneads dough.",
            "arguments": {"type": "object"},
            "results": {},
        },
        {
            "name": "oven_heat",
            "description": "Another of that name.",
            "arguments": {"type": "object"},
            "results": {},
        },
    ],
    "instances.jsonl": [
        {
            "question": "Heat the oven.",
            "plan": [{"step": "1. Heat the oven", "tool": "oven_heat(degrees=220)"}],
        },
        {
            "question": "Knead my dough.",
            "plan": [{"step": "1. Knead the dough", "tool": "dough_knead()"}],
        },
        {"question": "Think.", "plan": [{"step": "1. Think", "tool": "null"}]},
    ],
}
METATOOL = {
    "big_tool_des.json": {
        "PaintTool": "Paints walls.",
        "SawTool": "Saws boards.",
        "ClayTool": "Makes pots of clay.",
    },
    "multi_tool_queries.jsonl": [
        {"query": "Saw a board and paint the wall.", "tool": ["SawTool", "PaintTool"]}
    ],
}
DOCUMENT = (
    "# Results\n<!-- bench metatool -->\n<!-- /bench metatool -->\n<!-- bench ultratool "
    "-->\n<!-- /bench ultratool -->\n"
)


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    for name, files in {"ultratool": ULTRATOOL, "MetaTool": METATOOL}.items():
        (folder / name).mkdir(parents=True)
        for file, content in files.items():
            lines = file.endswith("l")
            text = "\n".join(json.dumps(row) for row in content) if lines else json.dumps(content)
            (folder / name / file).write_text(text, "utf-8")
    return folder


def test_two_benchmarks_are_built_measured_and_written_and_their_boards_found_again(
    command, data, tmp_path
):
    document, out = tmp_path / "results.md", tmp_path / "out.json"
    document.write_text(DOCUMENT, "utf-8")
    boards = tmp_path / "kept"

    code, printed, err = command(
        "bench", "all", "--data", data, "--board", boards, "--json", out, "--write", document
    )
    assert code == 0, err
    assert "ultratool, all: 2 queries, 2 tools" in printed
    assert "python -m benchmarks: seal-tools is skipped: " in err
    assert "ask ultratool: " in err
    written = json.loads(out.read_text("utf-8"))
    assert [one["benchmark"] for one in written["results"]] == ["metatool", "ultratool"]
    assert written["missing"] == [
        "seal-tools",
        "toollinkos",
        "toolsandbox",
        "livemcpbench",
        "toolret",
    ]
    ultratool = written["results"][1]
    row = next(
        row
        for row in ultratool["rows"]
        if (row["strategy"], row["measure"]) == ("hybrid", "Recall@1")
    )
    assert row == {
        "task": "all",
        "strategy": "hybrid",
        "index": "full",
        "encoder": "local/all-MiniLM-L6-v2",
        "measure": "Recall@1",
        "value": 1.0,
        "low": 1.0,
        "high": 1.0,
        "n": 2,
    }
    assert (ultratool["tools"], ultratool["queries"]) == (2, 2)
    assert set(ultratool["machine"]) == {"cpu", "cpus", "python", "platform", "memory_gib"}
    assert set(ultratool["seconds"]) == {"build", "ask", "measure", "total", "strategies"}
    assert any("instances.jsonl: 1 of 3 rows left out" in one for one in ultratool["problems"])
    assert any("another tool with the id" in one for one in ultratool["problems"])
    assert ultratool["boards"]["tools"]["outcome"] == "published"
    assert str(tmp_path) not in out.read_text("utf-8")
    assert "**metatool, multi: 1 queries, 3 tools**" in document.read_text("utf-8")

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


def test_errors_are_reported_before_anything_is_built(command, data, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    for arguments, expected in (
        (["ultratool", "--data", empty], f"{empty} is no folder of ultratool: it lacks its tools"),
        (["all", "--data", empty], f"{empty} holds no folder of a benchmark."),
        (["ultratool", "--data", data, "--strategy", "hybird"], "there is no strategy 'hybird'"),
        (
            ["ultratool", "--data", data, "--measures", "Recall@0", "Foo"],
            "There is no measure 'Foo'",
        ),
        (
            ["ultratool", "--data", data, "--limit", "0", "--llm-api-base", "x"],
            "--limit is 0, expected 1 or more; --llm-api",
        ),
        (
            ["ultratool", "--data", data, "--write", tmp_path / "gone.md"],
            "gone.md cannot be written into",
        ),
        (
            ["ultratool", "--data", data, "--json", tmp_path / "no" / "out.json"],
            "its folder does not exist",
        ),
        (["nothing", "--data", data], "invalid choice: 'nothing'"),
    ):
        code, _, err = command("bench", *arguments)
        assert (code, expected in err) == (2, True), err


def test_all_broken_folders_are_reported_at_once(command, data):
    (data / "ultratool" / "tools.json").unlink()
    (data / "toolret").mkdir()

    code, _, err = command("bench", "all", "--data", data)

    assert code == 2
    assert "is no folder of ultratool" in err
    assert "is no folder of toolret" in err


def test_help_documents_the_names_in_the_rows(command):
    code, out, _ = command("bench", "--help")

    assert code == 0
    for name in (
        "toolsandbox",
        "step-agent-all",
        "dependencies-inferred",
        "both-vector-steps",
        "rag-tool-fusion",
        "p_holm",
    ):
        assert name in out
