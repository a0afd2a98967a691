"""Snapshots: what a source says now, and what stands in for it where it fails."""

import sys
from pathlib import Path

import pytest

from pegboard.errors import ConfigurationError
from tasks.lake.snapshot_rows import load_snapshot
from tasks.snapshot import list_source, stored_snapshot, take_snapshot

RAW_SERVER = Path(__file__).parents[1] / "catalogs" / "servers" / "raw_stdio.py"


def tool_names(workshop, snapshot):
    return [
        tool.name for tool in load_snapshot(workshop.lake, snapshot.catalog, snapshot.digest).tools
    ]


@pytest.fixture
def listed(workshop):
    """A workshop whose catalog was listed once: two agents with two tools each."""
    workshop.servers(
        {
            name: [workshop.tool(f"{name}_one"), workshop.tool(f"{name}_two")]
            for name in ("git", "shop")
        }
    )
    configuration = workshop.configure()
    return workshop, configuration, take_snapshot(configuration, "kit")


def test_a_listing_comes_back_from_the_lake_as_it_was(workshop):
    configuration = workshop.full()
    for catalog in configuration.catalogs:
        listing, expected = list_source(configuration, catalog)

        taken = take_snapshot(configuration, catalog)
        stored = load_snapshot(workshop.lake, catalog, taken.digest)

        assert taken == expected
        assert (stored.agents, stored.tools) == (listing.agents, listing.tools)
        assert (taken.tools, taken.agents) == (len(listing.tools), len(listing.agents))


def test_the_same_tools_have_the_same_snapshot_wherever_they_stand(listed, tmp_path):
    workshop, configuration, first = listed
    workshop.servers(
        {
            name: [workshop.tool(f"{name}_two"), workshop.tool(f"{name}_one")]
            for name in ("shop", "git")
        }
    )

    assert take_snapshot(configuration, "kit").digest == first.digest


def test_listing_a_source_stores_nothing(workshop):
    configuration = workshop.full()

    list_source(configuration, "kit")

    assert not Path(workshop.uri).exists()
    assert stored_snapshot(configuration, "kit") is None


@pytest.mark.parametrize(
    "broken", ["{not json", "{}", None], ids=["not JSON", "another shape", "no file"]
)
def test_a_source_that_fails_keeps_its_last_good_snapshot_and_says_why(listed, broken):
    workshop, configuration, good = listed
    workshop.write("servers.json", broken) if broken else (
        workshop.folder / "servers.json"
    ).unlink()

    kept = take_snapshot(configuration, "kit")

    assert (kept.digest, kept.tools, kept.kept) == (good.digest, 4, ("*",))
    assert len(kept.problems) == 1
    assert "servers.json" in kept.problems[0]
    assert stored_snapshot(configuration, "kit").digest == good.digest


def test_a_source_that_comes_back_is_listed_again(listed):
    workshop, configuration, _ = listed
    workshop.write("servers.json", "{")
    take_snapshot(configuration, "kit")
    workshop.servers({"git": [workshop.tool("new_one")]})

    back = take_snapshot(configuration, "kit")

    assert (back.kept, back.problems) == ((), ())
    assert tool_names(workshop, back) == ["new_one"]


def test_a_source_that_fails_the_first_time_has_nothing_to_keep(workshop):
    configuration = workshop.configure()

    first = take_snapshot(configuration, "kit")

    assert (first.tools, first.agents, first.kept) == (0, 0, ())
    assert "servers.json" in first.problems[0]


def test_a_catalog_that_suddenly_lists_nothing_keeps_its_tools_unless_that_is_meant(listed):
    workshop, configuration, good = listed
    workshop.servers({"git": [], "shop": []})

    kept = take_snapshot(configuration, "kit")
    meant = take_snapshot(configuration, "kit", allow_empty=True)

    assert (kept.digest, kept.kept) == (good.digest, ("*",))
    assert "--allow-empty" in kept.problems[0]
    assert (meant.tools, meant.agents, meant.kept, meant.problems) == (0, 2, (), ())


