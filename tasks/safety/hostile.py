"""A classifier of texts that try to steer a model: a logistic regression over sentences.

Its features are concepts (`hostile.toml`: words of forty languages for the user, the user's data,
sending, hiding, other tools and so on), structures that do not depend on a language (addresses,
chat markup, names of tools, files of secrets), pairs of both, so that what is learned in one
language applies to all, and hashed character n-grams. `python -m benchmarks train_hostile` fits the
weights (`hostile.npz`).

Time is linear in the length of a text: no expression has an unbounded quantifier."""

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

INSTRUCTS = "hidden-instructions"
EXFILTRATES = "exfiltration"
SENTENCE = 240
"""Largest number of characters of a window; a longer sentence is divided."""
SHORT = 24
"""Smallest number of characters of a window; a shorter sentence is joined with the next."""
BUCKETS = 1 << 15
"""Number of weights for character n-grams; each n-gram is hashed to one of them."""
SIZES = (2, 3, 4, 5)
"""Lengths of the n-grams in characters."""
STEM = 12
"""Number of characters of a word by which its concepts are looked up."""
WEIGHTS = Path(__file__).with_name("hostile.npz")

_DATA: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("hostile.toml").read_text("utf-8")
)
_CONCEPTS = _DATA["concepts"]
_STRUCTURES = {
    name: re.compile(shape.replace("\n", "")) for name, shape in _DATA["structures"].items()
}
TRAITS = (*_CONCEPTS, *_STRUCTURES, "disguised")
"""Names of all concepts and structures; `disguised` marks a window of a decoded reading."""
TRAIT_WEIGHTS = len(TRAITS) * (len(TRAITS) + 1) // 2
"""Number of weights for traits: one for each trait and each pair of traits."""
_PRIVATE = "secret|talk|personal|secret file"
_REASONS: dict[str, tuple[str, ...]] = {
    f"{EXFILTRATES}: asks a model to send data of its user, or a secret, to an address": (
        _PRIVATE, "send", "address|account|image",
    ),
    f"{EXFILTRATES}: asks a model to put data of its user, or a secret, into an argument": (
        _PRIVATE, "send|read|must|first", "parameter|quoted|tool name",
    ),
    f"{EXFILTRATES}: asks a model to pass on data of its user or a secret": (_PRIVATE, "send"),
    f"{INSTRUCTS}: tells a model to drop its instructions": ("ignore", "rules|earlier"),
    f"{INSTRUCTS}: tells a model to keep something from its user": ("hide|negation", "tell|hide"),
    f"{INSTRUCTS}: claims the place of other tools": (
        "tool|tool name", "other|always|best|user", "use|first|broken",
    ),
    f"{INSTRUCTS}: asks for something that the user did not agree to": ("act", "consent|money"),
    f"{INSTRUCTS}: imitates the markup of a chat, or hides in a comment": ("chat markup|comment",),
}  # fmt: skip
_OTHER_REASON = f"{INSTRUCTS}: gives a model orders that are not its user's"
_ENDS = re.compile(r"(?<=[.!?;।؟])\s|(?<=[。！？；])|\n")
_EDGES = " \t.,;:!?()[]{}<>\"'`*_-/|=+…。、，；：！？（）「」《》“”‘’«»।؟،"
_UNSPACED = re.compile(r"[\u0590-\u08ff\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def hostile_reasons(text: str, disguised: bool = False) -> set[str]:
    """Return a flag for each way in which a text in lower case tries to steer a model.

    Args:
        disguised: the text is a decoded reading, not the text as written.
    """
    flags: set[str] = set()
    for window in windows(text):
        places = traits(window, disguised)
        if score(window, places) > 0:
            flags |= _reasons({TRAITS[place] for place in places})
    return flags


def windows(text: str) -> Iterator[str]:
    """Yield the sentences of a text, a short one joined with the next."""
    window = ""
    for sentence in _ENDS.split(text):
        for start in range(0, len(sentence), SENTENCE):
            window = f"{window} {sentence[start : start + SENTENCE].strip()}".strip()
            if len(window) >= SHORT:
                yield window
                window = ""
    if window:
        yield window


def traits(window: str, disguised: bool) -> list[int]:
    """Return the sorted positions in `TRAITS` of the concepts and structures of a window."""
    places = {place for word in window.split() for place in _concepts(word.strip(_EDGES))}
    structures = enumerate(_STRUCTURES.values(), len(_CONCEPTS))
    places |= {place for place, shape in structures if shape.search(window)}
    return sorted(places | ({len(TRAITS) - 1} if disguised else set()))


def trait_features(places: Sequence[int]) -> list[int]:
    """Return the positions of the weights of these traits, and of each pair of them."""
    count = len(TRAITS)
    pairs = (count + a * (2 * count - a - 3) // 2 + b - 1 for a, b in combinations(places, 2))
    return [*places, *pairs]


def buckets(window: str) -> "NDArray[np.intp]":
    """Return the distinct buckets of the character n-grams of a window."""
    import numpy as np

    text = np.frombuffer(f" {window} ".encode("utf-32-le"), np.uint32).astype(np.uint64)
    hashed = np.zeros(len(text), np.uint64)
    buckets_by_size: list[NDArray[np.uint64]] = []
    for size in range(1, SIZES[-1] + 1):
        hashed = hashed[: len(text) - size + 1] * np.uint64(0x100000001B3) + text[size - 1 :]
        if size in SIZES:
            mixed = hashed * np.uint64(0x9E3779B97F4A7C15)
            buckets_by_size.append(mixed // np.uint64(2**64 // BUCKETS))
    return np.unique(np.concatenate(buckets_by_size)).astype(np.intp)


def score(window: str, places: Sequence[int]) -> float:
    """Return the log-odds that a window with these traits is hostile; above 0 it is flagged."""
    trait_weights, bucket_weights, bias = _weights()
    features = trait_features(places)
    numbers = buckets(window)
    trait_score = trait_weights[features].sum() / max(1, len(features)) ** 0.5
    bucket_score = bucket_weights[numbers].sum() / len(numbers) ** 0.5
    return float(trait_score + bucket_score + bias)


@cache
def _weights() -> "tuple[NDArray[np.float32], NDArray[np.float32], float]":
    import numpy as np

    with np.load(WEIGHTS) as file:
        traits, characters = (file[name].astype(np.float32) for name in ("traits", "characters"))
        return traits, characters, float(file["bias"])


@cache
def _stems() -> tuple[dict[str, set[int]], dict[str, set[int]]]:
    """Return the positions of concepts in `TRAITS` by the start of a word, and by the full word."""
    beginnings: dict[str, set[int]] = {}
    full_words: dict[str, set[int]] = {}
    for place, words in enumerate(_CONCEPTS.values()):
        for word in words.split():
            target = full_words if word.endswith("=") else beginnings
            target.setdefault(word.rstrip("=")[:STEM], set()).add(place)
    return beginnings, full_words


@lru_cache(maxsize=50_000)
def _concepts(word: str) -> frozenset[int]:
    beginnings, full_words = _stems()
    starts = range(len(word)) if _UNSPACED.search(word) else (0,)
    pieces = {word[start : start + size] for start in starts for size in range(1, STEM + 1)}
    places = [beginnings[piece] for piece in pieces & beginnings.keys()]
    return frozenset().union(*places, full_words.get(word[:STEM], ()))


def _reasons(names: set[str]) -> set[str]:
    """Return the reasons that these traits match, at most one of them about exfiltration."""
    matching = [
        reason
        for reason, groups in _REASONS.items()
        if all(names & set(group.split("|")) for group in groups)
    ]
    exfiltration = [reason for reason in matching if reason.startswith(EXFILTRATES)]
    instructions = matching[len(exfiltration) :]
    return {*exfiltration[:1], *instructions} or {_OTHER_REASON}
