"""The run: list the sources, and publish what they list as one release that the channel moves to.

snapshot -> revise -> plan -> (enrich -> filter) -> compose -> (unchanged? stop) -> embed -> stage
-> (gate) -> publish -> (prune) -> (report)

A release that fails its gate is recorded, but no channel moves, and the outcome is `held`. Every
step finds in the lake what an earlier run finished, so a killed run resumes where it stopped.
`flows/prefect/flows.py` runs the same function as a Prefect flow."""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

from flows.artifacts import plan_artifact, report_artifact, sources_artifact
from flows.build import BuildOptions
from flows.engines import Engine, open_engine
from flows.runner import DirectRunner, Runner
from flows.summary import Outcome, RunSummary
from pegboard.encoders import runs_here
from pegboard.store.database import public_uri
from pegboard.store.releases import Release
from tasks import progress, workers
from tasks.compose import Documents, compose_agents, compose_index
from tasks.edges import compose_edges
from tasks.embed import EmbedResult, Shard, at_once, embed_shard, for_worker, shards_of
from tasks.enrich import enrich_tools, estimate_tools
from tasks.filter import filter_enrichments
from tasks.forecast import forecast_build, remember_build
from tasks.gate.decision import gate_release
from tasks.gate.spec import gate_advice, has_gate
from tasks.lake.files import DamagedFile, Lake
from tasks.plan import Plan, make_plan
from tasks.preflight import check_before_run
from tasks.prune import prune_board
from tasks.publish import publish_release
from tasks.release_spec import ReleaseSpec, compose_records, make_release_spec
from tasks.report.storage import has_report, report_release
from tasks.revise import revise_snapshots
from tasks.safety.capture import find_suspicious
from tasks.settings.configuration import Configuration, IndexSettings
from tasks.snapshot import take_snapshot
from tasks.stage import stage_tables

logger = logging.getLogger(__name__)

SOURCES_AT_ONCE = 8
"""Sources are waited for, not computed."""


def reindex(
    configuration: Configuration,
    options: BuildOptions = BuildOptions(),  # noqa: B008  frozen
    runner: Runner | None = None,
) -> dict[str, Any]:
    """Index the catalogs of a configuration, and publish a release if anything changed.

    If a file of the lake is damaged, damaged files are removed and the steps run once more: they
    make again what is missing.

    Args:
        runner: calls the steps, except those that `[run]` sends to other processes; by default in
            this one.

    Returns:
        The result of `RunSummary.end`: JSON values, with the outcome `planned`, `unchanged`,
        `withdrawn`, `held` or `published`.
    """
    check_before_run(configuration)
    with open_engine(configuration) as engine, workers.using(engine):
        calls = (runner or DirectRunner(), engine)
        try:
            return _reindex(configuration, options, *calls)
        except DamagedFile as error:
            if not (removed := Lake(configuration.uri).remove_damaged()):
                raise
            logger.warning(
                "%s Removed %d damaged files of the lake, and starting again: %s",
                error,
                len(removed),
                ", ".join(removed),
            )
        return _reindex(configuration, options, *calls)


def _reindex(
    configuration: Configuration,
    options: BuildOptions,
    runner: Runner,
    engine: Engine | None,
) -> dict[str, Any]:
    summary = RunSummary(configuration)
    run = _Run(configuration, options, runner, engine, summary)
    snapshots = run.snapshot()
    plan = run.plan(snapshots)
    if options.dry_run:
        return summary.end("planned")
    enrichments = run.enrich(snapshots)
    documents, spec = run.compose(snapshots, enrichments)
    if spec.release == plan.live:
        run.prune()
        run.report_if_missing(spec.release)
        return summary.end("unchanged", spec.release)
    if spec.release in plan.withdrawn:
        return summary.end("withdrawn", spec.release)
    run.embed(documents)
    release = run.publish(plan, spec)
    run.prune()
    return run.report(release)


