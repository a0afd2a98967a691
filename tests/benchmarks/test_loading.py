"""Every benchmark from its own files: queries, rows left out, and errors about a wrong folder."""

import json

import pytest

from benchmarks.papers import NAMES
from benchmarks.papers.indexes import read_index_files
from benchmarks.papers.loading import load_benchmark
from pegboard.errors import ConfigurationError


def tools(query_set):
    return [query.tools for query in query_set.queries]


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


def test_each_index_file_replaces_the_indexes_of_every_board(specimen, tmp_path):
    benchmark = load_benchmark("metatool", specimen("metatool"))
    texts = [f'[[indexes]]\nname = "of{size}"\nencoder = "hashing/{size}"\n' for size in (64, 128)]
    for number, text in enumerate(texts):
        (tmp_path / f"encoder{number}.toml").write_text(text, "utf-8")

    files = read_index_files([str(tmp_path / f"encoder{number}.toml") for number in (0, 1)])

    for file, text in zip(files, texts, strict=True):
        assert [board.indexes for board in file.applied_to(benchmark).boards] == [text] * 3
