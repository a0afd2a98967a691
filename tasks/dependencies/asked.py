"""What a parameter asks for, and whether something that is provided fits.

A parameter asks for the noun phrase of its name, with the object of its tool before it where the
name alone says nothing (`id` of `cancel_order` is an order id). What is provided fits if the last
words agree, as English puts the noun that counts last, and the rest does not contradict.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tasks.dependencies.phrases import parameter_phrase, words_of
from tasks.dependencies.provided import IDS, Known, Provided
from tasks.dependencies.schemas import Parameter
from tasks.dependencies.words import CALENDAR, CREATING, GENERIC, HERE, ROLES, WORLD

READ = 500
"""Characters of a parameter's description that are read."""

Fit = Literal["exact", "here", "narrow", "wide"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a parameter asks for: the noun phrase, its words but for roles, and the texts whose
    words may explain more of it.
    """

    words: tuple[str, ...]
    bare: frozenset[str]
    text: frozenset[str]
    description: str
    choices: bool

    def around(self) -> frozenset[str]:
        """The words that may explain more of what is asked for: those of the tool and of the
        parameter's description.
        """
        return self.text.union(words_of(self.description))

    def explains(self, words: frozenset[str]) -> bool:
        """Whether all these words are said where the parameter is."""
        rest = words - self.text
        return not rest or rest.issubset(words_of(self.description))

    def fit(self, provided: Provided, near: bool, text: frozenset[str] | None) -> Fit | None:
        """How what is provided fits; None if it does not.

        Args:
            near: whether the same agent provides it.
            text: the words of the tool that provides it; None to leave open whether they explain
                the rest.
        """
        asks, gives, head = self.bare, provided.bare, self.words[-1]
        own = provided.here and (head in WORLD or (near and not asks <= GENERIC))
        if own and asks - HERE <= gives and self.explains(gives - asks - HERE):
            return "here"
        if (
            self.choices
            or head not in gives
            or (asks <= GENERIC and (len(asks) == 1 or head not in IDS))
        ):
            return None
        if asks == gives:
            return "exact"
        # The id of a robot's status is not the id of the robot: what the id is of has to agree,
        # too.
        if head in IDS and not {*self.words[-2:-1], *provided.words[-2:-1]} <= asks & gives:
            return None
        if gives <= GENERIC:
            return None
        if asks < gives:
            return "narrow" if self.explains(gives - asks) else None
        return "wide" if gives < asks and (text is None or asks - gives <= text) else None


def asked_of(one: Known, parameter: Parameter) -> Iterator[Asked]:
    """What a parameter may ask for, the likeliest first."""
    words = parameter_phrase(parameter.name)
    if not words or words[-1] in ROLES or parameter.types == {"boolean"}:
        return
    phrases = [words]
    if len(words) == 1 and words[0] in GENERIC and one.named.phrase:
        phrases.append((*(word for word in one.named.phrase if word not in words), *words))
    if words[-1] in CALENDAR and not parameter.name.casefold().endswith(
        "s"
    ):  # `days` are a duration
        phrases.append((*words[:-1], CALENDAR[words[-1]]))
    for phrase in phrases:
        # What creates a thing gives it the id that it asks for.
        if (
            one.named.verb in CREATING
            and phrase[-1] in IDS
            and set(one.named.phrase) == set(phrase[:-1])
        ):
            continue
        if bare := frozenset(phrase) - ROLES:
            yield Asked(phrase, bare, one.text, parameter.description[:READ], parameter.choices)
