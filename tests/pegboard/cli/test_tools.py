"""`pegboard tools`."""

from dataclasses import replace

import pytest

from pegboard.records import Enrichment
from tasks.enrichment.enrichment_sets import write_enrichments


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ("", 14),
        ("--agent weather", 2),
        ("currency", 1),
        ("CURRENCY --kind library", 1),
        ("tide --tag office", 0),
    ],
)
def test_tools_are_listed_and_narrowed_by_text_and_filters(run, board_uri, options, names):
    listed = run(f"tools list {options} --json", board=board_uri).json["tools"]
    printed = run(f"tools list {options}", board=board_uri).out.splitlines()

    assert len(listed) == names
    assert [line.split()[0] for line in printed[1:-1]] == [tool["id"].split()[0] for tool in listed]
    assert printed[-1].startswith(f"{names} tool")


def test_a_tool_is_shown_with_where_its_parts_came_from(run, workshop):
    tool = workshop.tool("create_issue", "Opens an issue.", title="its headline")
    tool["inputSchema"]["required"] = ["title"]
    written = Enrichment(description="Reports a bug.", questions=("what broke?",), topics=("bugs",))
    written = replace(written, arguments={"title": "One line."}, avoid="Not for questions.")
    path = write_enrichments(workshop.lake, {"kit/git/create_issue": written}, {})
    workshop.servers({"git": [tool]})
    workshop.run(workshop.configure(), enrichments=path)

    by_name = run("tools show create_issue", board=workshop.uri)
    values = run("tools show kit/git/create_issue --json", board=workshop.uri).json
    lines = [line.split(maxsplit=2) for line in by_name.out.splitlines()[3:]]

    assert lines == [
        ["description", "catalog", "Opens an issue."],
        ["description", "LLM", "Reports a bug."],
        ["avoid", "LLM", "Not for questions."],
        ["argument", "catalog", "title (any, required): its headline"],
        ["argument", "LLM", "title: One line."],
        ["question", "LLM", "what broke?"],
        ["topic", "LLM", "bugs"],
    ]
    assert (values["tool"]["name"], values["agent"]["name"]) == ("create_issue", "git")
