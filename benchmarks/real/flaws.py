"""What the flaws that `pegboard lint` finds cost: recall of the real catalogs' requests, with their
tools as they are and with each flaw brought into the tools that the requests need.

    python -m benchmarks flaws DIR [NAME]... [--write]

DIR is the folder of `python -m benchmarks fetch`. The tools of a third of the requests are flawed
at a time, as a flawed tool competes with good ones; --write puts the figures into the rules.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.real.catalogs import CATALOGS, listed
from pegboard.encoders import DEFAULT_ENCODER, Encoder, load_encoder
from pegboard.records import Tool
from pegboard.text.plain_text import sentences
from tasks.lint import findings
from tasks.lint.search_rules import board_of

FOLDS = 3
DEPTHS = (1, 5)
Request = tuple[str, Sequence[frozenset[str]]]
Recalls = list[tuple[float, ...]]
"""Of each request, at each of `DEPTHS`."""
Flaw = Callable[[Tool, Tool], Tool]
"""A tool with a flaw, made from the tool and the one that is nearest to it."""


def _numbered(tool: Tool) -> Tool:
    """A tool with numbered arguments that are not described."""
    schemas = tool.input_schema.get("properties", {}).values()
    properties = {
        f"arg{number}": {key: value for key, value in schema.items() if key != "description"}
        for number, schema in enumerate(schemas, 1)
        if isinstance(schema, Mapping)
    }
    return replace(tool, input_schema={**tool.input_schema, "properties": properties})


def _first(tool: Tool) -> str:
    return next(iter(sentences(tool.description)), tool.name)


FLAWS: Mapping[str, Flaw] = {
    "no-purpose": lambda tool, _: replace(tool, description=""),
    "twins": lambda tool, near: replace(tool, description=near.description),
    "unexplained-argument": lambda tool, _: _numbered(tool),
}
"""By the rule that finds the flaw."""


def measured(
    tools: Sequence[Tool], requests: Sequence[Request], encoder: Encoder
) -> dict[str, Recalls]:
    """Return the recalls of each request, by the rule whose flaw its tools have; that of ""
    is without a flaw.
    """
    nearest = _nearest(tools, encoder)
    recalls = {"": _recalls(tools, requests, encoder)}
    for rule, flaw in FLAWS.items():
        recalls[rule] = [()] * len(requests)
        for fold in range(FOLDS):
            part = requests[fold::FOLDS]
            bad = frozenset[str]().union(*(ids for _, needed in part for ids in needed))
            flawed = [flaw(one, nearest[one.id]) if one.id in bad else one for one in tools]
            recalls[rule][fold::FOLDS] = _recalls(flawed, part, encoder)
    return recalls


def _recalls(tools: Sequence[Tool], requests: Sequence[Request], encoder: Encoder) -> Recalls:
    results = board_of(tools, encoder).find_many([text for text, _ in requests], max(DEPTHS))
    recalls: Recalls = []
    for result, (_, needed) in zip(results, requests, strict=True):
        ids = [hit.tool.id for hit in result]
        hits = [[bool(one & set(ids[:depth])) for one in needed] for depth in DEPTHS]
        recalls.append(tuple(sum(own) / len(needed) for own in hits))
    return recalls


def _nearest(tools: Sequence[Tool], encoder: Encoder) -> dict[str, Tool]:
    """The tool whose first sentence is most like that of each tool."""
    vectors = np.asarray(encoder.encode([_first(tool) for tool in tools]))
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1)
    rows = zip(tools, cosines.argmax(axis=1).tolist(), strict=True)
    return {tool.id: tools[near] for tool, near in rows}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the catalogs that were fetched, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks flaws", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    encoder = load_encoder(DEFAULT_ENCODER)
    pooled: dict[str, Recalls] = {}
    for catalog in CATALOGS:
        if catalog.name not in (options.names or [one.name for one in CATALOGS]):
            continue
        tools, names, queries = listed(catalog, options.folder)
        requests = [(one.query, list(names.resolve(one.tools).tools.values())) for one in queries]
        for rule, values in measured(tools, requests, encoder).items():
            pooled.setdefault(rule, []).extend(values)
            print(f"{catalog.name} {rule or 'as they are'}: {_means(values)}", flush=True)
    if options.write:
        write({rule: _means(values) for rule, values in pooled.items()}, len(pooled[""]))
    return 0


def _means(recalls: Recalls) -> list[float]:
    return np.round(np.mean(recalls, axis=0), 3).tolist()


def write(recalls: Mapping[str, Sequence[float]], requests: int) -> None:
    """Put the recalls into the file of the rules."""
    path = Path(findings.__file__).with_name("rules.json")
    rules: dict[str, dict[str, Any]] = json.loads(path.read_text("utf-8"))
    for rule in recalls.keys() & rules.keys():
        figures = {"recall": recalls[""], "recall_with_flaw": recalls[rule]}
        rules[rule]["measured"] = {"requests": requests, "depths": DEPTHS, **figures}
    path.write_text(json.dumps(rules, indent=1, ensure_ascii=False) + "\n", "utf-8")
