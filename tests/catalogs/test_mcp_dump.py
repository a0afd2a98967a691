"""Saved answers of MCP servers, in every known shape, and the LiveMCPBench catalog."""

import json
from pathlib import Path

import pytest

from catalogs.mcp.dump import source
from catalogs.shared.listing import Listing, ListingBuilder
from pegboard.errors import SourceError

LIVEMCPBENCH = Path(__file__).parents[3] / "shared" / "benchmarks" / "livemcpbench" / "tools.json"
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


def listed(
    base: Path, document: object = None, *, path: str = "maths.json", agent: str | None = None
) -> Listing:
    if document is not None:
        (base / path).write_bytes(
            document if isinstance(document, bytes) else json.dumps(document).encode()
        )
    builder = ListingBuilder("acme", base)
    source.read(builder, source.options(type="mcp-dump", path=path, agent=agent))
    return builder.build()


def ids(listing: Listing) -> list[str]:
    assert (listing.rejected, listing.failures) == ((), ())
    return [tool.id for tool in listing.tools]


@pytest.mark.parametrize(
    "document",
    [
        {"tools": TOOLS},
        {"tools": TOOLS, "nextCursor": None},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": TOOLS}},
        TOOLS,
    ],
    ids=["result", "result with a cursor", "response", "tools"],
)
def test_the_saved_answer_of_one_server_is_named_as_its_file(tmp_path, document):
    listing = listed(tmp_path, document)

    assert ids(listing) == ["acme/maths/add", "acme/maths/noop"]
    assert listing.agents[0].kind == "mcp-server"
    assert listing.agents[0].source == "maths.json"
    assert listing.tools[0].input_schema == TOOLS[0]["inputSchema"]
    assert listing.tools[1].description == "Does nothing"
    assert listing.tools[1].annotations == {"title": "Does nothing", "readOnlyHint": True}


@pytest.mark.parametrize(
    "about",
    [
        {"server": "calc"},
        {"server": {"name": "calc"}},
        {"serverInfo": {"name": "calc", "version": "1"}},
    ],
)
def test_a_dump_that_tells_its_server_is_named_by_it(tmp_path, about):
    assert ids(listed(tmp_path, {**about, "tools": TOOLS})) == ["acme/calc/add", "acme/calc/noop"]
    assert ids(listed(tmp_path, {"result": {**about, "tools": TOOLS}})) == [
        "acme/calc/add",
        "acme/calc/noop",
    ]


def test_a_server_that_introduced_itself_is_described_by_that(tmp_path):
    about = {"serverInfo": {"name": "calc", "title": "Calculator"}, "instructions": "Ask for sums."}

    assert (
        listed(tmp_path, {**about, "tools": TOOLS}).agents[0].description
        == "Calculator\n\nAsk for sums."
    )


def test_the_option_names_the_agent(tmp_path):
    assert (
        ids(listed(tmp_path, {"server": "calc", "tools": TOOLS}, agent="sums"))[0]
        == "acme/sums/add"
    )


def test_the_option_cannot_name_several_agents(tmp_path):
    with pytest.raises(SourceError, match="holds 2 servers, but agent names one: 'sums'"):
        listed(tmp_path, {"a": {"tools": TOOLS}, "b": {"tools": TOOLS}}, agent="sums")


def test_answers_by_server_name_are_read(tmp_path):
    document = {
        "a": {"tools": TOOLS, "instructions": "Hello."},
        "b": {"result": {"tools": TOOLS[:1]}},
        "c": TOOLS[1:],
    }

    listing = listed(tmp_path, document)

    assert ids(listing) == ["acme/a/add", "acme/a/noop", "acme/b/add", "acme/c/noop"]
    assert [agent.description for agent in listing.agents] == ["Hello.", "", ""]


def test_a_list_of_servers_is_read_with_descriptions_and_categories(tmp_path):
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

    listing = listed(tmp_path, document)

    assert len(ids(listing)) == 3
    assert [agent.name for agent in listing.agents] == ["Maths", "Two a", "Two b"]
    assert listing.agents[0].description == "Sums."
    assert listing.agents[0].source == "https://x.org/maths"
    assert listing.tools[0].tags == ("Science",)


def test_all_files_of_a_pattern_are_read(tmp_path):
    (tmp_path / "one.json").write_text(json.dumps(TOOLS[:1]))
    (tmp_path / "two.json").write_text(json.dumps({"tools": TOOLS}))

    assert ids(listed(tmp_path, path="*.json")) == ["acme/one/add", "acme/two/add", "acme/two/noop"]


