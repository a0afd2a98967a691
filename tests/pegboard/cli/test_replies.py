"""`pegboard replies`, and an evaluation that is repeated without its LLM."""

import json

import pytest

LINES = [
    {"query": "pls open teh issue in a repository", "tools": ["create_issue"]},
    {"query": "the weather of a city tomorow", "tools": ["get_forecast"]},
]
REWRITTEN = {
    LINES[0]["query"]: "Open an issue in a repository",
    LINES[1]["query"]: "Get the weather forecast of a city",
}


@pytest.fixture
def files(tmp_path):
    golden = tmp_path / "golden.jsonl"
    golden.write_text("".join(json.dumps(line) + "\n" for line in LINES), "utf-8")
    strategy = tmp_path / "strategy.json"
    parts = {"name": "mine", "transforms": ["rewrite"], "refine": [{"part": "listwise-rerank"}]}
    strategy.write_text(json.dumps(parts))
    return f"{golden} --strategy {strategy} --llm openai/none --replies {tmp_path}/replies"


def answered(line):
    """A program's answer to one open request, from what the request shows."""
    body = line["body"]
    prompt = body["messages"][-1]["content"]
    if body["response_format"]["json_schema"]["name"] == "rewrite":
        [text] = [text for query, text in REWRITTEN.items() if query in prompt]
        reply = {"query": text}
    else:
        names = body["response_format"]["json_schema"]["schema"]["properties"]["ranking"]
        reply = {"ranking": names["items"]["enum"][:3]}
    message = {"role": "assistant", "content": json.dumps(reply)}
    body = {"model": "program", "choices": [{"message": message, "finish_reason": "stop"}]}
    return {"custom_id": line["custom_id"], "response": {"status_code": 200, "body": body}}


def test_an_evaluation_is_answered_by_a_batch_in_rounds_and_then_repeats_to_the_byte(
    files, board_uri, run, tmp_path
):
    rounds = 0
    while True:
        result = run(f"eval {files} --missing-replies write --json --quiet", board=board_uri)
        if result.code == 0:
            break
        assert result.code == 7
        assert "no recorded reply" in result.err
        shown = run(f"replies show --replies {tmp_path}/replies --json").json
        lines = (tmp_path / "replies/open.jsonl").read_text().splitlines()
        assert shown == [json.loads(line) for line in lines]
        answers = tmp_path / f"answers{rounds}.jsonl"
        answers.write_text("".join(json.dumps(answered(line)) + "\n" for line in shown))
        read = run(f"replies read {answers} --replies {tmp_path}/replies --json").json
        assert (read["recorded"], read["open"]) == (len(LINES), 0)
        rounds += 1

    assert rounds == 2, "one for the rewriting, one for the order of what it found"
    replays = [
        run(f"eval {files} --missing-replies fail --json --quiet", board=board_uri)
        for _ in range(2)
    ]
    assert {replay.out for replay in replays} == {result.out}
    figures = json.loads(result.out)
    assert figures["rows"][0]["value"] == 1.0
    listed = run(f"replies list --replies {tmp_path}/replies --json").json
    assert (listed["replies"], listed["open"]) == (4, 0)
    assert listed["authors"][0]["author"] == "program"


def test_open_requests_are_shown_as_text_for_a_person(files, board_uri, run, tmp_path):
    run(f"eval {files} --missing-replies write --quiet", board=board_uri)

    shown = run(f"replies show --replies {tmp_path}/replies").out

    assert shown.count("You rewrite a user's request") == 1
    assert all(line["query"] in shown for line in LINES)
    assert shown.count("\n### ") == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("replies read answers.jsonl --replies {folder}", "is no folder"),
        ("find tides --replies {folder}", "needs a model"),
        ("find tides --llm openai/m --missing-replies write", "needs a folder"),
    ],
)
def test_options_without_sense_are_explained(line, message, board_uri, run, tmp_path):
    board = board_uri if line.startswith("find") else None
    result = run(line.format(folder=tmp_path / "replies"), board=board)
    assert result.code == 2
    assert message in result.err
