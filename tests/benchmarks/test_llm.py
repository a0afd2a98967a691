"""The experiments with an LLM, and the replies that are recorded for them."""

import json
from pathlib import Path

import pytest

from benchmarks.llm.__main__ import check_replies, markdown, share
from benchmarks.llm.experiments import (
    EXPERIMENTS,
    HERE,
    REPLIES,
    Experiment,
    Places,
    run_experiment,
)
from pegboard.errors import CompletionError
from pegboard.llm.answers import add_answers
from pegboard.llm.recorded import OPEN_FILE, ReplyFolder

SPECIMENS = Path(__file__).parent / "specimens"
ASKED = Experiment("asked", "One call: for each request", ("ultratool",), ("ask-as-agent",))


def test_every_recorded_reply_names_its_author_and_its_day_and_none_is_open():
    replies = ReplyFolder(REPLIES).replies()

    assert len(replies) > 1_000
    assert not (REPLIES / OPEN_FILE).exists()
    assert all(reply.author and reply.date.startswith("20") for reply in replies)
    assert all(reply.prompt_tokens and reply.completion_tokens for reply in replies)


def test_an_experiment_has_a_name_of_its_own_and_its_indexes():
    names = [experiment.name for experiment in EXPERIMENTS]

    assert len(names) == len(set(names))
    assert all(
        (HERE / experiment.indexes).is_file() for experiment in EXPERIMENTS if experiment.indexes
    )


@pytest.fixture
def places(tmp_path):
    def at(missing):
        return Places(SPECIMENS, None, tmp_path / "boards", missing, tmp_path / "replies")

    return at


def test_an_experiment_writes_what_is_missing_and_repeats_itself_from_the_replies(places, tmp_path):
    rows, _ = run_experiment(ASKED, places("write"))
    with pytest.raises(CompletionError, match="have no recorded reply and stand in"):
        check_replies(ASKED, rows, places("write"))

    folder = ReplyFolder(tmp_path / "replies")
    lines = [
        json.dumps({"custom_id": key, "reply": {"queries": ["find a thing"]}})
        for key in folder.open_requests()
    ]
    answers = tmp_path / "answers.jsonl"
    answers.write_text("\n".join(lines))
    add_answers(folder, answers, "a program", "2026-01-31")

    tables = []
    for _ in range(2):
        rows, verdicts = run_experiment(ASKED, places("fail"))
        check_replies(ASKED, rows, places("fail"))
        assert {(row.strategy, row.calls, row.fallbacks) for row in rows} == {
            ("ask-as-agent", 1.0, 0.0)
        }
        tables.append(markdown(ASKED, rows, verdicts))
    assert tables[0] == tables[1]
    assert tables[0].startswith("**One call: for each request**\n\n| requests | n | strategy |")


@pytest.mark.parametrize(
    ("count", "number", "text"),
    [
        (17, 373, "17 of 373, 0.046 [0.029, 0.072]"),
        (148, 148, "148 of 148, 1.000 [0.975, 1.000]"),
        (0, 139, "0 of 139, 0.000 [0.000, 0.027]"),
        (0, 0, "0 of 0"),
    ],
)
def test_a_share_has_the_interval_of_wilsons_score(count, number, text):
    assert share(count, number) == text


def test_figures_of_a_fallback_are_refused(places):
    rows, _ = run_experiment(ASKED, places("fail"))

    with pytest.raises(CompletionError, match="without a usable reply for 100% of the requests"):
        check_replies(ASKED, rows, places("fail"))
