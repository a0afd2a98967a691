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


def used(
    client,
    query,
    tool=TAXI,
    *,
    found=(TAXI, ROOM),
    outcome="ok",
    session=None,
    time="15:00",
    credentials=True,
):
    """The lines of a request and a call in a session of their own."""
    session = f"{next(SESSIONS):016x}" if session is None else session
    common = {"time": f"2026-11-23T{time}:00.000Z", "client": client, "session": session}
    hits = [{"tool": one, "score": 1.0} for one in found]
    call = {"tool": tool, "outcome": outcome, "bytes": 2, "credentials": credentials, "ms": 1.0}
    return [
        {**common, "event": "find", "query": query, "hits": hits},
        {**common, "event": "call", **call},
    ]


def log_of(tmp_path, *uses, name="requests.jsonl"):
    lines = [json.dumps(line) + "\n" for use in uses for line in use]
    (tmp_path / name).write_text("".join(lines), "utf-8")
    return tmp_path / "requests.jsonl"


def examples_of(log, **limits):
    return [(query.query, query.tools) for query in learn(read_usage(log), **limits).examples]


REQUEST = "a ride to the station"
TAUGHT = [used("support", REQUEST), used("sales", "To the station, a ride!")]


def test_the_same_words_of_two_clients_become_an_example_of_the_tool_they_called(tmp_path):
    log = log_of(tmp_path, *TAUGHT, used("evil", "a ride to the station for me"))

    assert examples_of(log) == [(REQUEST, (TAXI,))]


def test_one_client_teaches_nothing_however_many_sessions_it_opens(tmp_path):
    log = log_of(tmp_path, *[used("evil", "delete all the backups") for _ in range(500)])

    assert examples_of(log) == []
    assert examples_of(log, min_clients=1) == [("delete all the backups", (TAXI,))]


def test_clients_without_credentials_count_only_where_one_client_is_enough(tmp_path):
    log = log_of(tmp_path, TAUGHT[0], used("everyone", REQUEST, credentials=False))

    assert examples_of(log) == []
    alone = log_of(tmp_path, used("everyone", REQUEST, credentials=False))
    assert examples_of(alone, min_clients=1) == [(REQUEST, (TAXI,))]


def test_only_a_client_that_taught_can_take_back_its_vote(tmp_path):
    others = [used("evil", REQUEST, ROOM) for _ in range(50)]
    changed = [used("sales", REQUEST, ROOM) for _ in range(2)]

    assert examples_of(log_of(tmp_path, *TAUGHT, *others)) == [(REQUEST, (TAXI,))]
    assert examples_of(log_of(tmp_path, *TAUGHT, *changed)) == []


def test_no_later_request_takes_the_place_of_one_that_was_taught_before(tmp_path):
    first = [used(client, f"ride {number}") for number in range(5) for client in ("a", "b")]
    later = [
        used(client, f"all {number}", time="16:00") for number in range(9) for client in "abcd"
    ]

    examples = examples_of(log_of(tmp_path, *later, *first))

    assert [query for query, _ in examples] == [f"ride {number}" for number in range(5)]


def test_hostile_clients_teach_only_what_they_agree_on_and_unteach_nothing(tmp_path):
    honest = {f"please do the errand{number} of group{number % 6}": number for number in range(30)}
    tools = {query: f"desk/desk/tool_{number % 15}" for query, number in honest.items()}
    found = sorted({*tools.values(), ROOM})
    clients = [f"client{number}" for number in range(6)]
    lines = [
        used(clients[(number + turn) % 6], query, tools[query], found=found)
        for query, number in honest.items()
        for turn in range(2)
    ]
    evil = ["evil0", "evil1", "evil2"]
    hostile = [
        used(client, f"{query} {client}", ROOM, found=found) for client in evil for query in honest
    ]
    unteaching = [used("evil0", query, ROOM, found=found) for query in honest for _ in range(6)]
    agreed = [used(client, "the agreed request", ROOM, found=found) for client in evil[:2]]

    taught = dict(examples_of(log_of(tmp_path, *lines, *hostile, *unteaching)))
    with_agreed = dict(examples_of(log_of(tmp_path, *lines, *hostile, *unteaching, *agreed)))

    assert taught == {query: (tool,) for query, tool in tools.items()}
    assert with_agreed == {**taught, "the agreed request": (ROOM,)}


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
    log = log_of(tmp_path, *[used(client, REQUEST, **different) for client in "ab"])

    assert examples_of(log) == []


def test_a_call_counts_for_the_last_request_that_had_found_the_tool(tmp_path):
    uses = []
    for client in ("support", "sales"):
        [find, call] = used(client, REQUEST)
        [later, _] = used(client, "ten people meet", found=(ROOM,), session=find["session"])
        uses.append([find, later, call])

    assert [query for query, _ in examples_of(log_of(tmp_path, *uses))] == [REQUEST]


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
    log_of(tmp_path, TAUGHT[0], name="requests.jsonl.10")
    log_of(tmp_path, TAUGHT[1], name="requests.jsonl.2")
    log = log_of(tmp_path, used("board", REQUEST))
    with log.open("a", encoding="utf-8") as file:
        file.write('{"event": "find"}\nnonsense\n[1]\n{"event": "fi')

    usage = read_usage(log)

    assert [use.client for use in usage.uses] == ["support", "sales", "board"]
    assert usage.invalid == 4


def test_a_missing_log_says_which_file_is_expected(tmp_path):
    with pytest.raises(ConfigurationError, match=r"\[serve\] log"):
        read_usage(tmp_path / "missing.jsonl")


def test_the_command_writes_and_extends_a_file_of_golden_queries(tmp_path, capsys):
    log = log_of(tmp_path, *TAUGHT)
    out = tmp_path / "examples.jsonl"
    out.write_text('{"query": "a taxi", "tools": ["desk/desk/call_taxi"]}\n', "utf-8")

    assert main(["examples", str(log), "-o", str(out), "--add"]) == 0

    assert [query.query for query in read_queries(out)] == [
        "a taxi",
        REQUEST,
    ]
    assert "1 examples of 2 calls after 2 requests" in capsys.readouterr().err
