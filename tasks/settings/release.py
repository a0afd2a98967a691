"""`[graph]`, `[find]`, `[examples]`, `[golden]`, `[gate]` and `[lock]` of a pegboard.toml: the
dependencies and the default strategy of a release, what it learns from use, and what is required
before it goes live.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_validator

from pegboard.errors import QueryError, did_you_mean
from pegboard.toml_settings import Settings

if TYPE_CHECKING:
    from pegboard.retrieval.strategy import Strategy

LACKS_PROBABILITY = (
    "asks for a probability that no search gives it: probabilities are those of hybrid searches, "
    "and named thresholds those of the ranker"
)
"""The problem of a strategy that uses probabilities none of its searches has."""
MAX_CONTEXT = 1_000
"""Largest number of characters of `[find] context`, which every question to an LLM repeats."""
MAX_FEW_SHOTS = 20
"""Largest number of golden queries in a prompt: about 600 tokens in every question to an LLM."""
PROMPTS_FOLDER = "prompts"
"""Name of the folder beside pegboard.toml with prompts, also those of enrichment."""


class GraphSettings(Settings):
    """`[graph]`: the dependencies between the tools of a release.

    Attributes:
        infer: also infer dependencies that no catalog declares.
        min_confidence: smallest measured precision of inferred dependencies that are included.
    """

    infer: bool = True
    min_confidence: Annotated[float, Field(ge=0, le=1)] = 0.5


class FindSettings(Settings):
    """`[find]`: how readers of the release find tools by default.

    Attributes:
        strategy: the retrieval strategy, by name or as a table of parts.
        context: a sentence or two about the domain, for the prompts of strategies.
        few_shots: the number of golden queries that these prompts show, with their tools; see
            `tasks/golden/few_shots.py`.
    """

    strategy: str | dict[str, Any] | None = None
    context: Annotated[str, Field(max_length=MAX_CONTEXT)] = ""
    few_shots: Annotated[int, Field(ge=0, le=MAX_FEW_SHOTS)] = 0

    @field_validator("context")
    @classmethod
    def _on_one_line(cls, context: str) -> str:
        return " ".join(context.split())

    @field_validator("strategy")
    @classmethod
    def _is_a_strategy(cls, strategy: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
        try:
            default_strategy(strategy)
        except QueryError as error:
            raise ValueError(str(error)) from error
        return strategy


class ExamplesSettings(Settings):
    """`[examples]`: requests learned from use; see `tasks/golden/reading.py`.

    Attributes:
        queries: JSON lines with `query` and `tools`, as `pegboard examples` writes them.
        sequences: JSON lines with `after`, `next` and `clients`, as `pegboard examples --sequences`
            writes them; no sequences are learned if None.
    """

    queries: str
    sequences: str | None = None


MIN_QUERIES = 30
"""Default of the smallest number of golden queries. With 30 the interval of a recall of .8 is .29
wide; with fewer a mean says little.
"""


class GoldenSettings(Settings):
    """`[golden]`: the golden queries that measure each release; see `tasks/golden/reading.py`.

    Attributes:
        queries: JSON lines with `query` and `tools`, the names or ids of the relevant tools.
        min_queries: smallest number of golden queries that a build accepts.
    """

    queries: str
    min_queries: int = Field(default=MIN_QUERIES, ge=10)


class GateSettings(Settings):
    """`[gate]`: the requirements on a release before a channel moves to it; see `tasks/gate/`.

    Attributes:
        queries: a file of golden queries; by default those of `[golden]`.
        canaries: a file of golden queries. Each must find all its tools among the first `canary_k`.
        rules: such as `Recall@5 >= 0.9`; `tasks/gate/rules.py` has their grammar.
        captured: largest share of the queries and canaries whose first place may be taken by a
            suspicious tool, or by a new or changed tool of another agent; see
            `tasks/gate/regressions.py`.
    """

    queries: str | None = None
    canaries: str | None = None
    canary_k: Annotated[int, Field(ge=1)] = 5
    rules: tuple[str, ...] = ()
    captured: Annotated[float, Field(ge=0, le=1)] = 0.05


class LockSettings(Settings):
    """`[lock]`: the definitions that people approved; see `tasks/safety/lock.py`.

    Attributes:
        file: the lock file, which `pegboard lock` writes and `pegboard build --locked` reads.
        text_changes: whether a release is held if only texts or results of an approved tool
            changed. With `pass` it is held only if a text has a new address or a new instruction to
            a model.
    """

    file: str = "pegboard.lock"
    text_changes: Literal["hold", "pass"] = "hold"


def default_strategy(strategy: str | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the strategy as JSON values for a manifest; None for None.

    Raises:
        QueryError: the strategy is unknown or invalid; all problems are listed.
    """
    return None if strategy is None else strategy_of(strategy).to_dict()


def strategy_of(strategy: str | Mapping[str, Any] | None) -> "Strategy":
    """Return the strategy that readers use: that of `[find]`, or the library's default for None.

    Raises:
        QueryError: the strategy is unknown or invalid; all problems are listed.
    """
    from pegboard.retrieval.strategies import DEFAULT_STRATEGY, named_strategy
    from pegboard.retrieval.strategy import Strategy

    if strategy is None:
        return named_strategy(DEFAULT_STRATEGY)
    if isinstance(strategy, str):
        return named_strategy(strategy)
    return Strategy.from_dict(strategy)


def unknown_indexes(place: str, named: Iterable[str], names: list[str]) -> list[str]:
    """Return a problem for each of the named indexes that is not configured."""
    return [
        f"{place}: no index '{name}'; expected one of {', '.join(names)}{did_you_mean(name, names)}"
        for name in named
        if name not in names
    ]


def published_prompts(base: Path) -> dict[str, str]:
    """Return the texts of the request-time prompts in the folder `prompts/`, by name.

    Args:
        base: the folder of pegboard.toml.

    Raises:
        ConfigurationError: a file is invalid or has an unknown name; lists all problems.
    """
    folder = base / PROMPTS_FOLDER
    if not folder.is_dir():
        return {}
    # Imported late: few boards have prompts.
    from pegboard.llm.prompts import load_prompts
    from pegboard.retrieval.llm.questions import FORMATS, PROMPTS
    from tasks.enrichment.prompts import FORMATS as ENRICHMENT_FORMATS

    names = [name for name in FORMATS if (folder / f"{name}.md").exists()]
    load_prompts(PROMPTS, {**ENRICHMENT_FORMATS, **FORMATS}, folder, names)
    return {name: (folder / f"{name}.md").read_text("utf-8-sig") for name in names}
