"""`pegboard eval` on the command line."""

import json

import pytest

from pegboard.cli.main import main

LINES = [
    {"query": "open an issue in a repository", "tools": ["create_issue"]},
    {"query": "the weather forecast of a city", "tools": ["get_forecast"]},
    {
        "query": "convert money and list the rates",
        "tools": ["convert_currency", "list_rates"],
        "kind": "parallel",
    },
]


@pytest.fixture
def golden(tmp_path):
    path = tmp_path / "golden.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES), "utf-8")
    return path


def test_every_plan_is_asked_in_every_index_and_compared_with_the_first(golden, board_uri, capsys):
    strategies, indexes = (
        ["--strategy", "search", "--strategy", "clauses"],
        ["--index", "full", "--index", "fine"],
    )
    code = main(
        [
            "eval",
            str(golden),
            "--board",
            board_uri,
            *strategies,
            *indexes,
            "--by",
            "kind",
            "--worst",
            "1",
            "--json",
        ]
    )

    told = json.loads(capsys.readouterr().out)
    assert code == 0
    assert {(row["strategy"], row["index"]) for row in told["rows"]} == {
        (strategy, index) for strategy in ("search", "clauses") for index in ("full", "fine")
    }
    assert {"value", "low", "high", "n", "measure", "encoder"} <= told["rows"][0].keys()
    assert len(told["differences"]) == 3 * 6
    assert {row["kind"] for row in told["groups"]["kind"]} == {"single", "parallel"}
    assert len(told["worst"]) == 4
    assert (told["queries"], told["unknown"]) == (3, [])


def test_people_get_tables_and_progress_goes_to_stderr(golden, board_uri, capsys):
    main(
        [
            "eval",
            str(golden),
            "--board",
            board_uri,
            "--measure",
            "recall@5",
            "--against",
            "live",
            "--by",
            "catalog",
        ]
    )

    said = capsys.readouterr()
    assert "Recall@5" in said.out
    assert "against clauses in full" in said.out
    assert "finance" in said.out
    assert "asked: 6 of 6" in said.err


def test_tools_that_the_release_lacks_are_named(golden, board_uri, capsys):
    golden.write_text(json.dumps({"query": "fly", "tools": ["fly_away"]}) + "\n", "utf-8")

    assert main(["eval", str(golden), "--board", board_uri, "--quiet"]) == 0
    assert (
        "lacks 1 tools that queries need, which count as not found: fly_away"
        in capsys.readouterr().err
    )


def test_what_is_wrong_with_a_golden_file_is_told_at_once(golden, board_uri, capsys):
    golden.write_text(
        '{"query": "a", "tools": []}\nno json\n{"query": " ", "tools": ["x"], "tool": 1}\n', "utf-8"
    )

    assert main(["eval", str(golden), "--board", board_uri]) == 2
    said = capsys.readouterr().err
    assert f"{golden} has 4 problems" in said
    for place in (
        ":1: tools: expected a list",
        ":2: not JSON",
        ":3: query: expected a text",
        ":3: tool: there is no such field",
    ):
        assert place in said


def test_an_unknown_measure_plan_or_index_is_refused_before_anything_is_asked(
    golden, board_uri, capsys
):
    for options, says in (
        (["--measure", "Recal@5"], "no measure 'Recal@5'"),
        (["--strategy", "best"], "no strategy 'best'"),
        (["--index", "none"], "has no index 'none'"),
        (["--llm-api-base", "http://127.0.0.1:9"], "--llm MODEL"),
    ):
        assert main(["eval", str(golden), "--board", board_uri, *options]) in (2, 4)
        said = capsys.readouterr().err
        assert says in said
        assert "asked:" not in said
