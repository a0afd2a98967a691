"""Runs without Prefect: what a command loads, and what a killed run leaves to the next."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pegboard
from flows.build import BuildOptions, build

# Reports which sockets each command listened on, which processes it started, and Prefect's modules.
AUDIT = """
import json, socket, sys
from benchmarks.__main__ import main as benchmarks
from pegboard.cli.main import main

events = []
def audit(event, arguments):
    own = "catalogs.shared.isolation" in repr(arguments)  # each source is listed in a process
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn") and not own:
        events.append([event, repr(arguments)])
def listen(self, *arguments):
    events.append(["listen", repr(self)])
    return super(socket.socket, self).listen(*arguments)
socket.socket.listen = listen
sys.addaudithook(audit)
for arguments in json.loads(sys.argv[1]):
    print("\\n@", arguments[0], flush=True)
    command = benchmarks if arguments[0] == "bench" else main
    code = command([*arguments[arguments[0] == "bench":], "--quiet"])
    loaded = sorted(name for name in sys.modules if name.split(".")[0] == "prefect")
    print("\\n@", json.dumps([code, events, loaded]))
    events.clear()
"""
BENCHMARK = {
    "big_tool_des.json": json.dumps({"PaintTool": "Paints walls.", "SawTool": "Saws boards."}),
    "multi_tool_queries.jsonl": json.dumps(
        {"query": "Saw a board and paint the wall.", "tool": ["SawTool", "PaintTool"]}
    ),
}
SWEEP = '[sweep]\ngolden = "golden.jsonl"\nstrategies = ["search"]\nk = "1"\n'


def test_no_command_loads_prefect_starts_a_process_or_opens_a_server(workshop, alone):
    tools = [workshop.tool("create_issue", "Opens an issue."), workshop.tool("merge", "Merges.")]
    workshop.servers({"git": tools})
    workshop.configure(SWEEP)
    workshop.write("golden.jsonl", '{"query": "open an issue", "tools": ["create_issue"]}\n')
    (workshop.folder / "metatool").mkdir()
    for name, text in BENCHMARK.items():
        workshop.write(f"metatool/{name}", text)
    commands = [
        ["plan"],
        ["build"],
        ["sweep"],
        ["bench", "metatool", "--data", ".", "--strategy", "BM25", "--board", "bench"],
    ]

    done = subprocess.run(
        [sys.executable, "-c", AUDIT, json.dumps(commands)],
        cwd=workshop.folder,
        env=alone,
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr
    lines = [line[2:] for line in done.stdout.splitlines() if line.startswith("@ ")]
    assert dict(zip(lines[::2], map(json.loads, lines[1::2]), strict=True)) == {
        name: [0, [], []] for name in ("plan", "build", "sweep", "bench")
    }
    assert not (Path(alone["HOME"]) / ".prefect").exists()
    assert not (workshop.folder / ".pegboard").exists()


def test_a_run_that_was_killed_leaves_readers_alone_and_the_next_encodes_only_the_rest(
    command, workshop, encoder, alone
):
    configuration = workshop.configure()
    workshop.servers({"git": [workshop.tool("create_issue", "Opens an issue.")]})
    old = workshop.run(configuration).release
    tools = [workshop.tool(f"task_{number}", f"Does {number}.") for number in range(50)]
    workshop.servers({"git": tools})

    killed = subprocess.run(
        [sys.executable, Path(__file__).with_name("killed_run.py"), "build", "pegboard.toml"],
        cwd=workshop.folder,
        env=alone,
        timeout=300,
    )

    assert killed.returncode == -signal.SIGKILL
    assert workshop.store.channel().release == old.id
    hits = pegboard.open(workshop.uri, encoder=encoder).search("issue", 9)
    assert [hit.tool.name for hit in hits] == ["create_issue"]

    code, out, _ = command("build", "--json", "--quiet")
    outcome = json.loads(out)
    assert (code, outcome["outcome"]) == (0, "published")
    texts = outcome["plan"]["texts"]["full"]
    assert texts == {"documents": 101, "to_encode": 30}  # two of each tool, one of the agent
    assert outcome["encoded"] == 30


def test_a_build_from_python_takes_a_path_and_returns_what_the_command_prints(workshop):
    workshop.servers({"git": [workshop.tool("create_issue", "Opens an issue.")]})
    workshop.configure()
    path = workshop.folder / "pegboard.toml"

    planned, published, again = build(path, BuildOptions(dry_run=True)), build(path), build(path)

    outcomes = [outcome["outcome"] for outcome in (planned, published, again)]
    assert outcomes == ["planned", "published", "unchanged"]
    assert (planned["release"], planned["plan"]["new"]) == (None, ["kit/git/create_issue"])
    assert published["release"] == again["release"] == workshop.store.channel().release
    assert json.loads(json.dumps(published))["catalogs"] == published["catalogs"]


def test_a_source_that_fails_keeps_its_tools_and_only_strict_ends_with_3(command, workshop):
    catalogs = "".join(
        f'[catalogs.{name}]\ntype = "mcp-dump"\npath = "{name}.json"\n' for name in ("kit", "extra")
    )
    workshop.configure(catalogs=catalogs)
    workshop.servers({"git": [workshop.tool("create_issue")]}, "kit.json")
    workshop.servers({"mail": [workshop.tool("send_mail")]}, "extra.json")
    assert command("build", "--quiet")[0] == 0
    (workshop.folder / "extra.json").unlink()

    lenient, _, err = command("build", "--quiet")
    strict, out, _ = command("build", "--quiet", "--strict", "--json", "--catalog", "extra")

    assert (lenient, strict) == (0, 3)
    assert err.startswith("pegboard build: ")
    assert "extra.json" in err
    extra = json.loads(out)["catalogs"]["extra"]
    assert (extra["tools"], extra["kept"], len(extra["problems"])) == (1, ["*"], 1)
