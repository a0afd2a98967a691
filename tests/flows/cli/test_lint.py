"""`pegboard lint`: its output forms, its baseline, its exit codes, and where findings stand."""

import json
from xml.etree import ElementTree

import pytest

from pegboard import encoders

SERVER = {
    "tools": [
        {"name": "forecast", "description": "Returns the weather.", "inputSchema": {}},
        {
            "name": "create_ticket",
            "description": "Opens a ticket, with the `urgency` parameter.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "to": {"type": "string", "description": "Who."},
                    "data": {"type": "string"},
                },
            },
        },
    ]
}
OPENAPI = """\
openapi: 3.0.3
info: {title: Pets, version: "1"}
paths:
  /pets/{petId}:
    parameters:
      - {name: petId, in: path, required: true, schema: {type: string}, description: Which.}
    get:
      operationId: getPet
      description: Returns a pet.
    delete: {}
    put:
      parameters: oops
"""


@pytest.fixture
def lint(command, tmp_path, monkeypatch):
    """Call `pegboard lint` on a server's saved answer, `mcp.json`, or other files."""
    monkeypatch.setattr(encoders, "DEFAULT_ENCODER", "hashing/64")
    (tmp_path / "mcp.json").write_text(json.dumps(SERVER, indent=1), "utf-8")
    (tmp_path / "notes.txt").write_text("Tools: none", "utf-8")

    def run(*arguments):
        return command("lint", *(arguments or ["mcp.json"]))

    return run


def test_findings_have_their_place_and_fail_by_their_severity(lint):
    code, out, err = lint()

    assert (code, err) == (1, "")
    assert out.splitlines()[0].startswith(
        "mcp.json:9: mcp/mcp/create_ticket urgency: error [contradiction] the description mentions"
    )
    assert out.splitlines()[-1] == "2 tools: 1 error, 1 warning, 0 notes"
    for arguments, expected in (
        (["--fail-on", "warning", "--ignore", "contradiction"], 1),
        (["--ignore", "contradiction"], 0),
        (["--fail-on", "never"], 0),
    ):
        assert lint("mcp.json", *arguments)[0] == expected


def test_known_findings_are_not_reported_and_new_ones_are(lint, tmp_path):
    assert lint("mcp.json", "--baseline", "known.json", "--write-baseline")[0] == 0

    code, out, _ = lint("mcp.json", "--baseline", "known.json", "--fail-on", "note")

    assert (code, out) == (
        0,
        "2 tools: 0 errors, 0 warnings, 0 notes; 2 more are in the baseline\n",
    )
    assert json.loads((tmp_path / "known.json").read_text("utf-8")) == {
        "findings": [
            "contradiction mcp/mcp/create_ticket urgency",
            "unexplained-argument mcp/mcp/create_ticket data",
        ]
    }
    changed = {"tools": [*SERVER["tools"], {"name": "ping", "inputSchema": {}}]}
    (tmp_path / "mcp.json").write_text(json.dumps(changed), "utf-8")

    code, out, _ = lint("mcp.json", "--baseline", "known.json", "--json")

    assert code == 1
    assert [finding["rule"] for finding in json.loads(out)["findings"]] == ["no-purpose"]


def test_sarif_and_junit_are_written_beside_the_output(lint, tmp_path):
    lint("mcp.json", "--sarif", "lint.sarif", "--junit", "lint.xml")

    log = json.loads((tmp_path / "lint.sarif").read_text("utf-8"))
    [run] = log["runs"]
    assert log["version"] == "2.1.0"
    first, second = run["results"]
    rule = run["tool"]["driver"]["rules"][first["ruleIndex"]]
    assert (first["ruleId"], rule["id"], first["level"]) == (*["contradiction"] * 2, "error")
    [place] = first["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "mcp.json"},
        "region": {"startLine": 9},
    }
    assert second["partialFingerprints"] == {
        "pegboard/v1": "unexplained-argument mcp/mcp/create_ticket data"
    }
    suite = ElementTree.fromstring((tmp_path / "lint.xml").read_text("utf-8"))
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert (failed, suite.get("failures")) == (["contradiction"], "1")
    assert len(suite) == int(suite.get("tests")) > 10


def test_an_openapi_document_has_lines_and_what_is_rejected(lint, tmp_path):
    (tmp_path / "api.yaml").write_text(OPENAPI, "utf-8")

    code, out, _ = lint("api.yaml", "--json")

    rejected, purpose = json.loads(out)["findings"]
    assert (code, rejected["rule"], purpose["rule"]) == (1, "rejected", "no-purpose")
    assert rejected["parameter"] == "PUT /pets/{petId}"
    assert purpose["line"] == 4
    assert "Delete pets" in purpose["suggestion"]


def test_tools_of_one_name_have_the_places_of_their_servers(lint, tmp_path):
    tool = {"name": "ping", "inputSchema": {}}
    servers = {"first": {"tools": [tool]}, "second": {"tools": [tool]}}
    (tmp_path / "two.json").write_text(json.dumps(servers, indent=1), "utf-8")

    findings = json.loads(lint("two.json", "--json")[1])["findings"]

    assert [(one["tool"], one["line"]) for one in findings] == [
        ("two/first/ping", 5),
        ("two/second/ping", 13),
    ]


def test_golden_queries_and_a_configuration_are_read(lint, tmp_path):
    (tmp_path / "pegboard.toml").write_text(
        '[board]\nuri = "board"\n[catalogs.a]\ntype = "mcp-dump"\npath = "mcp.json"\n', "utf-8"
    )
    golden = tmp_path / "golden.jsonl"
    golden.write_text('{"query": "will it rain?", "tools": ["ping"]}\n', "utf-8")

    code, _, err = lint("pegboard.toml", "--golden", "golden.jsonl")

    assert (code, "no catalog has: ping" in err) == (2, True)
    golden.write_text('{"query": "returns the weather", "tools": ["forecast"]}\n', "utf-8")
    code, out, _ = lint("pegboard.toml", "--golden", "golden.jsonl")
    assert (code, "not-found" in out) == (1, False)
    assert out.startswith("a/mcp/create_ticket urgency: error")


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["none.json"], 3, "none.json"),
        (["notes.txt"], 3, "notes.txt is not a catalog. Expected an OpenAPI document"),
        (["mcp.json", "--ignore", "twin"], 2, "There is no rule twin. The rules: rejected, "),
        (["mcp.json", "--write-baseline"], 2, "--write-baseline needs --baseline FILE"),
        (["mcp.json", "--baseline", "mcp.json"], 2, "mcp.json is not a baseline of findings"),
        (["--fail-on", "note"], 2, "No file is given"),
    ],
)
def test_what_cannot_be_done_says_what_to_do(lint, arguments, code, problem):
    ended, _, err = lint(*arguments)

    assert (ended, problem in err) == (code, True), err


def test_the_rules_are_listed_with_their_effects(lint):
    code, out, _ = lint("--rules")

    assert code == 0
    assert "no-purpose (error): The description is missing" in out
    assert "Without a description: recall@1 0." in out
