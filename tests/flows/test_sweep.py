"""A sweep: what it measures, what it recommends within limits, and the problems that prevent it."""

import json
import shutil
from dataclasses import asdict

import numpy as np
import pytest

from pegboard.errors import BudgetExhausted, ConfigurationError
from pegboard.evaluation.comparison import evaluate
from pegboard.evaluation.intervals import interval
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import ReleaseSystem
from pegboard.llm.answers import add_answers
from pegboard.llm.recorded import ReplyFolder
from pegboard.store.releases import ReleaseStore
from tasks.golden.sweep import Result, choose, measure, open_release
from tasks.settings.sweep import SweepSettings, read_sweep

THINGS = ("invoice", "room", "taxi", "ticket", "parcel", "lamp", "garden", "recipe")
VERBS = {
    "book": "Reserves",
    "cancel": "Calls off",
    "list": "Shows every",
    "paint": "Colours",
    "send": "Posts",
}
INDEXES = """
[[indexes]]
name = "whole"  # every part
encoder = "hashing/48"
parts = ["name", "description", "arguments"]
shape = "single"

[[indexes]]
name = "names"
encoder = "hashing/48"
parts = ["name"]
shape = "single"
"""
GOLDEN = [
    {"query": f"{text.lower()} my {thing}", "tools": [f"{verb}_{thing}"]}
    for thing in THINGS
    for verb, text in VERBS.items()
]
QUERIES = 400


@pytest.fixture(scope="module")
def shared_board(tmp_path_factory, workshop_type):
    """A board of forty tools with two indexes, and golden queries. Do not change it."""
    workshop = workshop_type(tmp_path_factory.mktemp("bench"))
    tools = [
        workshop.tool(f"{verb}_{thing}", f"{text} a {thing}.")
        for thing in THINGS
        for verb, text in VERBS.items()
    ]
    workshop.servers({"office": tools})
    workshop.write("golden.jsonl", "".join(json.dumps(row) + "\n" for row in GOLDEN))
    workshop.run(workshop.configure(INDEXES))
    return workshop.folder


@pytest.fixture
def folder(shared_board, workshop):
    shutil.copytree(shared_board, workshop.folder, dirs_exist_ok=True)
    return workshop.folder


@pytest.fixture
def read(folder):
    """A function that reads a sweep with some parameters."""

    def run(**parameters):
        golden = str(folder / "golden.jsonl")
        defaults = {"golden": golden, "measures": ["Recall"], "k": "1..3"}
        return read_sweep(folder / "pegboard.toml", {**defaults, **parameters})

    return run


def results(*systems):
    """Results of systems: index, strategy, k, the values, tokens and milliseconds."""
    return [
        Result(
            index, strategy, k, "Recall", interval(values),
            tokens=float(tokens), ms_p50=ms / 2, ms_p95=float(ms), values=values,
        )
        for index, strategy, k, values, tokens, ms in systems
    ]  # fmt: skip


def hits(share):
    """1 for the first queries, 0 for the others, so that the mean is `share`."""
    return (np.arange(QUERIES) < int(share * QUERIES)).astype(float)


RESULTS = results(
    ("a", "search", 1, hits(0.5), 100, 5),
    ("a", "search", 5, hits(0.8), 500, 5),
    ("a", "search", 10, hits(0.81), 1000, 5),
    ("a", "clauses", 5, hits(0.9), 510, 40),
    ("a", "clauses", 10, hits(0.905), 1020, 40),
)


def test_what_is_measured_is_what_evaluate_returns_with_its_cost(read, folder):
    sweep = read(strategies=["clauses", "search"], measures=["nDCG", "Recall"])
    measured = measure(sweep, open_release(sweep))
    searcher = Searcher.open(str(folder / "board"))
    system = ReleaseSystem.resolve(searcher, "clauses", "names")
    direct = evaluate(system, sweep.queries, ["nDCG@2", "Recall@2"])

    systems = {(row.index, row.strategy): row for row in measured}
    assert systems.keys() == {(i, s) for i in ("whole", "names") for s in ("clauses", "search")}
    assert len(measured) == 4 * 2 * 3
    own = [row for row in measured if (row.index, row.strategy) == ("names", "clauses")]
    rows = [row for row in own if row.k == 2]
    assert [row.measure for row in rows] == ["nDCG", "Recall"]
    assert [row.mean for row in rows] == [direct.interval(measure) for measure in direct.values]
    assert [row.values.tolist() for row in rows] == [row.tolist() for row in direct.values.values()]
    # More tools take more tokens, and requests take time.
    tokens = [row.tokens for row in own if row.measure == "Recall"]
    assert tokens[0] > 5
    assert tokens[2] == pytest.approx(3 * tokens[0], rel=0.2)
    assert 0 < rows[0].ms_p50 <= rows[0].ms_p95


