"""Builds whose LLM is a folder of recorded replies."""

import json
from datetime import UTC, datetime

import pytest

from pegboard.errors import BoardNotFound, CompletionError
from pegboard.llm.answers import add_answers
from pegboard.llm.recorded import ReplyFolder

TOOLS = [
    {"name": "list_tides", "description": "Tide times for a harbour."},
    {"name": "book_berth", "description": "Reserves a berth."},
    {"name": "get_forecast", "description": "Wind and waves of a place."},
]
ENRICH = """
[enrich]
model = "openai/none"
products = ["description", "questions"]
questions = 2
replies = "replies"
missing_replies = "{missing}"
"""


def answer(line):
    """A program's reply to one request."""
    body = line["body"]
    prompt = body["messages"][1]["content"]
    [name] = [tool["name"] for tool in TOOLS if f'{{"name": "{tool["name"]}"' in prompt[:200]]
    what = name.replace("_", " ")
    replies = {
        "description": {
            "does": f"Can {what} whenever a crew asks for it.",
            "use_when": "Use it before going ashore.",
            "avoid": [],
        },
        "questions": {"questions": [f"Please {what} for Whitby", f"We sail at six, {what} first"]},
    }
    return {
        "custom_id": line["custom_id"],
        "reply": replies[body["response_format"]["json_schema"]["name"]],
    }


def answer_open_requests(folder, limit=None):
    replies = ReplyFolder(folder / "replies")
    lines = list(replies.open_requests().values())[:limit]
    file = folder / "answers.jsonl"
    file.write_text("".join(json.dumps(answer(line)) + "\n" for line in lines))
    add_answers(replies, file, "a program", datetime.now(UTC).date().isoformat())
    return len(lines)


def configured(workshop, missing):
    workshop.servers({"harbour": TOOLS})
    return workshop.configure(ENRICH.format(missing=missing))


def test_a_build_is_answered_in_rounds_and_its_release_is_the_same_from_the_replies_alone(
    workshop, workshop_type, tmp_path
):
    # The first time only a part is answered, as if the batch had been interrupted. Descriptions
    # come first; questions follow their own description.
    for limit, answered in ((2, 2), (None, 1 + 2), (None, 1)):
        with pytest.raises(CompletionError, match="no recorded reply"):
            workshop.run(configured(workshop, "write"))
        with pytest.raises(BoardNotFound):
            workshop.store.existing_channel("live")
        assert answer_open_requests(workshop.folder, limit) == answered
    written = workshop.run(configured(workshop, "write"))

    for name in ("second", "third"):
        folder = tmp_path / name
        folder.mkdir()
        (workshop.folder / "replies").rename(folder / "replies")
        again = workshop_type(folder)
        repeated = again.run(configured(again, "fail"))
        assert repeated.release.id == written.release.id
        (folder / "replies").rename(workshop.folder / "replies")


def test_a_missing_reply_is_named_and_published_around_only_if_that_is_allowed(workshop):
    with pytest.raises(CompletionError, match="3 requests have no recorded reply"):
        workshop.run(configured(workshop, "fail"))

    allowed = ENRICH.format(missing="fail") + 'incomplete = "publish"\n'
    assert workshop.run(workshop.configure(allowed)).release
