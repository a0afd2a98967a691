"""`pegboard sweep` as a person runs it, without Prefect."""

import json

import pytest

from pegboard.store.releases import ReleaseStore

INDEXES = """
default_index = "full"

[[indexes]]
name = "full"
encoder = "hashing/256"

[[indexes]]
name = "names"
encoder = "hashing/256"
parts = ["name"]

[sweep]
golden = "golden.jsonl"
strategies = ["search", "clauses", "dummy-steps"]
k = "1..5"
"""
DEEDS = ("create", "delete", "rename")
THINGS = ("issue", "branch", "forecast", "lunch")


@pytest.fixture
def folder(workshop):
    """A catalog of twelve tools, with a golden query for each."""
    tools = {f"{deed}_{thing}": f"{deed.title()}s a {thing}." for deed in DEEDS for thing in THINGS}
    workshop.servers({"office": [workshop.tool(name, text) for name, text in tools.items()]})
    catalogs = '[catalogs.kit]\ntype = "mcp-dump"\npath = "servers.json"\n'
    top, _, rest = INDEXES.partition("\n\n")
    workshop.write("pegboard.toml", f'{top}\n\n[board]\nuri = "board"\n{catalogs}\n{rest}')
    golden = [{"query": f"please {name.replace('_', ' a ')}", "tools": [name]} for name in tools]
    workshop.write("golden.jsonl", "".join(json.dumps(one) + "\n" for one in golden))
    return workshop.folder


def test_a_sweep_builds_a_board_of_its_own_and_names_its_choice(command, folder):
    code, out, err = command("sweep", "--json")

    assert code == 0, err
    outcome = json.loads(out)
    assert outcome["tools"] == 12
    assert outcome["choice"]["best"]["n"] == 12
    assert all("say little" in warning for warning in outcome["warnings"])

    store = ReleaseStore(str(folder / "sweep" / "board"))
    assert [(one.name, one.release) for one in store.channels()] == [("sweep", outcome["release"])]
    assert not (folder / "board").exists()  # what is configured is not touched
    assert sorted(file.name for file in folder.glob(".pegboard.sweep*")) == []
    chosen = outcome["choice"]["recommended"]
    assert f"index {chosen['index']}, strategy {chosen['strategy']}" in " ".join(outcome["says"])
    assert (folder / "sweep" / "sweep.json").is_file()
