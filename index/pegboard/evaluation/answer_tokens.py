"""The prompt tokens of what systems return: definitions as the JSON of model APIs, and as TOON.

Armory's "Tool RAG" saves context twice: a model reads the first k tools instead of all, and their
definitions in a compact format. Tokens are estimated by length (`pegboard.tokens`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pegboard.evaluation.comparison import MIN_DEPTH, Evaluation
from pegboard.evaluation.searcher import Searcher
from pegboard.formatting import table_lines
from pegboard.hits import Hit
from pegboard.tokens import definition_tokens, toon_tokens

TOOLS_PER_READ = 5_000
"""Number of tools that are read at once to add up those of a whole release."""


@dataclass(frozen=True, slots=True)
class AnswerTokens:
    """The mean prompt tokens of the first k tools of a system's answers.

    Attributes:
        json: as the `tools` of an OpenAI request, compact.
        toon: as TOON (`pegboard.as_toon`).
    """

    strategy: str
    index: str
    k: int
    json: float
    toon: float


def answer_tokens(
    evaluations: Sequence[Evaluation], searcher: Searcher, cut_offs: Sequence[int]
) -> dict[str, Any]:
    """Return the tokens of the answers of systems and, to compare, of all tools of the release.

    Args:
        cut_offs: the numbers of tools of each answer that a model reads.

    Returns: JSON values: `answers` with a row for each system and cut-off (see `AnswerTokens`, and
        `pool` with pools), and `all_tools` with `json` and `toon`.
    """
    sizes = _sizes(searcher)
    return {
        "answers": [
            evaluation.pool_labels | asdict(_mean(evaluation, sizes, k))
            for evaluation in evaluations
            for k in cut_offs
        ],
        "all_tools": {
            "json": sum(size for size, _ in sizes.values()),
            "toon": sum(size for _, size in sizes.values()),
        },
    }


def cut_offs_of(evaluation: Evaluation) -> list[int]:
    """Return the cut-offs of the measures of an evaluation; `MIN_DEPTH` if none has one."""
    cut_offs = sorted({measure.k for measure in evaluation.values if measure.k})
    return cut_offs or [MIN_DEPTH]


def answer_tokens_lines(tokens: Mapping[str, Any]) -> list[str]:
    """Return what `answer_tokens` returns as lines for people."""
    rows = [
        [
            f"{row['strategy']} in {row['index']}",
            *([row["pool"]] if "pool" in row else []),
            f"the first {row['k']}",
            *_cells(row),
        ]
        for row in tokens["answers"]
    ]
    pool_columns = ["pool"] if "pool" in tokens["answers"][0] else []
    blank = [""] * (len(pool_columns) + 1)
    rows.append(["all tools of the release", *blank, *_cells(tokens["all_tools"])])
    header = ["", *pool_columns, "tools", "JSON", "TOON", "saved"]
    return ["prompt tokens of the tools of an answer, estimated", *table_lines(header, rows)]


def _cells(row: Mapping[str, float]) -> list[str]:
    saved = f"{1 - row['toon'] / row['json']:.0%}" if row["json"] else "-"
    return [f"{row['json']:,.0f}", f"{row['toon']:,.0f}", saved]


def _sizes(searcher: Searcher) -> dict[str, tuple[float, float]]:
    """Return the tokens of each tool of the release, as JSON and as TOON."""
    agents = searcher.loaded.agents
    ids = sorted(searcher.names.catalogs)
    sizes: dict[str, tuple[float, float]] = {}
    for start in range(0, len(ids), TOOLS_PER_READ):
        for tool in searcher.loaded.tools(ids[start : start + TOOLS_PER_READ]).values():
            hit = Hit(tool, agents[tool.agent], 0.0, {})
            sizes[tool.id] = (definition_tokens(hit), toon_tokens(hit))
    return sizes


def _mean(evaluation: Evaluation, sizes: Mapping[str, tuple[float, float]], k: int) -> AnswerTokens:
    answers = [[sizes[tool.id] for tool in result.retrieved[:k]] for result in evaluation.results]
    return AnswerTokens(
        evaluation.strategy,
        evaluation.index,
        k,
        json=sum(size for answer in answers for size, _ in answer) / len(answers),
        toon=sum(size for answer in answers for _, size in answer) / len(answers),
    )
