"""What a run told, for its report; and what of it can be found in the lake later, without the
run.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pegboard.errors import StoreError
from pegboard.store.releases import Release
from tasks.lake.files import Lake
from tasks.report.compared import listed
from tasks.report.texts import LONG, cut

if TYPE_CHECKING:
    import polars as pl

KEPT = 1_000
"""Rejected rows that a report's JSON remembers, so that it can be made again without the run."""
NAMED = 50
LEDGER = [
    "product",
    "answered_by",
    "value",
    "final",
    "prompt_tokens",
    "completion_tokens",
    "cost_usd",
]


def run_data(release: Release, run: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What a report keeps of a run; None if it made another release, or if nothing is told."""
    if not run or run.get("release") != release.id:
        return None
    kept = ("outcome", "encoded", "truncated", "catalogs", "enrichment", "filter", "seconds")
    golden: Mapping[str, Any] = run.get("golden") or {}
    return {
        **{name: run.get(name) for name in kept},
        "golden": {name: golden.get(name) for name in ("queries", "seen", "unknown")},
        "rejected": listed([_rejected(row) for row in run.get("rejected") or ()], KEPT),
        "overridden": listed(run.get("overridden") or (), NAMED),
        "problems": listed(run.get("problems") or (), NAMED),
    }


def sources_data(uri: str, release: Release, run: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Each catalog: what came of listing it, whose last good tools were kept, and what went
    wrong.
    """
    lake, told = Lake(uri), (run or {}).get("catalogs") or {}
    return [
        _source(name, known, told.get(name) or _latest(lake, name, known))
        for name, known in release.manifest.get("catalogs", {}).items()
    ]


def rejected_data(
    uri: str, release: Release, run: Mapping[str, Any] | None, count: int
) -> dict[str, Any]:
    """The rows that were left out, where they stood and why."""
    if run is not None:
        rows = run["rejected"]
        return {"total": rows["total"], "shown": rows["shown"][:count], "missing": None}
    lake, total, found = Lake(uri), 0, list[dict[str, str]]()
    unknown: list[str] = []
    for name, known in release.manifest.get("catalogs", {}).items():
        total += known.get("rejected", 0)
        if not known.get("rejected"):
            continue
        latest = _latest(lake, name, known)
        try:
            rows = lake.read(
                f"snapshots/{name}/rejected-{latest['rejected']}.parquet",
                ["catalog", "where", "why"],
            )
            found += [_rejected(row) for row in rows.iter_rows(named=True)]
        except (StoreError, KeyError):
            unknown.append(name)
    why = (
        f"Which rows of {', '.join(unknown)} were left out is no longer known: it was listed "
        f"again since."
        if unknown
        else None
    )
    return {**listed(found, count), "total": total, "missing": why}


def llm_data(uri: str, run: Mapping[str, Any] | None) -> dict[str, Any]:
    """What an LLM was thought to cost and did cost in the run, and what the ledger holds of all
    runs.
    """
    told = (run or {}).get("enrichment")
    return {"run": told, "products": _products(told), "ledger": _ledger(Lake(uri))}


def _products(told: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """One row for each product of the run: pieces, bought, accepted and rejected."""
    if not told or not told.get("estimate"):
        return []
    actual: Mapping[str, Any] = told.get("actual") or {}
    return [
        {
            "product": name,
            "pieces": part["orders"],
            "before": part["accepted"],
            "bought": actual.get("bought", {}).get(name, 0),
            "accepted": actual.get("accepted", {}).get(name, 0),
            "rejected": [
                {"reason": reason, "count": count}
                for reason, count in actual.get("rejected", {}).get(name, {}).items()
            ],
        }
        for name, part in told["estimate"]["products"].items()
    ]


def _ledger(lake: Lake) -> dict[str, Any] | None:
    """The sums over every reply that was ever bought for this board; None if there is none."""
    import polars as pl

    frames = [lake.read(path, LEDGER) for path in lake.files("ledger")]
    if not frames:
        return None
    replies = pl.concat(frames)
    rows = replies.group_by("product", "answered_by").agg(*_sums(pl)).sort("product", "answered_by")
    whole = replies.select(*_sums(pl)).row(0, named=True)
    return {**whole, "rows": rows.to_dicts()}


def _sums(pl: Any) -> "list[pl.Expr]":
    return [
        pl.len().alias("replies"),
        pl.col("value").is_not_null().sum().alias("accepted"),
        pl.col("prompt_tokens").sum(),
        pl.col("completion_tokens").sum(),
        pl.col("cost_usd").sum().round(6),
        pl.col("cost_usd").is_null().sum().alias("unpriced"),
    ]


def _source(name: str, known: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    problems: Sequence[str] | None = told.get("problems")
    return {
        "catalog": name,
        "tools": known.get("tools"),
        "agents": known.get("agents"),
        "rejected": known.get("rejected"),
        "kept": list(known.get("kept", ())),
        "problems": None if problems is None else [cut(one, LONG) for one in problems],
    }


def _latest(lake: Lake, catalog: str, known: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the lake says of the last listing, if it is the one that the release has."""
    try:
        latest = lake.read_json(f"snapshots/{catalog}/latest.json") or {}
    except (StoreError, ValueError):
        return {}
    return latest if latest.get("snapshot") == known.get("snapshot") else {}


def _rejected(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "catalog": str(row["catalog"]),
        "where": cut(str(row["where"])),
        "why": cut(str(row["why"]), LONG),
    }
