"""The settings of a sweep: parameters over the table over defaults, and all problems at once."""

import json

import pytest

from pegboard.errors import ConfigurationError
from tasks.settings.sweep import read_sweep

GOLDEN = '{"query": "what are 30 dollars in yen?", "tools": ["convert_currency"]}\n'
TABLE = '[sweep]\ngolden = "golden.jsonl"\n'


@pytest.fixture
def config(workshop):
    """A configuration with golden queries beside it."""
    workshop.servers({"git": [workshop.tool("create_issue", "Opens an issue.")]})
    workshop.configure('[[indexes]]\nname = "full"\n[[indexes]]\nname = "fine"\nshape = "multi"\n')
    workshop.write("golden.jsonl", GOLDEN)
    return workshop.folder / "pegboard.toml"


def add(config, text):
    config.write_text(config.read_text("utf-8") + text, "utf-8")


def test_parameters_override_the_table_which_overrides_defaults(config):
    add(config, TABLE + 'k = "1..4, 9"\nmax_ms = 30\n')

    table = read_sweep(config, {})
    sweep = read_sweep(config, {"k": ["2", "4,5"], "max_ms": None, "margin": 0.1})

    assert (table.settings.k, sweep.settings.k) == ((1, 2, 3, 4, 9), (2, 4, 5))
    assert (sweep.settings.max_ms, sweep.settings.margin) == (30, 0.1)
    assert [strategy.name for strategy in sweep.strategies] == ["search", "clauses"]
    assert [query.tools for query in sweep.queries] == [("convert_currency",)]
    assert sweep.configuration.file == config


def test_pools_are_texts_or_lists_and_the_whole_release_is_always_among_them(config):
    add(config, TABLE + 'tools = [100, 500]\nnoise = "random:30"\n')

    table = read_sweep(config, {}).settings
    sweep = read_sweep(config, {"tools": "200,all", "noise": ["near:10"]}).settings

    assert [*map(str, table.pools)] == ["all", "100", "500", "random:30"]
    assert [*map(str, sweep.pools)] == ["all", "200", "near:10"]
    with pytest.raises(ConfigurationError, match="'far:3': expected random or near"):
        read_sweep(config, {"noise": "far:3"})


def test_searches_for_agents_have_strategies_of_their_own(config):
    golden = str(config.parent / "golden.jsonl")

    sweep = read_sweep(config, {"golden": golden, "agents": True})
    strategies = ["search", "both-hybrid-decomposed"]
    wrong = {"golden": golden, "agents": True, "strategies": strategies, "noise": "near:1"}
    with pytest.raises(ConfigurationError) as error:
        read_sweep(config, wrong)

    assert sweep.strategies == ()
    assert sweep.agent_strategies[0].name == "both-hybrid"
    for part in (
        "agents: searched in whole releases",
        "'search' is not a way of searching for agents",
        "'both-hybrid-decomposed' asks an LLM",
    ):
        assert part in str(error.value)


def test_strategies_may_be_files_or_tables(config, tmp_path):
    (tmp_path / "mine.json").write_text(json.dumps({"transforms": ["clauses"]}), "utf-8")
    strategies = ["search", str(tmp_path / "mine.json"), {"name": "words", "modes": ["text"]}]
    golden = str(config.parent / "golden.jsonl")

    sweep = read_sweep(config, {"golden": golden, "strategies": strategies})

    assert [strategy.name for strategy in sweep.strategies] == ["search", "mine", "words"]


def test_all_problems_are_reported_together(config):
    add(config, "[sweep]\nspeed = 3\n")
    with_indexes = {"name": "own", "indexes": ["full"]}
    with_threshold = {
        "name": "likely",
        "refine": [{"part": "at-least", "probability": "accept_90"}],
    }
    parameters = {
        "golden": str(config.parent / "none.jsonl"),
        "strategies": ["nosuch", "search", "search", with_indexes, with_threshold, "step-back"],
        "k": ["0"],
        "measures": ["Recall@5"],
    }

    with pytest.raises(ConfigurationError) as error:
        read_sweep(config, parameters)

    message = str(error.value)
    assert message.startswith("The sweep has 9 problems:\n")
    for part in (
        "speed: no such setting",
        "(got '0')",
        "(got Recall@5)",
        "nosuch",
        "two are named 'search'",
        "'own' names its indexes",
        "'likely' asks for a probability that no search gives it",
        "'step-back' asks an LLM; give one: --llm MODEL",
        "none.jsonl cannot be read",
    ):
        assert part in message
