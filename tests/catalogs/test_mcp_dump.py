"""Saved results of MCP servers, in every known format."""

import json

import pytest

from pegboard.errors import SourceError

TOOLS = [
    {
        "name": "add",
        "description": "Adds two numbers.",
        "inputSchema": {"type": "object", "properties": {"a": {}}},
    },
    {
        "name": "noop",
        "title": "Does nothing",
        "annotations": {"readOnlyHint": True, "openWorldHint": None},
    },
]


@pytest.fixture
def dump(listed, tmp_path):
    """A function that lists a document as the file `maths.json`."""

    def listing_of(document, **options):
        content = document if isinstance(document, bytes) else json.dumps(document).encode()
        (tmp_path / "maths.json").write_bytes(content)
        return listed("mcp-dump", path="*.json", **options)

    return listing_of


def ids(listing):
    assert (listing.rejected, listing.failures) == ((), ())
    return [tool.id for tool in listing.tools]


@pytest.mark.parametrize(
    ("document", "agent", "description"),
    [
        ({"tools": TOOLS}, "maths", ""),
        ({"tools": TOOLS, "nextCursor": None}, "maths", ""),
        ({"jsonrpc": "2.0", "id": 1, "result": {"tools": TOOLS}}, "maths", ""),
        (TOOLS, "maths", ""),
        ({"server": "calc", "tools": TOOLS}, "calc", ""),
        ({"server": {"name": "calc"}, "tools": TOOLS}, "calc", ""),
        ({"result": {"serverInfo": {"name": "calc", "version": "1"}, "tools": TOOLS}}, "calc", ""),
        (
            {"serverInfo": {"title": "Sums"}, "instructions": "Ask.", "tools": TOOLS},
            "maths",
            "Sums\n\nAsk.",
        ),
        ({"calc": {"tools": TOOLS, "instructions": "Hello."}}, "calc", "Hello."),
        ({"calc": {"result": {"tools": TOOLS}}}, "calc", ""),
        ({"calc": TOOLS}, "calc", ""),
    ],
)
def test_a_saved_result_is_read_in_every_known_format(dump, document, agent, description):
    listing = dump(document)

    assert ids(listing) == [f"kit/{agent}/add", f"kit/{agent}/noop"]
    assert [(agent.kind, agent.source, agent.description) for agent in listing.agents] == [
        ("mcp-server", "maths.json", description)
    ]
    add, noop = listing.tools
    assert add.input_schema == TOOLS[0]["inputSchema"]
    assert noop.description == "Does nothing"
    assert noop.annotations == {"title": "Does nothing", "readOnlyHint": True}


def test_the_option_names_one_agent_and_cannot_name_several(dump):
    assert ids(dump({"server": "calc", "tools": TOOLS}, agent="sums"))[0] == "kit/sums/add"
    with pytest.raises(SourceError, match="holds 2 servers, but agent names one: 'sums'"):
        dump({"a": {"tools": TOOLS}, "b": {"tools": TOOLS}}, agent="sums")


def test_a_list_of_servers_is_read_with_descriptions_and_categories(dump):
    document = [
        {
            "name": "Maths",
            "description": "Sums.",
            "category": "Science",
            "web": "https://me:secret@x.org/maths?k=secret",
            "tools": {"calc": {"server_name": "calc", "tools": TOOLS[:1]}},
        },
        {"name": "Two", "tools": {"a": {"tools": TOOLS[:1]}, "b": {"tools": TOOLS[:1]}}},
    ]

    listing = dump(document)

    assert len(ids(listing)) == 3
    assert [agent.name for agent in listing.agents] == ["Maths", "Two a", "Two b"]
    assert listing.agents[0].description == "Sums."
    assert listing.agents[0].source == "https://x.org/maths"
    assert listing.tools[0].tags == ("Science",)


