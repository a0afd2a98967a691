"""Replay: what the requests of a log find in another release."""

import json

import pytest

import pegboard
from pegboard.cli.main import main
from pegboard.evaluation.replay import replay
from pegboard.evaluation.usage import read_usage

TIDES = "when is high tide?"


def find(query, *tools, **more):
    hits = [{"tool": tool, "score": 1.0} for tool in tools]
    return {"event": "find", "query": query, "hits": hits, **more}


def call(tool):
    return {"event": "call", "tool": tool, "outcome": "ok", "credentials": True}


@pytest.fixture
def log(tmp_path, board_uri):
    """Requests of one session: one as it is now, one that found a tool that is gone, and one of
    nonsense.
    """
    [first, second] = [hit.tool.id for hit in pegboard.open(board_uri).find(TIDES, 2)]
    events = [
        find(TIDES, first, second),
        find("High tide, please", "old/sea/tides"),
        call("old/sea/tides"),
        find("High tide, please", "old/sea/tides"),
        find("qwxz"),
    ]
    common = {"time": "2026-11-23T15:00:00.000Z", "client": "support", "session": "9f2c"}
    text = "".join(json.dumps({**common, **event}) + "\n" for event in events)
    (tmp_path / "requests.jsonl").write_text(text, "utf-8")
    return tmp_path / "requests.jsonl"


def test_a_replay_says_what_requests_lost_and_what_came_instead(log, board_uri):
    board = pegboard.open(board_uri)
    values = replay(read_usage(log), board, 5).to_dict()

    assert (values["requests"], values["different"], values["same_tools"]) == (4, 3, 1)
    tides = board.find(TIDES, 1)[0].tool.id
    assert values["replaced"] == [
        {"tool": "old/sea/tides", "requests": 2, "in_release": False, "instead": {tides: 2}}
    ]
    assert values["called"] == {"before": 1, "lost": 1}
    assert [row["query"] for row in values["without_result"]] == ["qwxz"]
    found = {hit.tool.id for query in (TIDES, "qwxz") for hit in board.find(query, 5)}
    assert tides not in values["never_found"]
    assert len(values["never_found"]) >= values["tools"] - len(found)


def test_the_command_prints_a_summary_or_everything(log, board_uri, capsys):
    release = pegboard.open(board_uri).release.id
    options = ["--board", board_uri, "--release", release]

    assert main(["find", "--replay", str(log), *options]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"4 requests, 3 different, in release {release}: 1 find the same")
    assert 'Called tools that are not found any more: 1 of 1\n  "High tide, please": old' in printed
    assert "  old/sea/tides (not in this release): 2; now " in printed
    assert 'Requests without a result that fits: 1\n  "qwxz" (1)' in printed

    assert main(["find", "--replay", str(log), "--json", *options]) == 0
    assert json.loads(capsys.readouterr().out)["release"] == release


def test_a_replay_takes_no_request_and_needs_a_log(log, board_uri, tmp_path, capsys):
    words = ["find", "tides", "--called", "a/b/c", "--replay", str(log), "--board", board_uri]
    assert main(words) == 2
    assert "without words, --called" in capsys.readouterr().err

    (tmp_path / "empty.jsonl").write_text("nonsense\n", "utf-8")
    assert main(["find", "--replay", str(tmp_path / "empty.jsonl"), "--board", board_uri]) == 2
    assert "has no requests (1 invalid line)" in capsys.readouterr().err
