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
    assert out.startswith("Wrote pegboard.toml. ")
    path.write_text("mine", "utf-8")
    code, out, err = command("init")
    assert (code, out) == (2, "")
    assert err.startswith("pegboard init: pegboard.toml exists already. ")
    assert path.read_text("utf-8") == "mine"

    code, out, _ = command("init", "--force", "--json")
    assert (code, json.loads(out)) == (0, {"written": "pegboard.toml"})
    assert command("init", "--stdout") == (0, path.read_text("utf-8"), "")
    assert "[board]" in path.read_text("utf-8")


@pytest.mark.parametrize("verb", ["build", "plan"])
def test_mistakes_are_reported_together_before_any_source_is_listed(command, workshop, verb):
    code, _, err = command(verb, "-c", "none.toml")
    assert (code, err.count("\n")) == (2, 1)
    assert "No configuration at " in err

    text = '[board]\nuri = "board"\nchanel = "live"\n[catalogs.kit]\ntype = "nosuch"\n'
    workshop.write("pegboard.toml", text)
    code, out, err = command(verb)
    assert (code, out) == (2, "")
    assert err.startswith(f"pegboard {verb}: pegboard.toml has 2 problems:\n")
    assert "board.chanel: no such setting" in err

    servers(workshop, "one")
    workshop.configure()
    code, out, _ = command(verb, "--catalog", "other", "--json")
    error = json.loads(out)["error"]
    assert (code, error["type"]) == (2, "ConfigurationError")
    assert "No catalog 'other' in" in error["message"]
    assert not (workshop.folder / "board").exists()


def test_changed_tools_are_named_with_their_old_and_new_text_on_request(command, workshop):
    old = [workshop.tool(f"tool_{number:02}", "Opens an issue.") for number in range(14)]
    workshop.publish({"git": old})
    new = [workshop.tool("tool_13", "Opens a ticket."), workshop.tool("fresh")]
    workshop.servers({"git": new})

    _, kept, problem = command("plan", "--quiet")
    removing = ("--quiet", "--allow-removal")
    short, full = command("plan", *removing)[1], command("plan", *removing, "--texts")[1]

    assert kept.startswith("0 new, 0 changed, 0 removed, 14 unchanged tools\n")
    assert problem.startswith("pegboard plan: 13 of the 14 tools of kit are no longer listed")
    again = command("plan", "--quiet")[1]  # a plan allows no later build anything
    assert again.startswith("0 new, 0 changed, 0 removed, 14 unchanged tools\n")
    assert short.startswith("1 new, 1 changed, 13 removed, 0 unchanged tools\n  + kit/git/fresh\n")
    assert "  ~ kit/git/tool_13: description\n  - kit/git/tool_00\n" in short
    assert "  ... and 3 more; --json lists all\n" in short
    assert "        - Opens an issue.\n        + Opens a ticket.\n" in full
    built = json.loads(command("build", *removing, "--json")[1])
    change = {"old": "Opens an issue.", "new": "Opens a ticket.", "added": [], "removed": []}
    assert built["plan"]["changes"] == {"kit/git/tool_13": {"description": change}}
    assert len(built["plan"]["removed"]) == 13
    diff = command("releases", "diff", "--neighbours", 0, "--texts")[1]
    assert (
        "description\n    description\n      - Opens an issue.\n      + Opens a ticket.\n" in diff
    )


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
        "texts": {"full": {"documents": 5, "to_encode": 1}},  # one of the agent
        "edges": {},
        "changes": {},
    }
    assert workshop.store.all() == [old]

    code, out, err = command("build")
    live = workshop.store.channel()
    assert (code, live.generation, live.history) == (0, 2, (old.id,))
    assert "1 new, 0 changed, 1 removed, 1 unchanged tools\n" in out
    assert f"Release {live.release} is live on {workshop.uri} (1 text encoded).\n" in out
    assert "snapshot: 1 to do\nsnapshot: 1 of 1, kit: 2 tools of 1 agent\n" in err
    hits = pegboard.open(workshop.uri, encoder=encoder).search("issue", 9)
    assert {hit.tool.name for hit in hits} == {"create_issue", "close_issue"}

    code, out, err = command("build", "--json", "--quiet")
    again = json.loads(out)
    assert (code, err) == (0, "")
    assert (again["outcome"], again["encoded"], again["release"]) == ("unchanged", 0, live.release)
    assert workshop.store.channel() == live

    workshop.store.rollback()  # the next night does not undo what a person did
    code, out, _ = command("build")
    assert (code, workshop.store.channel().release) == (0, old.id)
    assert f"release {live.release}, from which 'live' was rolled back. Release {old.id}" in out
    workshop.store.promote(live.release)
    assert f"Nothing changed: release {live.release} stays live." in command("build")[1]


def test_a_plan_says_what_a_build_will_take_by_the_last_one(command, workshop):
    workshop.configure()
    servers(workshop, "create_issue", "delete_issue")

    def forecast():
        return json.loads(command("plan", "--json", "--quiet")[1])["forecast"]

    def steps(values):
        return {row["step"]: (row["amount"], row["measured"]) for row in values["steps"]}

    first = forecast()
    assert steps(first) == {
        "embed full": (3, False),  # the document of each tool, and of the agent
        "compose": (2, False),
        "stage": (2, False),
        "publish": (2, False),
    }
    assert first["seconds"] > 0 < first["bytes"]
    assert (first["tokens"], first["usd"]) == (0, 0.0)

    command("build", "--quiet")
    assert forecast()["steps"] == []
    servers(workshop, "create_issue", "delete_issue", "close_issue")
    later = forecast()

    assert steps(later) == {
        "embed full": (1, True),
        "compose": (1, True),
        "stage": (1, True),
        "publish": (3, True),
    }
    out = command("plan", "--quiet")[1]
    assert "It would take about " in out
    assert "(by the last build)" in out
    assert "\n  stage: 1 changed tools, " in out


def test_beside_a_configuration_no_command_needs_a_board(command, workshop, monkeypatch):
    workshop.write("golden.jsonl", '{"query": "file a bug", "tools": ["create_issue"]}\n')
    lines = (
        *("search issue", "find issue", "agents issue", "graph show", "report"),
        *("releases list", "releases show live", "releases verify", "releases prune"),
        *("eval golden.jsonl", "golden check golden.jsonl", "export live --out out"),
    )
    for line in lines:
        if not line.startswith("golden check"):  # which can do without a board
            assert command(*line.split())[0] == 2, line
    workshop.publish({"git": [workshop.tool("create_issue", "Opens an issue.")]})

    for line in lines:
        code, _, err = command(*line.split())
        assert code == 0 or line.startswith("golden check"), (line, err)
    assert " on release " in command("golden", "check", "golden.jsonl")[1]
    monkeypatch.setenv("PEGBOARD_BOARD", "nowhere")
    assert "no board at nowhere" in command("search", "issue")[2]