def test_only_the_invalid_tool_is_rejected(dump):
    good = json.dumps(TOOLS[0])
    broken = [
        good,
        '{"description": "No name."}',
        '{"name": "caf\udce9"}',
        '{"name": "said", "description": "caf\udce9"}',
        '{"name": "s", "inputSchema": {"type": "string"}}',
        '{"name": "p", "inputSchema": {"properties": {"caf\udce9": {}}}}',
        '{"name": "q", "inputSchema": 3}',
        '{"name": "n", "annotations": {"cost": NaN}}',
        '{"name": "o", "annotations": []}',
        f'{{"name": "d", "description": "{"x" * 10_000_000}"}}',
        "null",
        '["add"]',
    ]
    text = f'{{"tools": [{",".join([*broken, json.dumps(TOOLS[1])])}]}}'

    listing = dump(text.encode("utf-8", "surrogateescape"))

    assert [tool.name for tool in listing.tools] == ["add", "noop"]
    assert [row.where for row in listing.rejected] == [
        f"maths.json: tools[{n}]" for n in range(1, len(broken))
    ]
    assert all(len(row.why) < 3_000 for row in listing.rejected)


def test_draft_4_without_schema_keyword_and_non_object_results_are_valid(dump):
    pages = {"type": "integer", "minimum": 0, "exclusiveMinimum": True}
    tool = {
        "name": "read",
        "inputSchema": {"type": "object", "properties": {"pages": pages}},
        "outputSchema": {"type": "array", "items": {"type": "string"}},
    }

    assert ids(dump({"tools": [tool]})) == ["kit/maths/read"]


@pytest.mark.parametrize(
    ("document", "rejected"),
    [
        ({"a": {"tools": TOOLS}, "b": {"error": "no"}, "c": "nonsense"}, ["b.tools", "c.tools"]),
        (
            [{"name": "a", "tools": {"x": {"tools": TOOLS}, "y": {"tools": 5}}}, "nonsense"],
            ["[0].tools.y.tools", "[1].tools"],
        ),
    ],
)
def test_only_the_server_without_a_list_of_tools_is_rejected(dump, document, rejected):
    listing = dump(document)

    assert [row.where for row in listing.rejected] == [f"maths.json: {where}" for where in rejected]
    assert len(listing.tools) == 2


@pytest.mark.parametrize(
    "document",
    [5, "text", {}, {"mcpServers": {"a": {"command": "x"}}}, ["a", "b"], {"openapi": "3.1.0"}],
)
def test_the_error_for_an_unknown_format_lists_the_known_ones(dump, document):
    with pytest.raises(
        SourceError,
        match=r"holds no saved MCP tools\. Tried: .*JSON-RPC.*list of servers.*list of tools",
    ):
        dump(document)


def test_a_file_that_is_missing_or_not_json_is_an_error(listed, dump):
    with pytest.raises(SourceError, match="There is no file"):
        listed("mcp-dump", path="maths.json")
    with pytest.raises(SourceError, match="is not JSON"):
        dump(b'{"tools": [')


TEXT = {"type": "string"}
ODD_SCHEMAS = [
    (True, {"type": "object", "properties": {}}),
    ([], {"type": "object", "properties": {}}),
    ({"type": "object", "properties": []}, {"type": "object", "properties": {}}),
    ('{"type": "object", "properties": {"a": {}}}', {"type": "object", "properties": {"a": {}}}),
    (
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"ttl": {"type": "number", "minimum": 0, "exclusiveMinimum": True}},
        },
        {"type": "object", "properties": {"ttl": {"type": "number", "exclusiveMinimum": 0}}},
    ),
]


@pytest.mark.parametrize(("schema", "expected"), ODD_SCHEMAS)
def test_an_invalid_schema_is_repaired_and_said_and_the_tool_is_listed(dump, schema, expected):
    listing = dump({"tools": [{"name": "odd", "description": "Odd.", "inputSchema": schema}]})

    (tool,) = listing.tools
    assert tool.input_schema == expected
    (said,) = listing.notices
    assert (listing.rejected, said.kind) == ((), "repaired")
    assert "its input schema is repaired: " in said.why


