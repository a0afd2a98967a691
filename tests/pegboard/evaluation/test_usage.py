"""Examples from a gateway's log: whose requests count, and what is left out."""

import json
from itertools import count

import pytest

from pegboard.cli.main import main
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import read_queries
from pegboard.evaluation.usage import learn, read_usage

TAXI = "desk/desk/call_taxi"
ROOM = "desk/desk/book_room"
SESSIONS = count()


def used(client, query, tool=TAXI, *, found=(TAXI, ROOM), outcome="ok", session=None, time="15:00"):
    """The lines of a request and a call in a session of their own."""
    session = f"{next(SESSIONS):016x}" if session is None else session
    common = {"time": f"2026-11-23T{time}:00.000Z", "client": client, "session": session}
    hits = [{"tool": one, "score": 1.0} for one in found]
    return [
        {**common, "event": "find", "query": query, "hits": hits},
        {**common, "event": "call", "tool": tool, "outcome": outcome, "ms": 1.0, "bytes": 2},
    ]


def log_of(tmp_path, *uses, name="requests.jsonl"):
    lines = [json.dumps(line) + "\n" for use in uses for line in use]
    (tmp_path / name).write_text("".join(lines), "utf-8")
    return tmp_path / "requests.jsonl"


def examples_of(log, **limits):
    return [(query.query, query.tools) for query in learn(read_usage(log), **limits).examples]


SUPPORTED = [
    ("support", "a ride to the station"),
    ("sales", "order a ride to the station"),
    ("sales", "the ride to a station"),
]


def test_a_request_of_several_clients_becomes_an_example_of_the_tool_they_called(tmp_path):
    log = log_of(tmp_path, *[used(client, query) for client, query in SUPPORTED])

    assert examples_of(log) == [("a ride to the station", (TAXI,))]


def test_one_client_teaches_nothing_however_many_sessions_it_opens(tmp_path):
    log = log_of(tmp_path, *[used("evil", "delete all the backups") for _ in range(500)])

    assert examples_of(log) == []
    assert examples_of(log, min_clients=1) == [("delete all the backups", (TAXI,))]


def test_one_client_cannot_attach_its_request_to_a_tool_that_others_use(tmp_path):
    honest = [used(client, query) for client, query in SUPPORTED]
    poison = [used("evil", "delete the production database") for _ in range(50)]

    assert examples_of(log_of(tmp_path, *honest, *poison)) == examples_of(log_of(tmp_path, *honest))


def test_the_tool_that_most_sessions_called_gets_the_request(tmp_path):
    taxi = [used(client, query) for client, query in SUPPORTED]
    room = [used(client, query, ROOM) for client, query in SUPPORTED[:2]]
    extra = [used("sales", SUPPORTED[0][1])]

    examples = examples_of(log_of(tmp_path, *taxi, *room, *extra))

    assert {tools for _, tools in examples} == {(TAXI,)}


def test_words_that_only_one_client_used_are_in_no_example(tmp_path):
    private = [
        used("support", "a ride to the station for Zebulon"),
        used("sales", "a ride to the station for Annabel"),
        used("sales", "a ride to the station for the board"),
    ]
    log = log_of(tmp_path, *private)

    assert examples_of(log) == []
    assert learn(read_usage(log)).private == 3


@pytest.mark.parametrize("secret", ["with *** as password", "key sk-abcdef1234567890abcdef12"])
def test_requests_with_secrets_are_in_no_example(tmp_path, secret):
    log = log_of(tmp_path, *[used(client, f"ride {secret}") for client in "abc"])

    assert examples_of(log) == []


@pytest.mark.parametrize(
    "different",
    [
        {"outcome": "tool_error"},
        {"outcome": "refused"},
        {"found": (ROOM,)},
    ],
)
def test_only_found_tools_that_answered_in_the_same_session_count(tmp_path, different):
    log = log_of(tmp_path, *[used(client, query, **different) for client, query in SUPPORTED])

    assert examples_of(log) == []


def test_a_call_counts_for_the_last_request_that_had_found_the_tool(tmp_path):
    uses = []
    for client, query in SUPPORTED:
        [find, call] = used(client, query)
        [later, _] = used(client, "ten people meet", found=(ROOM,), session=find["session"])
        uses.append([find, later, call])

    assert [query for query, _ in examples_of(log_of(tmp_path, *uses))] == ["a ride to the station"]


def test_without_sessions_the_calls_of_an_hour_count_once(tmp_path):
    def uses(*times):
        pairs = zip(("support", "sales", "sales"), times, strict=True)
        return [used(client, "a ride to the station", session="", time=at) for client, at in pairs]

    assert examples_of(log_of(tmp_path, *uses("09:00", "10:00", "10:30"))) == []
    assert examples_of(log_of(tmp_path, *uses("09:00", "10:00", "11:00"))) == [
        ("a ride to the station", (TAXI,))
    ]


@pytest.mark.parametrize(("minute", "calls"), [("00:04", 1), ("00:06", 0)])
def test_without_sessions_a_call_belongs_to_a_request_of_the_last_minutes(tmp_path, minute, calls):
    [find, _] = used("support", "a ride", session="", time="00:00")
    [_, call] = used("support", "a ride", session="", time=minute)

    assert len(read_usage(log_of(tmp_path, [find, call])).uses) == calls


def test_without_sessions_a_call_after_different_requests_belongs_to_none(tmp_path):
    [one, _] = used("support", "a ride to the station", session="")
    [other, call] = used("support", "where can ten people meet?", session="")
    [later, _] = used("support", "a ride to the station!", session="")

    assert read_usage(log_of(tmp_path, [one, other, call])).uses == []
    assert len(read_usage(log_of(tmp_path, [one, later, call])).uses) == 1


def test_rotated_files_are_read_first_and_broken_lines_are_counted(tmp_path):
    log_of(tmp_path, *[used(*SUPPORTED[0])], name="requests.jsonl.10")
    log_of(tmp_path, *[used(*SUPPORTED[1])], name="requests.jsonl.2")
    log = log_of(tmp_path, used(*SUPPORTED[2]))
    with log.open("a", encoding="utf-8") as file:
        file.write('{"event": "find"}\nnonsense\n[1]\n{"event": "fi')

    usage = read_usage(log)

    assert [use.client for use in usage.uses] == ["support", "sales", "sales"]
    assert usage.invalid == 4


def test_a_missing_log_says_which_file_is_expected(tmp_path):
    with pytest.raises(ConfigurationError, match=r"\[serve\] log"):
        read_usage(tmp_path / "missing.jsonl")


def test_the_command_writes_and_extends_a_file_of_golden_queries(tmp_path, capsys):
    log, out = log_of(tmp_path, *[used(*one) for one in SUPPORTED]), tmp_path / "examples.jsonl"
    out.write_text('{"query": "a taxi", "tools": ["desk/desk/call_taxi"]}\n', "utf-8")

    assert main(["examples", str(log), "-o", str(out), "--add"]) == 0

    assert [query.query for query in read_queries(out)] == [
        "a taxi",
        "a ride to the station",
    ]
    assert "1 examples of 3 calls after 3 requests" in capsys.readouterr().err


def test_the_command_says_why_one_client_gives_no_examples(tmp_path, capsys):
    log = log_of(tmp_path, *[used("anyone", "a ride to the station") for _ in range(5)])

    assert main(["examples", str(log)]) == 0

    output = capsys.readouterr()
    assert output.out == ""
    assert "--min-clients 1" in output.err
