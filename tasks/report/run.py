"""What a report shows of the run that made a release, and what the lake still has of it later."""

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.errors import StoreError
from pegboard.store.releases import Release
from tasks.enrichment.ledger import cost_sums, paid_replies
from tasks.lake.files import Lake
from tasks.report.excerpts import LONG, excerpt, first_rows

MAX_REJECTED = 1_000
"""Rejected rows in a report's JSON, so that the report can be made again without the run."""
MAX_NAMED = 50
"""Overridden tools and problems in a report's JSON."""
RUN_KEYS = ("outcome", "encoded", "truncated", "catalogs", "enrichment", "filter", "seconds")


def run_data(release: Release, outcome: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what a report shows of a run; None without one, or if it made another release.

    Args:
        outcome: the outcome of a run, see `flows.reindex`.
    """
    if not outcome or outcome.get("release") != release.id:
        return None
    rejected = [_rejected_row(row) for row in outcome.get("rejected") or ()]
    return {
        **{name: outcome.get(name) for name in RUN_KEYS},
        "rejected": first_rows(rejected, MAX_REJECTED),
        "overridden": first_rows(outcome.get("overridden") or (), MAX_NAMED),
        "problems": first_rows(
            [*(outcome.get("problems") or ()), *(outcome.get("advice") or ())], MAX_NAMED
        ),
    }


def sources_data(uri: str, release: Release, run: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return each catalog with its counts, the agents that were kept, and its problems."""
    lake, catalogs = Lake(uri), (run or {}).get("catalogs") or {}
    sources: list[dict[str, Any]] = []
    for name, catalog in release.manifest.get("catalogs", {}).items():
        listing = catalogs.get(name) or _latest_listing(lake, name, catalog)
        problems: Sequence[str] | None = listing.get("problems")
        sources.append(
            {
                "catalog": name,
                "tools": catalog.get("tools"),
                "agents": catalog.get("agents"),
                "rejected": catalog.get("rejected"),
                "kept": list(catalog.get("kept", ())),
                "problems": None if problems is None else [excerpt(one, LONG) for one in problems],
            }
        )
    return sources


def rejected_data(
    uri: str, release: Release, run: Mapping[str, Any] | None, count: int
) -> dict[str, Any]:
    """Return the rows that were left out, with their places and the reasons."""
    if run is not None:
        rejected = run["rejected"]
        return {
            "total": rejected["total"],
            "shown": rejected["shown"][:count],
            "missing": None,
        }
    lake, total = Lake(uri), 0
    rows: list[dict[str, str]] = []
    unknown: list[str] = []
    for name, catalog in release.manifest.get("catalogs", {}).items():
        total += catalog.get("rejected", 0)
        try:
            rows += _rejected_rows(lake, name, catalog)
        except (StoreError, KeyError):
            unknown.append(name)
    missing = (
        f"Which rows of {', '.join(unknown)} were left out is no longer known: it was listed "
        f"again since."
    )
    return {**first_rows(rows, count), "total": total, "missing": missing if unknown else None}


def _rejected_rows(lake: Lake, name: str, catalog: Mapping[str, Any]) -> list[dict[str, str]]:
    """Raises KeyError if the last listing is not the one that the release has."""
    if not catalog.get("rejected"):
        return []
    digest = _latest_listing(lake, name, catalog)["rejected"]
    path = f"snapshots/{name}/rejected-{digest}.parquet"
    rows = lake.read(path, ["catalog", "where", "why"])
    return [_rejected_row(row) for row in rows.iter_rows(named=True)]


def _latest_listing(lake: Lake, name: str, catalog: Mapping[str, Any]) -> Mapping[str, Any]:
    """The last listing of a catalog as the lake has it; empty if the release has another one."""
    try:
        latest = lake.read_json(f"snapshots/{name}/latest.json") or {}
    except (StoreError, ValueError):
        return {}
    return latest if latest.get("snapshot") == catalog.get("snapshot") else {}


def _rejected_row(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "catalog": str(row["catalog"]),
        "where": excerpt(str(row["where"])),
        "why": excerpt(str(row["why"]), LONG),
    }


def llm_data(uri: str, run: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the LLM's estimated and actual cost in the run, and the sums of the whole ledger."""
    enrichment = (run or {}).get("enrichment")
    products = _products(enrichment) if enrichment and enrichment.get("estimate") else []
    return {"run": enrichment, "products": products, "ledger": _ledger(Lake(uri))}


def _products(enrichment: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row for each product of the run: requests, completed, accepted and rejected."""
    actual: Mapping[str, Any] = enrichment.get("actual") or {}
    completed, accepted = actual.get("completed", {}), actual.get("accepted", {})
    rows: list[dict[str, Any]] = []
    for name, product in enrichment["estimate"]["products"].items():
        reasons = actual.get("rejected", {}).get(name, {})
        rows.append(
            {
                "product": name,
                "pieces": product["requests"],
                "before": product["accepted"],
                "bought": completed.get(name, 0),
                "accepted": accepted.get(name, 0),
                "rejected": [{"reason": reason, "count": n} for reason, n in reasons.items()],
            }
        )
    return rows


def _ledger(lake: Lake) -> dict[str, Any] | None:
    """The sums over every reply that was ever stored for this board; None if there is none."""
    replies = paid_replies(lake)
    if replies.is_empty():
        return None
    rows = cost_sums(replies, "product", "answered_by")
    return {**cost_sums(replies)[0], "rows": rows}
