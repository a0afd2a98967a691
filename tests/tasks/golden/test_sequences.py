"""Which tools follow which: learned from a log, published in a release."""

import json
from itertools import count

import pytest

from flows.reindex import reindex
from pegboard.cli.main import main
from pegboard.errors import ConfigurationError
from pegboard.evaluation.usage import learn_sequences, read_usage

TIMES = count()


def session(client, *tools, name="s", outcome="ok", credentials=True):
    """The lines of the calls of one session."""
    return [
        {
            "time": f"2026-11-23T15:00:{next(TIMES) % 60:02d}.000Z",
            "event": "call",
            "client": client,
            "session": f"{client}{name}" if name else "",
            "tool": f"kit/git/{tool}",
            "outcome": outcome,
            "credentials": credentials,
        }
        for tool in tools
    ]


def log_of(folder, *sessions):
    lines = "".join(json.dumps(line) + "\n" for session_lines in sessions for line in session_lines)
    (folder / "requests.jsonl").write_text(lines, "utf-8")
    return folder / "requests.jsonl"


def learned(folder, *sessions, **limits):
    rows = learn_sequences(read_usage(log_of(folder, *sessions)), **limits)
    return {(row["after"][8:], row["next"][8:]): row["clients"] for row in rows}


def test_two_clients_teach_what_follows_a_tool_and_each_has_one_vote(tmp_path):
    often = [session("evil", "diff", "drop", name=str(number)) for number in range(9)]
    sessions = [session("a", "diff", "diff", "commit", "push"), session("b", "diff", "commit")]

    assert learned(tmp_path, *often, *sessions) == {("diff", "commit"): 2}
    assert learned(tmp_path, *often, min_clients=1) == {("diff", "drop"): 1}


@pytest.mark.parametrize("how", [{"name": ""}, {"outcome": "tool_error"}, {"credentials": False}])
def test_calls_without_session_result_or_credentials_teach_nothing(tmp_path, how):
    assert learned(tmp_path, *[session(client, "diff", "commit", **how) for client in "ab"]) == {}


def test_a_release_has_what_was_learned_but_nothing_that_destroys(workshop):
    workshop.servers(
        {
            "git": [
                *(workshop.tool(name, f"Does {name}.") for name in ("diff", "commit")),
                {**workshop.tool("drop", "Drops."), "annotations": {"destructiveHint": True}},
            ]
        }
    )
    configuration = workshop.configure('[examples]\nqueries = "e.jsonl"\nsequences = "s.jsonl"\n')
    sessions = [session(client, "diff", "commit") for client in "ab"]
    drops = [session(client, "commit", "drop", name="t") for client in "ab"]
    log = log_of(workshop.folder, *sessions, *drops)
    folder = workshop.folder
    files = ["-o", str(folder / "e.jsonl"), "--sequences", str(folder / "s.jsonl")]
    assert main(["examples", str(log), *files]) == 0

    first_run = reindex(configuration)

    manifest = workshop.store.get(first_run["release"]).manifest
    assert manifest["sequences"] == {"kit/git/diff": {"kit/git/commit": 0.667}}
    workshop.write("s.jsonl", "")
    assert reindex(configuration)["release"] != first_run["release"]
    workshop.write("s.jsonl", '{"after": "kit/git/diff"}\n')
    with pytest.raises(ConfigurationError, match="line 1: expected after, next, clients"):
        reindex(configuration)
