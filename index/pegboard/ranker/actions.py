"""The actions of requests and tools: create, list, get, update, delete, or do.

"open an issue" and "delete an issue" differ in one word, but need different tools. Requests and
tools have sets of actions, since a verb may mean several ("put" creates or updates).
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
"""Verbs that are usually nouns or adjectives in tool names."""
OPENING_WORDS = 6
"""Number of leading words of a request that are searched for its verb."""
_NOTHING: frozenset[str] = frozenset()
_WORD = re.compile(r"[a-z]+")
_PERMISSION = re.compile(
    r"\b(?:am|are|is|who)\b.{0,30}?\b(?:allowed|permitted|authori[sz]ed|entitled) to\b"
    r"|\b(?:has|have|had)\b.{0,30}?\b(?:permissions?|rights?) to\b"
    r"|^\W*(?:may (?:i|we)|who (?:may|can))\b"
)
"""Matches a question about a permission, which is answered by reading."""
_ENDINGS = (
    *(("ies", "y"), ("es", "e"), ("es", ""), ("s", ""), ("ing", ""), ("ing", "e")),
    *(("ed", "e"), ("ed", "")),
)


def request_actions(text: str) -> frozenset[str]:
    """Return the actions that a request may ask for, by its first verb; none if its opening has no
    known verb. A question about a permission asks for reading.
    Example:
        >>> sorted(request_actions("Please delete the branch"))
        ['delete']
    """
    opening = text[:200].lower()
    if _PERMISSION.search(opening):
        return METHODS["HEAD"]
    words = _WORD.findall(opening)[:OPENING_WORDS]
    return next((actions for word in words if (actions := _actions(word))), _NOTHING)


def tool_actions(tool: Tool) -> frozenset[str]:
    """Return the actions of a tool, by its HTTP method and path, MCP annotations, the verb of its
    name, and the first word of its description; none if these have no known verb.
    """
    annotations = tool.annotations
    opening = _WORD.findall(tool.description[:200].lower())
    by_description = _actions(opening[0]) if opening else _NOTHING
    if {"list", "lists"} & set(opening[:5]):
        by_description |= {"list"}
    by_name = next(
        (
            actions
            for word in _WORD.findall(identifier_words(tool.name).lower())
            if word not in NOUNS and (actions := _actions(word))
        ),
        _NOTHING,
    )
    method = str(annotations.get("method", "")).upper()
    if method in METHODS:
        is_item = str(annotations.get("path", "")).rstrip("/").endswith("}")
        return _operation_actions(method, is_item, by_name, by_description)
    if annotations.get("readOnlyHint") is True:
        return ((by_name | by_description) & METHODS["GET"]) or METHODS["GET"]
    return by_name or by_description


def _operation_actions(
    method: str, is_item: bool, by_name: frozenset[str], by_description: frozenset[str]
) -> frozenset[str]:
    """Return the actions of an HTTP operation.

    Args:
        is_item: whether the path ends with a parameter.
    """
    by_text = by_name | by_description
    if method == "GET":
        if frozenset({"list"}) in (by_name, by_description):
            return frozenset({"list"})
        if is_item:
            return frozenset({"get"})
        return (by_text & METHODS["GET"]) or METHODS["GET"]
    if method == "POST":
        changes = by_text & {"create", "update", "delete", "do"}
        return changes or frozenset({"update"} if is_item else {"create"})
    if method == "PUT":
        return (by_text & {"create", "update", "delete", "do"}) or METHODS["PUT"]
    return METHODS[method]


@cache
def _verbs() -> dict[str, frozenset[str]]:
    """Return the actions of each verb; `verbs.json` has each action's verbs and question words."""
    text = resources.files("pegboard.ranker").joinpath("verbs.json").read_text("utf-8")
    verbs: dict[str, frozenset[str]] = {}
    for action, words in json.loads(text).items():
        for word in words.split():
            verbs[word] = verbs.get(word, _NOTHING) | {action}
    return verbs


def _actions(word: str) -> frozenset[str]:
    """Return the actions of a verb in any of its forms."""
    verbs = _verbs()
    if word in verbs:
        return verbs[word]
    for ending, replacement in _ENDINGS:
        if word.endswith(ending):
            base_form = word[: -len(ending)] + replacement
            if base_form in verbs:
                return verbs[base_form]
    return _NOTHING