def test_an_agent_that_suddenly_lists_nothing_keeps_its_tools_unless_that_is_meant(listed):
    workshop, configuration, _ = listed
    workshop.servers({"git": [], "shop": [workshop.tool("shop_three")]})

    kept = take_snapshot(configuration, "kit")
    assert tool_names(workshop, kept) == ["git_one", "git_two", "shop_three"]
    assert kept.kept == ("kit/git",)
    assert kept.problems == (
        "kit/git lists no tools any more; its last good ones are kept. Give --allow-empty if that "
        "is intended.",
    )

    again = take_snapshot(configuration, "kit")
    assert tool_names(workshop, again) == [
        "git_one",
        "git_two",
        "shop_three",
    ]  # not only for one run

    meant = take_snapshot(configuration, "kit", allow_empty=True)
    assert tool_names(workshop, meant) == ["shop_three"]
    assert (meant.agents, meant.kept, meant.problems) == (2, (), ())
    assert tool_names(workshop, take_snapshot(configuration, "kit")) == ["shop_three"]


def test_an_agent_that_never_had_tools_is_no_problem(listed):
    workshop, configuration, _ = listed
    workshop.servers(
        {"git": [workshop.tool("git_one")], "shop": [workshop.tool("shop_one")], "empty": []}
    )

    taken = take_snapshot(configuration, "kit")

    assert (taken.agents, taken.kept, taken.problems) == (3, (), ())


def test_an_agent_that_is_no_longer_listed_is_gone(listed):
    workshop, configuration, _ = listed
    workshop.servers({"git": [workshop.tool("git_one")]})

    taken = take_snapshot(configuration, "kit")

    assert (tool_names(workshop, taken), taken.agents, taken.problems) == (["git_one"], 1, ())


def test_an_agent_that_cannot_be_listed_keeps_its_tools_and_the_others_are_new(workshop):
    def servers(**behaviours):
        entries = {
            name: {"command": sys.executable, "args": [str(RAW_SERVER), how]}
            for name, how in behaviours.items()
        }
        workshop.write("mcp.json", {"mcpServers": entries})

    configuration = workshop.configure(catalogs='[catalogs.kit]\ntype = "mcp"\npath = "mcp.json"\n')
    servers(first="good", second="good")
    good = take_snapshot(configuration, "kit")
    servers(first="die", second="good", third="good")

    kept = take_snapshot(configuration, "kit")

    assert [tool.id for tool in load_snapshot(workshop.lake, "kit", good.digest).tools] == [
        "kit/first/good",
        "kit/second/good",
    ]
    assert [tool.id for tool in load_snapshot(workshop.lake, "kit", kept.digest).tools] == [
        "kit/first/good",
        "kit/second/good",
        "kit/third/good",
    ]
    assert kept.kept == ("kit/first",)
    assert "kit/first" in kept.problems[0]


def test_what_is_rejected_is_kept_with_place_and_reason_and_the_rest_is_listed(workshop):
    bad = [{"description": "no name"}, {"name": "crooked", "inputSchema": {"type": "array"}}]
    workshop.servers({"git": [workshop.tool("good"), *bad]})

    taken = take_snapshot(workshop.configure(), "kit")

    assert tool_names(workshop, taken) == ["good"]
    assert [row.where for row in taken.rejected] == [
        "servers.json: git.tools[1]",
        "servers.json: git.tools[2]",
    ]
    assert "it has no name" in taken.rejected[0].why
    assert "expected an object" in taken.rejected[1].why
    (file,) = (path for path in workshop.lake.files("snapshots/kit") if "rejected-" in path)
    assert workshop.lake.read(file).rows() == [
        (row.catalog, row.where, row.why, row.raw) for row in taken.rejected
    ]


def test_the_stored_snapshot_stands_in_for_a_catalog_that_is_not_listed(listed):
    workshop, configuration, good = listed
    (workshop.folder / "servers.json").unlink()

    stored = stored_snapshot(configuration, "kit")

    assert (stored.digest, stored.tools, stored.agents, stored.kept) == (good.digest, 4, 2, ())


def test_a_catalog_that_is_not_configured_is_refused_with_those_there_are(listed):
    _, configuration, _ = listed

    with pytest.raises(ConfigurationError, match=r"No catalog 'other' in .*; expected one of kit"):
        configuration.catalogs_named("other")
    assert configuration.catalogs_named("all") == ["kit"]
