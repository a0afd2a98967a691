"""Batches of training: whole groups of tools, each tool with a few of its requests."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.encoder.examples import Example
from pegboard.text.words import identifier_words

NEAREST = 0.7
"""The share of batches whose groups are the nearest to one; the others are drawn at random."""
SUMMARIES, WITH_ARGUMENTS, WITH_AGENT = 0.3, 0.6, 0.15
"""Of the documents: name and first sentence only; with the arguments; headed by the agent."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts of one step; `tool_of[i]` is the place of the document that request i is for."""

    documents: list[str]
    requests: list[str]
    tool_of: list[int]


def document(one: Example, draw: random.Random) -> str:
    """A text of a tool as an index may compose it: whole, its summary, or with its agent."""
    name = identifier_words(one.name) or one.name
    form = draw.random()
    if form < SUMMARIES:
        first = one.description.split(". ")[0]
        return ". ".join(text for text in (name, first) if text)
    head = ". ".join(text for text in (name, one.description) if text)
    if form > 1 - WITH_AGENT:
        head = f"{one.agent}. {head}"
    arguments = "; ".join(identifier_words(argument) for argument in one.arguments)
    return f"{head}\nArguments: {arguments}" if arguments and form > 1 - WITH_ARGUMENTS else head


def batches(
    groups: Mapping[str, Sequence[Example]],
    near: Mapping[str, Sequence[str]],
    size: int,
    each: int,
    draw: random.Random,
) -> Iterator[Batch]:
    """All tools once, in batches of about `size`, each with up to `each` of its requests."""
    pieces: dict[str, list[list[Example]]] = {}
    for agent, own in groups.items():
        mixed = draw.sample(own, len(own))
        count = max(1, round(len(mixed) / (size / 2)))
        pieces[agent] = [mixed[n::count] for n in range(count)]
    while pieces:
        seed = draw.choice(sorted(pieces))
        order = draw.sample(sorted(pieces), len(pieces))
        if draw.random() < NEAREST:
            order = near.get(seed, order)
        chosen: list[Example] = []
        for agent in (seed, *order):
            if agent in pieces and len(chosen) < size:
                chosen += pieces[agent].pop()
                if not pieces[agent]:
                    del pieces[agent]
        requests, tool_of = [], []
        for place, one in enumerate(chosen):
            own = draw.sample(one.requests, min(each, len(one.requests)))
            requests += own
            tool_of += [place] * len(own)
        yield Batch([document(one, draw) for one in chosen], requests, tool_of)
