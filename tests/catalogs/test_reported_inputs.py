"""Inputs of public reports: what a user expects of each. See `shared/cases/README.md`."""

import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parents[3] / "shared" / "cases" / "ingest"


@pytest.fixture
def reported(listed):
    """A function that lists a reported input, whose path is relative to the folder of the cases."""
    if not CASES.is_dir():
        pytest.skip(f"the reported cases are not at {CASES}")

    def listing_of(kind, **options):
        return listed(kind, CASES, **options)

    return listing_of


def texts(listing):
    """Return the description of each tool by its id, of a listing without losses."""
    assert (listing.rejected, listing.failures, listing.unreadable) == ((), (), ())
    return {tool.id: tool.description for tool in listing.tools}


def test_saved_pages_are_one_server(reported):
    listing = reported("mcp-dump", path="mcp/pages.json")

    assert texts(listing) == {"kit/pages/p1": "First page", "kit/pages/p2": "Second page"}
    assert "partial" not in [notice.kind for notice in listing.notices]


def test_a_saved_page_with_odd_schemas_says_what_was_repaired_and_that_it_is_a_part(reported):
    listing = reported("mcp-dump", path="mcp/forms.json")

    assert {row.where: row.kind for row in listing.rejected} == {
        "forms.json: tools[4]": "schema",
        "forms.json: tools[9]": "schema",
    }
    assert [(notice.kind, notice.where, notice.count) for notice in listing.notices] == [
        ("repaired", "forms.json: tools[2]", 1),
        ("repaired", "forms.json: tools[5]", 1),
        ("repaired", "forms.json: tools[7]", 1),
        ("repaired", "forms.json: tools[0]", 8),
        ("partial", "forms.json: tools", 1),
    ]
    assert len(listing.tools) == 15


@pytest.mark.parametrize(
    ("file", "count", "repaired"),
    [
        ("mcp/schemas.json", 15, [1]),
        ("mcp2/refuse.json", 12, [10, 11]),
        ("mcp2/texts.json", 12, []),
    ],
)
def test_every_tool_with_an_odd_schema_is_listed(reported, file, count, repaired):
    listing = reported("mcp-dump", path=file)

    assert len(texts(listing)) == count
    name = file.rpartition("/")[2]
    assert [(notice.kind, notice.where) for notice in listing.notices] == [
        ("repaired", f"{name}: tools[{number}]") for number in repaired
    ]


def test_a_dump_that_powershell_saved_is_read(reported):
    listing = reported("mcp-dump", path="mcp/utf16.json")

    assert texts(listing) == {"kit/utf16/t": "saved by PowerShell"}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("semi2.csv", {"kit/kit/add": "Add two", "kit/kit/sub": "Sub"}),
        ("tab.csv", {"kit/kit/add": "Add"}),
        ("u16.tsv", {"kit/kit/add": "Add"}),
    ],
)
def test_tables_with_semicolons_tabs_or_utf_16_are_read(reported, file, expected):
    assert texts(reported("records", path=f"csv2/{file}")) == expected


def arguments(listing, tool):
    """Return the schema of each argument of a tool."""
    (schema,) = [row.input_schema for row in listing.tools if row.name == tool]
    return schema["properties"]


@pytest.mark.parametrize(
    ("module", "tool", "described"),
    [
        ("py4", "a", {"x": "The thing"}),
        ("py4", "b", {"x": "The thing"}),
        ("py4", "c", {"x": "The thing"}),
        ("py4", "d", {"x": "The thing"}),
        ("py4", "e", {"x": "The thing"}),
        ("py4", "f", {"x": "The thing"}),
        ("py4", "g", {"x": "The thing"}),
        ("py5", "a", {"query": "the search query", "limit": "how many"}),
        ("py5", "b", {"query": "the search query", "limit": "how many"}),
        ("py5", "c", {"limit": "how many"}),
        ("py5", "d", {"a": "First", "b": "Second"}),
    ],
)
def test_docstrings_of_one_field_or_without_a_summary_are_read(reported, module, tool, described):
    listing = reported("python", target=[f"{module}:{tool}"], search_path=".")

    found = arguments(listing, tool)
    assert {name: found[name].get("description") for name in described} == described


def test_optional_typed_dicts_stay_and_names_of_type_checkers_are_kept(reported):
    keyword = reported("python", target="mod_a", search_path="py3")
    office = reported("python", target="office", search_path="py")

    assert sorted(arguments(keyword, "kw")) == ["a", "flag", "opt"]
    assert sorted(arguments(office, "move")) == ["mode", "opt", "where"]
    assert arguments(office, "plot") == {
        "frame": {"x-type": "DataFrame"},
        "title": {"type": "string"},
    }
    slot = arguments(office, "book_room")["slot"]
    assert slot == {"$ref": "#/$defs/Slot", "description": "When the room is needed"}


def test_skills_are_read_as_their_authors_meant_them(reported):
    listing = reported("skills", path="skills2")

    assert texts(listing) == {
        "kit/kit/e3": "Sends mail: to one or to many people with a trebuchet",
        "kit/kit/e4": "'Reads logs': finds errors",
        "kit/kit/e5": "Makes: tea",
        "kit/kit/2048": "A game",
        "kit/kit/x:review": "Reviews code of plug-in x",
        "kit/kit/y:review": "Reviews contracts of plug-in y",
    }
    assert [need.tool for tool in listing.tools for need in tool.dependencies] == ["query"]
    assert [(notice.kind, notice.where) for notice in listing.notices] == [
        ("skipped", "skills2/e6-deploy/SKILL.md"),
        ("renamed", "skills2/x/review/SKILL.md"),
    ]


def test_a_saved_page_of_a_registry_has_current_servers_and_is_a_part(reported):
    listing = reported("registry", path="reg/page.json")

    assert {agent.name: agent.description for agent in listing.agents} == {
        "io.example/crm": "Customers of the CRM",
        "io.example/stats": "Statistics on your own machine",
        "io.example/stats3": "New text three",
        "io.example/wiki": "Pages of the wiki",
    }
    assert "dead.example" not in str(listing.agents)
    assert [notice.kind for notice in listing.notices] == ["partial", "skipped", "skipped"]


@pytest.mark.parametrize(
    ("mode", "tools", "notices"),
    [
        ("chat", ["a"], []),
        ("pages", ["a", "b", "c"], []),
        ("intcur", ["a", "b"], []),
        ("stuck", ["a", "b", "c"], ["partial"]),
        ("emptycur", ["a"], []),
        ("old", ["a"], []),
    ],
)
def test_a_live_server_is_listed_whatever_its_cursors(reported, mode, tools, notices):
    script = str(CASES / "live" / "server.py")
    servers = {mode: {"command": sys.executable, "args": [script, mode]}}

    listing = reported("mcp", servers=servers, timeout=600)

    assert texts(listing) == {
        f"kit/{mode}/{tool}": f"Tool {tool} of the {mode} server" for tool in tools
    }
    assert [notice.kind for notice in listing.notices] == notices


def test_two_agent_cards_of_one_name_are_two_agents_with_their_addresses(reported):
    listing = reported("a2a", path="a2a2/*.json")

    assert {agent.name: agent.source for agent in listing.agents} == {
        "Assistant (one.example/a2a)": "https://one.example/a2a",
        "Assistant (two.example/a2a)": "https://two.example/a2a",
    }
    assert sorted(texts(listing).values()) == ["Answer garden questions", "Answer tax questions"]
    assert [notice.kind for notice in listing.notices] == ["renamed"]
