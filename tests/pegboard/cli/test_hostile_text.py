"""Whatever a catalog writes, a command prints no control character of it and no line of its own."""

import json
import re
from dataclasses import replace

import pytest

from pegboard.llm import ChatRequest, Message
from pegboard.llm.prompts import fenced
from pegboard.llm.recorded import RecordedReply, batch_line
from pegboard.records import Enrichment
from tasks.enrichment.enrichment_sets import write_enrichments
from tests.hostile_text import HOSTILE, UNSAFE

CATALOG = """
[catalogs.kit]
type = "records"
path = "tools.json"
columns = {{ dependencies = "needs" }}
agent = {0}
tags = [{0}]

[graph]
infer = false
"""
COMMANDS = {
    "find": ["dollars --explain", "dollars --json",
             "dollars --catalog no", "dollars --agent no", f"dollars --index '{HOSTILE}'",
             f"x --strategy '{HOSTILE}'"],
    "strategies": [""],
    "tools": ["list", "list --json", "show TOOL", "show TOOL --json", f"show '{HOSTILE}'"],
    "graph": ["show TOOL", "show OTHER", "show TOOL --json", "show zzz",
              "show dollars", f"show '{HOSTILE}'"],
    "releases": ["list", "show live", "show live --json", "verify", "verify --json",
                 "diff old live", "diff old live --json", "diff old live --texts",
                 f"show '{HOSTILE}'"],
    "promote": ["old --channel canary", "live --channel canary --json"],
    "rollback": ["--channel canary"],
    "eval": ["GOLDEN --worst 2 --by catalog", "GOLDEN --json", "BROKEN"],
    "eval-agent": ["BROKEN --model x/y"],
    "replies": ["list --replies REPLIES", "list --replies REPLIES --json",
                "show --replies REPLIES", "show --replies REPLIES --json",
                "read BROKEN --replies REPLIES", f"show --replies '{HOSTILE}'"],
    "doctor": ["", "--json"],
    "serve": [f"--channel '{HOSTILE}'", f"-c '{HOSTILE}'", f"--host '{HOSTILE}' --port 0"],
    "examples": ["LOG", f"'{HOSTILE}'"],
}  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, workshop_type):
    """A board in which every text of a catalog, a gate and a golden file is hostile, and an older
    release of it.
    """
    workshop = workshop_type(tmp_path_factory.mktemp("hostile"))

    def record(name, description=HOSTILE, **fields):
        schema = {"type": "object", "properties": {HOSTILE: {"description": HOSTILE}}}
        need = {"name": f"other{HOSTILE}", "parameter_name": HOSTILE, "reason": HOSTILE}
        needs = [need | {"dependence_type": "PARAMETER_DIRECTLY_DEPENDS_ON"}]
        return {
            "name": name + HOSTILE,
            "description": description,
            "parameters": schema,
            "examples": [HOSTILE],
            "needs": needs if name == "tool" else [],
            **fields,
        }

    def publish(*records, **options):
        workshop.write("tools.json", list(records))
        catalogs = CATALOG.format(json.dumps(HOSTILE))
        return workshop.run(workshop.configure(catalogs=catalogs), **options).release

    old = publish(record("tool", "Before."), record("other"), record("gone"))
    tool = id_of(workshop, old, "tool")
    written = Enrichment(description=HOSTILE, avoid=HOSTILE, topics=(HOSTILE,))
    path = write_enrichments(workshop.lake, {tool: written}, {})
    new = publish(record("tool"), record("other"), enrichments=path)
    workshop.store.promote(old.id, "old")
    rule = {"rule": HOSTILE, "passed": False, "reason": HOSTILE}
    chosen = {"index": "full", "strategy": HOSTILE, "measure": HOSTILE, "threshold": None}
    gate = {
        "passed": False,
        "at": "2026",
        "queries": 1,
        "rules": [rule],
        "canaries": {"count": 1, "missed": 1},
        "chosen": {**chosen, "value": 0.1, "low": 0.0, "high": 0.2},
        "live": HOSTILE,
    }
    workshop.store.update(replace(new, manifest={**new.manifest, "gate": gate}))
    (workshop.folder / "replies").mkdir()
    request = ChatRequest(messages=(Message("user", fenced("tool", HOSTILE)),), max_tokens=1)
    open_line = batch_line("0" * 32, request, "m")
    reply = RecordedReply(key="1" * 32, text=HOSTILE, author=HOSTILE, date="2026-01-31")
    workshop.write("replies/open.jsonl", json.dumps(open_line))
    workshop.write("replies/r.jsonl", reply.to_json())
    golden = [{"query": f"dollars {HOSTILE}", "tools": [f"tool{HOSTILE}", f"gone{HOSTILE}"]}] * 2
    words = {
        "TOOL": tool,
        "OTHER": id_of(workshop, old, "other"),
        "GOLDEN": str(workshop.write("g.jsonl", "\n".join(map(json.dumps, golden)))),
        "LOG": str(workshop.write("requests.jsonl", "\n".join(map(json.dumps, log_of(tool))))),
        "REPLIES": str(workshop.folder / "replies"),
        "BROKEN": str(workshop.write("b.jsonl", json.dumps({HOSTILE: 1, "tools": [HOSTILE, 1]}))),
    }
    return workshop.uri, words


def log_of(tool):
    """The events of a request log from which an example follows."""
    for number in range(4):
        who = {"client": f"{HOSTILE}{number}", "session": f"{HOSTILE}{number}"}
        yield {"event": "find", **who, "query": f"dollars {HOSTILE}", "hits": [{"tool": tool}]}
        yield {"event": "call", **who, "tool": tool, "outcome": "ok"}


def id_of(workshop, release, name):
    table = workshop.store.read_table("tools", release.tables["tools"].version)
    (identity,) = (one for one in table.read(["id"]).column("id").to_pylist() if f"/{name}" in one)
    return identity


def test_every_command_of_the_reader_is_tried(run, monkeypatch):
    monkeypatch.setattr("pegboard.cli.main.entry_points", lambda group: [])
    usage = run("--help").out.partition("COMMAND\n")[2].partition("\n\n")[0]

    assert set(re.findall(r"^ {4}(\S+)", usage, re.MULTILINE)) == COMMANDS.keys()


@pytest.mark.parametrize(
    "line", [f"{command} {options}" for command, lines in COMMANDS.items() for options in lines]
)
def test_a_command_prints_no_control_character_and_no_line_of_a_catalog(hostile, run, line):
    uri, words = hostile
    for word, value in words.items():
        line = re.sub(rf"\b{word}\b", lambda _: f"'{value}'", line)  # noqa: B023

    printed = run(line, board=None if line.startswith(("strategies", "replies")) else uri)

    for text in (printed.out, printed.err):
        assert not UNSAFE.findall(text)
        assert not re.findall("^FORGED.*", text, re.MULTILINE)
    assert "Traceback" not in printed.err
    assert printed.code in (0, 2, 4)
    if "--json" in line:
        json.loads(printed.out)
