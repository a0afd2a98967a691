"""Build a board from Python or from the command line, directly or as a Prefect flow.

`BuildOptions` is the one declaration of a build's options: the command line and the flow derive
theirs from its fields. Importing this module loads none of the pipeline's libraries.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pegboard.errors import CompletionError, GateFailed, PegboardError, SourceError, StoreError

if TYPE_CHECKING:
    from tasks.settings.configuration import Configuration


def _option(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Options of one build; each field's help is in its metadata."""

    catalog: str = _option(
        "all", "list only this catalog, and take the others from their last snapshot (default: all)"
    )
    allow_removal: bool = _option(
        False, "accept that a source lists far fewer tools than before, or none"
    )
    dry_run: bool = _option(False, "stop after the plan, as `pegboard plan` does")
    retry_rejected: bool = _option(
        False, "ask the LLM again where an earlier run rejected its reply"
    )
    strict: bool = _option(
        False,
        "fail, after publishing the rest, if a source failed (exit code 3), the report or a prune "
        "failed (4), or the LLM left something unwritten (7)",
    )


class Incomplete(PegboardError):
    """A strict build left something out, though it published the rest.

    Attributes:
        outcome: what the run did, as JSON values.
    """

    def __init__(self, message: str, outcome: dict[str, Any], exit_code: int) -> None:
        super().__init__(message)
        self.outcome, self.exit_code = outcome, exit_code


def failure_of(outcome: dict[str, Any], *, strict: bool) -> PegboardError | None:
    """Return the error that a build ends with; None if it succeeded."""
    if outcome["outcome"] == "held":
        from tasks.gate.messages import held_lines

        return GateFailed(
            "\n".join(held_lines(outcome["gate"], outcome["plan"]["channel"], brief=True)), outcome
        )
    causes: list[tuple[int, list[str]]] = [
        (SourceError.exit_code, source_problems(outcome)),
        (StoreError.exit_code, [f"{name}: {why}" for name, why in outcome["unfinished"].items()]),
        (CompletionError.exit_code, outcome["problems"]),
    ]
    codes = [code for code, problems in causes if problems]
    if not strict or not codes:
        return None
    lines = [f"  - {problem}" for _, problems in causes for problem in problems]
    message = "The run is strict, and left something out or undone:"
    return Incomplete("\n".join([message, *lines]), outcome, codes[0])


def source_problems(outcome: dict[str, Any]) -> list[str]:
    """Return what went wrong with the sources of a build, each named."""
    return [
        f"{name}: {problem}"
        for name, catalog in outcome["catalogs"].items()
        for problem in catalog["problems"]
    ]


def build(
    configuration: "Configuration | str | Path" = "pegboard.toml",
    options: BuildOptions = BuildOptions(),
    *,
    prefect: bool = False,
) -> dict[str, Any]:
    """Index the catalogs of a configuration, and publish a release if anything changed.

    Repeating it is safe, and so is killing it: what was listed and encoded is kept, and readers see
    the old release until the new one is complete.

        >>> from flows.build import BuildOptions, build
        >>> outcome = build("demo/pegboard.toml")  # doctest: +SKIP
        >>> outcome["outcome"], outcome["release"]  # doctest: +SKIP
        ('published', '3c1f0e9a2b7d')
        >>> plan = build("demo/pegboard.toml", BuildOptions(dry_run=True))  # doctest: +SKIP

    Args:
        configuration: the path of a pegboard.toml, or what `load_configuration` returns.
        prefect: run as a Prefect flow, on the configured server, or else on one that Prefect starts
            for the run.

    Returns:
        What `pegboard build --json` prints, as JSON values. `outcome` is `planned`, `unchanged`,
        `withdrawn`, `held` by the gate, or `published`; `release` is the id of the release,
        `catalogs` what each source listed, `problems` what could not be done, `unfinished` what
        failed after publishing, and `seconds` the time of each phase.

    Raises:
        ConfigurationError: the configuration has problems; all are listed.
        SourceError: no source could be read, or published tools would be lost.
        EncoderError: an encoder cannot load or does not answer.
        CompletionError: the LLM refused, and `incomplete` is `stop`.
        StoreError: the board's store cannot be read or written.
        PublishError: another run published meanwhile; run again.
    """
    from tasks.settings.configuration import Configuration, load_configuration

    if not isinstance(configuration, Configuration):
        configuration = load_configuration(configuration)
    if not prefect:
        from flows.reindex import reindex

        return reindex(configuration, options)
    from flows.prefect.flows import reindex as reindex_flow

    try:
        return cast("Any", reindex_flow)(config=str(configuration.file), **asdict(options))
    except (GateFailed, Incomplete) as error:
        return dict(error.outcome)
