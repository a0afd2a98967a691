"""`[graph]`, `[find]` and `[golden]` of a pegboard.toml: what a release says of its tools' dependencies and of how to search it."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from pegboard.errors import QueryError

__all__ = ["FindSettings", "GoldenSettings", "GraphSettings", "default_plan"]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class GraphSettings(_Settings):
    """`[graph]`: the dependencies between tools that a release has.

    Attributes:
        infer: also those that no catalog declares.
        min_confidence: inferred ones that are right less often than that, as far as it is known, are left out.
    """

    infer: bool = True
    min_confidence: Annotated[float, Field(ge=0, le=1)] = 0.5


class FindSettings(_Settings):
    """`[find]`: the retrieval plan that readers of the release use by default: a plan's name, or a table of parts."""

    plan: str | dict[str, Any] | None = None

    @field_validator("plan")
    @classmethod
    def _is_a_plan(cls, plan: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
        try:
            default_plan(plan)
        except QueryError as error:
            raise ValueError(str(error)) from error
        return plan


class GoldenSettings(_Settings):
    """`[golden]`: files of requests whose right tools are known, by which scores are calibrated; see `tasks/golden.py`.

    Attributes:
        queries: JSON lines with `query` and `tools`, the true names or ids of the right ones.
        unanswerable: JSON lines with a `query` that no tool of the board answers.
    """

    queries: str
    unanswerable: str | None = None


def default_plan(plan: str | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The plan as a manifest has it, None for none. Raises QueryError with every problem of it."""
    if plan is None:
        return None
    from pegboard.retrieval.plan import Plan
    from pegboard.retrieval.plans import named_plan

    return (named_plan(plan) if isinstance(plan, str) else Plan.from_dict(plan)).to_dict()
