"""An agent that is asked golden queries, against a scripted server: what is scored, what it costs,
and that nothing is bought twice.
"""

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from pegboard.cli.main import main
from tests.children import start_child

SERVER = Path(__file__).parents[2] / "scripted_llm.py"
GOLDEN = [
    {
        "query": "what are 30 dollars in yen?",
        "tools": ["convert_currency"],
        "calls": [{"tool": "convert_currency", "arguments": {"amount": 30, "to": "JPY"}}],
    },
    {
        "query": "will it rain in Oslo tomorrow?",
        "tools": ["get_forecast"],
        "calls": [{"tool": "get_forecast", "arguments": {"city": "Oslo", "days": 1}}],
    },
    {
        "query": "open an issue: the lights flicker, and nobody knows why",
        "tools": ["create_issue"],
        "calls": [
            {
                "tool": "create_issue",
                "arguments": {"title": "Lights flicker", "body": "Nobody knows why."},
            }
        ],
    },
    {
        "query": "order soup, and list the exchange rates of today",
        "tools": ["order_lunch", "list_rates"],
        "calls": [
            {"tool": "order_lunch", "arguments": {"dish": "soup"}},
            {"tool": "list_rates", "arguments": {}},
        ],
    },
]
SIZES = ("--tools", "2,10", "-k", "1,2,5")
TEXT = {"name": "words", "modes": ["text"]}
"""A strategy that needs no encoder, which would be loaded for every run."""
ASKED = 8
"""Four queries, with two and with ten tools."""

pytestmark = pytest.mark.filterwarnings(
    # pydantic says so while LiteLLM defines its types; it concerns nothing that is used here.
    "ignore:Item .* on TypedDict class .* is using the `ReadOnly` qualifier:UserWarning"
)


def written(path, rows):
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), "utf-8")
    return path


