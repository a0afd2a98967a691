"""The events that flow runs emit, and the release as an asset.

| event | resource | payload |
|---|---|---|
| `pegboard.release.published` | the board | what `release_facts` returns |
| `pegboard.release.held` | the board | the same and `reasons`; once for each release |
| `pegboard.source.failed` | the catalog | board, catalog, problems, kept; once until it recovers |
| `pegboard.source.recovered` | the catalog | board, catalog |
| `pegboard.run.ended` | the flow run | none; for the automation that ends lost runs |
"""

from collections.abc import Mapping
from typing import Any

from prefect.assets import Asset, AssetProperties
from prefect.context import FlowRunContext
from prefect.events import emit_event
from prefect.events.related import tags_as_related_resources
from prefect.types.names import RESTRICTED_ASSET_CHARACTERS

from flows.prefect.names import board_resource, catalog_resource
from flows.prefect.server import server_answers
from pegboard.formatting import plain
from pegboard.store.database import public_uri
from pegboard.store.releases import Release
from tasks.lake.files import Lake
from tasks.settings.configuration import Configuration
from tasks.steps.plan import Plan
from tasks.steps.snapshot import Snapshot

PUBLISHED = "pegboard.release.published"
HELD = "pegboard.release.held"
SOURCE_FAILED = "pegboard.source.failed"
SOURCE_RECOVERED = "pegboard.source.recovered"
RUN_ENDED = "pegboard.run.ended"
MAX_PROBLEMS = 20
"""Problems of a source in an event."""
_deferred: list[dict[str, Any]] = []


def emit_source(uri: str, snapshot: Snapshot) -> None:
    """Emit that a source failed, or recovered, if that is not what it did in the last run."""
    lake = Lake(uri)
    path = f"snapshots/{snapshot.catalog}/failure.json"
    failed = bool(snapshot.problems)
    if lake.exists(path) == failed:
        return
    # Noted after the event: a run that ends between the two tells it again.
    if failed:
        _emit_source_failed(uri, snapshot)
        lake.write_json(path, {"problems": [plain(problem) for problem in snapshot.problems]})
    else:
        payload = {"board": public_uri(uri), "catalog": snapshot.catalog}
        resource = catalog_resource(uri, snapshot.catalog)
        _emit(SOURCE_RECOVERED, resource, snapshot.catalog, payload)
        lake.delete(path)


def _emit_source_failed(uri: str, snapshot: Snapshot) -> None:
    """Emit that a source, or some of its agents, could not be listed."""
    payload = {
        "board": public_uri(uri),
        "catalog": snapshot.catalog,
        "problems": [plain(problem) for problem in snapshot.problems[:MAX_PROBLEMS]],
        "kept": list(snapshot.kept),
    }
    _emit(SOURCE_FAILED, catalog_resource(uri, snapshot.catalog), snapshot.catalog, payload)


def emit_release(configuration: Configuration, plan: Plan, release: Release, *, held: bool) -> None:
    """Emit that a release was published, or is held."""
    payload = release_facts(configuration, plan, release)
    if held:
        payload["reasons"] = _held_reasons(release.manifest)
    resource = board_resource(configuration.uri)
    _emit(HELD if held else PUBLISHED, resource, public_uri(configuration.uri), payload)


def release_facts(configuration: Configuration, plan: Plan, release: Release) -> dict[str, Any]:
    """Return the counts, changes and measures of a release, with what it replaces."""
    manifest = release.manifest
    return {
        "board": public_uri(configuration.uri),
        "channel": plan.channel,
        "release": release.id,
        "previous": plan.live,
        "counts": dict(manifest["counts"]),
        "changes": dict(manifest["changes"]),
        "measures": _measures(manifest.get("gate")),
    }


def release_asset(configuration: Configuration) -> Asset:
    """Return the asset of a board's channel, which every promotion materializes."""
    channel = configuration.board.channel
    name = f"{channel} of {public_uri(configuration.uri)}"
    return _asset(configuration.uri, channel, name)


def catalog_assets(configuration: Configuration) -> list[Asset]:
    """Return the assets from which a release is made: its catalogs."""
    return [
        _asset(configuration.uri, f"catalogs/{name}", f"catalog {name}")
        for name in configuration.catalogs
    ]


def _asset(uri: str, part: str, name: str) -> Asset:
    address = public_uri(uri)
    scheme = "" if "://" in address else "file://"
    restricted = str.maketrans(dict.fromkeys(RESTRICTED_ASSET_CHARACTERS, "-"))
    key = f"{scheme}{address}/{part}".translate(restricted)
    return Asset(key=key, properties=AssetProperties(name=name))


def _measures(gate: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the main measure of a gate and its verdict; empty without a gate."""
    if gate is None:
        return {}
    chosen = gate["chosen"]
    return {
        "passed": gate["passed"],
        "queries": gate["queries"],
        chosen["measure"]: {name: chosen[name] for name in ("value", "low", "high")},
    }


def _held_reasons(manifest: Mapping[str, Any]) -> list[str]:
    """Return why a release is held, one sentence each."""
    reasons: list[str] = []
    gate = manifest.get("gate")
    if gate is not None and not gate["passed"]:
        failed = [rule for rule in gate["rules"] if rule["passed"] is False]
        reasons += [plain(f"rule failed: {rule['rule']}: {rule['reason']}") for rule in failed]
        if missed := gate["canaries"]["missed"]:
            reasons.append(f"{missed} of {gate['canaries']['count']} canaries broke")
        if not reasons:
            reasons.append("more queries are captured than [gate] allows")
    if waiting := manifest.get("unapproved"):
        reasons.append(f"{waiting} new or changed definitions wait for approval")
    return reasons


def emit_run_ended() -> None:
    """Emit that the current flow run ends.

    Prefect's automations see the event of its last state after those of all its states before: up
    to 15 minutes late if the server was restarted during the run, or made the run itself less than
    five minutes before. Until then the run would count as lost. This event waits for no other.
    """
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return
    run = context.flow_run
    resource = {
        "prefect.resource.id": f"prefect.flow-run.{run.id}",
        "prefect.resource.name": run.name,
    }
    emit_event(RUN_ENDED, resource, related=tags_as_related_resources(run.tags))


def emit_deferred() -> None:
    """Emit the events of this process that the server was away for."""
    while _deferred:
        emit_event(**_deferred.pop(0))


def _emit(event: str, resource: str, name: str, payload: dict[str, Any]) -> None:
    """Emit an event, or defer it: Prefect drops events while its server is away."""
    arguments: dict[str, Any] = {
        "event": event,
        "resource": {"prefect.resource.id": resource, "prefect.resource.name": name},
        "payload": payload,
    }
    if server_answers():
        emit_event(**arguments)
    else:
        _deferred.append(arguments)
