"""Golden queries, looked over: by themselves, and on a board."""

import json

import pytest

from pegboard.cli.main import main
from pegboard.encoders import encode_queries
from pegboard.evaluation.golden import ToolNames
from tasks.enrichment.near_duplicates import NearDuplicates
from tasks.golden.checking import OnBoard, check_golden
from tasks.golden.leaks import Indexed, find_leaks
from tasks.near_names import nearest_names

NAMES = ToolNames(
    (f"kit/{agent}/{name}", name, agent)
    for agent, names in {
        "git": ("create_issue", "list_commits", "search"),
        "web": ("search", "get_forecast"),
        "desk": ("book_room", "call_taxi"),
    }.items()
    for name in names
)
INDEXED = Indexed(
    documents=(
        (
            "kit/desk/book_room",
            "book room. Books a meeting room.\nWhere can ten people meet on Monday morning?\na "
            "room",
        ),
        (
            "kit/desk/call_taxi",
            "call taxi. Calls a taxi.\nI need a ride to the airport by nine, please",
        ),
    ),
    requests=(
        ("kit/desk/book_room", "Where can ten people meet on Monday morning?"),
        ("kit/desk/book_room", "a room"),
        ("kit/desk/call_taxi", "I need a ride to the airport by nine, please"),
    ),
)
BOARD = OnBoard("r1", NAMES, INDEXED)
WORDS = (
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"),
    *("lambda", "mu", "nu", "xi", "omicron", "pi", "rho", "sigma", "tau", "upsilon"),
)


def filler(count=30):
    """Queries that differ from each other, of the same tool."""
    return [
        {
            "query": f"please {WORDS[at % 20]} the {WORDS[(at * 7 + at // 20) % 20]} {at}",
            "tools": ["call_taxi"],
        }
        for at in range(count)
    ]


@pytest.fixture
def check(tmp_path):
    """A function that checks queries, thirty harmless ones among them: what was found, as (what,
    what it says).
    """

    def run(*queries, board=None, fill=True, **how):
        file = tmp_path / "golden.jsonl"
        lines = [*(filler() if fill else []), *queries]
        file.write_text(
            "\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines), "utf-8"
        )
        return check_golden(file, board, **how)

    return run


def found(checked, level=None):
    return [one.kind for one in checked.findings if level in (None, one.level)]


def test_a_file_that_is_as_it_should_be_has_no_findings(check):
    for board in (None, BOARD):
        checked = check(board=board)
        assert (checked.findings, checked.usable, checked.failed(strict=True)) == ((), 30, False)


def test_lines_that_are_no_queries_have_to_be_mended(check):
    checked = check("{", {"query": "q"}, {"query": " ", "tools": ["a"]})

    assert found(checked) == ["format"] * 3
    assert "golden.jsonl:31: not JSON" in checked.findings[0].message
    assert (len(checked.queries), checked.usable, checked.failed()) == (30, 30, True)


def test_fewer_than_thirty_say_nothing(check):
    checked = check(*filler(12), fill=False)

    assert found(checked, "error") == ["few"]
    assert checked.findings[0].message.startswith("12 queries are usable; expected 30 or more")


def test_the_same_request_with_other_tools_is_a_contradiction(check):
    checked = check(
        {"query": "Where is room 5?", "tools": ["book_room"]},
        {"query": "where is room 5", "tools": ["search", "call_taxi"]},
    )

    (one,) = checked.findings
    assert (one.level, one.kind, len(one.queries)) == ("error", "contradiction", 2)
    assert (
        one.message
        == "'Where is room 5?' is listed for book_room and call_taxi, search: only one of them can "
        "be right"
    )
    assert checked.usable == 30


def test_the_same_request_after_another_conversation_is_another_one(check):
    history = [{"role": "user", "content": "I want to travel"}]
    checked = check(
        {"query": "and tomorrow?", "tools": ["book_room"]},
        {"query": "and tomorrow?", "tools": ["call_taxi"], "history": history},
        {"query": "and today?", "tools": ["call_taxi"], "history": history},
    )

    assert checked.findings == ()


def test_requests_that_stand_there_twice_or_nearly_are_told(check):
    long = "book me a quiet room for ten people next Monday at nine"
    checked = check(
        {"query": "a taxi to the station", "tools": ["call_taxi"]},
        {"query": "A taxi, to the station!", "tools": ["call_taxi"]},
        {"query": long, "tools": ["book_room"]},
        {"query": f"{long} please", "tools": ["book_room"]},
        {"query": f"{long} now", "tools": ["search"]},
    )

    assert found(checked) == ["duplicate", "duplicate"]
    assert checked.findings[0].message == "'a taxi to the station' appears 2 times"
    assert "are near-duplicates, and count twice" in checked.findings[1].message
    assert (checked.failed(), checked.failed(strict=True)) == (False, True)


