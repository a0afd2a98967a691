"""`python -m benchmarks.performance.shapes`: what the shape of an index does to recall, measured
through published boards.

MetaTool     199 tools with one, two, five or ten example queries each; 2,792 other requests are
asked
Seal-Tools   4,076 tools without examples; 700 requests that need one to six of them

Recall@k is the share of the tools that a request needs among its first k hits, averaged over the
requests. `bare` is the name and the description alone. `mean3` is `multi` in which a tool scores by
the mean of its best three rows, which no reader does."""

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import pegboard
from benchmarks.performance.data import BENCHMARKS, encode, lines, require_benchmarks
from flows.reindex import reindex
from pegboard.search.ranking import Ranked, convex_combination
from pegboard.store.database import open_table
from tasks.settings.configuration import Configuration, load_configuration

DEPTHS = (1, 5, 10)
COUNTS = (1, 2, 5, 10)
SHAPES = ("centroid", "single", "multi")
MODES = ("vector", "hybrid", "text")
BARE = '[[indexes]]\nname = "bare"\nparts = ["name", "description"]\nshape = "single"\n'
METATOOL = """
[catalogs.metatool]
type = "records"
path = "{0}/metatool/plugin_des.json"
examples = {{ path = "{0}/metatool/example_queries.jsonl", query = "query", tool = "tool" }}
"""
SEAL_TOOLS = """
[catalogs.seal]
type = "records"
path = "{0}/seal-tools/tool.jsonl"
[catalogs.seal.columns]
name = "api_name"
description = "api_description"
parameters = "parameters"
required = "required"
output = "responses"
tags = "field"
"""


def bench_metatool(folder: Path) -> None:
    """Every shape with every number of questions."""
    rows = lines("metatool/single_tool_queries.jsonl")
    asked = _Asked([one["query"] for one in rows], [{one["tool"]} for one in rows])
    configuration = _published(folder, METATOOL, COUNTS)
    _report_board("metatool", configuration, asked)
    for questions in COUNTS:
        for mode, search in zip(
            MODES, _searches_by_mean(configuration.uri, f"multi_{questions}"), strict=False
        ):
            asked.report(f"metatool  {f'mean3_{questions}':<13}{mode}", search)


def bench_seal_tools(folder: Path) -> None:
    """Every shape of a catalog that has no questions."""
    rows = lines("seal-tools/dev.jsonl")
    asked = _Asked(
        [one["query"] for one in rows], [{call["api"] for call in one["calling"]} for one in rows]
    )
    _report_board("seal", _published(folder, SEAL_TOOLS, [10]), asked)


class _Asked:
    """Requests, their vectors, and the names of the tools that each needs."""

    def __init__(self, requests: list[str], needed: list[set[str]]) -> None:
        self._needed = needed
        self._requests = requests
        self._vectors = encode(requests)

    def report(self, label: str, search: Callable[[str, Any], Iterable[str]]) -> None:
        """Print the recall of a search that gives ten names for a request and its vector."""
        shares = [
            [len(needed & set(found[:depth])) / len(needed) for depth in DEPTHS]
            for needed, found in zip(self._needed, self._answers(search), strict=True)
        ]
        print(
            label.ljust(31), *(f"{recall:8.3f}" for recall in np.mean(shares, axis=0)), flush=True
        )

    def _answers(self, search: Callable[[str, Any], Iterable[str]]) -> Iterator[list[str]]:
        for request, vector in zip(self._requests, self._vectors, strict=True):
            yield list(search(request, vector))


def _published(folder: Path, catalog: str, counts: Sequence[int]) -> Configuration:
    """A board with the bare index and, for every shape, one with each number of questions."""
    asked = '[[indexes]]\nname = "{0}_{1}"\nshape = "{0}"\nquestions = {1}\n'
    indexes = "".join(asked.format(shape, questions) for shape in SHAPES for questions in counts)
    file = folder / "pegboard.toml"
    file.write_text(
        f'[board]\nuri = "board"\nreport = false\n{catalog.format(BENCHMARKS)}{BARE}{indexes}'
    )
    configuration = load_configuration(file)
    reindex(configuration)
    return configuration


def _report_board(name: str, configuration: Configuration, asked: _Asked) -> None:
    board = pegboard.open(configuration.uri, refresh=3600)
    for index in configuration.indexes:
        for mode in MODES:

            def search(
                request: str, vector: Any, index: str = index.name, mode: Any = mode
            ) -> list[str]:
                given = None if mode == "text" else vector
                hits = board.search(request, max(DEPTHS), mode=mode, index=index, vector=given)
                return [hit.tool.name for hit in hits]

            asked.report(f"{name:<10}{index.name:<13}{mode}", search)


def _searches_by_mean(
    uri: str, index: str
) -> tuple[Callable[[str, Any], list[str]], Callable[[str, Any], list[str]]]:
    """Searches of a `multi` index that score a tool by the mean of its best three rows."""
    store, board = pegboard.ReleaseStore(uri), pegboard.open(uri, refresh=3600)
    pin = board.release.tables[f"emb_{index}"]
    table = open_table(store.database, pin.table, uri, pin.version).to_arrow()
    rows = np.array(table.column("vector").to_pylist(), np.float32)
    tools: list[str] = table.column("tool").to_pylist()

    def ranked(vector: Any) -> list[Ranked]:
        scores: dict[str, list[float]] = defaultdict(list)
        for tool, score in zip(tools, (rows @ vector).tolist(), strict=True):
            scores[tool].append(score)
        means = [
            Ranked(tool, float(np.mean(sorted(all_)[-3:])), "") for tool, all_ in scores.items()
        ]
        return sorted(means, key=lambda row: (-row.score, row.tool))[:100]

    def by_vector(_: str, vector: Any) -> list[str]:
        return [row.tool.rpartition("/")[2] for row in ranked(vector)]

    def hybrid(request: str, vector: Any) -> list[str]:
        hits = board.search(request, 100, mode="text", index=index)
        words = [Ranked(hit.tool.id, hit.score, "") for hit in hits]
        return [tool.rpartition("/")[2] for tool, _ in convex_combination(ranked(vector), words)]

    return by_vector, hybrid


def main() -> None:
    """Print one line for each measurement, as it is made."""
    require_benchmarks()
    print("WHAT".ljust(31), *(f"{f'R@{depth}':>8}" for depth in DEPTHS))
    for bench in (bench_metatool, bench_seal_tools):
        with tempfile.TemporaryDirectory() as folder:
            bench(Path(folder))


if __name__ == "__main__":
    main()
