"""`pegboard find`, `strategies` and `agents`, as they are typed."""

import json

import pytest

from pegboard.cli.main import main

TWO = "Convert 30 dollars to yen, then open an issue in the repository."


def test_find_prints_hits_for_people_and_all_for_programs(board_uri, capsys):
    assert main(["find", TWO, "--board", board_uri, "-k", "4", "--explain"]) == 0
    said = capsys.readouterr().out
    assert "convert_currency" in said
    assert "create_issue" in said
    assert "Strategy clauses:" in said
    assert "no LLM call" in said

    assert main(["find", TWO, "water the plants", "--board", board_uri, "-k", "2", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert next(hit["name"] for hit in second["hits"]) == "water_plants"
    assert first["trace"]["strategy"] == "clauses"
    assert {step["text"] for step in first["steps"]} > {TWO}


def test_plans_are_listed_without_a_board(capsys, monkeypatch):
    monkeypatch.delenv("PEGBOARD_BOARD", raising=False)
    assert main(["strategies"]) == 0
    assert "rag-tool-fusion" in capsys.readouterr().out
    assert main(["strategies", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["dependencies"]["strategy"]["refine"] == [{"part": "dependencies"}]


def test_a_plan_comes_from_a_file_and_a_history_too(board_uri, tmp_path, capsys):
    strategy, history = tmp_path / "mine.json", tmp_path / "chat.json"
    strategy.write_text(json.dumps({"name": "mine", "modes": ["text"]}))
    history.write_text(json.dumps([{"role": "user", "content": "Convert dollars."}]))
    command = [
        "find",
        "convert dollars",
        "--board",
        board_uri,
        "--strategy",
        str(strategy),
        "--history",
        str(history),
        "--json",
    ]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["trace"]["strategy"] == "mine"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "The request is missing."),
        ([" "], "The request is missing."),
        (["x", "--strategy", "none.json"], "none.json cannot be read as JSON"),
        (["x", "--strategy", "clause"], "Unknown strategy 'clause'"),
        (["x", "--llm-timeout", "3"], "Expected --llm MODEL"),
        (["x", "-k", "0"], "k is 0"),
    ],
)
def test_what_cannot_be_asked_is_said_with_exit_code_2(board_uri, capsys, arguments, said):
    assert main(["find", *arguments, "--board", board_uri]) == 2
    assert said in capsys.readouterr().err


def test_an_empty_answer_says_what_the_filter_could_let_through(board_uri, capsys):
    assert main(["find", "convert dollars", "--board", board_uri, "--catalog", "nope"]) == 0
    said = capsys.readouterr().out
    assert "No tool was found." in said
    assert "Catalogs: desk, finance, kit." in said


def test_agents_are_printed_with_what_brought_them(board_uri, capsys):
    assert (
        main(
            [
                "agents",
                "convert an amount of dollars to another currency",
                "--board",
                board_uri,
                "-k",
                "1",
            ]
        )
        == 0
    )
    assert "finance  (library)" in capsys.readouterr().out
    assert main(["agents", TWO, "--board", board_uri, "--decompose", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["agents"]
    assert found[0]["why"]["rank"] == 1


def test_catalog_text_cannot_move_the_cursor(workshop, capsys):
    evil = "tool\x1b]0;owned\x07"
    workshop.publish(
        {"ser\x9bver": [workshop.tool(evil, "Does \x1b[31mthings\x1b[0m with dollars.")]}
    )
    for command in (
        ["find", "dollars", "--explain"],
        ["search", "dollars"],
        ["agents", "dollars"],
        ["graph", "show"],
    ):
        place = 2 if command[0] == "graph" else 1
        assert main([*command[:place], *command[place:], "--board", workshop.uri]) == 0
        said = capsys.readouterr().out
        assert not [char for char in said if not char.isprintable() and char != "\n"], command
    assert main(["find", "dollars", "--board", workshop.uri, "--json"]) == 0
    assert "\x9b" not in capsys.readouterr().out
