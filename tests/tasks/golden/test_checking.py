"""Golden queries are checked by themselves and on a board."""

import json

import pytest

from pegboard.cli.main import main
from pegboard.evaluation.golden import AgentNames, ToolNames
from tasks.golden.checking import OnBoard, check_golden

TOOLS = [
    (f"kit/{agent}/{name}", name, agent)
    for agent, names in {
        "git": ("create_issue", "list_commits", "search"),
        "web": ("search", "get_forecast"),
        "desk": ("book_room", "call_taxi"),
    }.items()
    for name in names
]
NAMES = ToolNames(TOOLS)
MEETING = "Where can ten people meet on Monday morning?"
RIDE = "I need a ride to the airport by nine, please"
ROOM = "kit/desk/book_room"
TAXI = "kit/desk/call_taxi"
BOARD = OnBoard(
    "r1",
    NAMES,
    texts=((ROOM, MEETING), (ROOM, "a room"), (TAXI, RIDE), (TAXI, "Calls a taxi for a guest")),
    agents=AgentNames(TOOLS, [(f"kit/{name}", name) for name in ("git", "web", "desk")]),
)
WORDS = (
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
    "lambda", "mu", "nu", "xi", "omicron", "pi", "rho", "sigma", "tau", "upsilon",
)  # fmt: skip


def query(text, *tools, **fields):
    return {"query": text, "tools": list(tools), **fields}


FILLER = [
    query(f"please {WORDS[at % 20]} the {WORDS[(at * 7 + at // 20) % 20]} {at}", "call_taxi")
    for at in range(30)
]


@pytest.fixture
def golden(tmp_path):
    """A function that writes a file of golden queries."""

    def write(*queries):
        lines = (line if isinstance(line, str) else json.dumps(line) for line in queries)
        file = tmp_path / "golden.jsonl"
        file.write_text("\n".join(lines), "utf-8")
        return file

    return write


@pytest.fixture
def check(golden):
    """A function that checks queries, after thirty harmless ones."""

    def run(*queries, board=None, fill=FILLER, **options):
        return check_golden(golden(*fill, *queries), board, **options)

    return run


def kinds(checked, level=None):
    return [finding.kind for finding in checked.findings if level in (None, finding.level)]


AFTER = {"history": [{"role": "user", "content": "I want to travel"}]}
LONG = "book me a quiet room for ten people next Monday at nine"
SEAT = query("a seat", "book_room", origin="examples")


@pytest.mark.parametrize(
    ("queries", "options", "expected"),
    [
        (FILLER[:12], {"fill": []}, ["few"]),
        (FILLER[:12], {"fill": [], "min_queries": 12}, []),
        (
            [query("and tomorrow?", "book_room"), query("and tomorrow?", "call_taxi", **AFTER)],
            {},
            [],
        ),
        ([query(LONG, "search"), query(f"{LONG} please", "search")], {}, ["duplicate"]),
        ([query(LONG, "search"), query(f"{LONG} please", "book_room")], {}, []),
        ([query("a", "search", id="x"), query("b", "search", id="x")], {}, ["same-id"]),
        ([SEAT], {"held_out": False}, ["not-held-out"]),
        ([SEAT], {"held_out": True}, []),
        ([SEAT], {"held_out": None}, []),
    ],
)
def test_only_what_is_a_problem_is_found(check, queries, options, expected):
    assert kinds(check(*queries, **options)) == expected


def test_messages_show_the_query_the_place_and_the_next_step(check):
    checked = check(
        "{",
        query("Where is room 5?", "book_room"),
        query("where is room 5", "search", "call_taxi"),
        query("a taxi to the station", "call_taxi"),
        query("A taxi, to the station!", "call_taxi"),
        query("open a bug", "create_isue"),
        query("open two bugs", "create_isue", "web/search"),
        query("last commits", "old/git/list_commits"),
        query("rooms", "desk/book_rooms"),
        query("dance", ["book_room", "zzzzzz"]),
        query("look it up", "search"),
        board=BOARD,
    )

    assert "golden.jsonl:31: not JSON" in checked.findings[0].message
    assert [finding.message for finding in checked.findings[1:]] == [
        "'Where is room 5?' is listed for book_room and call_taxi, search. Where each of them "
        'would do, write one query with alternatives, as in "tools": [["a", "b"]]',
        "no tool is called create_isue, which 2 queries need. Did you mean create_issue?",
        "no tool is called desk/book_rooms, which 1 query needs. Did you mean desk/book_room?",
        "no tool is called old/git/list_commits, which 1 query needs. Did you mean "
        "kit/git/list_commits?",
        "no tool is called zzzzzz, which 1 query needs. Correct or remove the name.",
        "'a taxi to the station' appears 2 times",
        "2 tools are called search, which 2 queries need: any of them is relevant. To mean one, "
        "write its id: kit/git/search, kit/web/search",
    ]
    assert kinds(checked, "warning") == ["duplicate", "ambiguous"]
    assert (len(checked.queries), checked.usable) == (40, 33)
    assert checked.failed()


def test_indexed_queries_are_reported_and_do_not_count(check):
    checked = check(
        query("where can ten people meet on monday morning", "book_room"),
        query("I need a ride to the airport by nine now, please", "call_taxi"),
        query("Calls a taxi, for a guest", "book_room"),
        query("A room!", "desk/book_room"),
        query("room", "book_room"),
        board=BOARD,
    )

    reported = [
        (finding.kind, finding.message.partition(" is in the index, ")[2])
        for finding in checked.findings
    ]
    assert reported == [
        ("leak", f"with {ROOM}, which it has to find; it does not count"),
        ("leak", f"with {TAXI}, which it has to find; it does not count"),
        ("elsewhere", f"with {TAXI}, which is not among its tools"),
        ("leak", f"with {ROOM}, which it has to find; it does not count"),
    ]
    assert (checked.usable, checked.failed(), checked.failed(strict=True)) == (32, False, True)


def test_the_command_checks_on_a_board(golden, board_uri, capsys):
    leak = query("I need a ride to the airport", "call_taxi")
    unknown = query("fly", "flie")
    file = golden(*FILLER, leak, unknown)

    assert main(["golden", "check", str(file), "--board", board_uri]) == 2

    output = capsys.readouterr().out
    for line in (
        "32 queries on release",
        "30 usable",
        "errors:\n  - unknown-tool: no tool is called flie",
        "warnings:\n  - leak: 'I need a ride to the airport' is in the index, with ",
        "coverage: 1 of 14 tools, 1 of 6 agents, 1 of 3 catalogs",
        "uncovered: ",
    ):
        assert line in output


def test_names_of_agents_are_checked_as_those_of_tools_are(check):
    right = {"query": "everything about code", "agents": ["git", ["web", "kit/desk"]]}
    wrong = {"query": "some search on the web", "agents": ["wob"]}
    other = {"query": "Everything about code!", "agents": ["desk"]}

    fine = check(right, board=BOARD)
    unknown = check(wrong, board=BOARD)
    contradicted = check(right, other)
    configured = check(right, held_out=True)

    assert fine.findings == ()
    assert fine.coverage["agents"] == {"covered": 3, "of": 3}
    assert kinds(unknown) == ["unknown-agent"]
    assert "no agent is called wob, which 1 query needs. Did you mean web?" in str(unknown.findings)
    assert kinds(contradicted) == ["contradiction"]
    assert kinds(configured) == ["agents-only"]
