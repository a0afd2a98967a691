"""The actions of requests and tools: create, list, get, update, delete, or do.

"open an issue" and "delete an issue" have the same words as the tools of the other; their actions
tell them apart. Both sides are sets, since a verb may mean several ("put" creates or updates).
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

from pegboard.records import Tool
from pegboard.text.words import identifier_words

METHODS: Mapping[str, frozenset[str]] = {
    "GET": frozenset({"list", "get"}),
    "HEAD": frozenset({"get"}),
    "POST": frozenset({"create", "do"}),
    "PUT": frozenset({"create", "update"}),
    "PATCH": frozenset({"update"}),
    "DELETE": frozenset({"delete"}),
}
"""The default action of each HTTP method."""
NOUNS = frozenset(
    ("all", "new", "order", "post", "open", "check", "count", "what", "who", "when", "how", "which")
)
"""Verbs that are more often nouns or adjectives in tool names."""
OPENING_WORDS = 6
"""Leading words of a request in which its verb is sought."""
_NOTHING: frozenset[str] = frozenset()
_WORD = re.compile(r"[a-z]+")
_PERMISSION = re.compile(
    r"\b(?:am|are|is|who)\b.{0,30}?\b(?:allowed|permitted|authori[sz]ed|entitled) to\b"
    r"|\b(?:has|have|had)\b.{0,30}?\b(?:permissions?|rights?) to\b"
    r"|^\W*(?:may (?:i|we)|who (?:may|can))\b"
)
"""A question whether somebody may do something: the answer is read, and nothing is done."""
_ENDINGS = (
    *(("ies", "y"), ("es", "e"), ("es", ""), ("s", ""), ("ing", ""), ("ing", "e")),
    *(("ed", "e"), ("ed", "")),
)


def request_actions(text: str) -> frozenset[str]:
    """Return the actions that a request may want, by its first verb; none if it has none there. A
    question whether an action is permitted wants something read.

    Example:
        >>> sorted(request_actions("Please delete the branch"))
        ['delete']
    """
    opening = text[:200].lower()
    if _PERMISSION.search(opening):
        return METHODS["HEAD"]
    words = _WORD.findall(opening)[:OPENING_WORDS]
    return next((found for word in words if (found := _actions(word))), _NOTHING)


def tool_actions(tool: Tool) -> frozenset[str]:
    """Return the actions of a tool, by its HTTP method and path, MCP annotations, the verb of its
    name, and the first word of its description; none if nothing tells.
    """
    annotations = tool.annotations
    opening = _WORD.findall(tool.description[:200].lower())
    described = _actions(opening[0]) if opening else _NOTHING
    if {"list", "lists"} & set(opening[:5]):
        described |= {"list"}
    named = next(
        (
            found
            for word in _WORD.findall(identifier_words(tool.name).lower())
            if word not in NOUNS and (found := _actions(word))
        ),
        _NOTHING,
    )
    method = str(annotations.get("method", "")).upper()
    if method in METHODS:
        item = str(annotations.get("path", "")).rstrip("/").endswith("}")
        return _of_method(method, item, named, described)
    if annotations.get("readOnlyHint") is True:
        return ((named | described) & METHODS["GET"]) or METHODS["GET"]
    return named or described


def _of_method(
    method: str, item: bool, named: frozenset[str], described: frozenset[str]
) -> frozenset[str]:
    """Return the actions of an operation; `item` if its path ends with a parameter."""
    own = named | described
    if method == "GET":
        if frozenset({"list"}) in (named, described):
            return frozenset({"list"})
        if item:
            return frozenset({"get"})
        return (own & METHODS["GET"]) or METHODS["GET"]
    if method == "POST":
        meant = own & {"create", "update", "delete", "do"}
        return meant or frozenset({"update"} if item else {"create"})
    if method == "PUT":
        return (own & {"create", "update", "delete", "do"}) or METHODS["PUT"]
    return METHODS[method]


@cache
def _verbs() -> dict[str, frozenset[str]]:
    """The actions of each verb; `verbs.json` has the verbs, and question words, of each action."""
    text = resources.files("pegboard.ranker").joinpath("verbs.json").read_text("utf-8")
    verbs: dict[str, frozenset[str]] = {}
    for action, words in json.loads(text).items():
        for word in words.split():
            verbs[word] = verbs.get(word, _NOTHING) | {action}
    return verbs


def _actions(word: str) -> frozenset[str]:
    """The actions of a verb in any of its forms."""
    verbs = _verbs()
    if word in verbs:
        return verbs[word]
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and word[: -len(ending)] + instead in verbs:
            return verbs[word[: -len(ending)] + instead]
    return _NOTHING
