"""`[graph]`, `[find]`, `[examples]`, `[golden]` and `[gate]` of a pegboard.toml: the dependencies
and the default strategy of a release, what it learns from use, and what it has to find before it
is published.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from pegboard.errors import QueryError
from pegboard.toml_settings import Settings


class GraphSettings(Settings):
    """`[graph]`: the dependencies between tools that a release has.

    Attributes:
        infer: also infer dependencies that no catalog declares.
        min_confidence: leave out inferred ones with a lower measured precision.
    """

    infer: bool = True
    min_confidence: Annotated[float, Field(ge=0, le=1)] = 0.5


class FindSettings(Settings):
    """`[find]`: the retrieval strategy that readers of the release use by default, by name or as a
    table of parts.
    """

    strategy: str | dict[str, Any] | None = None

    @field_validator("strategy")
    @classmethod
    def _is_a_strategy(cls, strategy: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
        try:
            default_strategy(strategy)
        except QueryError as error:
            raise ValueError(str(error)) from error
        return strategy


class ExamplesSettings(Settings):
    """`[examples]`: example requests besides those of the catalogs; see `tasks/golden/learned.py`.

    Attributes:
        queries: JSON lines with `query` and `tools`, as `pegboard examples` writes them.
    """

    queries: str


MIN_QUERIES = 30
"""Golden queries of which a mean says something."""


class GoldenSettings(Settings):
    """`[golden]`: the golden queries that measure each release; see `tasks/golden/reading.py`.

    Attributes:
        queries: JSON lines with `query` and `tools`, the true names or ids of the right ones.
        min_queries: the least number of them; a mean of fewer is chance.
    """

    queries: str
    min_queries: int = Field(default=MIN_QUERIES, ge=10)


class GateSettings(Settings):
    """`[gate]`: what a staged release has to find before a channel moves to it; see `tasks/gate/`.

    Attributes:
        queries: a file of golden queries; those of `[golden]` if None.
        canaries: a file of golden queries each of which has to find all its tools among the first
            `canary_k`.
        rules: such as `Recall@5 >= 0.9`; `tasks/gate/rules.py` has their forms.
        strategies: the retrieval strategies that are measured in every index, by name or as tables
            of parts; the release's own if there are none.
        choose: the measure by which the best of them becomes the release's default; false leaves
            the default as it is configured.
        measures: what is reported; `pegboard.evaluation.measures.STANDARD` if there are none.
        captured: the largest share of the queries and canaries whose first place may be taken by a
            suspicious tool, or by a new or changed one of another agent; see
            `tasks/gate/captured.py`.
    """

    queries: str | None = None
    canaries: str | None = None
    canary_k: Annotated[int, Field(ge=1)] = 5
    rules: tuple[str, ...] = ()
    strategies: tuple[str | dict[str, Any], ...] = ()
    choose: str | Literal[False] = "Recall@5"
    measures: tuple[str, ...] = ()
    captured: Annotated[float, Field(ge=0, le=1)] = 0.05


def default_strategy(strategy: str | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the strategy as a manifest has it, None for None.

    Raises:
        QueryError: the strategy is unknown or invalid; all problems are listed.
    """
    if strategy is None:
        return None
    from pegboard.retrieval.strategies import named_strategy
    from pegboard.retrieval.strategy import Strategy

    if isinstance(strategy, str):
        return named_strategy(strategy).to_dict()
    return Strategy.from_dict(strategy).to_dict()
