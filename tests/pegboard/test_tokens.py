"""Tokens are estimated by length, and what money depends on is never estimated too low."""

from pegboard.hits import Hit
from pegboard.records import Agent, Tool
from pegboard.tokens import definition_tokens, within_tokens


def test_what_does_not_fit_is_left_out_and_smaller_tools_behind_it_are_not():
    agent = Agent("kit/git", "kit", "git")
    texts = {"a": "short", "b": "long " * 200, "c": "short"}
    hits = [
        Hit(Tool(f"kit/git/{name}", "kit", agent.id, name, text), agent, 0.0, {})
        for name, text in texts.items()
    ]
    small = definition_tokens(hits[0])
    large = definition_tokens(hits[1])

    def fitting(max_tokens):
        kept, others = within_tokens(hits, max_tokens)
        return [[hit.tool.name for hit in part] for part in (kept, others)]

    assert fitting(small * 2) == [["a", "c"], ["b"]]
    assert fitting(small + large) == [["a", "b"], ["c"]]
    assert fitting(0) == [[], ["a", "b", "c"]]
