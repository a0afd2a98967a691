"""Golden queries: read, checked line by line, written, and resolved in a release."""

import json

import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import (
    GoldenQuery,
    Needed,
    ToolNames,
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
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("\n".join(texts), "utf-8")
        return path

    return write


def test_kind_and_id_are_derived_where_they_are_not_given():
    single = GoldenQuery("q", ("a",))
    multi = GoldenQuery("q", ("b", "a"))
    history = ({"role": "user", "content": "hello"},)

    assert (single.kind, multi.kind, single.origin) == ("single", "multi", "user")
    assert GoldenQuery("q", ("a", "a")).kind == "single"
    assert GoldenQuery("q", ("a", "b"), kind="parallel").kind == "parallel"
    assert len(single.id) == 12
    assert single.id == GoldenQuery("q", ("a",), kind="mine", origin="logs").id
    assert multi.id == GoldenQuery("q", ("a", "b")).id
    others = [GoldenQuery("r", ("a",)), GoldenQuery("q", ("a",), history=history)]
    assert len({query.id for query in (single, multi, *others)}) == 4
    assert GoldenQuery("q", ("a",), id="mine").id == "mine"


def test_written_queries_are_read_again(tmp_path):
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
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_queries(tmp_path / "none" / "golden.jsonl", queries)


GOOD = {"query": "q", "tools": ["a"]}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{no json", "not JSON"),
        ("[1, 2]", "expected a JSON object, got [1, 2]"),
        ({"tools": ["a"]}, "query: expected a text of at most 100,000 characters (got None)"),
        (GOOD | {"query": "  "}, "query: expected a text of at most 100,000 characters (got '  ')"),
        ({"query": "q"}, "tools: expected a list of names or ids (got None)"),
        (GOOD | {"tools": []}, "tools: expected a list of names or ids (got [])"),
        (GOOD | {"tools": ["a", ""]}, "tools: expected a list of names or ids"),
        (GOOD | {"steps": "s"}, "steps: expected a list of texts (got 's')"),
        (GOOD | {"id": 3}, "id: expected a text (got 3)"),
        (GOOD | {"origin": "web"}, "expected one of user, logs, examples, generated (got 'web')"),
        (GOOD | {"history": "hello"}, "history: expected messages such as"),
        (GOOD | {"history": [{"role": "user"}]}, "history: expected messages"),
        (GOOD | {"calls": {}}, "calls: expected calls such as"),
        (GOOD | {"calls": [{"tool": "a", "arguments": [1]}]}, "calls: "),
        (GOOD | {"answer": "x"}, "answer: there is no such field"),
    ],
)
def test_an_invalid_line_is_reported_with_its_place_and_the_others_are_read(file, line, problem):
    path = file("", {"query": "good", "tools": ["a"]}, "   ", line)

    queries, problems = read_problems(path)

    assert [query.query for query in queries] == ["good"]
    assert problems[0].startswith(f"{path}:4: ")
    assert problem in problems[0]
    with pytest.raises(ConfigurationError, match="has 1 problem:"):
        read_queries(path)


def test_unanswerable_queries_name_no_tool(file):
    path = file({"query": "tell a joke"}, {"query": "sing", "tools": []}, GOOD)

    queries, problems = read_problems(path, answerable=False)

    assert [(query.query, query.tools) for query in queries] == [("tell a joke", ()), ("sing", ())]
    assert problems == [
        f"{path}:3: tools: expected none for a query that no tool answers (got ['a'])"
    ]


@pytest.mark.parametrize("name", ["none.jsonl", "binary", "."])
def test_a_file_that_cannot_be_read_is_a_problem(tmp_path, name):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")

    queries, problems = read_problems(tmp_path / name)

    assert queries == []
    assert "cannot be read" in problems[0]


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
def test_tools_are_named_by_name_by_agent_and_name_or_by_id(names, tools, unknown):
    needed = NAMES.resolve(names)

    assert needed == Needed({name: frozenset(ids) for name, ids in tools.items()}, unknown)
    assert needed.labels == {*tools, *unknown}
    assert NAMES.catalogs["b/files/open"] == "b"


def test_a_query_may_name_agents_beside_its_tools_or_instead_of_them(file, tmp_path):
    beside = {"query": "find a file", "tools": ["find"], "agents": ["files", ["a/maps", "shop"]]}
    instead = {"query": "plan a trip", "agents": ["maps", "shop"]}
    path = file(beside, instead)

    queries = read_queries(path, agents=True)
    write_queries(tmp_path / "again.jsonl", queries)

    assert [query.agents for query in queries] == [("files", "a/maps | shop"), ("maps", "shop")]
    assert [query.kind for query in queries] == ["single", "multi"]
    assert [query.to_dict() for query in queries] == [
        row | {"kind": query.kind, "id": query.id, "origin": "user"}
        for row, query in zip((beside, instead), queries, strict=True)
    ]
    assert read_queries(tmp_path / "again.jsonl", agents=True) == queries
    assert queries[0].id != GoldenQuery("find a file", ("find",)).id
    _, problems = read_problems(path)
    assert len(problems) == 1
    assert "queries that name agents alone are for `pegboard eval --agents`" in problems[0]
    for row, problem in (
        ({"query": "q", "agents": "maps"}, "agents: expected a list of names or ids"),
        ({"query": "q", "agents": []}, "tools: expected a list of names or ids"),
        ({"query": "q", "agents": ["maps"], "tools": []}, "tools: expected a list of names or ids"),
    ):
        assert problem in read_problems(file(row), agents=True)[1][0]
    assert "agents: expected none" in read_problems(file(instead), answerable=False)[1][0]
