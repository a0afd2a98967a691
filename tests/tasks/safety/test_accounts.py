"""Two accounts of one server are not suspicious; a copy of its tools by another server is."""

import json
import sys
from pathlib import Path

import pytest

from tasks.safety.accounts import servers_of_agents

CATALOG = '[catalogs.kit]\ntype = "mcp"\npath = "mcp.json"\n'
RAW = Path(__file__).parents[2] / "catalogs" / "servers" / "raw_stdio.py"


@pytest.fixture
def agents(workshop):
    """A function: the server of each agent by the configuration of some servers."""

    def of(entries):
        workshop.write("mcp.json", {"mcpServers": entries})
        configuration = workshop.configure(
            catalogs='[catalogs.kit]\ntype = "mcp"\npath = "mcp.json"\n'
        )
        return servers_of_agents(configuration)

    return of


def test_accounts_of_one_server_are_not_copies_and_another_server_is(workshop):
    command = {"command": sys.executable, "args": [str(RAW), "serve"]}
    other = {"command": sys.executable, "args": [str(RAW), "serve", "another"]}
    servers = {
        "work": {**command, "env": {"ACCOUNT": "work"}},
        "home": {**command, "env": {"ACCOUNT": "home"}},
        "thief": other,
    }
    workshop.write("mcp.json", {"mcpServers": servers})

    run = workshop.run(workshop.configure(catalogs=CATALOG))

    suspicious = run.release.manifest["suspicious"]
    copies = {tool: rows[0]["of"] for tool, rows in suspicious.items()}
    assert copies["kit/thief/good"] in ("kit/work/good", "kit/home/good")
    assert {copies.get("kit/work/good"), copies.get("kit/home/good")} <= {"kit/thief/good"}


def run_of(*args, **more):
    return {"command": "uvx", "args": [*args], **more}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (run_of("mail", env={"TOKEN": "a"}), run_of("mail", env={"TOKEN": "b"}), True),
        (run_of("mail", "--account", "a"), run_of("mail", "--account", "b"), True),
        (run_of("mail", "--user-profile=a"), run_of("mail", "--user-profile=b"), True),
        (run_of("-y", "mail"), run_of("-y", "post"), False),
        (run_of("mail", "--from", "a"), run_of("mail", "--from", "b"), False),
        ({"url": "https://a.example/mcp?key=1"}, {"url": "https://a.example/mcp/?key=2"}, True),
        ({"url": "https://a.example/mcp"}, {"url": "https://b.example/mcp"}, False),
        ({"url": "https://a.example/mcp"}, {"url": "https://a.example/other"}, False),
    ],
    ids=json.dumps,
)
def test_entries_are_one_server_if_only_the_account_differs(agents, one, other, same):
    servers = agents({"one": one, "other": other})

    assert (servers["kit/one"] == servers["kit/other"]) == same
    assert servers["kit/one:prompts"] != servers["kit/one"]
