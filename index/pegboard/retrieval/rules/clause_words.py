"""The closed lists of words by which `clauses` sees where a clause begins and which words in it say
nothing about the need. `clause_words.json` has them.

English unless it says otherwise: how requests are joined in German, French, Spanish, Chinese and
Japanese is listed for "then", "also" and "finally" only.
"""

import json
from importlib import resources

_LISTS: dict[str, list[str]] = json.loads(
    resources.files("pegboard.retrieval.rules").joinpath("clause_words.json").read_text("utf-8")
)


def _words(name: str) -> frozenset[str]:
    return frozenset(" ".join(_LISTS[name]).split())


def _texts(name: str) -> tuple[str, ...]:
    """Texts that may hold blanks, between commas."""
    return tuple(text for line in _LISTS[name] for text in line.split(", "))


def _phrases(name: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(text.split()) for text in _texts(name))


AND, BUT = _words("and"), _words("but")
"""English, German, French, Spanish, Italian."""
SEQUENTIAL = _phrases("sequential")
"""Lead to another clause wherever they follow a comma or an "and": English, German, French,
Spanish.
"""
ADDITIVE = _phrases("additive")
"""May as well lead to one more thing of the same kind ("and also Paris"): a clause has to follow.
"""
ALSO_ADJECTIVES = _words("also_adjectives")
"""Connectives that are adjectives, too: "next week"."""
UNSPACED_CONNECTIVES = _texts("unspaced_connectives")
"""Chinese and Japanese; each begins a clause where it follows a comma."""
UNSPACED_FILLERS = _texts("unspaced_fillers")
"""Chinese: what a polite request begins with."""
FILLERS = _phrases("fillers")
"""What a clause begins with and says nothing about the need. English, German, French, Spanish."""
VERBS = _words("verbs")
"""What people ask tools to do, as an imperative."""
NAMING_VERBS = _words("naming_verbs")
"""Imperatives that are often something else, too: "the name and address list". They begin a clause
only where an object follows.
"""
DETERMINERS = _words("determiners")
"""What an object begins with; "and" + a word + one of these is taken for an imperative that no list
has.
"""
QUESTIONS, RELATIVES = _words("questions"), _words("relatives")
"""Relatives also begin relative clauses: after a comma alone they begin nothing."""
AUXILIARIES, SUBJECTS = _words("auxiliaries"), _words("subjects")
WISHES, ASKING = _words("wishes"), _words("asking")
STATING, COPULAS = _words("stating"), _words("copulas")
"""What a statement begins with, and has behind its subject."""
SUBORDINATORS = _words("subordinators")
"""What a clause begins with that waits for its main clause behind the next comma."""
PRONOUNS = _words("pronouns")
ABBREVIATIONS = _words("abbreviations")
EMPTY = _words("empty") | AND
"""Words that name no need: a clause of nothing else is not searched for."""
