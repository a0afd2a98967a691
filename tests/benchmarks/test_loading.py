"""Every benchmark from its own files: queries, rows left out, and errors about a wrong folder."""

import json
from pathlib import Path

import pytest

from benchmarks.papers import NAMES
from benchmarks.papers.loading import load_benchmark
from pegboard.errors import ConfigurationError

SHARED = Path(__file__).parents[3] / "shared" / "benchmarks"


def texts(query_set):
    return [query.query for query in query_set.queries]


def tools(query_set):
    return [query.tools for query in query_set.queries]


def test_seal_tools_asks_every_file_of_queries_but_those_for_training(specimen):
    folder = specimen("seal-tools")

    found = load_benchmark("seal-tools", folder)

    (asked,) = found.query_sets
    assert texts(asked) == [
        "Give the hens some barley.",
        "Feed the hens and bring me the eggs.",
        "Milk the goat.",
    ]
    assert tools(asked) == [("feedHens",), ("feedHens", "collectEggs"), ("milkGoat",)]
    assert asked.tasks == {
        "all": (0, 1, 2),
        "single": (0, 2),
        "multi": (1,),
        "test_in_domain": (0, 1),
        "test_out_domain": (2,),
    }
    assert (found.tools, found.queries) == (2, 3)
    left, train = found.problems
    assert left.startswith("test_in_domain.jsonl: 3 of 5 rows left out: ")
    assert "line 3: it has no query (got '')" in left
    assert "line 4: it names no api" in left
    assert train == "train.jsonl: not asked, since they are for training"
    for file in ("test_out_domain.jsonl", "train.jsonl"):
        (folder / file).unlink()
    assert [*load_benchmark("seal-tools", folder).query_sets[0].tasks] == ["all", "single", "multi"]


def test_metatool_has_two_tasks_on_two_catalogs_of_which_one_may_be_missing(specimen):
    folder = specimen("metatool")

    found = load_benchmark("metatool", folder)

    single, bare, multi = found.query_sets
    assert (single.tasks, multi.tasks) == ({"single": (0, 1, 2)}, {"multi": (0, 1)})
    assert (bare.tasks, bare.queries) == ({"single-without-examples": (0, 1, 2)}, single.queries)
    assert tools(single) == [("whittle",), ("glaze",), ("whittle",)]
    assert tools(multi) == [("SawTool", "PaintTool"), ("PaintTool", "SawTool")]
    assert [(one.name, "examples" in one.catalog) for one in found.boards] == [
        ("single", True),
        ("single-without-examples", False),
        ("multi", False),
    ]
    assert (found.tools, found.queries) == (4, 5)
    problems = "\n".join(found.problems)
    assert "1 of 4 rows left out" in problems
    assert "example_queries.jsonl contains 1 query word for word" in problems

    for file in ("example_queries.jsonl", "big_tool_des.json"):
        (folder / file).unlink()
    half = load_benchmark("metatool", folder)
    assert [one.board for one in half.query_sets] == ["single"]
    assert "examples" not in half.boards[0].catalog
    assert "the task `multi` is left out: big_tool_des.json is missing" in half.problems

    (folder / "single_tool_queries.jsonl").unlink()
    with pytest.raises(ConfigurationError, match="holds no whole task of metatool"):
        load_benchmark("metatool", folder)


@pytest.mark.parametrize("name", ["toollinkos", "toolsandbox"])
def test_linked_benchmarks_have_a_board_with_and_one_without_the_declared_dependencies(
    specimen, name
):
    folder = specimen(name)

    found = load_benchmark(name, folder)

    assert [(one.name, "depends_on" in one.catalog) for one in found.boards] == [
        ("declared", True),
        ("hidden", False),
    ]
    assert tools(found.query_sets[0]) == [
        ("sail_out", "read_tide", "raise_anchor"),
        ("read_tide",),
        ("raise_anchor",),
    ]
    assert {(one.index, one.board) for one in found.query_sets[0].variants} == {
        ("full", None),
        ("brief", None),
        ("full", "hidden"),
    }
    assert found.problems == (
        "instances.jsonl: 1 of 4 rows left out: line 4: it names no golden function",
    )
    records = json.loads((folder / "tools.json").read_text("utf-8"))
    bare = [{"name": record["name"], "description": record["description"]} for record in records]
    (folder / "tools.json").write_text(json.dumps(bare), "utf-8")
    assert "columns =" not in load_benchmark(name, folder).boards[0].catalog


def test_ultratool_counts_the_steps_whose_tool_is_not_known(specimen):
    found = load_benchmark("ultratool", specimen("ultratool"))

    (query,) = found.query_sets[0].queries
    assert (query.query, query.tools) == ("Bake a loaf.", ("dough_knead", "oven_heat"))
    assert query.steps == ("Knead the dough", "Heat the oven to 220")
    left, unknown = found.problems
    assert left.startswith(
        "instances.jsonl: 2 of 3 rows left out: line 2: no step of its plan needs a known tool"
    )
    assert unknown == "not counted: 1 step whose tool is not in tools.json: rack_place"


def test_livemcpbench_asks_questions_and_steps_for_tools_and_for_agents(specimen):
    found = load_benchmark("livemcpbench", specimen("livemcpbench"))

    direct, step, *agents = found.query_sets
    assert (list(direct.tasks), list(step.tasks)) == (["direct-tool"], ["step-tool"])
    assert tools(direct) == [("dig", "water_bed"), ("rake", "dig")]
    assert tools(step) == [("dig",), ("water_bed",)]
    assert all(one.agents for one in agents)
    assert {next(iter(one.tasks)): texts(one) for one in agents} == {
        "direct-agent": ["Plant a rose and water it.", "Tidy up."],
        "step-agent": ["dig a hole", "water the rose"],
        "step-agent-all": ["dig a hole", "water the rose", "rake the bed", "look"],
    }
    assert found.queries == 2
    assert "annotations.jsonl: 2 of 4 rows left out" in found.problems[0]
    assert found.problems[1].startswith(
        "not counted: 2 tools of annotations that no server has: prune, fly"
    )


@pytest.mark.parametrize("name", NAMES)
def test_an_error_about_a_folder_says_what_was_expected_and_what_is_there(tmp_path, name):
    (tmp_path / "notes.txt").write_text("nothing of use", "utf-8")

    with pytest.raises(ConfigurationError) as error:
        load_benchmark(name, tmp_path)

    message = str(error.value)
    assert f"{tmp_path} is no folder of {name}: it lacks " in message
    assert NAMES[name] in message
    assert message.endswith("It holds: notes.txt.")
    with pytest.raises(
        ConfigurationError, match=r"There is no folder .*Beside it there is: notes.txt"
    ):
        load_benchmark(name, tmp_path / "gone")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tools", "queries"),
    [
        ("seal-tools", 4076, 700),
        ("metatool", 246, 2953),
        ("toollinkos", 573, 467),
        ("ultratool", 436, 191),
        ("livemcpbench", 527, 24),
        ("bfcl", 1235, 1375),
        ("acebench-en", 1982, 566),
    ],
)
def test_the_development_halves_are_read_whole(name, tools, queries):
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"the files of {name} are not beside this checkout")

    found = load_benchmark(name, folder)

    assert (found.tools, found.queries) == (tools, queries)
    assert not any("rows left out" in one for one in found.problems)
