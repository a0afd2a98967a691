"""`pegboard eval` on the command line."""

import json

import pytest

import pegboard
from pegboard.tokens import estimate_tokens
from tests.openai_server import LITELLM_WARNINGS, chat, hang_up

pytestmark = LITELLM_WARNINGS
LINES = [
    {"query": "open an issue in a repository", "tools": ["create_issue"]},
    {"query": "the weather forecast of a city", "tools": ["get_forecast"]},
    {
        "query": "convert money and list the rates",
        "tools": ["convert_currency", "list_rates"],
        "kind": "parallel",
    },
]


@pytest.fixture
def golden(tmp_path):
    path = tmp_path / "golden.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES), "utf-8")
    return path


@pytest.fixture
def evaluate(golden, board_uri, run):
    return lambda options="": run(f"eval {golden} {options}", board=board_uri)


def test_every_strategy_is_evaluated_in_every_index_and_compared_with_the_first(evaluate):
    options = "--strategy search --strategy clauses --index full --index fine --by kind --worst 1"

    result = json.loads(evaluate(f"{options} --json").out)

    assert {(row["strategy"], row["index"]) for row in result["rows"]} == {
        (strategy, index) for strategy in ("search", "clauses") for index in ("full", "fine")
    }
    assert {"value", "low", "high", "n", "measure", "encoder"} <= result["rows"][0].keys()
    assert len(result["differences"]) == 3 * 6
    assert {row["kind"] for row in result["groups"]["kind"]} == {"single", "parallel"}
    assert (len(result["worst"]), result["queries"], result["unknown"]) == (4, 3, [])


def test_people_get_tables_and_progress_goes_to_stderr(evaluate):
    printed = evaluate("--measure recall@5 --against live --by catalog --worst 1")

    for text in (
        "Recall@5",
        "against clauses in full",
        "finance",
        "worst of clauses in full",
    ):
        assert text in printed.out
    assert "asked: 6 of 6" in printed.err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--measure Recal@5", "no measure 'Recal@5'"),
        ("--strategy best", "strategy 'best'"),
        ("--index none", "has no index 'none'"),
        ("--llm-api-base http://127.0.0.1:9", "--llm MODEL"),
        ("--tools 6,some", "'some': expected numbers of tools"),
        ("--tools 3", "3 tools: expected 4 to"),
        ("--noise far:3", "'far:3': expected random or near"),
        ("--noise near:3 --against live", "--against compares whole releases"),
    ],
)
def test_invalid_options_are_refused_before_any_query(evaluate, options, problem):
    printed = evaluate(options)

    assert printed.code in (2, 4)
    assert problem in printed.err
    assert "asked:" not in printed.err


def test_strategies_are_measured_in_pools_of_tools_with_one_row_for_each(evaluate):
    options = "--tools 6,all --noise random:2,near:1 --strategy search --measure Recall@1 --quiet"

    result = json.loads(evaluate(f"{options} --strategy clauses --by kind --json").out)
    printed = evaluate(options)

    rows = [(row["strategy"], row["pool"]) for row in result["rows"]]
    pools = ["6", "all", "random:2", "near:1"]
    assert rows == [(name, pool) for name in ("search", "clauses") for pool in pools]
    sizes = [row["pool_size"] for row in result["rows"][:4]]
    assert sizes[0] == 6
    assert sizes[1] > 6
    assert sizes[2] == (3 + 3 + 4) / 3
    assert {row["pool"] for row in result["groups"]["kind"]} == set(pools)
    assert {row["against"] for row in result["differences"]} == {"6", "search in full"}
    lines = [line.split() for line in printed.out.splitlines() if "search in full" in line]
    assert [line[3:5] for line in lines[:4]] == [
        [pool, f"{size:,.1f}".removesuffix(".0")] for pool, size in zip(pools, sizes, strict=True)
    ]
    assert "against 6: the difference" in printed.out


@pytest.fixture
def dying_llm(server, openai_key):
    """The options for an LLM that answers once, and is gone from then on."""
    server.script = [chat(json.dumps({"query": "issues in general"})), *[hang_up] * 100]
    return f"--llm openai/gpt-4o-mini --llm-api-base {server.url}"


def test_figures_of_fallbacks_fail_and_are_never_those_of_the_method(evaluate, dying_llm):
    options = f"--strategy step-back --quiet {dying_llm}"

    printed = evaluate(f"--json {options}")
    (overhead,) = json.loads(printed.out)["overhead"]
    shown = evaluate(f"{options} --max-fallbacks 1")

    assert printed.code == 7
    assert "pegboard eval: Parts of strategies worked without the LLM" in printed.err
    assert "step-back in full: 2 of 3 queries (67%); step-back-prompting: no answer" in printed.err
    assert "--max-fallbacks" in printed.err
    assert (overhead["fallbacks"], overhead["llm_calls"], overhead["tokens"]) == (2, 3, 15)
    assert (overhead["queries"], overhead["searches"]) == (3, 4)
    assert shown.code == 0
    assert "step-back in full, 100% by fallbacks" in shown.out
    assert "3 of 3" in shown.out


