"""The actions of requests and of tools."""

import pytest

from pegboard.ranker.actions import request_actions, tool_actions
from pegboard.records import Tool


@pytest.mark.parametrize(
    ("request_text", "actions"),
    [
        ("open an issue", {"create"}),
        ("Please delete the branch", {"delete"}),
        ("I am deleting old tags", {"delete"}),
        ("which servers are there?", {"list"}),
        ("renamed files", {"update"}),
        ("cancel my subscription", {"update", "delete", "do"}),
        ("am I allowed to delete issues here?", {"get"}),
        ("who can merge pull requests", {"get"}),
        ("do they have the rights to remove a member?", {"get"}),
        ("thunder and lightning", set()),
        ("one two three four five six delete", set()),
        ("", set()),
        ("列出所有问题", set()),
    ],
)
def test_the_first_verb_of_a_request_decides_its_actions(request_text, actions):
    assert request_actions(request_text) == actions


def made(name="x", description="", **annotations):
    return Tool("c/a/x", "c", "c/a", name, description, annotations=annotations)


@pytest.mark.parametrize(
    ("tool", "actions"),
    [
        (made("issues_unlock", method="DELETE", path="/issues/{id}/lock"), {"delete"}),
        (made("issues", method="GET", path="/repos/{repo}/issues"), {"list", "get"}),
        (made("issues", "Lists issues.", method="GET", path="/issues"), {"list"}),
        (made("issue", method="GET", path="/issues/{id}"), {"get"}),
        (made("issue", method="POST", path="/issues"), {"create"}),
        (made("charge", method="POST", path="/charges/{id}"), {"update"}),
        (made("charge", "Delete a charge.", method="POST", path="/x"), {"delete"}),
        (made("label", method="PATCH", path="/labels/{id}"), {"update"}),
        (made("createIssue"), {"create"}),
        (made("order_status", "Returns the status of an order."), set()),
        (made("clock", readOnlyHint=True), {"list", "get"}),
        (made("clear_all"), {"delete"}),
    ],
)
def test_method_path_hints_and_verbs_decide_a_tools_actions(tool, actions):
    assert tool_actions(tool) == actions