def test_an_id_is_that_of_one_query(check):
    checked = check(
        {"query": "a", "tools": ["search"], "id": "x"},
        {"query": "b", "tools": ["search"], "id": "x"},
    )

    assert found(checked, "error") == ["same-id"]


def test_long_requests_and_calls_of_other_tools_are_told(check):
    checked = check(
        {"query": "why " * 300, "tools": ["search"]},
        {
            "query": "a car",
            "tools": ["call_taxi"],
            "calls": [{"tool": "call_taxi"}, {"tool": "book_room"}],
        },
    )

    assert found(checked) == ["long", "call"]
    assert "has calls of book_room" in checked.findings[1].message


def test_names_that_no_tool_has_are_told_once_with_those_that_may_be_meant(check):
    checked = check(
        {"query": "open a bug", "tools": ["create_isue"]},
        {"query": "open two bugs", "tools": ["create_isue", "search"]},
        {"query": "last commits", "tools": ["old/git/list_commits"]},
        {"query": "rooms", "tools": ["desk/book_rooms"]},
        {"query": "dance", "tools": ["zzzzzz"]},
        board=BOARD,
    )

    said = [one.message for one in checked.findings if one.kind == "unknown-tool"]
    assert said == [
        "no tool is called create_isue, which 2 queries need. Did you mean create_issue?",
        "no tool is called desk/book_rooms, which 1 query needs. Did you mean desk/book_room?",
        "no tool is called old/git/list_commits, which 1 query needs. Did you mean "
        "kit/git/list_commits?",
        "no tool is called zzzzzz, which 1 query needs. Correct or remove the name.",
    ]
    assert found(checked, "error") == ["unknown-tool"] * 4
    assert checked.usable == 30


def test_names_that_several_tools_have_are_told_with_their_ids(check):
    checked = check(
        {"query": "look it up", "tools": ["search"]},
        {"query": "find it", "tools": ["web/search"]},
        board=BOARD,
    )

    (one,) = checked.findings
    assert (one.level, one.kind) == ("warning", "ambiguous")
    assert one.message == (
        "2 tools are called search, which 1 query needs: any of them is relevant. To mean one, "
        "write its id: kit/git/search, kit/web/search"
    )


def test_queries_that_stand_in_the_index_are_told_and_do_not_count(check):
    checked = check(
        {"query": "where can ten people meet on monday morning", "tools": ["book_room"]},
        {"query": "I need a ride to the airport by nine now, please", "tools": ["call_taxi"]},
        {"query": "ride to the airport", "tools": ["book_room"]},
        {"query": "A room!", "tools": ["desk/book_room"]},
        {"query": "room", "tools": ["book_room"]},
        board=BOARD,
    )

    assert [
        (one.kind, one.message.partition(" is in the index ")[2]) for one in checked.findings
    ] == [
        ("leak", "word for word, with kit/desk/book_room, which it has to find"),
        ("leak", "nearly, with kit/desk/call_taxi, which it has to find"),
        (
            "elsewhere",
            "word for word, with kit/desk/call_taxi, which is not among its tools",
        ),
        ("leak", "word for word, with kit/desk/book_room, which it has to find"),
    ]
    assert (checked.usable, checked.failed()) == (32, False)


def test_examples_in_a_file_that_no_build_holds_out_are_told(check):
    examples = [
        {"query": f"seat {word}", "tools": ["book_room"], "origin": "examples"}
        for word in WORDS[:3]
    ]

    assert found(check(*examples, held_out=False)) == ["not-held-out"]
    assert found(check(*examples, held_out=True)) == []
    assert found(check(*examples)) == []


def test_what_is_uncovered_for_is_told(check):
    said = check(
        {"query": "look", "tools": ["git/search"], "kind": "mine", "origin": "logs"}, board=BOARD
    ).to_dict()

    assert said["coverage"] == {
        "tools": {"covered": 2, "of": 7},
        "agents": {"covered": 2, "of": 3},
        "catalogs": {"covered": 1, "of": 1},
        "uncovered": [
            "kit/desk/book_room", "kit/git/create_issue", "kit/git/list_commits",
            "kit/web/get_forecast", "kit/web/search",
        ],
    }  # fmt: skip
    assert (said["kinds"], said["origins"]) == ({"single": 30, "mine": 1}, {"user": 30, "logs": 1})
    assert json.loads(json.dumps(said)) == said


