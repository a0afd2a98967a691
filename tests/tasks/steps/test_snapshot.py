"""Snapshots: what a source lists, and what replaces it where the source fails."""

import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from catalogs.shared.isolation import list_isolated
from tasks.steps.snapshot import stored_snapshot, take_snapshot
from tests.listings import listing_of

RAW_SERVER = Path(__file__).parents[2] / "catalogs" / "servers" / "raw_stdio.py"


class Kit:
    """The catalog `kit`, whose servers have tools of these names."""

    def __init__(self, workshop, **servers):
        self.workshop, self.configuration = workshop, workshop.configure()
        self.change(**servers)
        self.first = take_snapshot(self.configuration, "kit")

    def change(self, **servers):
        tool = self.workshop.tool
        self.workshop.servers({name: map(tool, tools) for name, tools in servers.items()})

    def take(self, **how):
        return take_snapshot(self.configuration, "kit", **how)

    def names(self, snapshot):
        listing = listing_of(self.workshop.lake, **{snapshot.catalog: snapshot.digest})
        return [tool.name for tool in listing.tools]


@pytest.fixture
def kit(workshop):
    return Kit(workshop, git=["git_one", "git_two"], shop=["shop_one", "shop_two"])


def test_a_listing_is_read_from_the_lake_unchanged(workshop):
    configuration = workshop.full()
    for catalog in configuration.catalogs:
        listed = list_isolated(catalog, configuration.base, configuration.options(catalog))

        snapshot = take_snapshot(configuration, catalog)
        stored = listing_of(workshop.lake, **{catalog: snapshot.digest})

        assert (stored.agents, stored.tools) == (listed.agents, listed.tools)
        assert (snapshot.tools, snapshot.agents) == (len(listed.tools), len(listed.agents))


def test_the_order_of_a_source_does_not_change_the_snapshot(kit):
    kit.change(shop=["shop_two", "shop_one"], git=["git_two", "git_one"])

    assert kit.take().digest == kit.first.digest


@pytest.mark.parametrize(
    "broken", ["{not json", "{}", None], ids=["not JSON", "another shape", "no file"]
)
def test_a_failed_source_keeps_its_last_good_snapshot_until_it_recovers(kit, broken):
    if broken:
        kit.workshop.write("servers.json", broken)
    else:
        (kit.workshop.folder / "servers.json").unlink()
    last_good = kit.take()
    stored = stored_snapshot(kit.configuration, "kit")
    kit.change(git=["new_one"])
    back = kit.take()

    assert (last_good.digest, last_good.tools, last_good.kept) == (kit.first.digest, 4, ("*",))
    assert len(last_good.problems) == 1
    assert "servers.json" in last_good.problems[0]
    assert (stored.digest, stored.tools, stored.agents, stored.kept) == (
        kit.first.digest,
        4,
        2,
        (),
    )
    assert (back.kept, back.problems, kit.names(back)) == ((), (), ["new_one"])


@pytest.mark.parametrize("broken", ["{not json", '{"tools": [', "{}"])
def test_an_unreadable_file_of_several_keeps_its_tools_and_the_others_are_listed(workshop, broken):
    configuration = workshop.configure(
        catalogs='[catalogs.kit]\ntype = "mcp-dump"\npath = "dump-*.json"\n'
    )

    def take(**files):
        for name, content in files.items():
            tools = [{"name": tool} for tool in content] if isinstance(content, list) else content
            workshop.write(f"dump-{name}.json", tools)
        snapshot = take_snapshot(configuration, "kit")
        tools = listing_of(workshop.lake, kit=snapshot.digest).tools
        return [tool.id.removeprefix("kit/dump-") for tool in tools], snapshot

    take(a=["one", "two"], b=["three"])
    while_broken, snapshot = take(a=["two", "new"], b=broken)
    repaired, again = take(b=["four"])

    assert while_broken == ["a/new", "a/one", "a/two", "b/three"]
    (problem,) = snapshot.problems
    assert "dump-b.json" in problem
    assert "no tool is removed" in problem
    assert snapshot.kept == ("kit/dump-a", "kit/dump-b")
    assert (repaired, again.problems) == (["a/new", "a/two", "b/four"], ())


def test_a_catalog_that_suddenly_lists_nothing_keeps_its_tools_unless_empty_is_allowed(kit):
    kit.change(git=[], shop=[])

    last_good = kit.take()
    empty = kit.take(allow_removal=True)

    assert (last_good.digest, last_good.kept) == (kit.first.digest, ("*",))
    assert last_good.problems == (
        "kit lists no tools any more, so its last good ones are kept. If that is intended, run "
        "once with --allow-removal (allow_removal in a flow).",
    )
    assert (empty.tools, empty.agents, empty.kept, empty.problems) == (0, 2, (), ())


def test_an_agent_that_suddenly_lists_nothing_keeps_its_tools_unless_empty_is_allowed(kit):
    kit.change(git=[], shop=["shop_three"], never=[])

    for _ in range(2):
        last_good = kit.take()
        assert kit.names(last_good) == ["git_one", "git_two", "shop_three"]
        assert (last_good.agents, last_good.kept) == (3, ("kit/git",))
        assert last_good.problems == (
            "kit/git lists no tools any more, so its last good ones are kept. If that is intended, "
            "run once with --allow-removal (allow_removal in a flow).",
        )
    empty = kit.take(allow_removal=True)
    assert kit.names(empty) == kit.names(kit.take()) == ["shop_three"]
    assert (empty.agents, empty.kept, empty.problems) == (3, (), ())


