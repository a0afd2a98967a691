"""A build: list the sources, and publish what they list as one release that the channel moves to.

    ingest    snapshot each source, revise, plan        (a dry run ends here)
    enrich    have an LLM write what is missing         (with [enrich])
    index     compose, encode, stage                    (an unchanged release ends here)
    publish   gate, record, promote
              then prune and report

A release that fails its gate, or has text that waits for approval, is recorded, but no channel
moves, and the outcome is `held`. Every step finds in the lake what an earlier build finished, so a
killed build resumes where it stopped. A `Runner` calls the phases and steps: `DirectRunner` in this
process, `flows.prefect.runner` as subflows and tasks.
"""

import logging
import time
from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, Literal

from flows.engines import open_engine
from flows.options import BuildOptions
from flows.runner import DirectRunner, Runner
from pegboard.encoders import runs_here
from pegboard.errors import PegboardError
from pegboard.records import Notice
from pegboard.store.releases import Pin
from tasks.gate.spec import has_gate
from tasks.lake.files import DamagedFile, Lake
from tasks.lake.opening import open_lake
from tasks.public_lake.writing import with_public_lake
from tasks.report.storage import Report, has_report, report_release
from tasks.runtime import progress, workers
from tasks.safety.changed import unapproved
from tasks.settings.configuration import Configuration, IndexSettings
from tasks.settings.release import strategy_of
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
"""Sources listed at the same time. I/O-bound, so more than cores."""


def reindex(
    configuration: Configuration,
    options: BuildOptions = BuildOptions(),  # noqa: B008  frozen
    runner: Runner | None = None,
) -> dict[str, Any]:
    """Index the catalogs of a configuration, and publish a release if anything changed.

    If a file of the lake is damaged, damaged files are removed and the build starts again, which
    makes the missing files again.

    Args:
        runner: calls the phases and steps; by default in this process.

    Returns:
        The whole build as JSON values, with the outcome `planned`, `unchanged`, `withdrawn`, `held`
        or `published`. `problems` and `rejected` list what was left out of the release, and why,
        `notices` what is listed otherwise than at its source or was left out on purpose;
        `unfinished` has the error of each step that failed after the outcome was decided.
    """
    check_before_run(configuration, locked=options.locked)
    open_lake(configuration.uri)
    runner = runner or DirectRunner()
    with open_engine(configuration) as engine, workers.using(engine):
        try:
            outcome = Build(configuration, options, runner, engine).run()
        except DamagedFile as error:
            if not (removed := Lake(configuration.uri).remove_damaged()):
                raise
            logger.warning("%s Removed, and starting again: %s", error, ", ".join(removed))
            outcome = Build(configuration, options, runner, engine).run()
    return with_public_lake(configuration, outcome)