def test_requests_that_no_tool_answers_are_checked_by_themselves(check):
    lines = [{"query": one["query"]} for one in filler()]
    checked = check(*lines, {"query": "calls a taxi"}, fill=False, board=BOARD, answerable=False)

    assert found(checked) == ["elsewhere"]


def test_a_cosine_tells_what_words_do_not(hashing):
    indexed = Indexed(
        (), (("t", "one two three four five six"), ("u", "nine ten"), ("v", "a b c d e f"))
    )

    query = "one two three four five seven"

    assert find_leaks([query], indexed) == []
    assert find_leaks([query], indexed, lambda texts: encode_queries(hashing(256), texts)) == []
    same = find_leaks([query], indexed, lambda texts: encode_queries(hashing(1), texts))
    assert [(one.tool, one.how) for one in same] == [("t", "nearly")]


def test_alike_texts_are_those_that_share_most_words():
    texts = ["a b c d e f g h i j", "a b c d e f g h i k", "k l m", "", "a b c d e f g h i j a"]
    alike = NearDuplicates(texts)

    assert alike.near("j i h g f e d c b a") == [(0, 1.0), (4, 1.0)]
    assert [number for number, _ in alike.near("a b c d e f g h i", 0.9)] == [0, 1, 4]
    assert alike.near("k l m n o p", 0.5) == [(2, 0.5)]
    assert alike.near("") == []


def test_near_names_are_found_among_many():
    names = [f"{verb}_{word}" for verb in ("get", "list", "open") for word in WORDS]

    assert nearest_names("get_omikron", names)[0] == "get_omicron"
    assert nearest_names("qqqqqqqq", names) == []


@pytest.fixture
def golden(tmp_path):
    def write(*queries):
        path = tmp_path / "golden.jsonl"
        path.write_text("\n".join(json.dumps(one) for one in queries), "utf-8")
        return str(path)

    return write


def test_the_command_checks_on_a_board(golden, board_uri, capsys):
    file = golden(
        *filler(),
        {"query": "I need a ride to the airport", "tools": ["call_taxi"]},
        {"query": "fly", "tools": ["flie"]},
    )

    assert main(["golden", "check", file, "--board", board_uri]) == 2

    said = capsys.readouterr().out
    assert "32 queries on release" in said
    assert "30 usable" in said
    assert "errors:\n  - unknown-tool: no tool is called flie" in said
    assert (
        "warnings:\n  - leak: 'I need a ride to the airport' is in the index word for word" in said
    )
    assert "coverage: 1 of 14 tools, 1 of 6 agents, 1 of 3 catalogs" in said
    assert "uncovered: " in said


def test_the_command_takes_the_board_of_a_configuration_and_prints_json(
    golden, workshop, hashing, capsys
):
    workshop.publish({"desk": [workshop.tool("call_taxi", "Calls a taxi.")]}, encoder=hashing())
    file = golden(*filler(), {"query": "a car", "tools": ["call_taxi"], "origin": "examples"})
    asked = [
        "golden",
        "check",
        file,
        "-c",
        str(workshop.folder / "pegboard.toml"),
        "--words-only",
        "--json",
    ]

    assert main(asked) == 0
    first = json.loads(capsys.readouterr().out)
    assert main([*asked, "--strict"]) == 2
    capsys.readouterr()
    workshop.configure('[golden]\nqueries = "golden.jsonl"\n')
    assert main([*asked, "--strict"]) == 0

    assert (first["ok"], [one["kind"] for one in first["findings"]]) == (True, ["not-held-out"])
    assert first["coverage"]["tools"] == {"covered": 1, "of": 1}


def test_the_command_works_without_a_board(golden, monkeypatch, capsys):
    monkeypatch.delenv("PEGBOARD_BOARD", raising=False)

    assert main(["golden", "check", golden(*filler())]) == 0
    assert main(["golden", "check", golden(*filler(), {"query": "x y"})]) == 2
    assert (
        main(
            [
                "golden",
                "check",
                golden(*({"query": one["query"]} for one in filler())),
                "--unanswerable",
            ]
        )
        == 0
    )
    assert "golden.jsonl:31: tools: expected a list" in capsys.readouterr().out
