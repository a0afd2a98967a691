"""`pegboard init`, `plan` and `build` as a person runs them, without Prefect."""

import json

import pytest

import pegboard


def servers(workshop, *names):
    workshop.servers({"git": [workshop.tool(name, f"Does {name} to an issue.") for name in names]})


def test_the_first_commands_of_a_newcomer_succeed_and_init_replaces_no_file(command, workshop):
    code, out, err = command("init")
    assert (code, err) == (0, "")
    assert out.startswith("Wrote pegboard.toml and functions.json. Try `pegboard plan` and ")
    config = workshop.folder / "pegboard.toml"
    config.write_text(config.read_text("utf-8") + '\n[[indexes]]\nencoder = "hashing/64"\n')

    plan, build, again = command("plan", "--quiet"), command("build", "--quiet"), command("init")

    assert (plan[0], plan[2], build[0], build[2]) == (0, "", 0, "")
    assert plan[1].startswith("3 new, 0 changed, 0 removed, 0 unchanged tools\n")
    assert "is live on" in build[1]
    assert again[0] == 2
    assert again[2].startswith("pegboard init: pegboard.toml exists already. ")
    config.unlink()
    assert json.loads(command("init", "--json")[1]) == {"written": ["pegboard.toml"]}


@pytest.mark.parametrize("verb", ["build", "plan"])
def test_all_mistakes_are_reported_together_before_any_source_or_llm_call(command, workshop, verb):
    servers(workshop, "one")

    def fail(code, *problems, arguments=()):
        ended, out, err = command(verb, *arguments)
        assert (ended, out) == (code, ""), err
        for problem in problems:
            assert problem in err
        return err

    missing = fail(2, "No configuration at ", arguments=("-c", "none.toml"))
    assert missing.count("\n") == 1
    text = '[board]\nuri = "board"\nchanel = "live"\n[catalogs.kit]\ntype = "nosuch"\n'
    workshop.write("pegboard.toml", text)
    problems = ("pegboard.toml has 2 problems:\n", "board.chanel: no such setting")
    assert fail(2, *problems).startswith(f"pegboard {verb}: ")

    enrich = (
        '[enrich]\nmodel = "openai/mine"\napi_base = "http://127.0.0.1:9/v1"\n'
        'products = ["topics"]\n'
    )
    index = '[[indexes]]\nname = "full"\nencoder = "hash"\n'
    workshop.configure(index + enrich)
    fail(5, "LiteLLM knows no provider for 'hash'")
    (workshop.folder / "prompts").mkdir()
    workshop.write("prompts/topics.md", "no front matter")
    workshop.configure(f"{index}{enrich}budget_usd = 1\n")
    prompt = "topics.md:1: expected a front matter"
    fail(2, "has 3 problems", "provider for 'hash'", prompt, "[enrich.price]")

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
    assert "13 of the 14 tools of kit are no longer listed" in problem
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
    diff = command("releases", "diff", "--texts")[1]
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


def test_a_plan_estimates_the_tokens_of_a_hosted_encoder(command, workshop, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-one-1234")
    workshop.configure('[[indexes]]\nencoder = "openai/text-embedding-3-small"\n')
    servers(workshop, "create_issue", "delete_issue")

    texts = json.loads(command("plan", "--json", "--quiet")[1])["plan"]["texts"]["full"]
    out = command("plan", "--quiet")[1]

    assert (texts["documents"], texts["to_encode"]) == (5, 3)
    assert 10 < texts["tokens"] < 30
    assert f"encode 3 of 5 texts for full (about {texts['tokens']} tokens).\n" in out


def test_beside_a_configuration_no_command_needs_a_board(command, workshop, monkeypatch):
    workshop.write("golden.jsonl", '{"query": "file a bug", "tools": ["create_issue"]}\n')
    lines = (
        *("find issue", "graph show create_issue", "report"),
        *("releases list", "releases show live", "releases verify", "releases prune"),
        *("eval golden.jsonl", "golden check golden.jsonl"),
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
    assert "no board at nowhere" in command("find", "issue")[2]


def test_a_plan_says_how_often_the_default_strategy_asks_an_llm(command, workshop):
    workshop.servers(workshop.named("create_issue"))
    workshop.configure()
    _, plain, _ = command("plan", "--quiet")
    workshop.configure('[find]\nstrategy = "plan-select"\n')
    _, out, _ = command("plan", "--quiet")
    _, values, _ = command("plan", "--quiet", "--json")

    assert "asks an LLM" not in plain
    assert (
        "The default strategy 'plan-select' asks an LLM: "
        "1 + n to 1 + 5n LLM calls for a request of n steps.\n"
    ) in out
    assert json.loads(values)["strategy"] == {
        "name": "plan-select",
        "llm_calls": "1 + n to 1 + 5n",
    }
