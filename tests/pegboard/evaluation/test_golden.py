"""Golden queries: read, checked line by line, written again, and what they mean among the tools of
a release.
"""

import json

import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import (
    GoldenQuery,
    Needed,
    ToolNames,
    golden_problems,
    read_problems,
    read_queries,
    write_queries,
)

NAMES = ToolNames(
    [
        ("a/maps/find", "find", "maps"),
        ("a/files/find", "find", "files"),
        ("b/files/open", "open", "files"),
        ("b/shop/a%2Fmaps%2Ffind", "a/maps/find", "shop"),
    ]
)


@pytest.fixture
def file(tmp_path):
    """A function that writes lines, values as JSON and texts as they are, and returns the file."""

    def write(*lines):
        path = tmp_path / "golden.jsonl"
        path.write_text(
            "\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines), "utf-8"
        )
        return path

    return write


def test_a_query_says_what_is_left_out():
    one, two = GoldenQuery("q", ("a",)), GoldenQuery("q", ("b", "a"))

    assert (one.kind, two.kind) == ("single", "multi")
    assert GoldenQuery("q", ("a", "a")).kind == "single"
    assert GoldenQuery("q", ("a", "b"), kind="parallel").kind == "parallel"
    assert one.origin == "user"
    assert len(one.id) == 12
    assert one.id == GoldenQuery("q", ("a",), kind="mine", origin="logs").id
    assert two.id == GoldenQuery("q", ("a", "b")).id
    assert len({one.id, two.id, GoldenQuery("r", ("a",)).id}) == 3
    assert one.id != GoldenQuery("q", ("a",), history=({"role": "user", "content": "hello"},)).id
    assert GoldenQuery("q", ("a",), id="mine").id == "mine"


def test_what_is_written_is_read_again(tmp_path):
    queries = [
        GoldenQuery("was kosten 30 Dollar?", ("convert",)),
        GoldenQuery(
            "天気は? book a table, then invite Ana",
            ("book_table", "kit/people/invite"),
            steps=("book a table", "invite Ana"),
            kind="sequential",
            history=({"role": "user", "content": "hello"}, {"role": "assistant", "content": ""}),
            calls=(
                {"tool": "book_table", "arguments": {"people": 2, "at": None, "tags": ["a"]}},
                {"tool": "kit/people/invite"},
            ),
            id="q-2",
            origin="generated",
            by="openai/gpt-4o-mini",
        ),
    ]
    path = tmp_path / "golden.jsonl"

    write_queries(path, queries)

    assert read_queries(path) == queries
    assert "天気" in path.read_text("utf-8")
    assert list(tmp_path.iterdir()) == [path]
    first = json.loads(path.read_text("utf-8").splitlines()[0])
    assert first.keys() == {"query", "tools", "kind", "id", "origin"}


def test_blank_lines_are_none(file):
    path = file("", {"query": "q", "tools": ["a"]}, "   ", {"query": "r", "tools": ["a"]}, "")

    assert [one.query for one in read_queries(path)] == ["q", "r"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{no json", "not JSON"),
        ("[1, 2]", "expected a JSON object, got [1, 2]"),
        ("null", "expected a JSON object, got null"),
        ({"tools": ["a"]}, "query: expected a text (got None)"),
        ({"query": "  ", "tools": ["a"]}, "query: expected a text (got '  ')"),
        ({"query": 7, "tools": ["a"]}, "query: expected a text (got 7)"),
        ({"query": "q"}, "tools: expected a list of names or ids (got None)"),
        ({"query": "q", "tools": []}, "tools: expected a list of names or ids (got [])"),
        ({"query": "q", "tools": "a"}, "tools: expected a list of names or ids (got 'a')"),
        ({"query": "q", "tools": ["a", ""]}, "tools: expected a list of names or ids"),
        ({"query": "q", "tools": ["a"], "steps": "s"}, "steps: expected a list of texts (got 's')"),
        ({"query": "q", "tools": ["a"], "kind": ""}, "kind: expected a text (got '')"),
        ({"query": "q", "tools": ["a"], "id": 3}, "id: expected a text (got 3)"),
        ({"query": "q", "tools": ["a"], "by": None}, "by: expected a text (got None)"),
        ({"query": "q", "tools": ["a"], "origin": "web"}, "origin: expected one of user, logs, "
        "examples, generated (got 'web')"),
        ({"query": "q", "tools": ["a"], "history": "hello"}, "history: expected messages such as"),
        ({"query": "q", "tools": ["a"], "history": [{"role": "tool"}]}, "history: expected"),
        ({"query": "q", "tools": ["a"], "history": [{"role": "user"}]}, "history: expected "
        "messages"),
        ({"query": "q", "tools": ["a"], "calls": {}}, "calls: expected calls such as"),
        ({"query": "q", "tools": ["a"], "calls": [{"arguments": {}}]}, "calls: expected calls"),
        ({"query": "q", "tools": ["a"], "calls": [{"tool": "a", "arguments": [1]}]}, "calls: "),
        ({"query": "q", "tools": ["a"], "calls": [{"tool": "a", "args": {}}]}, "calls: expected"),
        ({"query": "q", "tools": ["a"], "answer": "x"}, "answer: there is no such field"),
    ],
)  # fmt: skip
def test_a_line_that_is_not_as_expected_is_told_with_its_place_and_the_others_are_read(
    file, line, problem
):
    path = file({"query": "good", "tools": ["a"]}, line)

    queries, problems = read_problems(path)

    assert [one.query for one in queries] == ["good"]
    assert problems[0].startswith(f"{path}:2: ")
    assert problem in problems[0]
    with pytest.raises(ConfigurationError, match="has 1 problem:"):
        read_queries(path)