@pytest.mark.parametrize("schema", [False, 3, {"type": "string"}, "a text"])
def test_a_schema_that_says_nothing_of_arguments_rejects_its_tool(dump, schema):
    listing = dump({"tools": [{"name": "odd", "inputSchema": schema}]})

    assert listing.tools == ()
    assert "input schema" in listing.rejected[0].why


def test_the_name_of_an_agent_is_bounded_and_stays_its_own(dump):
    names = ["n" * 600 + end for end in ("a", "b")]

    listing = dump({name: {"tools": TOOLS[:1]} for name in names})

    assert [len(agent.name) for agent in listing.agents] == [512, 512]
    assert len(listing.tools) == 2
    assert [notice.kind for notice in listing.notices] == ["renamed", "renamed"]


def page(tool, /, **more):
    """A page of a tools/list result with one tool."""
    return {"tools": [{"name": tool, "inputSchema": {"type": "object"}}], **more}


def partial(listing):
    return [notice.where for notice in listing.notices if notice.kind == "partial"]


@pytest.mark.parametrize(
    ("document", "expected", "is_part"),
    [
        (page("a", nextCursor="2"), ["maths/a"], "maths.json: tools"),
        ({"result": page("a", nextCursor=0)}, ["maths/a"], "maths.json: tools"),
        ({"calc": page("a", nextCursor="2")}, ["calc/a"], "maths.json: calc.tools"),
        (page("a", nextCursor=""), ["maths/a"], None),
        ([page("a", nextCursor="2"), page("b")], ["maths/a", "maths/b"], None),
        (
            [{"id": 1, "result": page("a", nextCursor=2)}, {"id": 2, "result": page("b")}],
            ["maths/a", "maths/b"],
            None,
        ),
        (
            [page("a", nextCursor="2"), page("b", nextCursor="3")],
            ["maths/a", "maths/b"],
            "maths.json: [1].tools",
        ),
        (
            [page("a", serverInfo={"name": "calc"}), page("b", name="sums", nextCursor="2")],
            ["calc/a", "sums/b"],
            "maths.json: [1].tools",
        ),
    ],
)
def test_pages_are_read_as_one_server_and_a_part_says_so(dump, document, expected, is_part):
    listing = dump(document)

    assert ids(listing) == [f"kit/{tool}" for tool in expected]
    assert partial(listing) == ([is_part] if is_part else [])


def test_pages_in_files_are_one_server_if_an_option_names_it(dump, tmp_path):
    (tmp_path / "last.json").write_text(json.dumps(page("b")))
    listing = dump(page("a", nextCursor="2"), agent="calc")

    assert ids(listing) == ["kit/calc/a", "kit/calc/b"]
    assert partial(listing) == []


def test_tools_without_a_schema_are_listed_and_counted(dump):
    tools = [{"name": "a"}, {"name": "b", "inputSchema": None}, {"name": "c", "inputSchema": {}}]
    listing = dump({"tools": tools})

    assert [tool.input_schema for tool in listing.tools] == [
        {"type": "object", "properties": {}}
    ] * 3
    (notice,) = listing.notices
    assert (notice.kind, notice.where, notice.count) == ("repaired", "maths.json: tools[0]", 2)


@pytest.mark.parametrize(
    ("meta", "is_listed"),
    [
        ({"ui": {"visibility": ["app"]}}, False),
        ({"openai/visibility": "private"}, False),
        ({"ui": {"visibility": ["model", "app"]}}, True),
        ({"ui": {"visibility": []}}, True),
        ({"ui": "a page"}, True),
        ("no object", True),
    ],
)
def test_tools_that_a_server_hides_from_models_are_left_out_and_counted(dump, meta, is_listed):
    tools = {"tools": [{"name": "refresh", "inputSchema": {}, "_meta": meta}]}

    listing = dump(tools)

    assert len(listing.tools) == is_listed
    assert [(notice.kind, notice.where) for notice in listing.notices] == (
        [] if is_listed else [("skipped", "maths.json: tools[0]")]
    )
    assert len(dump(tools, internal=True).tools) == 1