def test_all_problems_with_the_release_are_in_one_message(read, folder):
    unknown = json.dumps({"query": "fly", "tools": ["fly_kite"]})
    golden = folder / "golden.jsonl"
    golden.write_text(golden.read_text("utf-8") + unknown, "utf-8")

    with pytest.raises(ConfigurationError) as caught:
        open_release(read(k="50"))

    message = str(caught.value)
    for part in (
        f"The sweep of release {ReleaseStore(str(folder / 'board')).named('live').id} has 2 prob",
        "k: expected at most the 40 tools of the release, got 50",
        "1 queries need tools that the release does not have: fly_kite",
    ):
        assert part in message


def test_the_command_prints_rows_and_its_choice(command, folder):
    arguments = ("sweep", "--golden", "golden.jsonl", "--strategy", "search", "-k", "1..5")
    before = ReleaseStore(str(folder / "board")).channels()
    code, out, err = command(*arguments, "--json")
    _, text, _ = command(*arguments, "-k", "2")

    assert code == 0, err
    outcome = json.loads(out)
    chosen = outcome["choice"]["recommended"]
    assert (outcome["queries"], len(outcome["rows"])) == (40, 2 * 2 * 5)
    assert f"index {chosen['index']}, strategy search" in " ".join(outcome["says"])
    assert ReleaseStore(str(folder / "board")).channels() == before
    assert "whole  search" in text
    assert "Best of 10 candidates: index " in text
    code, _, _ = command(*arguments, "--release", "none")
    assert code == 4


def test_every_pool_is_measured_at_every_k_and_the_choice_is_for_the_whole_release(command, folder):
    golden = folder / "golden.jsonl"
    arguments = ("sweep", "--golden", golden, "--strategy", "search", "-k", "1..3")
    code, out, err = command(*arguments, "--json")
    _, whole, _ = command(*arguments, "--tools", "40", "--noise", "near:2,random:2", "--json")
    _, text, _ = command(*arguments, "--noise", "random:2")

    assert code == 0, err
    rows = json.loads(whole)["rows"]
    assert [(row["pool"], row["pool_size"]) for row in rows[::6]] == 2 * [
        *(("all", 40), ("40", 40), ("near:2", 3), ("random:2", 3))
    ]
    recall = {
        (row["index"], row["pool"], row["k"]): row["value"]
        for row in rows
        if row["measure"] == "Recall"
    }
    assert recall["whole", "random:2", 3] == 1.0
    assert recall["names", "near:2", 1] >= recall["names", "all", 1]
    timed = {row["pool"] for row in rows if row["ms_p50"] is not None}
    assert timed == {"all", "40"}
    choice = json.loads(whole)["choice"]
    assert choice["candidates"] == json.loads(out)["choice"]["candidates"]
    assert choice["best"]["pool"] == "all"
    lines = [line.split() for line in text.splitlines() if line.startswith("whole")]
    systems = [["whole", "search", "all", "40"], ["whole", "search", "random:2", "3"]]
    assert [line[:4] for line in lines] == 2 * systems
    curve = [row for row in rows if row["index"] == "whole" and row["pool"] == "random:2"]
    means = [f"{row['value']:.3f}" for row in curve if row["measure"] == "Recall"]
    assert lines[-1][4:] == means


LLM = ("--llm", "openai/gpt-4o-mini")


def test_a_sweep_with_an_llm_is_repeated_by_its_recorded_replies(command, folder):
    golden = folder / "golden.jsonl"
    replies = folder / "replies"
    arguments = ("sweep", "--golden", golden, "--strategy", "search", "--strategy", "step-back")
    arguments += ("-k", "1..3", "--tools", "40", *LLM, "--replies", replies, "--quiet")

    written, out, err = command(*arguments, "--missing-replies", "write")
    answers = folder / "answers.jsonl"
    opened = ReplyFolder(replies)
    keys = opened.open_requests()
    line = {"reply": {"query": "something of the office"}}
    answers.write_text("\n".join(json.dumps({"custom_id": key, **line}) for key in keys))
    add_answers(opened, answers, "a program", "2026-01-31")
    code, repeated, plan = command(*arguments, "--missing-replies", "fail", "--json")

    assert written == 7
    assert "Parts of strategies worked without the LLM" in err
    assert len(keys) == len(GOLDEN)
    assert code == 0
    rows = json.loads(repeated)["rows"]
    asking = [row for row in rows if row["strategy"] == "step-back"]
    assert {row["llm_calls"] for row in asking} == {1.0}
    assert all(row["llm_tokens"] > 0 and row["ms_p50"] is None for row in asking)
    assert {row["pool"] for row in asking} == {"all", "40"}
    others = [row for row in rows if row["strategy"] == "search"]
    assert all("llm_calls" not in row and row["ms_p50"] is not None for row in others)
    assert f"step-back: {4 * len(GOLDEN)} LLM calls" in plan
    assert "LLM calls" in out