class Build:
    """One build: its phases, and their results so far.

    A phase takes and returns names, digests and paths of the lake, which Prefect shows; what is
    larger stays in the attributes. Each step is called with the earlier results that it builds on,
    from which Prefect draws its graph.
    """

    def __init__(
        self,
        configuration: Configuration,
        options: BuildOptions,
        runner: Runner,
        engine: workers.Workers | None,
    ) -> None:
        self._configuration = configuration
        self._options = options
        self._uri = configuration.uri
        self._runner = runner
        self._engine = engine
        self._snapshots: list[Snapshot] = []
        self._plan: Plan | None = None
        self._revision: Revision | None = None
        self._estimate: dict[str, Any] | None = None
        self._enriched: Enriched | None = None
        self._edges: Edges | None = None
        self._spec: ReleaseSpec | None = None
        self._encoded = EmbedResult()
        self._pins: dict[str, Pin] = {}
        self._suspicious: Suspicious = {}
        self._gate: dict[str, Any] | None = None
        self._pruned: PruneResult | None = None
        self._report: Report | None = None
        self._unfinished: dict[str, str] = {}
        self._seconds: dict[str, float] = {}

    def run(self) -> dict[str, Any]:
        """Run the phases in order; returns the result of `reindex`."""
        with Lake(self._uri).cached():
            return self._run_phases()

    def _run_phases(self) -> dict[str, Any]:
        phase = self._runner.phase
        snapshots = phase(self.ingest)
        if self._options.dry_run:
            return self._result("planned")
        enrichments = self._enrichments(snapshots)
        release = phase(self.index, snapshots, enrichments)
        if (outcome := self._unpublished(release)) is None:
            outcome = phase(self.publish, release)
        return self._finish(outcome, release)

    def ingest(self) -> dict[str, str]:
        """List every source and plan the build; returns the snapshot of each catalog."""
        with self._timed("snapshot"):
            self._snapshots = self._take_snapshots()
            digests = {snapshot.catalog: snapshot.digest for snapshot in self._snapshots}
            self._revision = self._runner.call(
                partial(revise_snapshots, self._configuration, digests), snapshots=self._snapshots
            )
        snapshots = self._revision.digests
        with self._timed("plan"):
            self._plan = self._runner.call(
                partial(
                    make_plan, self._configuration, snapshots, self._configuration.board.channel
                ),
                revision=self._revision,
            )
            if self._options.dry_run and self._configuration.enrich is not None:
                self._estimate = self._runner.call(
                    partial(estimate_tools, self._configuration, snapshots),
                    revision=self._revision,
                )
        self._plan.refuse_loss(self._snapshots, allow_missing=self._options.allow_missing)
        return snapshots

    def enrich(self, snapshots: Mapping[str, str]) -> str:
        """Have the LLM write what is missing; returns the folder of the lake with its texts.

        Args:
            snapshots: the digest of each catalog's snapshot.
        """
        with self._timed("enrich"):
            self._enriched = self._runner.call(
                partial(enrich_tools, self._configuration, snapshots)
            )
        return self._enriched.path

    def index(self, snapshots: Mapping[str, str], enrichments: str | None) -> str:
        """Compose the tables of the release, encode and stage them; returns the id of the release.

        A release that is live already, or was withdrawn, is neither encoded nor staged.

        Args:
            snapshots: the digest of each catalog's snapshot.
            enrichments: the folder of the lake with the texts of an LLM.
        """
        with self._timed("compose"):
            documents, spec = self._compose(snapshots, enrichments)
        self._spec = spec
        if self._unpublished(spec.release) is not None:
            return spec.release
        with self._timed("embed"):
            encoded = self._embed(documents, spec)
        with self._timed("stage"):
            self._stage(snapshots, spec, encoded)
        return spec.release

    def publish(self, release: str) -> Outcome:
        """Measure the staged release by its gate, record it, and move the channel to it unless it
        is held.

        Args:
            release: its id.
        """
        assert self._plan is not None
        assert self._spec is not None
        assert self._spec.release == release
        staged = (self._configuration, self._plan, self._snapshots, self._spec, self._pins)
        gate: dict[str, Any] | None = None
        if has_gate(self._configuration):
            with self._timed("gate"):
                gate = self._runner.call(partial(gate_release, *staged, self._suspicious))
                self._gate = Lake(self._uri).read_json(gate["details"]) if gate else None
        with self._timed("publish"):
            self._runner.call(partial(publish_release, *staged, gate, self._suspicious), gate=gate)
        held = (gate is not None and not gate["passed"]) or unapproved(self._suspicious)
        return "held" if held else "published"

    def _enrichments(self, snapshots: Mapping[str, str]) -> str | None:
        """Return the folder of the lake with the texts of the LLM; None without one."""
        if self._configuration.enrich is None:
            return None
        return self._runner.phase(self.enrich, snapshots)

    def _unpublished(self, release: str) -> Outcome | None:
        """Return why a release is not published again; None if it is to be published."""
        assert self._plan is not None
        if release == self._plan.live:
            return "unchanged"
        return "withdrawn" if release in self._plan.withdrawn else None

    def _finish(self, outcome: Outcome, release: str) -> dict[str, Any]:
        """Prune and report; a failure of either does not change the outcome."""
        if outcome != "withdrawn":
            # Also when nothing changed: releases age in quiet weeks, too.
            with self._afterwards("prune"):
                self._prune(outcome)
            with self._afterwards("report"):
                self._write_report(outcome, release)
        return self._result(outcome, release)

    def _prune(self, outcome: Outcome) -> None:
        if (keep := self._configuration.board.keep) is not None:
            with self._timed("prune"):
                self._pruned = self._runner.call(
                    partial(prune_board, self._uri, keep), outcome=outcome
                )

    def _write_report(self, outcome: Outcome, release: str) -> None:
        """Write the report of a new release, or one that the build which published it could not."""
        if not self._configuration.board.report:
            return
        result = None
        if outcome == "unchanged":
            if has_report(self._uri, release):
                return
        else:
            result = self._result(outcome, release)
        with self._timed("report"):
            self._report = self._runner.call(
                partial(report_release, self._configuration, release, result), outcome=outcome
            )

    @contextmanager
    def _timed(self, name: str) -> Generator[None]:
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

    def _take_snapshots(self) -> list[Snapshot]:
        """List the sources that the options name, and take the stored snapshots of the others."""
        configuration, options = self._configuration, self._options
        listed = configuration.catalogs_named(options.catalog)
        progress.start("snapshot", len(configuration.catalogs))
        calls = [
            partial(
                take_snapshot,
                configuration,
                name,
                allow_removal=options.allow_removal,
                fresh=name in listed,
                dry_run=options.dry_run,
            )
            for name in configuration.catalogs
        ]
        return self._runner.each(calls, SOURCES_AT_ONCE)

    def _compose(
        self, snapshots: Mapping[str, str], enrichments: str | None
    ) -> tuple[list[Documents], ReleaseSpec]:
        """Compose the rows of every table in the lake."""
        configuration, call = self._configuration, self._runner.call
        documents = [
            call(partial(compose, self._uri, index, snapshots, enrichments))
            for index in configuration.indexes
            for compose in (compose_index, compose_agents)
        ]
        self._edges = call(partial(compose_edges, configuration, snapshots))
        records = call(partial(compose_records, self._uri, snapshots, enrichments))
        spec = call(
            partial(make_release_spec, configuration, documents, records, self._edges),
            documents=documents,
            records=records,
            edges=self._edges,
        )
        return documents, spec

    def _embed(self, documents: list[Documents], spec: ReleaseSpec) -> list[EmbedResult]:
        """Encode the missing texts, one table after another, as they may share texts."""
        tables: list[tuple[IndexSettings, list[Shard]]] = []
        for table in documents:
            index = self._configuration.index(table.index)
            tables.append((index, shards_of(self._uri, table, index)))
        progress.start("embed", sum(len(shard.texts) for _, shards in tables for shard in shards))
        encoded: list[EmbedResult] = []
        for index, shards in tables:
            encoded += self._embed_shards(shards, index, spec)
        for result in encoded:
            self._encoded += result
        return encoded

    def _embed_shards(
        self, shards: list[Shard], index: IndexSettings, spec: ReleaseSpec
    ) -> list[EmbedResult]:
        """Encode shards, on the engine's workers if there are any. Hosted encoders are called from
        this process, which limits their requests, and so are those of plug-ins, which need not
        allow calls from several threads.
        """
        engine = self._engine if runs_here(index.encoder) else None
        calls = [partial(embed_shard, self._uri, shard, index, engine) for shard in shards]
        width = engine.workers if engine and calls else at_once(index)
        return self._runner.each(calls, width, spec=spec)

    def _stage(
        self, snapshots: Mapping[str, str], spec: ReleaseSpec, encoded: list[EmbedResult]
    ) -> None:
        """Write the rows that differ, and look for suspicious text in them."""
        self._pins = self._runner.call(
            partial(stage_tables, self._uri, spec), spec=spec, vectors=encoded
        )
        assert self._plan is not None
        self._suspicious = self._runner.call(
            partial(
                find_suspicious,
                self._configuration,
                self._plan,
                snapshots,
                {snapshot.catalog: snapshot.digest for snapshot in self._snapshots},
                locked=self._options.locked,
            ),
            pins=self._pins,
        )

    def _result(self, outcome: Outcome, release: str | None = None) -> dict[str, Any]:
        """Return the whole build as JSON values."""
        assert self._plan is not None
        assert self._revision is not None
        rejected = [row for snapshot in self._snapshots for row in snapshot.rejected]
        return {
            "outcome": outcome,
            "board": self._uri,
            "release": release or self._plan.live,
            "encoded": self._encoded.texts,
            "truncated": self._encoded.truncated,
            "plan": self._plan.to_dict(),
            "strategy": self._strategy(),
            "catalogs": {
                snapshot.catalog: {
                    "tools": snapshot.tools,
                    "agents": snapshot.agents,
                    "rejected": len(snapshot.rejected),
                    "rejections": Counter(row.kind for row in snapshot.rejected),
                    "notices": _counts_by_kind(snapshot.notices),
                    "kept": list(snapshot.kept),
                    "problems": list(snapshot.problems),
                }
                for snapshot in self._snapshots
            },
            "rejected": [asdict(row) for row in (*rejected, *self._revision.quarantined)],
            "notices": [asdict(row) for snapshot in self._snapshots for row in snapshot.notices],
            "edges": self._edges.to_dict() if self._edges else None,
            "gate": self._gate,
            "held_out": self._revision.held_out,
            "enrichment": self._enrichment_figures(),
            "pruned": asdict(self._pruned) if self._pruned else None,
            "report": self._report.to_dict() if self._report else None,
            "unfinished": self._unfinished,
            "problems": [*self._revision.problems, *self._enrichment_problems()],
            "advice": list(self._spec.advice) if self._spec else [],
            "suspicious": self._suspicious,
            "seconds": self._seconds,
        }

    def _strategy(self) -> dict[str, Any]:
        """Return the name of the default strategy, and how often it asks an LLM for a request."""
        strategy = strategy_of(self._configuration.find.strategy)
        return {"name": strategy.name, "llm_calls": strategy.llm_calls()}

    def _enrichment_figures(self) -> dict[str, Any] | None:
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


def _counts_by_kind(notices: Iterable[Notice]) -> Counter[str]:
    """Return the number of records that notices stand for, by kind."""
    counts = Counter[str]()
    for notice in notices:
        counts[notice.kind] += notice.count
    return counts
