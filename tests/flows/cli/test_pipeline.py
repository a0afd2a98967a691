"""`pegboard init`, `plan` and `build` as a person runs them, without Prefect."""

import json

import pytest

import pegboard


def servers(workshop, *names):
    workshop.servers({"git": [workshop.tool(name, f"Does {name} to an issue.") for name in names]})


def test_init_writes_an_example_that_loads_and_keeps_what_is_there(command, workshop):
    path = workshop.folder / "pegboard.toml"

    code, out, err = command("init")
    assert (code, err) == (0, "")
    assert (
        out
        == "Wrote pegboard.toml. Name your sources in it, then: pegboard build -c pegboard.toml\n"
    )
    path.write_text("mine", "utf-8")

    code, out, err = command("init")
    assert (code, out) == (2, "")
    assert (
        err == "pegboard init: pegboard.toml exists already. Give another path, or --force to "
        "replace it.\n"
    )
    assert path.read_text("utf-8") == "mine"

    code, out, _ = command("init", "--force", "--json")
    assert (code, json.loads(out)) == (0, {"written": "pegboard.toml"})
    assert command("init", "--stdout") == (0, path.read_text("utf-8"), "")
    assert "[board]" in path.read_text("utf-8")


@pytest.mark.parametrize("verb", ["build", "plan"])
def test_every_mistake_in_a_configuration_is_reported_before_any_source_is_listed(
    command, workshop, verb
):
    workshop.write(
        "pegboard.toml",
        '[board]\nuri = "board"\nchanel = "live"\n[catalogs.kit]\ntype = "nosuch"\n',
    )

    code, out, err = command(verb)

    assert (code, out) == (2, "")
    assert err.startswith(f"pegboard {verb}: pegboard.toml has 2 problems:\n")
    assert "board.chanel: no such setting" in err
    assert not (workshop.folder / "board").exists()


def test_a_configuration_or_catalog_that_is_not_there_is_said(command, workshop):
    code, _, err = command("build", "-c", "none.toml")
    assert (code, err.count("\n")) == (2, 1)
    assert "No configuration at " in err

    servers(workshop, "one")
    workshop.configure()
    code, out, _ = command("build", "--catalog", "other", "--json")
    error = json.loads(out)["error"]
    assert (code, error["type"]) == (2, "ConfigurationError")
    assert "No catalog 'other' in" in error["message"]


def test_the_story_of_a_board(command, workshop, encoder):
    """With a release live: a plan, a build that publishes, one with nothing to do, and a release
    that was rolled back.
    """
    configuration = workshop.configure()
    servers(workshop, "create_issue", "delete_issue")
    old = workshop.run(configuration).release

    servers(workshop, "create_issue", "close_issue")
    code, out, _ = command("plan", "--json")
    plan = json.loads(out)
    assert (code, plan["outcome"], plan["release"]) == (0, "planned", old.id)
    assert plan["plan"] == {
        "channel": "live",
        "live": old.id,
        "new": ["kit/git/close_issue"],
        "changed": [],
        "removed": ["kit/git/delete_issue"],
        "unchanged": 1,
        "withdrawn": [],
        "texts": {"full": {"documents": 3, "to_encode": 1}},  # the third is the agent's
        "edges": {},
    }
    assert workshop.store.all() == [old]

    code, out, err = command("build")
    live = workshop.store.channel()
    assert (code, live.generation, live.history) == (0, 2, (old.id,))
    assert "1 new, 0 changed, 1 removed, 1 unchanged tools\n" in out
    assert f"Release {live.release} is live on {workshop.uri} (1 texts encoded).\n" in out
    assert "snapshot: 1 to do\nsnapshot: 1 of 1, kit: 2 tools of 1 agents\n" in err
    hits = pegboard.open(workshop.uri, encoder=encoder).search("issue", 9)
    assert {hit.tool.name for hit in hits} == {"create_issue", "close_issue"}

    code, out, err = command("build", "--json", "--quiet")
    again = json.loads(out)
    assert (code, err) == (0, "")
    assert (again["outcome"], again["encoded"], again["release"]) == ("unchanged", 0, live.release)
    assert workshop.store.channel() == live

    workshop.store.rollback()
    code, out, _ = command("build")
    assert (code, workshop.store.channel().release) == (
        0,
        old.id,
    )  # the next night does not undo what a person did
    assert (
        f"these tools make release {live.release}, from which 'live' was rolled back. Release "
        f"{old.id} stays." in out
    )
    workshop.store.promote(live.release)
    code, out, _ = command("build")
    assert f"Nothing changed: release {live.release} stays live." in out
