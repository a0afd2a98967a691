"""Expansion of abbreviations in a request before it is searched: "open PRs" is searched as
"open PRs (pull request)".

A release's manifest has its glossary: the built-in abbreviations (`glossary.json`) if an index is
in English, and those of `[glossary]` in pegboard.toml.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

TERM = re.compile(r"[^\W_]+")
"""Matches one word of a request; an abbreviation is one word, in any case."""
PLURAL = "s"
"""The plural ending of an abbreviation."""


@cache
def usual_short_forms() -> Mapping[str, str]:
    """Return the meanings of the built-in abbreviations, by the abbreviation in lower case."""
    return json.loads(files("pegboard.search").joinpath("glossary.json").read_text("utf-8"))


def spelled_out(request: str, glossary: Mapping[str, str]) -> str:
    """Return a request followed by the meanings of its abbreviations and their plurals; meanings
    that it already contains are not added.
    Example:
        >>> spelled_out("list open PRs", {"pr": "pull request"})
        'list open PRs (pull request)'
    """
    if not glossary:
        return request
    folded_request = request.casefold()
    words = TERM.findall(folded_request)
    terms = [word if word in glossary else word.removesuffix(PLURAL) for word in words]
    meanings = dict.fromkeys(glossary[term] for term in terms if term in glossary)
    additions = [meaning for meaning in meanings if meaning.casefold() not in folded_request]
    return f"{request} ({', '.join(additions)})" if additions else request
