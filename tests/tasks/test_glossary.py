"""`[glossary]`: what short forms in requests stand for."""

import pytest

import pegboard
from pegboard.errors import ConfigurationError

TOOLS = ("merge_request", "pull_request", "issue")


def build(workshop, glossary):
    """Publish tools that list things, and return the board."""
    tools = [workshop.tool(f"list_{name}s", f"Lists {name}s.") for name in TOOLS]
    workshop.servers({"git": tools})
    workshop.run(workshop.configure(f"[glossary]\n{glossary}\n"))
    return pegboard.open(workshop.uri)


def first(board, request):
    """The name of the first tool that is found by words, None if none has one of them."""
    hits = board.find(request, 1, strategy={"name": "words", "modes": ["text"]})
    return hits[0].tool.name if hits else None


def test_requests_are_searched_by_what_their_short_forms_stand_for(workshop):
    board = build(workshop, 'MR = "merge request"\nticket = "issue"')

    assert first(board, "MRs") == "list_merge_requests"
    assert first(board, "PRs") == "list_pull_requests"
    assert first(board, "tickets") == "list_issues"


def test_a_usual_short_form_is_changed_or_removed_and_the_release_is_another(workshop):
    found = []
    releases = set()
    for line in ("", 'pr = "press  report issue"', 'PR = ""'):
        board = build(workshop, line)
        found.append(first(board, "PRs"))
        releases.add(board.status().release)

    assert found == ["list_pull_requests", "list_issues", None]
    assert len(releases) == 3


def test_a_short_form_is_one_word(workshop):
    with pytest.raises(ConfigurationError, match=r"pull req, M\.R\.: expected a short form of one"):
        workshop.configure('[glossary]\n"pull req" = "pull request"\n"M.R." = "merge request"\n')
