"""The experiments with an LLM, and the replies that are recorded for them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.llm.__main__ import check_replies
from benchmarks.llm.boards import HERE
from benchmarks.llm.collisions import collisions
from benchmarks.llm.experiments import EXPERIMENTS, run_experiment
from benchmarks.llm.measured import REPLIES, Experiment, Measured, Places, Row
from benchmarks.llm.tables import markdown, share
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
    rows = run_experiment(ASKED, places("write")).rows
    with pytest.raises(CompletionError, match="have no recorded reply and stand in"):
        check_replies(ASKED, rows, places("write"))

    folder = ReplyFolder(tmp_path / "replies")
    answer_open(folder, lambda _: {"queries": ["find a thing"]})

    tables = []
    for _ in range(2):
        measured = run_experiment(ASKED, places("fail"))
        check_replies(ASKED, measured.rows, places("fail"))
        assert {(row.strategy, row.calls, row.fallbacks) for row in measured.rows} == {
            ("ask-as-agent", 1.0, 0.0)
        }
        tables.append(markdown(ASKED, measured))
    assert tables[0] == tables[1]
    assert tables[0].startswith("**One call: for each request**\n\n| requests | n | strategy |")


def answer_open(folder, reply):
    """Record what a program replies to each open request; `reply` gets the last message."""
    lines = [
        json.dumps({"custom_id": key, "reply": reply(line["body"]["messages"][-1]["content"])})
        for key, line in folder.open_requests().items()
    ]
    answers = folder.path.parent / "answers.jsonl"
    answers.write_text("\n".join(lines))
    add_answers(folder, answers, "a program", "2026-01-31")
    return len(lines)


def test_edges_of_an_llm_are_measured_beside_rules_and_declarations(places, tmp_path):
    edges = next(experiment for experiment in EXPERIMENTS if experiment.name == "edges")
    assert run_experiment(edges, places("write")) == Measured()
    with pytest.raises(CompletionError, match="have no recorded reply and stand in"):
        check_replies(edges, [], places("write"))
    anchor = {
        "tool": "raise_anchor",
        "argument": "",
        "direct": True,
        "reason": "It holds the ship.",
    }
    needs = {"sail_out": [anchor, anchor | {"tool": "start_engine"}], "raise_anchor": []}
    needs["read_tide"] = [anchor]
    reply = {"tools": [{"name": name, "needs": own} for name, own in needs.items()]}
    assert answer_open(ReplyFolder(tmp_path / "replies"), lambda _: reply) == 1

    measured = run_experiment(edges, places("fail"))
    text = markdown(edges, measured)

    origins = ["rules", "an LLM", "rules and an LLM", "declared", "none"]
    assert sorted(row.index for row in measured.rows) == sorted(origins)
    [table] = measured.more
    assert table.lines[1] == [
        "an LLM",
        "1 of 2, 0.500 [0.095, 0.905]",
        "1 of 2, 0.500 [0.095, 0.905]",
    ]
    assert table.note.startswith("Proposals of the LLM that were left out: 1 a tool that the agent")
    assert "| toollinkos, all |  | *Graph RAG-Tool Fusion* |  | 0.856 | 0.943 |  |  |" in text


def test_edges_without_all_replies_are_refused(places):
    edges = next(experiment for experiment in EXPERIMENTS if experiment.name == "edges")

    with pytest.raises(CompletionError, match="There are no proposals for 3 tools"):
        run_experiment(edges, places("fail"))


def test_one_run_writes_the_requests_of_all_boards_and_measures_nothing(places, tmp_path):
    written = Experiment(
        "written",
        "Texts",
        ("metatool",),
        ("default",),
        indexes="both.toml",
        boards=("single-without-examples", "multi"),
    )

    assert run_experiment(written, places("write")) == Measured()

    open_requests = ReplyFolder(tmp_path / "replies").open_requests()
    shown = "".join(line["body"]["messages"][1]["content"] for line in open_requests.values())
    built = sorted(folder.name for folder in (tmp_path / "boards" / "metatool@both").iterdir())
    assert built == ["multi", "single-without-examples"]
    names = {
        name
        for file in ("plugin_des.json", "big_tool_des.json")
        for name in json.loads((SPECIMENS / "metatool" / file).read_text())
    }
    assert all(name in shown for name in names)


def test_the_figures_of_papers_stand_beside_what_is_measured_in_the_same_way():
    row = Row("ultratool, all", "plan-select", "full", 2, {}, 3.0, 10.0, 0.0)
    values = dict.fromkeys(("Recall", "Precision", "F1"), (0.5, 0.4, 0.6))
    experiment = next(one for one in EXPERIMENTS if one.name == "plan-select")

    text = markdown(experiment, Measured([replace(row, values=values)]))

    assert "| strategy | texts | Recall | Precision | F1 |" in text
    assert "| plan-select | none | 0.500 [0.400, 0.600] | 0.500 [0.400, 0.600] |" in text
    assert (
        "*RPS end to end (context decomposition, augmented tools)* |  | 0.392 |  | 0.353 |" in text
    )
    assert "0.494" in text
    assert "toolret" not in text


def test_collisions_are_pairs_of_nearly_equal_vectors():
    vectors = np.array([[1, 0, 0], [0.96, 0.28, 0], [0.8, 0.6, 0], [0, 0, 1]], np.float32)

    nearest, pairs = collisions(vectors)

    assert nearest.round(3).tolist() == [0.96, 0.96, 0.936, 0.0]
    assert pairs == 1


def test_collisions_are_counted_in_each_index_of_each_board(places, tmp_path):
    names = ("nothing", "brief")
    indexes = tmp_path / "two.toml"
    indexes.write_text(
        "\n".join(f'[[indexes]]\nname = "{name}"\nparts = ["name"]\n' for name in names)
    )
    recorded = next(one for one in EXPERIMENTS if one.name == "collisions")
    experiment = replace(
        recorded, benchmarks=("metatool",), boards=("multi",), indexes=str(indexes)
    )

    [table] = run_experiment(experiment, places("fail")).more

    assert [line[:3] for line in table.lines] == [
        ["metatool", "none", "2"],
        ["metatool", "brief", "2"],
    ]


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
    rows = run_experiment(ASKED, places("fail")).rows

    with pytest.raises(CompletionError, match="without a usable reply for 100% of the requests"):
        check_replies(ASKED, rows, places("fail"))
