"""The run: what the sources say becomes one release that the channel names. Reads like the table of contents.

snapshot -> revise -> plan -> (enrich -> filter) -> compose -> (nothing changed? stop) -> embed -> stage -> (calibrate) -> (gate) -> publish
-> (prune) -> (report)

A release that does not pass its gate is recorded, but no channel moves, and the run ends as failed, in the state Held. Every step finds in
the lake what an earlier run finished, so a killed run goes on where it stopped.
"""

from typing import Any, cast

from prefect import flow
from prefect.states import Failed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows import stale_runs
from flows.artifacts import embed_progress, plan_artifact, release_artifact, report_artifact
from flows.summary import RunSummary
from pegboard.errors import GateFailed
from tasks import progress
from tasks.calibrate_release import calibrate
from tasks.compose import compose
from tasks.compose_agents import compose_agents
from tasks.configuration import Configuration, load_configuration
from tasks.edges import edges
from tasks.embed import embed, shards_of
from tasks.enrich import Wishes, enrich, estimate_cost
from tasks.filter import filter_questions
from tasks.gate.asked import has_gate, read_gate
from tasks.gate.decide import gate
from tasks.gate.words import held_headline
from tasks.plan import plan
from tasks.prune import prune
from tasks.publish import publish
from tasks.records import records
from tasks.report.written import report
from tasks.revise import revise
from tasks.snapshot import snapshot
from tasks.stage import stage
from tasks.wanted import make_wanted

__all__ = ["reindex"]


@flow(
    name="reindex",
    flow_run_name="reindex {catalog} of {config}",
    task_runner=cast("TaskRunner[Any]", ThreadPoolTaskRunner(max_workers=8)),  # sources are waited for, not computed
)
def reindex(
    config: str = "pegboard.toml",
    catalog: str = "all",
    allow_empty: bool = False,
    dry_run: bool = False,
    refresh_neighbours: bool = False,
    retry_rejected: bool = False,
) -> dict[str, Any]:
    """Index the catalogs of a pegboard.toml again, and publish a release if anything changed.

    Raises GateFailed, with what is returned otherwise as its `outcome`, if the release did not pass its gate and is held.

    Args:
        config: the configuration's path; secrets are read from the environment where they are used, never passed.
        catalog: list only this one anew and take the others from their last snapshot; `all` lists every one.
        allow_empty: take a source that suddenly lists nothing at its word.
        dry_run: stop after the plan.
        refresh_neighbours: have descriptions rewritten whose nearest neighbours changed, however far away those are.
        retry_rejected: ask the LLM again where its reply was rejected in an earlier run.
    """
    stale_runs.clean_up()
    configuration = load_configuration(config)
    summary = RunSummary(configuration)
    read_gate(configuration)  # what is wrong with these files is told before anything is listed or bought

    with summary.phase("snapshot"):
        names = configuration.catalogs_named(catalog)
        progress.start("snapshot", len(configuration.catalogs))
        futures = [
            snapshot.submit(config, name, allow_empty=allow_empty, fresh=name in names)
            for name in configuration.catalogs
        ]
        summary.snapshots = [future.result() for future in futures]
        summary.revised = revise(config, {one.catalog: one.digest for one in summary.snapshots})
        identities = summary.revised.identities

    wishes = Wishes(refresh_neighbours, retry_rejected)
    with summary.phase("plan"):
        summary.plan = plan(config, identities, configuration.board.channel)
        if dry_run and configuration.enrich is not None:
            summary.estimate = estimate_cost(config, identities, wishes)
        plan_artifact(summary)
    summary.plan.refuse_loss(summary.snapshots)
    if dry_run:
        return summary.end("planned")

    writings: str | None = None
    if configuration.enrich is not None:
        with summary.phase("enrich"):
            summary.enriched = enrich(config, identities, wishes)
        if summary.enriched.waiting and configuration.enrich.incomplete == "stop":
            return summary.end("waiting")
        with summary.phase("filter"):
            summary.filtered = filter_questions(config, identities, summary.enriched.writings)
            writings = summary.filtered.writings.path

    with summary.phase("compose"):
        documents = [
            step(config, index.name, identities, writings)
            for index in configuration.indexes
            for step in (compose, compose_agents)
        ]
        summary.edges = edges(config, identities, writings)
        wanted = make_wanted(configuration, documents, records(config, identities, writings), summary.edges)
    if wanted.release == summary.plan.live:
        _prune(configuration, summary)
        return summary.end("unchanged", wanted.release)
    if wanted.release in summary.plan.withdrawn:
        return summary.end("withdrawn", wanted.release)

    with summary.phase("embed"):
        shards = [
            shard for one in documents for shard in shards_of(configuration.uri, one, configuration.index(one.index))
        ]
        progress.start("embed", sum(shard.texts for shard in shards))
        with embed_progress(len(shards)) as advance:
            for shard in shards:
                summary.encoded += embed(config, shard)
                advance()

    with summary.phase("stage"):
        pins = stage(config, wanted)

    if configuration.golden is not None:
        with summary.phase("calibrate"):
            summary.calibrated = calibrate(config, wanted, pins)

    calibrations = dict(summary.calibrated.indexes)
    if has_gate(configuration):
        with summary.phase("gate"):
            summary.gated = gate(config, summary.plan, summary.snapshots, wanted, pins, calibrations)

    with summary.phase("publish"):
        release = publish(config, summary.plan, summary.snapshots, wanted, pins, calibrations, summary.gated)
        release_artifact(summary, release)

    _prune(configuration, summary)
    outcome = "held" if summary.held else "published"
    if configuration.board.report:
        with summary.phase("report"):
            summary.report = report(config, release.id, summary.end(outcome, release.id))
            report_artifact(summary.report)
    ended = summary.end(outcome, release.id)
    return _held(ended) if summary.held else ended


def _held(ended: dict[str, Any]) -> dict[str, Any]:
    """The state in which a run ends whose release is held: failed, for whoever waits for it; it raises GateFailed for who called it."""
    message = held_headline(ended["gate"], ended["plan"]["channel"])
    # Prefect takes a state for a flow's result, which its types do not say.
    return cast("dict[str, Any]", Failed(name="Held", message=message, data=GateFailed(message, ended)))


def _prune(configuration: Configuration, summary: RunSummary) -> None:
    """What grows old has to go in quiet weeks, too."""
    if configuration.board.keep is not None:
        with summary.phase("prune"):
            summary.pruned = prune(str(configuration.file))