def test_a_plan_says_the_calls_and_the_money_and_asks_nothing(command, folder):
    arguments = ("sweep", "--golden", folder / "golden.jsonl", "-k", "1..3", *LLM, "--plan")
    arguments += ("--replies", folder / "replies", "--quiet")
    strategies = ("--strategy", "search", "--strategy", "plan-select")

    code, out, _ = command(*arguments, *strategies)
    _, values, _ = command(*arguments, *strategies, "--json")
    _, nothing, _ = command(*arguments)

    least = 2 * len(GOLDEN) * (1 + 3)
    most = 2 * len(GOLDEN) * (1 + 5 * 3)
    assert code == 0
    assert f"plan-select: {least} to {most:,} LLM calls" in out
    assert "USD by list price" in out
    plan = json.loads(values)
    assert plan["calls"] == {"plan-select": [least, most]}
    assert 0 < plan["usd"][0] < plan["usd"][1]
    assert nothing == "no strategy asks an LLM\n"
    assert not (folder / "replies").exists()


def test_a_sweep_ends_where_its_budget_does_with_what_is_measured_until_then(command, folder):
    arguments = ("sweep", "--golden", folder / "golden.jsonl", "-k", "1..3", *LLM, "--quiet")
    arguments += ("--budget-usd", "0.00001")

    code, out, err = command(*arguments, "--strategy", "search", "--strategy", "step-back")
    alone, nothing, reason = command(*arguments, "--strategy", "step-back")

    assert code == alone == BudgetExhausted("").exit_code
    assert [line.split()[:2] for line in out.splitlines() if "search" in line.split()[1:2]] == [
        ["names", "search"]
    ]
    assert "does not fit into budget_usd = 1e-05" in err
    assert "The systems behind the last row are not measured." in err
    assert nothing == ""
    assert "does not fit into budget_usd = 1e-05" in reason


def test_the_cheapest_that_is_shown_to_be_within_the_margin_is_recommended():
    choice = choose(RESULTS, SweepSettings())

    assert (choice.candidates, choice.allowed) == (5, 5)
    assert (choice.best.strategy, choice.best.k, choice.best.mean.value) == ("clauses", 10, 0.905)
    assert (choice.recommended.strategy, choice.recommended.k) == ("clauses", 5)
    [(near, gap)] = choice.near
    assert near is choice.recommended
    assert gap.value == pytest.approx(-0.005)
    assert gap.low >= -0.02
    assert choice.to_dict()["near"] == [near.to_dict() | {"against": asdict(gap)}]


def test_searches_for_agents_are_swept_with_the_tokens_of_all_their_tools(command, folder, read):
    rows = [
        {"query": "paint the lamp", "agents": ["office"]},
        {"query": "book a room", "tools": ["book_room"]},
    ]
    golden = folder / "agents.jsonl"
    golden.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    arguments = ("sweep", "--agents", "--golden", golden, "-k", "1")
    measures = ["nDCG", "mAP"]

    code, out, err = command(*arguments, "--json")
    _, text, _ = command(*arguments, "--strategy", "both-vector", "--strategy", "tools-BM25")
    sweep = read(golden=str(golden), agents=True, k="1", measures=measures)
    results = measure(sweep, open_release(sweep))

    assert code == 0, err
    values = json.loads(out)["rows"]
    strategies = {row["strategy"] for row in values}
    assert strategies == {"both-hybrid", "both-vector", "both-BM25", "both-hybrid-clauses"}
    assert {row["value"] for row in values} == {1.0}  # there is one agent
    assert {result.measure for result in results} == set(measures)
    sizes = {result.tokens for result in results}
    assert len(sizes) == 1
    assert sizes.pop() > 40 * 5
    assert "Board.search_agents" in text
    with pytest.raises(ConfigurationError, match="k: expected at most the 1 agents"):
        open_release(read(golden=str(golden), agents=True, k="2"))


@pytest.mark.parametrize("others", [1, 300])
def test_what_too_few_queries_show_is_not_recommended_however_many_candidates_there_are(others):
    best, half, close = np.ones(40), hits(0.5)[180:220], np.repeat([0.0, 1.0], [1, 39])
    cheap = [(f"i{number}", "search", 1, half, 10, 5) for number in range(others)]
    rows = [("best", "search", 10, best, 900, 5), ("close", "search", 5, close, 500, 5)]

    choice = choose(results(*rows, *cheap), SweepSettings(margin=0.03))

    assert (choice.recommended, choice.near) == (choice.best, ())
    assert choose(results(*rows), SweepSettings(margin=0.1)).recommended.index == "close"


@pytest.mark.parametrize(
    ("limits", "allowed", "best"),
    [
        ({"max_tokens": 505}, 2, ("search", 5)),
        ({"max_ms": 10}, 3, ("search", 10)),
        ({"max_ms": 10, "max_tokens": 400}, 1, ("search", 1)),
        ({"max_tokens": 10}, 0, None),
    ],
)
def test_limits_decide_which_candidates_there_are(limits, allowed, best):
    choice = choose(RESULTS, SweepSettings(**limits))

    assert (choice.allowed, choice.candidates) == (allowed, 5)
    assert (choice.best and (choice.best.strategy, choice.best.k)) == best
    assert (choice.recommended is None) == (best is None)


def test_without_a_candidate_within_the_limits_nothing_is_recommended(command, folder):
    _, out, _ = command("sweep", "--golden", "golden.jsonl", "-k", "1", "--max-tokens", "0.1")

    assert "None of the 4 candidates is within the limits" in out
