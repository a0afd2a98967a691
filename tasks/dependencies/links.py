"""What a tool provides to tools of other agents, and what it asks of them, as words: where no asked
word is provided by a tool that changed, the agent's dependencies stay as they are."""

from collections.abc import Sequence
from dataclasses import dataclass

from pegboard.records import Tool
from tasks.dependencies.language import KEYS, ROLES, parameter_phrase
from tasks.dependencies.parameters import is_specific_id, needs_of
from tasks.dependencies.profiles import profile_of
from tasks.dependencies.providers import keys_of

NOUN, CONTEXT, EXACT = "noun ", "context ", "exact "
"""Before a key of a `ProviderIndex`; before one of a context, such as the current date; before a
set of words that are provided exactly.
"""


@dataclass(frozen=True, slots=True)
class Links:
    """The sorted words of a tool."""

    gives: Sequence[str]
    asks: Sequence[str]


def links_of(tool: Tool) -> Links:
    """Return what a tool provides and asks, as far as `evidence_of` looks beyond its agent: for
    specific ids, and for what is given in a context. It may ask more than is looked for.
    """
    profile = profile_of(tool)
    gives: set[str] = set()
    for provided in profile.provides:
        keys = [" ".join(key) for key in keys_of(provided)]
        gives |= {EXACT + " ".join(sorted(provided.core)), *(NOUN + key for key in keys)}
        gives |= {CONTEXT + key for key in keys if provided.contextual}
    asks: set[str] = set()
    for parameter in profile.parameters:
        *owner, key = parameter_phrase(parameter.name) or ("",)
        if owner and key in KEYS:  # whether any tool provides just this decides over a path
            asks.add(EXACT + " ".join(sorted(frozenset((*owner, "id")) - ROLES)))
        for need in needs_of(profile, parameter):
            specific = is_specific_id(need)
            if specific:
                asks.add(EXACT + " ".join(sorted(need.core)))
            kind = NOUN if specific else CONTEXT
            asks |= {kind + " ".join(key) for key in need.bucket_keys()}
    return Links(sorted(gives), sorted(asks))
