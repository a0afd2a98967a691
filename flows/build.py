"""Build a board from Python or from the command line, directly or as a Prefect flow."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from pegboard.errors import CompletionError, GateFailed, PegboardError, SourceError, StoreError
from tasks.enrichment.request_builder import EnrichOptions
from tasks.gate.messages import held_headline
from tasks.settings.configuration import Configuration, load_configuration


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Options of one build: those of `pegboard build`, and the parameters of the Prefect flow.

    Attributes:
        catalog: list only this one and take the others from their last snapshot; `all` lists all.
        allow_removal: accept that a source lists far fewer tools than before, or none.
        dry_run: stop after the plan, as `pegboard plan` does.
        refresh_neighbours: have descriptions rewritten whose nearest neighbours changed, however
            far away those are.
        retry_rejected: ask the LLM again where an earlier run rejected its reply.
        strict: end as a failure, after publishing the rest, if a source failed, the report or a
            prune failed, or the LLM left something unwritten.
    """

    catalog: str = "all"
    allow_removal: bool = False
    dry_run: bool = False
    refresh_neighbours: bool = False
    retry_rejected: bool = False
    strict: bool = False

    @property
    def enrich(self) -> EnrichOptions:
        """What an LLM is to write beyond what is due."""
        return EnrichOptions(self.refresh_neighbours, self.retry_rejected)


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
        return GateFailed(held_headline(outcome["gate"], outcome["plan"]["channel"]), outcome)
    if not strict:
        return None
    causes: list[tuple[type[PegboardError], list[str]]] = [
        (SourceError, source_problems(outcome)),
        (StoreError, [f"{name}: {why}" for name, why in outcome["unfinished"].items()]),
        (CompletionError, outcome["problems"]),
    ]
    codes = [error.exit_code for error, problems in causes if problems]
    lines = [f"  - {problem}" for _, problems in causes for problem in problems]
    if not codes:
        return None
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
    configuration: Configuration | str | Path = "pegboard.toml",
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
