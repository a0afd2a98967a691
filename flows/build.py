"""One build, from Python or from a command: a direct run, or the same run as a Prefect flow."""

from pathlib import Path
from typing import Any

from pegboard.errors import GateFailed
from tasks.enrichment.request_builder import EnrichOptions
from tasks.settings.configuration import Configuration, load_configuration


def build(
    configuration: Configuration | str | Path,
    *,
    catalog: str = "all",
    allow_empty: bool = False,
    dry_run: bool = False,
    enrich_options: EnrichOptions | None = None,
    prefect: bool = False,
) -> dict[str, Any]:
    """Index the catalogs of a configuration and publish a release if anything changed; see
    `flows.reindex.reindex`.

    Args:
        configuration: a pegboard.toml by its path, or read.
        prefect: run as a Prefect flow, on the server that Prefect is configured for, or else on one
            that it starts for the run.
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
    except GateFailed as held:
        return dict(held.outcome)
