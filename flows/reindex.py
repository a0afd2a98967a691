"""The run: list the sources, and publish what they list as one release that the channel moves to.

snapshot -> revise -> plan -> (enrich) -> compose -> (unchanged? stop) -> embed -> stage -> (gate)
-> publish -> (prune) -> (report)

A release that fails its gate, or has text that waits for approval, is recorded, but no channel
moves, and the outcome is `held`. Every step finds in the lake what an earlier run finished, so a
killed run resumes where it stopped.
`flows/prefect/flows.py` runs the same function as a Prefect flow."""

import logging
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, Literal

from flows.engines import open_engine
from flows.options import BuildOptions
from flows.runner import DirectRunner, Runner
from pegboard.encoders import runs_here
from pegboard.errors import PegboardError
from pegboard.store.releases import Release
from tasks.gate.spec import has_gate
from tasks.lake.files import DamagedFile, Lake
from tasks.lake.opening import open_lake
from tasks.report.storage import Report, has_report, report_release
from tasks.runtime import progress, workers
from tasks.safety.changed import unapproved
from tasks.settings.configuration import Configuration, IndexSettings
from tasks.steps.compose import Documents, compose_agents, compose_index
from tasks.steps.edges import Edges, compose_edges
from tasks.steps.embed import EmbedResult, Shard, at_once, embed_shard, shards_of
from tasks.steps.enrich import Enriched, enrich_tools, estimate_tools
from tasks.steps.gate import gate_release
from tasks.steps.plan import Plan, make_plan
from tasks.steps.preflight import check_before_run
from tasks.steps.prune import PruneResult, prune_board
from tasks.steps.publish import publish_release
from tasks.steps.release_spec import ReleaseSpec, compose_records, make_release_spec
from tasks.steps.revise import Revision, revise_snapshots
from tasks.steps.snapshot import Snapshot, take_snapshot
from tasks.steps.stage import stage_tables
from tasks.steps.suspicious import Suspicious, find_suspicious

logger = logging.getLogger(__name__)
Outcome = Literal["planned", "unchanged", "withdrawn", "held", "published"]
SOURCES_AT_ONCE = 8
"""Sources are waited for, not computed."""


def reindex(
    configuration: Configuration,
    options: BuildOptions = BuildOptions(),  # noqa: B008  frozen
    runner: Runner | None = None,
) -> dict[str, Any]:
    """Index the catalogs of a configuration, and publish a release if anything changed.

    If a file of the lake is damaged, damaged files are removed and the steps run once more, which
    makes the missing files again.

    Args:
        runner: calls the steps; by default in this process.

    Returns:
        The whole run as JSON values, with the outcome `planned`, `unchanged`, `withdrawn`, `held`
        or `published`. `problems` and `rejected` list what was left out of the release, and why;
        `unfinished` has the error of each step that failed after the outcome was decided.
    """
    check_before_run(configuration, locked=options.locked)
    open_lake(configuration.uri)
    runner = runner or DirectRunner()
    with open_engine(configuration) as engine, workers.using(engine):
        try:
            return _Run(configuration, options, runner, engine).run()
        except DamagedFile as error:
            if not (removed := Lake(configuration.uri).remove_damaged()):
                raise
            logger.warning("%s Removed, and starting again: %s", error, ", ".join(removed))
        return _Run(configuration, options, runner, engine).run()


