"""An agent evaluated on golden queries against a scripted server: scores and cost."""

import json

import pytest

from pegboard.cli.main import main
from tests.openai_server import LITELLM_WARNINGS
from tests.scripted_llm import scripted_llm


def golden(query, *calls):
    right = [{"tool": tool, "arguments": arguments} for tool, arguments in calls]
    return {"query": query, "tools": [tool for tool, _ in calls], "calls": right}


GOLDEN = [
    golden("what are 30 dollars in yen?", ("convert_currency", {"amount": 30, "to": "JPY"})),
    golden("will it rain in Oslo tomorrow?", ("get_forecast", {"city": "Oslo", "days": 1})),
    golden(
        "open an issue: the lights flicker, and nobody knows why",
        ("create_issue", {"title": "Lights flicker", "body": "Nobody knows why."}),
    ),
    golden(
        "order soup, and list the exchange rates of today",
        ("order_lunch", {"dish": "soup"}),
        ("list_rates", {}),
    ),
]
WITHOUT_CALLS = {"query": "rates?", "tools": ["list_rates"]}
SIZES = ("--tools", "2,10")
TEXT = {"name": "words", "modes": ["text"]}
"""A strategy that needs no encoder, which would be loaded for every run."""
REQUESTS = 8
"""Four queries, with two and with ten tools."""
MEASURES = ("ToolName", "ArgumentNames", "ArgumentValues", "CallScore")

pytestmark = LITELLM_WARNINGS


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture
def llm():
    with scripted_llm(golden={query["query"]: query["calls"] for query in GOLDEN}) as llm:
        yield llm


class Agent:
    """Evaluates the agents that a scripted server plays, each named after its habit."""

    def __init__(self, llm, folder, board, capsys):
        self.llm = llm
        self.golden = write_lines(folder / "golden.jsonl", GOLDEN)
        self.strategy = write_lines(folder / "strategy.json", [TEXT])
        self._board, self._capsys = board, capsys

    def arguments(self, habit, *options):
        settings = {
            "--model": f"hosted_vllm/agent-{habit}",
            "--board": self._board,
            "--api-base": self.llm.url,
            "--strategy": str(self.strategy),
        }
        words = [word for setting in settings.items() for word in setting]
        return ["eval-agent", str(self.golden), *words, *SIZES, *options]

    def run(self, habit, *options):
        """Return the exit code, stdout and stderr."""
        code = main(self.arguments(habit, *options))
        printed = self._capsys.readouterr()
        return code, printed.out, printed.err

    def result(self, habit, *options):
        code, out, err = self.run(habit, *options, "--json")
        assert code == 0, err
        return json.loads(out)


@pytest.fixture
def agent(llm, tmp_path, board_uri, capsys):
    return Agent(llm, tmp_path, board_uri, capsys)


def scores(result):
    """The measures by the number of tools, in the order of `MEASURES`."""
    return {
        row["tools"]: tuple(row[measure]["value"] for measure in MEASURES) for row in result["rows"]
    }


def counts(result, field):
    return {row["tools"]: row[field] for row in result["rows"]}


@pytest.mark.parametrize(
    ("habit", "two", "ten", "counted"),
    [
        ("right", (1, 1, 1, 1), (1, 1, 1, 1), {}),
        ("drops", (1, 0.5, 0.5, 0.75), (1, 0.5, 0.5, 0.75), {}),
        ("unknown", (0, 0, 0, 0), (0, 0, 0, 0), {"unknown_tools": {2: 5, 10: 5}}),
        ("malformed", (1, 0, 0, 0.5), (1, 0, 0, 0.5), {"malformed": {2: 5, 10: 5}}),
        ("wordy", (1, 1, 1, 1), (1, 1, 1, 1), {"precision": {2: 5 / 9, 10: 5 / 9}}),
        ("crowded", (1, 1, 1, 1), (0.125, 0.125, 0.125, 0.125), {}),
        ("small", (1, 1, 1, 1), (0, 0, 0, 0), {"unanswered": {2: {}, 10: {"request": 4}}}),
    ],
)
def test_an_agent_has_the_scores_of_its_habits(agent, habit, two, ten, counted):
    result = agent.result(habit)

    assert scores(result) == {2: two, 10: ten}
    none = {"unknown_tools": {2: 0, 10: 0}, "malformed": {2: 0, 10: 0}}
    for field, by_size in (none | counted).items():
        assert counts(result, field) == by_size
    assert len(agent.llm.paid()) == (4 if habit == "small" else REQUESTS)


def test_the_expected_accuracy_is_the_agents_times_the_recall_and_a_k_is_chosen(agent):
    result = agent.result("crowded", "--tools", "1,2,5,10")

    for row in result["rows"]:
        expected = row["expected"]
        assert expected["value"] == pytest.approx(row["CallScore"]["value"] * row["retrieval"])
        assert expected["low"] <= expected["value"] <= expected["high"]
    assert result["rows"][-1]["expected"]["value"] <= 0.125
    assert result["chosen"]["k"] <= 5
    tokens = counts(result, "prompt_tokens")
    assert tokens[1] < tokens[5] < tokens[10]
    assert set(counts(result, "tokens_by").values()) == {"server"}


def test_the_table_has_the_measured_and_the_expected_accuracy_and_the_chosen_k(agent):
    write_lines(agent.golden, [*GOLDEN, WITHOUT_CALLS])

    code, out, err = agent.run("crowded", "--price", "1,2")

    assert code == 0
    for part in (
        "hosted_vllm/agent-crowded\n",
        "AGENT with K tools, all needed ones among them; RECALL of the first K of 14",
        "found by strategy words in index",
        "\nTake k = 2: ",
        "This run spent 0.00",
    ):
        assert part in out
    assert "Not tried: 1 of 5 golden queries: no right calls" in err


def test_a_server_that_ignores_tools_is_named_as_the_reason_for_no_call(agent):
    code, out, err = agent.run("plain")

    assert (code, "0.000 [0.000, 0.000]" in out) == (0, True)
    assert "None of 8 replies calls a tool. Some servers silently ignore tools" in err


def test_a_query_that_needs_more_tools_than_two_sizes_is_asked_once_for_both(agent):
    result = agent.result("right", "--tools", "1,2")

    assert len(result["scores"]) == 8
    assert {score["weighted"] for score in result["scores"]} == {1}
    assert len(agent.llm.paid()) == 7


def test_a_run_stays_within_its_budget(agent):
    options = ["--price", "1000,1000", "--reply-tokens", "100", "--concurrency", "1"]

    code, _, err = agent.run("right", *options, "--budget-usd", "2")

    assert code == 7
    assert "does not fit into budget_usd = 2" in err
    assert 0 < len(agent.llm.paid()) < REQUESTS


def test_a_budget_without_a_price_and_queries_without_calls_are_refused(agent):
    code, _, err = agent.run("right", "--budget-usd", "2")
    assert (code, "--price IN,OUT" in err) == (2, True)

    write_lines(agent.golden, [WITHOUT_CALLS])
    code, _, err = agent.run("right")
    assert code == 2
    assert (
        "No golden query can be put to an agent:\n  - 1 of 1 golden queries: no right calls" in err
    )
    assert f'"calls": {json.dumps(GOLDEN[0]["calls"])}' in err
