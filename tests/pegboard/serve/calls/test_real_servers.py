"""Real MCP servers from npm and PyPI and an API on loopback, searched and called through a gateway
by the SDK's client for TypeScript; beside one with 2,000 tools."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from pegboard.serve.access.views import RESERVED
from pegboard.serve.settings import load_gateway_settings

HERE = Path(__file__).parents[1]
MILL = Path(__file__).parents[4] / "benchmarks" / "performance" / "gateway_upstream.py"
NPM = ["@modelcontextprotocol/sdk@1.32.2", "tsx@4.23.15"]
TOKEN = "agent-4711-token"

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("real_servers")]


@pytest.fixture(scope="module")
def real(tmp_path_factory, workshop_type, shop_module):
    """A built board of real servers, and the folder with its pegboard.toml."""
    for command in ("npx", "uvx", "git"):
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed, by which real MCP servers are started")
    folder = tmp_path_factory.mktemp("real")
    subprocess.run(["git", "init", "-q", str(folder / "repository")], check=True)
    (folder / "notes.txt").write_text("The launch is on Friday.")
    workshop = workshop_type(folder)
    workshop.write("shop.json", shop_module.DOCUMENT)
    run = workshop.run(workshop.configure(catalogs=catalogs(folder)), until="snapshot")
    failures = [problem for snapshot in run.snapshots for problem in snapshot.problems]
    if failures:
        pytest.skip(f"not all servers could be installed here: {failures[0]:.300}")
    workshop.run(workshop.configure(catalogs=catalogs(folder)))
    return folder


def catalogs(folder):
    npm = "@modelcontextprotocol/server"
    return f"""
[catalogs.real]
type = "mcp"
timeout = 300

[catalogs.real.servers]
filesystem = {{ command = "npx", args = ["-y", "{npm}-filesystem@2026.8.31", "{folder}"] }}
everything = {{ command = "npx", args = ["-y", "{npm}-everything@2026.8.31"] }}
git = {{ command = "uvx", args = ["mcp-server-git@2026.10.19"] }}
time = {{ command = "uvx", args = ["mcp-server-time@2026.10.19"] }}

[catalogs.real.servers.memory]
command = "npx"
args = ["-y", "{npm}-memory@2026.8.31"]
env = {{ MEMORY_FILE_PATH = "{folder / "memory.jsonl"}" }}

[catalogs.kit]
type = "mcp"
timeout = 300

[catalogs.kit.servers]
mill = {{ command = "{sys.executable}", args = ["{MILL}", "2000"] }}

[catalogs.shop]
type = "openapi"
path = "shop.json"
"""


@pytest.fixture
def gateway(real, shop, served, monkeypatch):
    """The address of a gateway to the board, for one client that may not commit."""
    monkeypatch.setenv("AGENT_TOKEN", TOKEN)
    file = real / "pegboard.toml"
    text = file.read_text().partition("[serve]")[0]
    file.write_text(
        text
        + f"""[serve]
[serve.calls]
timeout = 60

[serve.apis.shop]
base_url = "{shop.url}"

[serve.clients.agent]
token = "${{AGENT_TOKEN}}"
deny = [{{ tool = "real/git/git_commit" }}]
"""
    )
    settings = load_gateway_settings(file)
    with served(settings.uri, settings) as (url, _):
        yield url


def steps(folder):
    """Queries, the tool that each must find, its arguments, and a part of the answer."""
    name = f"Ana {uuid4()}"
    entity = {"name": name, "entityType": "person", "observations": ["likes tea"]}
    return [
        ("read_text_file", {"path": str(folder / "notes.txt")}, "The launch is on Friday."),
        ("create_entities", {"entities": [entity]}, "likes tea"),
        ("get-sum", {"a": 2, "b": 40}, "42"),
        ("git_status", {"repo_path": str(folder / "repository")}, "No commits yet"),
        ("convert_time", {"source_timezone": "Asia/Tokyo", "time": "12:00",
                          "target_timezone": "UTC"}, "03:00"),
        ("add_order", {"item": "tea", "amount": 2}, "tea"),
        ("list_invoice_0000", {"text": "one of 2,000"}, "one of 2,000"),
    ]  # fmt: skip


def test_a_typescript_client_searches_and_calls_tools_of_real_servers(gateway, real, tmp_path):
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed, by which the SDK for TypeScript is installed")
    (tmp_path / "package.json").write_text('{"private": true, "type": "module"}')
    shutil.copy(HERE / "client.ts", tmp_path)
    install = ["npm", "install", "--no-audit", "--no-fund", "--silent", *NPM]
    installed = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True)
    if installed.returncode:
        pytest.skip(f"npm could not install the SDK: {installed.stderr[-300:]}")
    questions = [
        {"query": name, "name": name, "arguments": arguments} for name, arguments, _ in steps(real)
    ]
    command = ["npx", "tsx", "client.ts", gateway, TOKEN, json.dumps(questions)]

    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert ended.returncode == 0, ended.stderr
    answers = json.loads(ended.stdout.splitlines()[-1])
    assert answers["listed"] == list(RESERVED)
    assert "Unknown tool: 'git_commit'" in answers["refused"]
    for (name, _, expected), answer in zip(steps(real), answers["answers"], strict=True):
        assert name in answer["found"]
        assert not answer["isError"], (name, answer)
        assert expected in json.dumps(answer["content"]), name
