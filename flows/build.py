"""Build a board from Python or from the command line, directly or as a Prefect flow."""

from pathlib import Path
from typing import Any

from pegboard.errors import GateFailed
from tasks.enrichment.request_builder import EnrichOptions
from tasks.settings.configuration import Configuration, load_configuration


def build(
    configuration: Configuration | str | Path = "pegboard.toml",
    *,
    catalog: str = "all",
    allow_empty: bool = False,
    dry_run: bool = False,
    enrich_options: EnrichOptions | None = None,
    prefect: bool = False,
) -> dict[str, Any]:
    """Index the catalogs of a configuration, and publish a release if anything changed.

    Repeating it is safe, and so is killing it: what was listed and encoded is kept, and readers see
    the old release until the new one is complete.

        >>> from flows.build import build
        >>> outcome = build("demo/pegboard.toml")  # doctest: +SKIP
        >>> outcome["outcome"], outcome["release"]  # doctest: +SKIP
        ('published', '3c1f0e9a2b7d')

    Args:
        configuration: the path of a pegboard.toml, or what `load_configuration` returns.
        catalog: list only this one and take the others from their last snapshot; `all` lists all.
        allow_empty: accept an empty listing from a source that had tools.
        dry_run: stop after the plan, as `pegboard plan` does.
        enrich_options: what an LLM is to write beyond what is due.
        prefect: run as a Prefect flow, on the configured server, or else on one that Prefect starts
            for the run.

    Returns:
        What `pegboard build --json` prints, as JSON values. `outcome` is `planned`, `waiting` for a
        batch of an LLM, `unchanged`, `withdrawn`, `held` by the gate, or `published`; `release` is
        the id of the release, `catalogs` what each source listed, `problems` what could not be
        done, and `seconds` the time of each phase.

    Raises:
        ConfigurationError: the configuration has problems; all are listed.
        SourceError: no source could be read, or published tools would be lost.
        EncoderError: an encoder cannot load or does not answer.
        CompletionError: the LLM refused, and `incomplete` is `stop`.
        StoreError: the board's store cannot be read or written.
        PublishError: another run published meanwhile; run again.
    """
    enrich_options = enrich_options or EnrichOptions()
    if not isinstance(configuration, Configuration):
        configuration = load_configuration(configuration)
    if not prefect:
        from flows.reindex import reindex

        return reindex(
            configuration,
            catalog=catalog,
            allow_empty=allow_empty,
            dry_run=dry_run,
            enrich_options=enrich_options,
        )
    from flows.prefect.flows import reindex as reindex_flow

    try:
        return reindex_flow(
            config=str(configuration.file),
            catalog=catalog,
            allow_empty=allow_empty,
            dry_run=dry_run,
            refresh_neighbours=enrich_options.refresh_neighbours,
            retry_rejected=enrich_options.retry_rejected,
        )
    except GateFailed as error:
        return dict(error.outcome)