def test_a_catalog_that_suddenly_lacks_most_tools_keeps_them_unless_removal_is_allowed(workshop):
    configuration = workshop.configure(
        catalogs='[catalogs.table]\ntype = "records"\npath = "tools.csv"\n'
    )

    def take(rows, **how):
        lines = ["name,description", *(f"tool_{row},Does {row}." for row in range(rows))]
        workshop.write("tools.csv", "\n".join(lines))
        return take_snapshot(configuration, "table", **how)

    full = take(20)
    slightly_fewer = take(14)
    for _ in range(2):
        held = take(1)
        assert (held.digest, held.tools, held.kept) == (slightly_fewer.digest, 14, ("*",))
        assert held.problems == (
            "13 of the 14 tools of table are no longer listed, more than [board] max_removal = 0.3 "
            "allows, so the catalog keeps its last good tools. If that is intended, run once with "
            "--allow-removal (allow_removal in a flow).",
        )
    allowed = take(1, allow_removal=True)

    assert (full.tools, slightly_fewer.tools, slightly_fewer.problems) == (20, 14, ())
    assert (allowed.tools, allowed.problems) == (take(1).tools, ()) == (1, ())


def test_a_small_catalog_may_lose_a_few_tools_at_once(kit):
    kit.change(git=["git_one"], shop=["shop_one"])

    assert (kit.take().tools, kit.take().problems) == (2, ())


def test_an_agent_that_is_no_longer_listed_is_removed(kit):
    kit.change(git=["git_one"])

    snapshot = kit.take()

    assert (kit.names(snapshot), snapshot.agents, snapshot.problems) == (["git_one"], 1, ())


def test_an_agent_that_cannot_be_listed_keeps_its_tools_and_the_others_are_new(workshop):
    configuration = workshop.configure(catalogs='[catalogs.kit]\ntype = "mcp"\npath = "mcp.json"\n')

    def ids(**behaviours):
        servers = {
            name: {"command": sys.executable, "args": [str(RAW_SERVER), behaviour]}
            for name, behaviour in behaviours.items()
        }
        workshop.write("mcp.json", {"mcpServers": servers})
        snapshot = take_snapshot(configuration, "kit")
        tools = listing_of(workshop.lake, kit=snapshot.digest).tools
        return [tool.id for tool in tools], snapshot

    before, _ = ids(first="good", second="good")
    after, snapshot = ids(first="die", second="good", third="good")

    assert before == ["kit/first/good", "kit/second/good"]
    assert after == [*before, "kit/third/good"]
    assert snapshot.kept == ("kit/first",)
    assert "kit/first" in snapshot.problems[0]


def test_rejected_records_are_stored_with_place_and_reason(workshop):
    bad = [{"description": "no name"}, {"name": "crooked", "inputSchema": {"type": "array"}}]
    workshop.servers({"git": [workshop.tool("good"), *bad]})

    snapshot = take_snapshot(configuration := workshop.configure(), "kit")

    assert snapshot.tools == 1
    first, second = snapshot.rejected
    assert (first.where, second.where) == tuple(f"servers.json: git.tools[{n}]" for n in (1, 2))
    assert "it has no name" in first.why
    assert "expected an object" in second.why
    pointer = workshop.lake.read_json(place := "snapshots/kit/latest.json")
    assert pointer["rejected"] == [asdict(row) for row in snapshot.rejected]
    workshop.lake.write_json(place, pointer | {"rejected": "1f0c"})  # as earlier versions did
    assert stored_snapshot(configuration, "kit").rejected == ()


def test_the_order_of_an_enum_is_no_change(workshop):
    def publish(colours, **others):
        schema = {"type": "object", "properties": {"colour": {"enum": colours}}}
        tools = [
            workshop.tool(name) | {"inputSchema": value}
            for name, value in {"paint": schema, **others}.items()
        ]
        workshop.servers({"shop": tools})
        return take_snapshot(configuration, "kit")

    def colours(snapshot):
        tools = listing_of(workshop.lake, kit=snapshot.digest).tools
        return {tool.name: tool.input_schema["properties"]["colour"]["enum"] for tool in tools}

    configuration = workshop.configure()
    first = publish(["red", "blue", "green"])

    assert publish(["green", "red", "blue"]).digest == first.digest
    assert colours(publish(["blue", "red"])) == {"paint": ["blue", "red"]}
    other = {"type": "object", "properties": {"colour": {"enum": ["a"]}}}
    assert colours(publish(["red", "blue"], mix=other)) == {"paint": ["blue", "red"], "mix": ["a"]}


def test_a_tool_whose_text_changes_gets_the_new_order_of_its_enum(workshop):
    def publish(description, values):
        schema = {"type": "object", "properties": {"a": {"type": values}}}
        workshop.servers({"shop": [workshop.tool("paint", description) | {"inputSchema": schema}]})
        snapshot = take_snapshot(configuration, "kit")
        (tool,) = listing_of(workshop.lake, kit=snapshot.digest).tools
        return tool.input_schema["properties"]["a"]["type"]

    configuration = workshop.configure()

    assert publish("Paint it", ["string", "null"]) == ["string", "null"]
    assert publish("Paint it", ["null", "string"]) == ["string", "null"]
    assert publish("Paint it now", ["null", "string"]) == ["null", "string"]
