"""`pegboard find`, `strategies` and `agents`, as they are typed."""

import json
import re

import pytest

TWO = "'Convert 30 dollars to yen, then open an issue in the repository.'"


def test_find_prints_hits_for_people_and_everything_for_programs(board_uri, run, tmp_path):
    file = tmp_path / "requests.txt"
    file.write_text(TWO.strip("'") + "\n\nwater the plants\n", "utf-8")

    printed = run(f"find {TWO} -k 4 --explain", board=board_uri)
    first, second = run(f"find --requests {file} -k 2 --json", board=board_uri).json

    for text in ("convert_currency", "create_issue", "Strategy clauses:", "no LLM call"):
        assert text in printed.out
    assert re.search(r"document \+\d\.\d\d, ", printed.out)
    assert "Nothing fits" not in printed.out
    nothing = run("find qwxz -k 1", board=board_uri).out
    assert nothing.startswith("Nothing fits this request. The nearest tools:\n  1. ")
    assert second["hits"][0]["name"] == "water_plants"
    assert first["trace"]["strategy"] == "clauses"
    assert {step["text"] for step in first["steps"]} > {TWO.strip("'")}


@pytest.mark.parametrize("command", ["find", "search", "agents"])
def test_words_without_quotes_are_one_request(board_uri, run, command):
    quoted = run(f"{command} 'the weather forecast of a city' --json", board=board_uri).json
    words = run(f"{command} the weather forecast of a city --json", board=board_uri).json

    for result in (quoted, words):
        for part in (result, *result.get("trace", {}).get("parts", ())):
            part.pop("milliseconds", None)
        result.get("trace", {}).pop("milliseconds", None)
    assert words == quoted


def test_strategies_are_listed_without_a_board(run):
    assert "rag-tool-fusion" in run("strategies").out
    listed = run("strategies --json").json
    assert listed["dependencies"]["strategy"]["refine"] == [{"part": "dependencies"}]


def test_strategy_and_history_come_from_files(board_uri, tmp_path, run):
    strategy, history = tmp_path / "mine.json", tmp_path / "chat.json"
    strategy.write_text(json.dumps({"name": "mine", "modes": ["text"]}))
    history.write_text(json.dumps([{"role": "user", "content": "Convert dollars."}]))

    files = f"--strategy {strategy} --history {history}"
    result = run(f"find 'convert dollars' {files} --json", board=board_uri).json

    assert result["trace"]["strategy"] == "mine"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "The request is missing"),
        ("' '", "The request is missing"),
        ("x --requests none.txt", "or given twice"),
        ("--requests none.txt", "none.txt cannot be read"),
        ("--requests /dev/null", "/dev/null holds no request"),
        ("x --strategy none.json", "none.json cannot be read"),
        ("x --strategy clause", "Unknown strategy 'clause'"),
        ("x --llm-timeout 3", "Expected --llm MODEL"),
        ("x -k 0", "k is 0"),
    ],
)
def test_an_invalid_request_ends_with_2(board_uri, run, arguments, message):
    printed = run(f"find {arguments}", board=board_uri)

    assert printed.code == 2
    assert message in printed.err


def test_an_empty_answer_says_what_the_filter_could_let_through(board_uri, run):
    printed = run("find 'convert dollars' --catalog nope", board=board_uri)

    assert "No tool was found." in printed.out
    assert "Catalogs: desk, finance, kit." in printed.out


def test_agents_are_printed_with_what_brought_them(board_uri, run):
    request = "'convert an amount of dollars to another currency'"

    assert "finance  (library)" in run(f"agents {request} -k 1", board=board_uri).out
    ranked = run(f"agents {TWO} --decompose --json", board=board_uri).json["agents"]
    assert ranked[0]["why"]["rank"] == 1


def test_catalog_text_cannot_move_the_cursor(workshop, run):
    evil = workshop.tool("tool\x1b]0;owned\x07", "Does \x1b[31mthings\x1b[0m with dollars.")
    workshop.publish({"ser\x9bver": [evil]})

    for line in ("find dollars --explain", "search dollars", "agents dollars", "graph show"):
        printed = run(line, board=workshop.uri)
        assert printed.code == 0
        assert not [char for char in printed.out if not char.isprintable() and char != "\n"], line
    assert "\x9b" not in run("find dollars --json", board=workshop.uri).out
