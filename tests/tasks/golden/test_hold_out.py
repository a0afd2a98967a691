"""Golden queries from the catalogs' own examples."""

import pytest

from pegboard.cli.main import main
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import read_queries
from pegboard.records import Tool
from tasks.golden.hold_out import pick_examples, tools_with_examples
from tasks.steps.snapshot import last_snapshots, take_snapshot

THINGS = ("invoice", "ticket", "branch", "room", "taxi", "letter", "plant", "printer")
WAYS = (
    "please {} that old {} for me",
    "could somebody {} the broken {}?",
    "I have a customer who wants to {} his {} before noon",
    "{} {}",
    "what must be done to {} a second {} this week",
)
CATALOG = (
    '[catalogs.desk]\ntype = "records"\npath = "requests.json"\n'
    '[catalogs.desk.columns]\nexamples = "examples"\n'
)


def make_tool(name, *examples):
    return Tool(f"kit/office/{name}", "kit", "kit/office", name, examples=examples)


def examples_of(verb, thing):
    return [way.format(verb, thing) for way in WAYS]


OFFICE = [
    make_tool(f"{verb}_{thing}", *examples_of(verb, thing))
    for verb in ("open", "close")
    for thing in THINGS
]


def test_a_share_of_each_tools_examples_is_taken_whatever_the_order_of_the_tools():
    picked = pick_examples(OFFICE, 0.2)

    assert (picked.tools, picked.examples, picked.duplicates) == (16, 80, 0)
    assert sorted(query.tools for query in picked.queries) == sorted((tool.id,) for tool in OFFICE)
    assert {query.origin for query in picked.queries} == {"examples"}
    examples = {tool.id: set(tool.examples) for tool in OFFICE}
    assert all(query.query in examples[query.tools[0]] for query in picked.queries)
    assert pick_examples(OFFICE, 0.2) == pick_examples(OFFICE[::-1], 0.2) == picked


def test_queries_stay_when_tools_are_added_and_existing_ones_count():
    picked = pick_examples(OFFICE[:4], 0.4).queries

    assert set(picked) <= set(pick_examples(OFFICE, 0.4).queries)
    assert pick_examples(OFFICE[:4], 0.4, existing=picked).queries == ()
    more = pick_examples(OFFICE[:4], 0.8, existing=picked).queries
    assert len(more) == len(picked) == 8
    assert not {query.query for query in more} & {query.query for query in picked}


def test_a_tool_keeps_an_example():
    room = make_tool("open_room", *examples_of("open", "room"))
    taxi = make_tool("call_taxi", "a ride to the airport")

    assert len(pick_examples([room, taxi], 1.0).queries) == 4


def test_examples_of_several_tools_and_near_duplicates_are_not_taken():
    twin = "is there a room for ten people at noon on Monday"
    tools = [
        make_tool("open_room", "a key, please", twin, f"{twin} please", "let me in"),
        make_tool("open_door", "Let me in!", "push"),
    ]

    picked = pick_examples(tools, 1.0)

    assert {query.query for query in picked.queries} == {"a key, please", "push"}
    assert (picked.examples, picked.duplicates) == (6, 4)


@pytest.fixture
def desk(workshop):
    """A workshop with a catalog of 32 tools that have five examples each."""
    rows = [
        {
            "name": f"{verb}_{thing}",
            "description": f"{verb}s.",
            "examples": examples_of(verb, thing),
        }
        for verb in ("open", "close", "mend", "paint")
        for thing in THINGS
    ]
    workshop.write("requests.json", rows)
    return workshop


def last_examples(configuration):
    """The examples of the tools as last listed, by tool."""
    tools = tools_with_examples(configuration, last_snapshots(configuration))
    return {tool.id: tool.examples for tool in tools}


def test_examples_are_those_of_the_last_listing_with_overrides(desk):
    settings = (
        '[overrides."desk/desk/open_room"]\nexamples = ["knock knock"]\n'
        '[overrides."desk/desk/open_taxi"]\nskip = true\n'
        '[overrides."desk/desk/open_plant"]\nexamples = []\n'
    )
    configuration = desk.configure(settings, CATALOG)
    examples = last_examples(configuration)
    take_snapshot(configuration, "desk")
    desk.write("requests.json", [{"name": "sing", "description": "Sings.", "examples": ["la la"]}])

    assert last_examples(configuration) == examples
    assert len(examples) == 30
    assert examples["desk/desk/open_room"] == ("knock knock",)
    desk.servers({"git": [desk.tool("list_commits", "Lists commits.")]})
    with pytest.raises(ConfigurationError, match="has example requests"):
        last_examples(desk.configure())


def test_the_command_holds_out_and_says_what_to_configure(desk, capsys):
    desk.configure("", CATALOG)
    out = desk.folder / "golden.jsonl"
    command = ["golden", "hold-out", "-c", str(desk.folder / "pegboard.toml"), "--out", str(out)]

    assert main(command) == 0
    output = capsys.readouterr().out
    assert "32 of 160 examples, of 32 of the 32 tools that have any" in output
    assert '[golden]\nqueries = "golden.jsonl"' in output
    assert main(command) == 2
    assert "already exists. Choose another file, or add --add" in capsys.readouterr().err
    desk.configure('[golden]\nqueries = "golden.jsonl"\n', CATALOG)
    assert main([*command, "--add", "--share", "0.4"]) == 0
    output = capsys.readouterr().out
    assert "32 of 160 examples" in output
    assert "added to 32 existing ones\nThe next build holds them out.\n" in output
    assert len(read_queries(out)) == 64