def test_all_problems_of_a_line_are_told(file):
    _, problems = read_problems(file({"query": "", "tools": [], "kind": 1, "extra": 2}))

    assert len(problems) == 4


def test_queries_that_no_tool_answers_name_none(file):
    path = file(
        {"query": "tell a joke"}, {"query": "sing", "tools": []}, {"query": "q", "tools": ["a"]}
    )

    queries, problems = read_problems(path, answerable=False)

    assert [(one.query, one.tools) for one in queries] == [("tell a joke", ()), ("sing", ())]
    assert problems == [
        f"{path}:3: tools: expected none for a query that no tool answers (got ['a'])"
    ]


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")

    for name in ("none.jsonl", "binary", "."):
        queries, problems = read_problems(tmp_path / name)
        assert queries == []
        assert "cannot be read" in problems[0]


def test_a_message_lists_some_problems_and_counts_all():
    said = golden_problems("golden.jsonl", [f"line {number}" for number in range(13)])

    assert said.startswith("golden.jsonl has 13 problems:\n  - line 0\n")
    assert "line 9\n  ... and 3 more\n" in said
    assert "line 10" not in said


def test_a_folder_that_is_not_there_cannot_be_written_to(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_queries(tmp_path / "none" / "golden.jsonl", [GoldenQuery("q", ("a",))])


@pytest.mark.parametrize(
    ("names", "tools", "unknown"),
    [
        (["open"], {"open": {"b/files/open"}}, ()),
        (["files/open"], {"files/open": {"b/files/open"}}, ()),
        (["b/files/open"], {"b/files/open": {"b/files/open"}}, ()),
        (["find"], {"find": {"a/maps/find", "a/files/find"}}, ()),
        (["maps/find"], {"maps/find": {"a/maps/find"}}, ()),
        (["a/maps/find"], {"a/maps/find": {"a/maps/find"}}, ()),
        (["open", "close", "shut", "close"], {"open": {"b/files/open"}}, ("close", "shut")),
        (["open", "b/files/open"], {"open": {"b/files/open"}}, ()),
        ([], {}, ()),
    ],
)
def test_tools_are_called_by_name_by_agent_and_name_or_by_id(names, tools, unknown):
    needed = NAMES.resolve(names)

    assert needed == Needed({name: frozenset(ids) for name, ids in tools.items()}, unknown)
    assert needed.labels == {*tools, *unknown}


def test_the_first_tool_that_is_meant_takes_the_label_and_further_ones_do_not_count():
    needed = NAMES.resolve(["find", "open", "gone"])

    ranking = needed.labelled(
        [("b/x/y", 5.0), ("a/files/find", 4.0), ("a/maps/find", 3.0), ("b/files/open", 2.0)]
    )

    assert ranking == [("id:b/x/y", 5.0), ("find", 4.0), ("id:a/maps/find", 3.0), ("open", 2.0)]


def test_catalogs_of_the_tools_are_known():
    assert NAMES.catalogs["b/files/open"] == "b"
    assert len(NAMES.catalogs) == 4
