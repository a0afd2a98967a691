"""What short forms in a request stand for, spelled out behind it before it is searched: "open PRs"
is searched as "open PRs (pull request)".

A release has its glossary in the manifest: the usual short forms (`glossary.json`) if an index is
in English, and those of `[glossary]` in pegboard.toml.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

TERM = re.compile(r"[^\W_]+")
"""A term of a glossary is one such word, in any case."""
PLURAL = "s"


@cache
def usual_short_forms() -> Mapping[str, str]:
    """The short forms that every English release knows, in lower case."""
    return json.loads(files("pegboard.search").joinpath("glossary.json").read_text("utf-8"))


def spelled_out(request: str, glossary: Mapping[str, str]) -> str:
    """Return a request with what its short forms, or their plurals, stand for; what it says itself
    is not added.

    Example:
        >>> spelled_out("list open PRs", {"pr": "pull request"})
        'list open PRs (pull request)'
    """
    if not glossary:
        return request
    own = request.casefold()
    words = TERM.findall(own)
    terms = [word if word in glossary else word.removesuffix(PLURAL) for word in words]
    meant = dict.fromkeys(glossary[term] for term in terms if term in glossary)
    added = [meaning for meaning in meant if meaning.casefold() not in own]
    return f"{request} ({', '.join(added)})" if added else request