def test_a_strategy_that_asks_an_llm_is_not_measured_without_one(evaluate):
    refused, allowed = (
        evaluate(f"--strategy plan-select {more}") for more in ("", "--max-fallbacks 1")
    )

    assert (refused.code, allowed.code) == (2, 0)
    assert "plan-select: asks an LLM, and none was given. Expected --llm MODEL" in refused.err
    assert "asked:" not in refused.err
    assert "plan-select in full, 100% by fallbacks" in allowed.out


def test_the_tokens_of_answers_are_counted_with_and_without_the_compact_format(
    evaluate, board_uri, encoder
):
    options = "--tokens --strategy search --measure Recall@1 --measure Recall@3 --quiet"

    values = json.loads(evaluate(f"{options} --json").out)["tokens"]
    printed = evaluate(f"{options} --noise near:2").out
    refused = evaluate("--tokens --agents")

    board = pegboard.open(board_uri, encoder=encoder)
    answers = [board.search(line["query"], 3) for line in LINES]
    definitions = [
        json.dumps(tool, ensure_ascii=False, separators=(",", ":"))
        for hits in answers
        for tool in pegboard.as_openai_tools(hits)
    ]
    first, second = values["answers"]
    assert (first["k"], second["k"]) == (1, 3)
    assert first["json"] < second["json"] < values["all_tools"]["json"]
    assert second["json"] == pytest.approx(sum(map(estimate_tokens, definitions)) / len(LINES))
    toon = [pegboard.as_toon(hits).partition("\n")[2] for hits in answers]
    assert second["toon"] == pytest.approx(sum(map(estimate_tokens, toon)) / len(LINES), rel=0.02)
    assert second["toon"] < second["json"]
    assert "all tools of the release" in printed
    assert "near:2" in printed.partition("prompt tokens")[2]
    assert refused.code == 2
    assert "Leave out --agents and --against" in refused.err


def test_agents_are_measured_that_queries_name_or_that_own_their_tools(golden, evaluate):
    lines = [
        {"query": "open an issue", "tools": ["create_issue"]},
        {"query": "rates of currencies and a forecast", "agents": ["finance", "kit/weather"]},
        {"query": "the git host", "tools": ["order_lunch"], "agents": [["git", "weather"]]},
        {"query": "lunch for everybody", "agents": ["gone"]},
    ]
    golden.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    options = "--agents --measure Recall@5 --measure nDCG@5 --measure mAP@5 --worst 1"

    values = json.loads(evaluate(f"{options} --quiet --json").out)
    shown = evaluate(f"{options} --strategy both-hybrid --strategy agents-BM25")
    tools = evaluate("--measure Recall@5 --strategy search --json")

    assert [(row["strategy"], row["measure"], row["n"]) for row in values["rows"]] == [
        ("both-hybrid", measure, 4) for measure in ("Recall@5", "nDCG@5", "mAP@5")
    ]
    assert values["rows"][0]["value"] == 3 / 4
    assert values["unknown"] == ["gone"]
    assert values["worst"][0]["queries"][0]["needed"] == ["gone"]
    assert "against both-hybrid in full" in shown.out
    assert "lacks 1 agent that queries need" in shown.err
    assert "2 queries name agents alone and are left out; --agents measures them" in tools.err
    assert json.loads(tools.out)["queries"] == 2
    for more, problem in (
        ("--strategy search", "'search' is not a way of searching for agents. Expected one of"),
        ("--strategy both-hybrid-decomposed", "asks an LLM, and none was given"),
        ("--tools 5", "--agents searches the agents of one whole release"),
        ("--index none", "has no index 'none'"),
    ):
        refused = evaluate(f"--agents {more}")
        assert refused.code in (2, 4)
        assert problem in refused.err


def test_steps_that_an_llm_writes_for_a_search_of_agents_are_counted(server, openai_key, evaluate):
    server.script = [chat(json.dumps({"steps": ["open an issue", "lunch"]}))] * 3
    options = f"--llm openai/gpt-4o-mini --llm-api-base {server.url} --quiet --json"

    values = json.loads(evaluate(f"--agents --strategy both-hybrid-decomposed {options}").out)

    [overhead] = values["overhead"]
    assert (overhead["llm_calls"], overhead["fallbacks"], overhead["queries"]) == (3, 0, 3)
    assert overhead["searches"] == 3 * 3