class _Run:
    """The phases of one run, which fill in its results."""

    def __init__(
        self,
        configuration: Configuration,
        options: BuildOptions,
        runner: Runner,
        engine: workers.Workers | None,
    ) -> None:
        self._configuration, self._options, self._uri = configuration, options, configuration.uri
        self._runner, self._call, self._engine = runner, runner.call, engine
        self._snapshots: list[Snapshot] = []
        self._plan: Plan | None = None
        self._revised: Revision | None = None
        self._estimate: dict[str, Any] | None = None
        self._enriched: Enriched | None = None
        self._edges: Edges | None = None
        self._advice: tuple[str, ...] = ()
        self._encoded = EmbedResult()
        self._suspicious: Suspicious = {}
        self._gate: dict[str, Any] | None = None
        self._pruned: PruneResult | None = None
        self._written: Report | None = None
        self._unfinished: dict[str, str] = {}
        self._seconds: dict[str, float] = {}

    def run(self) -> dict[str, Any]:
        """Run the phases in order; returns the result of `reindex`."""
        snapshots = self._list_sources()
        plan = self._make_plan(snapshots)
        if self._options.dry_run:
            return self._end("planned")
        enrichments = self._enrich(snapshots)
        documents, spec = self._compose(snapshots, enrichments)
        if spec.release == plan.live:
            self._prune()
            with self._afterwards("report"):  # if the run that published it could not write it
                if self._configuration.board.report and not has_report(self._uri, spec.release):
                    self._report(spec.release, None)
            return self._end("unchanged", spec.release)
        if spec.release in plan.withdrawn:
            return self._end("withdrawn", spec.release)
        self._embed(documents)
        outcome, release = self._publish(snapshots, plan, spec)
        self._prune()
        if self._configuration.board.report:
            self._report(release.id, outcome)
        return self._end(outcome, release.id)

    @contextmanager
    def _phase(self, name: str) -> Generator[None]:
        """Time a phase."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._seconds[name] = round(time.monotonic() - start, 3)
            logger.info("%s took %.1f s", name, self._seconds[name])

    @contextmanager
    def _afterwards(self, name: str) -> Generator[None]:
        """Record a failure after the outcome is decided, which it no longer changes."""
        try:
            yield
        except PegboardError as error:
            logger.warning("%s failed: %s", name, error)
            self._unfinished[name] = str(error)

    def _list_sources(self) -> Mapping[str, str]:
        """List the sources and revise the snapshots; returns catalog -> digest."""
        configuration, options = self._configuration, self._options
        with self._phase("snapshot"):
            fresh = configuration.catalogs_named(options.catalog)
            progress.start("snapshot", len(configuration.catalogs))
            calls = [
                partial(
                    take_snapshot,
                    configuration,
                    name,
                    allow_removal=options.allow_removal,
                    fresh=name in fresh,
                    dry_run=options.dry_run,
                )
                for name in configuration.catalogs
            ]
            self._snapshots = self._runner.each(calls, SOURCES_AT_ONCE)
            digests = {snapshot.catalog: snapshot.digest for snapshot in self._snapshots}
            self._revised = self._call(revise_snapshots, configuration, digests)
        return self._revised.digests

    def _make_plan(self, snapshots: Mapping[str, str]) -> Plan:
        configuration = self._configuration
        with self._phase("plan"):
            plan = self._call(make_plan, configuration, snapshots, configuration.board.channel)
            self._plan = plan
            if self._options.dry_run and configuration.enrich is not None:
                self._estimate = self._call(estimate_tools, configuration, snapshots)
        plan.refuse_loss(self._snapshots)
        return plan

    def _enrich(self, snapshots: Mapping[str, str]) -> str | None:
        """Buy enrichments; returns their folder of the lake, None without an LLM."""
        configuration = self._configuration
        if configuration.enrich is None:
            return None
        with self._phase("enrich"):
            self._enriched = self._call(enrich_tools, configuration, snapshots)
        return self._enriched.path

    def _compose(
        self, snapshots: Mapping[str, str], enrichments: str | None
    ) -> tuple[list[Documents], ReleaseSpec]:
        """Compose the rows of every table in the lake."""
        configuration, call = self._configuration, self._call
        with self._phase("compose"):
            documents = [
                call(compose, self._uri, index, snapshots, enrichments)
                for index in configuration.indexes
                for compose in (compose_index, compose_agents)
            ]
            self._edges = call(compose_edges, configuration, snapshots)
            records = call(compose_records, self._uri, snapshots, enrichments)
            spec = call(make_release_spec, configuration, documents, records, self._edges)
            self._advice = spec.advice
        return documents, spec

    def _embed(self, documents: list[Documents]) -> None:
        """Encode the missing texts, one table after another, as they may share texts."""
        with self._phase("embed"):
            tables: list[tuple[IndexSettings, list[Shard]]] = []
            for table in documents:
                index = self._configuration.index(table.index)
                tables.append((index, shards_of(self._uri, table, index)))
            progress.start(
                "embed", sum(len(shard.texts) for _, shards in tables for shard in shards)
            )
            for index, shards in tables:
                for part in self._embed_shards(shards, index):
                    self._encoded += part

    def _embed_shards(self, shards: list[Shard], index: IndexSettings) -> list[EmbedResult]:
        """Encode shards, on the engine's workers if there are any. Hosted encoders are called from
        this process, which limits their requests, and so are those of plug-ins, which need not
        allow calls from several threads.
        """
        engine = self._engine if runs_here(index.encoder) else None
        calls = [partial(embed_shard, self._uri, shard, index, engine) for shard in shards]
        return self._runner.each(calls, engine.workers if engine and calls else at_once(index))

    def _publish(
        self, snapshots: Mapping[str, str], plan: Plan, spec: ReleaseSpec
    ) -> tuple[Outcome, Release]:
        """Stage, gate and publish."""
        configuration, call = self._configuration, self._call
        gate: Mapping[str, Any] | None = None
        with self._phase("stage"):
            pins = call(stage_tables, self._uri, spec)
            self._suspicious = call(
                find_suspicious, configuration, plan, snapshots, locked=self._options.locked
            )
        staged = (configuration, plan, self._snapshots, spec, pins)
        if has_gate(configuration):
            with self._phase("gate"):
                gate = call(gate_release, *staged, self._suspicious)
                self._gate = Lake(self._uri).read_json(gate["details"]) if gate else None
        with self._phase("publish"):
            release = call(publish_release, *staged, gate, self._suspicious)
        held = (gate is not None and not gate["passed"]) or unapproved(self._suspicious)
        return "held" if held else "published", release

    def _prune(self) -> None:
        """Prune also when nothing changed: releases age in quiet weeks, too."""
        if (keep := self._configuration.board.keep) is not None:
            with self._phase("prune"), self._afterwards("prune"):
                self._pruned = self._call(prune_board, self._uri, keep)

    def _report(self, release: str, outcome: Outcome | None) -> None:
        """Write a report; `outcome` is that of the run if it made the release."""
        with self._phase("report"), self._afterwards("report"):
            result = self._end(outcome, release) if outcome else None
            self._written = self._call(report_release, self._configuration, release, result)

    def _end(self, outcome: Outcome, release: str | None = None) -> dict[str, Any]:
        """Return the whole run as JSON values."""
        assert self._plan is not None
        assert self._revised is not None
        rejected = [row for snapshot in self._snapshots for row in snapshot.rejected]
        return {
            "outcome": outcome,
            "board": self._uri,
            "release": release or self._plan.live,
            "encoded": self._encoded.texts,
            "truncated": self._encoded.truncated,
            "plan": self._plan.to_dict(),
            "catalogs": {
                snapshot.catalog: {
                    "tools": snapshot.tools,
                    "agents": snapshot.agents,
                    "rejected": len(snapshot.rejected),
                    "kept": list(snapshot.kept),
                    "problems": list(snapshot.problems),
                }
                for snapshot in self._snapshots
            },
            "rejected": [
                {"catalog": row.catalog, "where": row.where, "why": row.why}
                for row in (*rejected, *self._revised.quarantined)
            ],
            "edges": self._edges.to_dict() if self._edges else None,
            "gate": self._gate,
            "held_out": self._revised.held_out,
            "enrichment": self._enrichment(),
            "pruned": asdict(self._pruned) if self._pruned else None,
            "report": self._written.to_dict() if self._written else None,
            "unfinished": self._unfinished,
            "problems": [*self._revised.problems, *self._enrichment_problems()],
            "advice": list(self._advice),
            "suspicious": self._suspicious,
            "seconds": self._seconds,
        }

    def _enrichment(self) -> dict[str, Any] | None:
        """The estimate, and after a run the actual figures; None without an LLM."""
        if self._enriched is None:
            return {"estimate": self._estimate} if self._estimate else None
        return {
            "estimate": self._enriched.estimate,
            "actual": self._enriched.actual,
            "stopped": self._enriched.stopped,
        }

    def _enrichment_problems(self) -> list[str]:
        if self._enriched is None:
            return []
        return [*self._enriched.problems, *filter(None, [self._enriched.stopped])]