def test_each_broken_tool_is_one_rejected_row(tmp_path):
    good = json.dumps(TOOLS[0])
    broken = [
        good,
        '{"description": "No name."}',
        '{"name": "caf\udce9"}',
        '{"name": "said", "description": "caf\udce9"}',
        '{"name": "s", "inputSchema": {"type": "string"}}',
        '{"name": "p", "inputSchema": {"properties": {"caf\udce9": {}}}}',
        '{"name": "q", "inputSchema": {"type": "object", "required": "a"}}',
        '{"name": "n", "annotations": {"cost": NaN}}',
        '{"name": "o", "annotations": []}',
        f'{{"name": "d", "description": "{"x" * 10_000_000}"}}',
        "null",
        '["add"]',
    ]
    text = f'{{"tools": [{",".join([*broken, json.dumps(TOOLS[1])])}]}}'

    listing = listed(tmp_path, text.encode("utf-8", "surrogateescape"))

    assert [tool.name for tool in listing.tools] == ["add", "noop"]
    assert [row.where for row in listing.rejected] == [
        f"maths.json: tools[{n}]" for n in range(1, len(broken))
    ]
    assert all(len(row.raw) < 3_000 for row in listing.rejected)


def test_an_old_draft_without_its_name_and_a_result_that_is_no_object_are_good_schemas(tmp_path):
    pages = {"type": "integer", "minimum": 0, "exclusiveMinimum": True}
    tool = {
        "name": "read",
        "inputSchema": {"type": "object", "properties": {"pages": pages}},
        "outputSchema": {"type": "array", "items": {"type": "string"}},
    }

    assert ids(listed(tmp_path, {"tools": [tool]})) == ["acme/maths/read"]


def test_a_server_without_a_list_of_tools_is_one_rejected_row(tmp_path):
    by_name = listed(tmp_path, {"a": {"tools": TOOLS}, "b": {"error": "no"}, "c": "nonsense"})
    by_entry = listed(
        tmp_path, [{"name": "a", "tools": {"x": {"tools": TOOLS}, "y": {"tools": 5}}}, "nonsense"]
    )

    assert [row.where for row in by_name.rejected] == ["maths.json: b.tools", "maths.json: c.tools"]
    assert [row.where for row in by_entry.rejected] == [
        "maths.json: [0].tools.y.tools",
        "maths.json: [1].tools",
    ]
    assert len(by_name.tools) == len(by_entry.tools) == 2


@pytest.mark.parametrize(
    "document",
    [5, "text", {}, {"mcpServers": {"a": {"command": "x"}}}, ["a", "b"], {"openapi": "3.1.0"}],
)
def test_an_unknown_shape_names_the_shapes_that_were_tried(tmp_path, document):
    with pytest.raises(
        SourceError,
        match=r"holds no saved MCP tools\. Tried: .*JSON-RPC.*list of servers.*list of tools",
    ):
        listed(tmp_path, document)


def test_a_file_that_is_missing_or_not_json_says_so(tmp_path):
    with pytest.raises(SourceError, match="There is no file"):
        listed(tmp_path)
    with pytest.raises(SourceError, match="is not JSON"):
        listed(tmp_path, b'{"tools": [')


@pytest.mark.skipif(
    not LIVEMCPBENCH.exists(), reason="the LiveMCPBench catalog is not at hand (shared/benchmarks)"
)
def test_livemcpbench_is_70_servers_and_527_tools():
    listing = listed(LIVEMCPBENCH.parent, path="tools.json")

    assert (len(listing.agents), len(listing.tools), listing.rejected) == (70, 527, ())
    entries = json.loads(LIVEMCPBENCH.read_text())
    assert {agent.name for agent in listing.agents} == {entry["name"] for entry in entries}
    assert all(agent.description for agent in listing.agents)
    by_id = {tool.id: tool for tool in listing.tools}
    first, last = entries[0], entries[-1]
    assert by_id["acme/Bing_CN_MCP/bing_search"].tags == (first["category"],)
    for entry in (first, entries[35], last):
        agent = next(agent for agent in listing.agents if agent.name == entry["name"])
        (answer,) = entry["tools"].values()
        assert [by_id[f"{agent.id}/{tool['name']}"].description for tool in answer["tools"]] == [
            (tool["description"] or "").strip() for tool in answer["tools"]
        ]