def lines(path):
    """The whole lines of a file as JSON."""
    return (
        [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]
        if path.exists()
        else []
    )


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Starts a scripted server with options: its log, and its address. It ends with the tests of
    this module.
    """
    folder = tmp_path_factory.mktemp("servers")
    golden = written(folder / "golden.jsonl", GOLDEN)
    processes = []

    def started(*options):
        log = folder / f"{len(processes)}.log"
        command = [sys.executable, str(SERVER), str(log), "--golden", str(golden), *options]
        process = start_child(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        return log, f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"

    yield started
    for process in processes:
        process.stdin.close()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module")
def server(start):
    return start()


class Agent:
    """Asks the agents that a scripted server plays."""

    def __init__(self, server, folder, board, capsys):
        self.log, self.url = server
        self.out, self.golden = folder / "out", written(folder / "golden.jsonl", GOLDEN)
        self.strategy = written(folder / "strategy.json", [TEXT])
        self._board, self._capsys, self._before = board, capsys, len(lines(self.log))

    def arguments(self, habit, *more):
        options = {
            "--model": f"hosted_vllm/agent-{habit}",
            "--board": self._board,
            "--out": str(self.out),
            "--api-base": self.url,
            "--strategy": str(self.strategy),
        }
        words = [word for option in options.items() for word in option]
        return ["eval-agent", str(self.golden), *words, *SIZES, *more]

    def run(self, habit, *more):
        """The exit code, what was printed, and what was said."""
        code = main(self.arguments(habit, *more))
        said = self._capsys.readouterr()
        return code, said.out, said.err

    def result(self, habit, *more):
        code, out, err = self.run(habit, *more, "--json")
        assert code == 0, err
        return json.loads(out)

    def paid(self):
        """The calls that this test had answered."""
        return [one for one in lines(self.log)[self._before :] if one["paid"]]

    def replies(self):
        return lines(self.out / "replies.jsonl")


@pytest.fixture
def agent(server, tmp_path, board_uri, capsys):
    return Agent(server, tmp_path, board_uri, capsys)


def measured(result, given="needed"):
    """For each number of tools: tool names, argument names, argument values, and the three
    weighted.
    """
    rows = [row for row in result["agent"] if row["given"] == given]
    return {
        size: tuple(
            next(row["value"] for row in rows if (row["tools"], row["measure"]) == (size, measure))
            for measure in ("ToolName", "ArgumentNames", "ArgumentValues", "CallScore")
        )
        for size in sorted({row["tools"] for row in rows})
    }


def counted(result, field):
    return {row["tools"]: row[field] for row in result["calls"] if row["given"] == "needed"}


@pytest.mark.parametrize(
    ("habit", "two", "ten"),
    [
        ("right", (1, 1, 1, 1), (1, 1, 1, 1)),
        ("drops", (1, 0.5, 0.5, 0.75), (1, 0.5, 0.5, 0.75)),
        ("unknown", (0, 0, 0, 0), (0, 0, 0, 0)),
        ("malformed", (1, 0, 0, 0.5), (1, 0, 0, 0.5)),
        ("wordy", (1, 1, 1, 1), (1, 1, 1, 1)),
        ("crowded", (1, 1, 1, 1), (0.125, 0.125, 0.125, 0.125)),
        ("small", (1, 1, 1, 1), (0, 0, 0, 0)),
    ],
)
def test_an_agent_of_known_habits_has_the_score_of_its_habits(agent, habit, two, ten):
    result = agent.result(habit, "--calling", "native")

    assert measured(result) == {2: two, 10: ten}
    assert result["calling"] == "native"
    assert (
        counted(result, "unknown_tools") == {2: 5, 10: 5} if habit == "unknown" else {2: 0, 10: 0}
    )
    assert counted(result, "malformed") == (
        {2: 5, 10: 5} if habit == "malformed" else {2: 0, 10: 0}
    )
    assert counted(result, "surplus")[2] == {"wordy": 4, "unknown": 5}.get(habit, 0)
    assert counted(result, "unanswered") == {2: {}, 10: {"request": 4} if habit == "small" else {}}
    assert len(agent.paid()) == len(agent.replies()) == (4 if habit == "small" else ASKED)


def test_the_expected_accuracy_is_the_agents_times_the_recall_and_a_k_is_named(agent):
    options = "--calling native --retrieved --tools 1,2,5,10 -k 1,2,5,8,10,12 --among 8"
    result = agent.result("crowded", *options.split())

    rows = {(row["tools"], row["k"]): row for row in result["expected"]}
    assert sorted({tools for tools, _ in rows}) == [8, 14]
    for row in rows.values():
        if row["k"] != 12:
            assert row["expected"] == pytest.approx(row["agent"] * row["retrieval"])
            assert row["low"] <= row["expected"] <= row["high"]
    assert (rows[14, 12]["agent"], rows[14, 12]["expected"]) == (None, None)
    assert [k for tools, k in rows if tools == 14 and rows[14, k]["interpolated"]] == [8]
    assert rows[14, 5]["measured"]["value"] == measured(result, "found")[5][3]
    assert result["chosen"]["k"] <= 5
    assert rows[14, 10]["expected"] <= 0.125
    tokens = {
        row["tools"]: row["prompt_tokens"] for row in result["calls"] if row["given"] == "needed"
    }
    assert tokens[1] < tokens[5] < tokens[10]
    assert set(counted(result, "tokens_by").values()) == {"server"}


def test_tables_say_what_was_measured_what_is_expected_and_what_to_take(agent):
    code, out, err = agent.run("crowded", "--price", "1,2", "--retrieved")

    assert code == 0
    assert "hosted_vllm/agent-crowded, asked by the API's own tool calling" in out
    assert "With M tools, all needed ones among them:" in out
    assert "With the first k tools found by strategy words:" in out
    assert "the agent's score with k tools x Recall@k" in out
    assert "the agent was tried with 2 to 10 tools only" in out
    assert "\nTake k = 2: " in out
    assert "This run spent 0.00" in out
    assert "Replies, scores and results are in" in err


def test_a_server_that_passes_over_tools_is_asked_with_the_tools_in_the_prompt(agent):
    result = agent.result("plain")
    again = agent.result("plain")

    assert result["calling"] == again["calling"] == "prompt"
    assert measured(result) == {2: (1, 1, 1, 1), 10: (1, 1, 1, 1)}
    assert Counter(one["native"] for one in agent.paid()) == {True: 1, False: ASKED}


def test_what_was_answered_is_never_asked_again(agent):
    first = agent.result("right")
    before = len(agent.paid())

    assert agent.result("right") == first | {"spent_usd": first["spent_usd"]}
    assert (
        before == len(agent.paid()) == ASKED + 1
    )  # the first call sees whether the model calls tools
    assert lines(agent.out / "scores.jsonl")[0]["weighted"] == 1
    assert json.loads((agent.out / "results.json").read_text("utf-8")) == first

    more = agent.result("right", "--tools", "2,5,10")

    assert sorted(measured(more)) == [2, 5, 10]
    assert len(agent.paid()) == before + 4


def test_a_run_that_is_killed_goes_on_where_it_stopped(start, tmp_path, board_uri, capsys):
    hold = tmp_path / "hold"
    hold.touch()
    asked = Agent(start("--hold", str(hold), "--hold-after", "3"), tmp_path, board_uri, capsys)
    options = ("--calling", "native", "--concurrency", "1")
    process = start_child(
        [sys.executable, "-m", "pegboard", *asked.arguments("right", *options)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while len(asked.paid()) < 4:  # three are answered, and the fourth is on its way
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    hold.unlink()
    assert len(asked.replies()) == 3
    with (asked.out / "replies.jsonl").open("a") as file:
        file.write('{"key": "a line that was cut in tw')

    result = asked.result("right", *options)

    assert measured(result) == {2: (1, 1, 1, 1), 10: (1, 1, 1, 1)}
    bought = Counter((one["subject"], one["tools"]) for one in asked.paid())
    assert len(bought) == ASKED
    assert bought.total() == ASKED + 1  # the call that was on its way when the process was killed
    assert asked.result("right", "--calling", "native")["agent"] == result["agent"]
    assert sum(bought.values()) == len(asked.paid())


def test_a_dry_run_asks_nothing_and_says_what_it_would_cost(agent):
    bill = agent.result("right", "--dry-run", "--price", "1,2")
    _, out, _ = agent.run("right", "--dry-run")

    assert agent.paid() == []
    assert not agent.out.exists()
    assert (bill["calls"], bill["answered"], bill["completion_tokens"]) == (ASKED, 0, ASKED * 1024)
    assert bill["cost_usd"] == pytest.approx((bill["prompt_tokens"] + 2 * ASKED * 1024) / 1e6)
    assert "8 calls to make, 0 answered before" in out
    assert "cost unknown: give a price (--price)" in out


def test_a_budget_is_kept_and_a_larger_one_goes_on(agent):
    words = "--calling native --price 1000,1000 --reply-tokens 100 --concurrency 1"
    options = words.split()

    code, _, err = agent.run("right", *options, "--budget-usd", "2")

    assert code == 7
    assert "does not fit into budget_usd = 2" in err
    assert 0 < sum(one["cost_usd"] for one in agent.replies()) <= 2
    bought = len(agent.paid())
    assert 0 < bought < ASKED
    assert agent.result("right", *options, "--budget-usd", "20")["spent_usd"] > 0
    assert len(agent.paid()) == ASKED


def test_a_budget_without_a_price_is_a_wrong_configuration(agent):
    code, _, err = agent.run("right", "--calling", "native", "--budget-usd", "2")

    assert code == 2
    assert "--price IN,OUT" in err


@pytest.mark.parametrize("calling", ["auto", "native"])
def test_an_agent_that_cannot_be_reached_ends_with_7(agent, calling):
    code, out, err = agent.run("fails", "--calling", calling, "--attempts", "1")

    assert (code, out) == (7, "")
    assert "scripted 500" in err
    assert agent.replies() == []


def test_golden_queries_without_calls_are_refused_with_what_is_expected(agent):
    agent.golden.write_text('{"query": "rates?", "tools": ["list_rates"]}\n')

    code, _, err = agent.run("right")

    assert code == 2
    assert "No golden query can be put to an agent (1 in all):\n  - 1 have no right calls" in err
    assert (
        '"calls": [{"tool": "convert_currency", "arguments": {"amount": 30, "to": "JPY"}}]' in err
    )


def test_some_queries_without_calls_are_left_out_and_said(agent):
    with agent.golden.open("a") as file:
        file.write('{"query": "rates?", "tools": ["list_rates"]}\n')

    code, _, err = agent.run("right", "--limit", "1", "--calling", "native")

    assert code == 0
    assert "1 of 5 golden queries are left out: they have no right calls" in err


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--tools", "0"], "whole numbers of at least 1, such as 1,5,10 or 1..20"),
        (["-k", "9..3"], "whole numbers of at least 1"),
        (["--price", "cheap"], "expected two numbers, such as 0.15,0.60"),
        (["--limit", "-1"], "a whole number of at least 1"),
    ],
)
def test_wrong_options_are_refused_with_an_example(wrong, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["eval-agent", "golden.jsonl", "--board", "b", "--model", "m", *wrong])

    assert ended.value.code == 2
    assert said in capsys.readouterr().err