class _Run:
    """The phases of one run; `summary` collects their results."""

    def __init__(
        self,
        configuration: Configuration,
        options: BuildOptions,
        runner: Runner,
        engine: Engine | None,
        summary: RunSummary,
    ) -> None:
        self._configuration, self._options, self._summary = configuration, options, summary
        self._runner, self._engine, self._uri = runner, engine, configuration.uri

    def snapshot(self) -> Mapping[str, str]:
        """List the sources and revise the snapshots; returns catalog -> digest."""
        configuration, summary = self._configuration, self._summary
        with summary.phase("snapshot"):
            fresh = configuration.catalogs_named(self._options.catalog)
            progress.start("snapshot", len(configuration.catalogs))
            calls = [
                partial(
                    take_snapshot,
                    configuration,
                    name,
                    allow_removal=self._options.allow_removal,
                    fresh=name in fresh,
                    dry_run=self._options.dry_run,
                )
                for name in configuration.catalogs
            ]
            summary.snapshots = self._runner.each(calls, SOURCES_AT_ONCE)
            board = public_uri(self._uri)
            self._runner.show(sources_artifact(board, summary.snapshots))
            digests = {snapshot.catalog: snapshot.digest for snapshot in summary.snapshots}
            summary.revised = self._runner.call(revise_snapshots, configuration, digests)
        return summary.revised.digests

    def plan(self, snapshots: Mapping[str, str]) -> Plan:
        configuration, summary, call = self._configuration, self._summary, self._runner.call
        with summary.phase("plan"):
            plan = call(make_plan, configuration, snapshots, configuration.board.channel)
            summary.plan = plan
            if self._options.dry_run:
                if configuration.enrich is not None:
                    summary.estimate = call(
                        estimate_tools, configuration, snapshots, self._options.enrich
                    )
                summary.forecast = forecast_build(configuration, plan, snapshots, summary.estimate)
                summary.advice = gate_advice(configuration)
            self._runner.show(plan_artifact(summary))
        plan.refuse_loss(summary.snapshots)
        return plan

    def enrich(self, snapshots: Mapping[str, str]) -> str | None:
        """Buy and filter enrichments; returns their folder of the lake, None without an LLM."""
        configuration, summary = self._configuration, self._summary
        if configuration.enrich is None:
            return None
        with summary.phase("enrich"):
            summary.enriched = self._runner.call(
                enrich_tools, configuration, snapshots, self._options.enrich
            )
        with summary.phase("filter"):
            summary.filtered = self._runner.call(
                filter_enrichments, configuration, snapshots, summary.enriched.enrichments
            )
        return summary.filtered.enrichments.path

    def compose(
        self, snapshots: Mapping[str, str], enrichments: str | None
    ) -> tuple[list[Documents], ReleaseSpec]:
        """Compose the rows of every table in the lake."""
        configuration, summary, call = self._configuration, self._summary, self._runner.call
        with summary.phase("compose"):
            documents = [
                call(compose, self._uri, index, snapshots, enrichments)
                for index in configuration.indexes
                for compose in (compose_index, compose_agents)
            ]
            summary.edges = call(compose_edges, configuration, snapshots, enrichments)
            records = call(compose_records, self._uri, snapshots, enrichments)
            spec = call(make_release_spec, configuration, documents, records, summary.edges)
            summary.advice = spec.advice
        return documents, spec

    def embed(self, documents: list[Documents]) -> None:
        """Encode the missing texts, one table after another, as they may share texts."""
        with self._summary.phase("embed"):
            tables = [
                (table, shards_of(self._uri, table, self._configuration.index(table.index)))
                for table in documents
            ]
            progress.start("embed", sum(shard.texts for _, shards in tables for shard in shards))
            result = EmbedResult()
            for table, shards in tables:
                for part in self._embed_shards(shards, self._configuration.index(table.index)):
                    result += part
            self._summary.encoded = result

    def _embed_shards(self, shards: list[Shard], index: IndexSettings) -> list[EmbedResult]:
        """Encode shards, on the engine's workers if there are any. A hosted encoder is called from
        here: it limits its own requests, which several would not know of each other. So is one of a
        plug-in, which need not allow calls from several threads.
        """
        if self._engine is None or not runs_here(index.encoder):
            calls = [partial(embed_shard, self._uri, shard, index) for shard in shards]
            return self._runner.each(calls, at_once(index))
        index = for_worker(index, self._engine.threads)
        calls = [partial(embed_shard, self._uri, shard, index) for shard in shards]
        return self._runner.spread(
            calls, self._engine, lambda at: progress.advance("embed", shards[at].texts)
        )

    def publish(self, plan: Plan, spec: ReleaseSpec) -> Release:
        """Stage, gate and publish."""
        configuration, summary, call = self._configuration, self._summary, self._runner.call
        with summary.phase("stage"):
            pins = call(stage_tables, self._uri, spec)
            snapshots = summary.revised.digests if summary.revised else {}
            summary.suspicious = call(find_suspicious, configuration, plan, snapshots)
        staged = (configuration, plan, summary.snapshots, spec, pins)
        if has_gate(configuration):
            with summary.phase("gate"):
                summary.gated = call(gate_release, *staged, summary.suspicious)
        with summary.phase("publish"):
            return call(publish_release, *staged, summary.gated, summary.suspicious)

    def prune(self) -> None:
        """Prune also when nothing changed: releases grow old in quiet weeks, too."""
        if (keep := self._configuration.board.keep) is not None:
            with self._summary.phase("prune"), self._summary.afterwards("prune"):
                self._summary.pruned = self._runner.call(prune_board, self._uri, keep)

    def report(self, release: Release) -> dict[str, Any]:
        """Write the report; returns the outcome of the run."""
        summary = self._summary
        outcome: Outcome = "held" if summary.held else "published"
        if self._configuration.board.report:
            self._report(release.id, outcome)
        with summary.afterwards("forecast"):
            self._remember()
        return summary.end(outcome, release.id)

    def report_if_missing(self, release: str) -> None:
        """Write the report of the live release if the run that published it could not."""
        with self._summary.afterwards("report"):
            if self._configuration.board.report and not has_report(self._uri, release):
                self._report(release, None)

    def _report(self, release: str, outcome: Outcome | None) -> None:
        """Write a report; `outcome` is that of the run if it made the release."""
        summary = self._summary
        with summary.phase("report"), summary.afterwards("report"):
            result = summary.end(outcome, release) if outcome else None
            summary.report = self._runner.call(report_release, self._configuration, release, result)
            self._runner.show(report_artifact(summary.report))

    def _remember(self) -> None:
        """Store what this build took, for the forecast of the next."""
        summary, encoders = self._summary, {one.encoder for one in self._configuration.indexes}
        assert summary.plan is not None
        changed = len(summary.plan.new) + len(summary.plan.changed)
        amounts = {"changed": changed}
        if len(encoders) == 1:  # of several it is not known how the seconds divide
            amounts[f"texts {encoders.pop()}"] = summary.encoded.texts
        if summary.enriched is not None:
            amounts["calls"] = summary.enriched.actual["replies"]
        remember_build(self._uri, summary.seconds, amounts)
