"""The options of a build, and the error that its outcome stands for.

`BuildOptions` is their one declaration: the command line derives its flags from the fields, and a
test compares the parameters of the flow with them. Importing this module loads none of the
pipeline's libraries.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pegboard.errors import CompletionError, GateFailed, PegboardError, SourceError, StoreError
from pegboard.formatting import count_text


def _option(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Options of one build; each field's help is in its metadata."""

    catalog: str = _option(
        "all",
        "list only this catalog, or several with commas between them, and take the others from "
        "their last snapshot (default: all)",
    )
    allow_removal: bool = _option(
        False, "accept that a source lists far fewer tools than before, or none"
    )
    allow_missing: bool = _option(
        False,
        "publish a first release without the catalogs whose sources failed (by default nothing is "
        "published, exit code 3)",
    )
    locked: bool = _option(
        False, "hold the release if it has a definition that the lock file does not approve"
    )
    dry_run: bool = _option(False, "stop after the plan, as `pegboard plan` does")
    strict: bool = _option(
        False,
        "fail, after publishing the rest, if a source failed or a record was rejected (exit code "
        "3), the report, a prune or the public tables failed (4), or LLM enrichment was incomplete "
        "(7)",
    )


class Incomplete(PegboardError):
    """A strict build published a release without a source, a record, a report, a prune or LLM
    texts.

    Attributes:
        outcome: what the run did, as JSON values.
    """

    def __init__(self, message: str, outcome: dict[str, Any], exit_code: int) -> None:
        super().__init__(message)
        self.outcome, self.exit_code = outcome, exit_code


def failure_of(outcome: dict[str, Any], *, strict: bool) -> PegboardError | None:
    """Return the error that a build ends with; None if it succeeded."""
    if outcome["outcome"] == "held":
        from tasks.gate.messages import held_run_lines

        lines = [line for line in held_run_lines(outcome) if not line.startswith("    ")]
        return GateFailed("\n".join(lines), outcome)
    causes: list[tuple[int, list[str]]] = [
        (SourceError.exit_code, source_problems(outcome) + _unlisted(outcome)),
        (StoreError.exit_code, [f"{name}: {why}" for name, why in outcome["unfinished"].items()]),
        (CompletionError.exit_code, outcome["problems"]),
    ]
    codes = [code for code, problems in causes if problems]
    if not strict or not codes:
        return None
    lines = [f"  - {problem}" for _, problems in causes for problem in problems]
    message = "Strict build incomplete:"
    return Incomplete("\n".join([message, *lines]), outcome, codes[0])


def _unlisted(outcome: dict[str, Any]) -> list[str]:
    """Return a sentence for each catalog with rejected records, and for each listing that is a
    part.
    """
    rejected = Counter(row["catalog"] for row in outcome["rejected"])
    sentences = [
        f"{name}: {count_text(count, 'record')} rejected" for name, count in rejected.items()
    ]
    return sentences + [
        f"{row['catalog']}, {row['where']}: {row['why']}"
        for row in outcome["notices"]
        if row["kind"] == "partial"
    ]


def source_problems(outcome: dict[str, Any]) -> list[str]:
    """Return the problems of a build's sources, each with the name of its catalog."""
    return [
        f"{name}: {problem}"
        for name, catalog in outcome["catalogs"].items()
        for problem in catalog["problems"]
    ]
