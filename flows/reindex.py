"""The run: what the sources say becomes one release that the channel names. Reads like the table of
contents.

snapshot -> revise -> plan -> (enrich -> filter) -> compose -> (nothing changed? stop) -> embed ->
stage -> (calibrate) -> (gate) -> publish
-> (prune) -> (report)

A release that does not pass its gate is recorded, but no channel moves, and the outcome is `held`.
Every step finds in the lake what an earlier run finished, so a killed run goes on where it stopped.
`flows/prefect/flows.py` runs the same body as a Prefect flow."""

from functools import partial
from typing import Any

from flows.artifacts import plan_artifact, release_artifact, report_artifact
from flows.runner import Direct, Runner
from flows.summary import RunSummary
from tasks import progress
from tasks.calibrate import calibrate_release
from tasks.compose import Documents, compose_agents, compose_index
from tasks.edges import compose_edges
from tasks.embed import Encoded, at_once, embed_shard, shards_of
from tasks.enrich import enrich_tools, estimate_tools
from tasks.enrichment.request_builder import EnrichOptions
from tasks.filter import filter_enrichments
from tasks.gate.decision import gate_release
from tasks.gate.spec import has_gate, read_gate
from tasks.plan import make_plan
from tasks.prune import prune_board
from tasks.publish import publish_release
from tasks.release_spec import ReleaseSpec, compose_records, make_release_spec
from tasks.report.storage import report_release
from tasks.revise import revise_snapshots
from tasks.settings.configuration import Configuration
from tasks.snapshot import Snapshot, take_snapshot
from tasks.stage import stage_tables

SOURCES_AT_ONCE = 8
"""Sources are waited for, not computed."""


def reindex(
    configuration: Configuration,
    *,
    catalog: str = "all",
    allow_empty: bool = False,
    dry_run: bool = False,
    enrich_options: EnrichOptions | None = None,
    runner: Runner | None = None,
) -> dict[str, Any]:
    """Index the catalogs of a configuration again, and publish a release if anything changed.

    Args:
        catalog: list only this one anew and take the others from their last snapshot; `all` lists
            every one.
        allow_empty: accept an empty listing from a source that had tools.
        dry_run: stop after the plan.
        enrich_options: what to buy beyond what is due.
        runner: who calls the steps; by default they are called directly.

    Returns:
        What `RunSummary.end` says of the run: JSON values, with the outcome `planned`, `waiting`,
        `unchanged`, `withdrawn`, `held` or `published`.
    """
    runner, enrich_options = runner or Direct(), enrich_options or EnrichOptions()
    uri, channel, summary = (
        configuration.uri,
        configuration.board.channel,
        RunSummary(configuration),
    )
    read_gate(configuration)  # errors in these files are reported before any source or LLM call

    with summary.phase("snapshot"):
        summary.snapshots = _snapshots(configuration, runner, catalog, allow_empty=allow_empty)
        digests = {one.catalog: one.digest for one in summary.snapshots}
        summary.revised = runner.call(revise_snapshots, configuration, digests)
        identities = summary.revised.identities

    with summary.phase("plan"):
        summary.plan = runner.call(make_plan, configuration, identities, channel)
        if dry_run and configuration.enrich is not None:
            summary.estimate = runner.call(
                estimate_tools, configuration, identities, enrich_options
            )
        runner.show(plan_artifact(summary))
    summary.plan.refuse_loss(summary.snapshots)
    if dry_run:
        return summary.end("planned")

    enrichments: str | None = None
    if configuration.enrich is not None:
        with summary.phase("enrich"):
            summary.enriched = runner.call(enrich_tools, configuration, identities, enrich_options)
        if summary.enriched.waiting and configuration.enrich.incomplete == "stop":
            return summary.end("waiting")
        with summary.phase("filter"):
            summary.filtered = runner.call(
                filter_enrichments, configuration, identities, summary.enriched.enrichments
            )
            enrichments = summary.filtered.enrichments.path

    with summary.phase("compose"):
        documents, spec = _compose(configuration, runner, summary, identities, enrichments)
    if spec.release == summary.plan.live:
        _prune(configuration, runner, summary)
        return summary.end("unchanged", spec.release)
    if spec.release in summary.plan.withdrawn:
        return summary.end("withdrawn", spec.release)

    with summary.phase("embed"):
        summary.encoded = _embed(configuration, runner, documents)

    with summary.phase("stage"):
        pins = runner.call(stage_tables, uri, spec)

    if configuration.golden is not None:
        with summary.phase("calibrate"):
            summary.calibrated = runner.call(calibrate_release, configuration, spec, pins)

    staged = (
        configuration,
        summary.plan,
        summary.snapshots,
        spec,
        pins,
        dict(summary.calibrated.indexes),
    )
    if has_gate(configuration):
        with summary.phase("gate"):
            summary.gated = runner.call(gate_release, *staged)

    with summary.phase("publish"):
        release = runner.call(publish_release, *staged, summary.gated)
        runner.show(release_artifact(summary, release))

    _prune(configuration, runner, summary)
    outcome = "held" if summary.held else "published"
    if configuration.board.report:
        with summary.phase("report"):
            so_far = summary.end(outcome, release.id)
            summary.report = runner.call(report_release, configuration, release.id, so_far)
            runner.show(report_artifact(summary.report))
    return summary.end(outcome, release.id)


def _snapshots(
    configuration: Configuration, runner: Runner, catalog: str, *, allow_empty: bool
) -> list[Snapshot]:
    fresh = configuration.catalogs_named(catalog)
    progress.start("snapshot", len(configuration.catalogs))
    calls = [
        partial(take_snapshot, configuration, name, allow_empty=allow_empty, fresh=name in fresh)
        for name in configuration.catalogs
    ]
    return runner.each(calls, SOURCES_AT_ONCE)


def _compose(
    configuration: Configuration,
    runner: Runner,
    summary: RunSummary,
    identities: dict[str, str],
    enrichments: str | None,
) -> tuple[list[Documents], ReleaseSpec]:
    """Compose the rows of every table, as files of the lake; returns the documents of every index,
    and the release.
    """
    uri = configuration.uri
    documents = [
        runner.call(compose, uri, index, identities, enrichments)
        for index in configuration.indexes
        for compose in (compose_index, compose_agents)
    ]
    summary.edges = runner.call(compose_edges, configuration, identities, enrichments)
    records = runner.call(compose_records, uri, identities, enrichments)
    return documents, runner.call(
        make_release_spec, configuration, documents, records, summary.edges
    )


def _embed(configuration: Configuration, runner: Runner, documents: list[Documents]) -> Encoded:
    """Encode what the lake lacks. Documents of one index are encoded after another's, as they may
    share texts.
    """
    uri = configuration.uri
    encoded = Encoded()
    shards = [(one, shards_of(uri, one, configuration.index(one.index))) for one in documents]
    progress.start("embed", sum(shard.texts for _, several in shards for shard in several))
    for one, several in shards:
        index = configuration.index(one.index)
        for done in runner.each(
            [partial(embed_shard, uri, shard, index) for shard in several], at_once(index)
        ):
            encoded += done
    return encoded


def _prune(configuration: Configuration, runner: Runner, summary: RunSummary) -> None:
    """Prune also when nothing changed: what grows old has to go in quiet weeks, too."""
    if (keep := configuration.board.keep) is not None:
        with summary.phase("prune"):
            summary.pruned = runner.call(prune_board, configuration.uri, keep)
