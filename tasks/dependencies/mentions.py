"""Edges from descriptions that name another tool: `project_id: from list_projects`, `call
resolve-library-id first`.

A name has to be an identifier of two words or more, because `search` is also a word; and to be said
of the same agent's tools. A sentence that offers another tool in place of this one is no
dependency."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from pegboard.search.text import tokenize
from tasks.dependencies.evidence import Evidence
from tasks.dependencies.provided import Known

READ = 4_000
"""Characters of a description that are read."""
_NAME = re.compile(r"[A-Za-z0-9]+(?:[._-]?[A-Za-z0-9]+)+")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+|。")
_BEFORE = re.compile(
    r"(?i)\b(?:first|(?:before|after) (?:us|call)ing|prior|obtained "
    r"(?:by|from|using|via)|returned (?:by|from)|output of|results? of)\b"
    r"|先|从"
)
_INSTEAD = re.compile(
    r"(?i)\b(?:instead|rather than|unlike|see also|similar "
    r"to|alternative|prefer|differs?|deprecated|don't|do not|not)\b"
)


def mention_edges(known: Sequence[Known]) -> Iterator[Evidence]:
    """The evidence that descriptions of these tools, or of their parameters, name tools that have
    to be called before.
    """
    names: dict[str, dict[str, int]] = defaultdict(dict)
    for at, one in enumerate(known):
        if len(tokenize(one.tool.name)) > 1:
            names[one.tool.agent][one.tool.name] = at
    for at, one in enumerate(known):
        siblings = names[one.tool.agent]
        for parameter in one.parameters:
            direct = (
                "parameter-directly-depends-on"
                if parameter.needed
                else "parameter-indirectly-depends-on"
            )
            for target, _ in _named(parameter.description, siblings, at):
                yield Evidence(at, target, direct, parameter.name, "mentioned", parameter.name)
        for target, sentence in _named(one.tool.description, siblings, at):
            if _BEFORE.search(sentence):
                yield Evidence(
                    at, target, "tool-directly-depends-on", None, "mentioned-before", one.tool.name
                )


def _named(description: str, siblings: Mapping[str, int], at: int) -> Iterator[tuple[int, str]]:
    text = description[:READ]
    if siblings.keys().isdisjoint(_NAME.findall(text)):
        return
    for sentence in _SENTENCE.split(text):
        if _INSTEAD.search(sentence):
            continue
        for found in _NAME.finditer(sentence):
            target = siblings.get(found[0])
            if target is not None and target != at:
                yield target, sentence
