"""How long and how large the rest of a build will be: seconds, tokens, dollars and bytes by step.

A step takes what it took on the measured machine (`COSTS`), times what the last build of this board
took for it against that. The lake has the amounts and seconds of that build."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pegboard.encoders import DEFAULT_ENCODER, runs_here
from pegboard.tokens import BYTES_PER_TOKEN
from tasks.compose import compose_index
from tasks.embed import encoder_for
from tasks.enrichment.figures import EnrichmentEstimate
from tasks.lake.files import Lake
from tasks.lake.row_sets import read_rows
from tasks.plan import Plan
from tasks.settings.configuration import Configuration, IndexSettings

LAST_BUILD = "forecast.json"
COSTS = {
    "compose": (0.2, {"changed": 4.1e-4, "tools": 4e-6}),
    "stage": (1.0, {"changed": 3.7e-4, "tools": 4e-5}),
    "publish": (0.3, {"tools": 6e-6}),
    "report": (4.0, {"tools": 2.5e-5}),
}
"""Processor seconds of a step: for a build, and for each changed tool and each tool. Fitted to
builds of 10,000 and 100,000 tools; docs/results.md, Scale."""
TEXT_SECONDS = {DEFAULT_ENCODER: 1 / 86, "hashing": 7.7e-5}
"""Of encoding one text, by encoder or its kind."""
HOSTED_DIMENSIONS = 1_536
"""Taken for an encoder whose length is only known by asking."""
TOOL_BYTES = 700
"""Of a tool in `tools`, and of its lists of words and digests in the lake."""
DOCUMENT_BYTES = 1_000
"""Of a document in an index, but for its two vectors."""
SAMPLED = 1_000
"""Documents whose texts are measured."""


@dataclass(frozen=True, slots=True)
class StepForecast:
    """What a step will take. None is unknown.

    Attributes:
        amount, unit: how much there is to do.
        measured: whether this board's last build told the seconds, not the defaults alone.
    """

    step: str
    amount: int | None
    unit: str
    seconds: float | None
    tokens: int | None = 0
    usd: float | None = 0.0
    bytes: int | None = 0
    measured: bool = False


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the steps of a build after its plan will take."""

    steps: tuple[StepForecast, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, with the sums of what is known, and whether that is all of it."""
        parts = {name: [getattr(step, name) for step in self.steps] for name in _SUMMED}
        sums = {name: sum(value or 0 for value in own) for name, own in parts.items()}
        whole = not any(None in own for own in parts.values())
        return {"steps": [asdict(step) for step in self.steps], **sums, "complete": whole}


_SUMMED = ("seconds", "tokens", "usd", "bytes")


def forecast_build(
    configuration: Configuration,
    plan: Plan,
    snapshots: Mapping[str, str],
    enrichment: EnrichmentEstimate | None = None,
) -> Forecast:
    """Return the forecast of a build that has been planned, so that its documents are composed.

    Args:
        snapshots: catalog -> digest.
        enrichment: what an LLM will be asked. How many texts its replies add is not known.
    """
    last: Mapping[str, Any] = Lake(configuration.uri).read_json(LAST_BUILD) or {}
    changed = len(plan.new) + len(plan.changed)
    if not changed and not plan.removed and enrichment is None:
        return Forecast(())
    steps = [_asking(last, enrichment)] if enrichment is not None else []
    steps += [
        _encoding(configuration.uri, last, index, plan.texts.get(index.name), snapshots)
        for index in configuration.indexes
    ]
    vectors = sum(2 * 4 * _dimensions(index) + DOCUMENT_BYTES for index in configuration.indexes)
    written = {"compose": changed * TOOL_BYTES, "stage": changed * (TOOL_BYTES + vectors)}
    amounts = {"changed": changed, "tools": changed + plan.unchanged}
    for step in COSTS:
        if step != "report" or configuration.board.report:
            steps.append(_fitted(last, step, amounts, written.get(step, 0)))
    return Forecast(tuple(steps))


def remember_build(uri: str, seconds: Mapping[str, float], amounts: Mapping[str, int]) -> None:
    """Store what a build took, for the next forecast.

    Args:
        seconds: of each phase.
        amounts: `changed` tools, all `tools`, `calls` that an LLM answered, and, if there is one
            encoder, its texts as `texts NAME`.
    """
    lake = Lake(uri)
    known: dict[str, Any] = lake.read_json(LAST_BUILD) or {}
    if amounts["changed"]:
        known |= {step: {"seconds": seconds[step], **amounts} for step in COSTS if step in seconds}
    for name, count in amounts.items():
        phase = "enrich" if name == "calls" else "embed"
        if count and (name == "calls" or name.startswith("texts ")):
            known[name] = seconds.get(phase, 0.0) / count
    lake.write_json(LAST_BUILD, known)


def _fitted(
    last: Mapping[str, Any], step: str, amounts: Mapping[str, int], written: int
) -> StepForecast:
    seconds, before = _expected(step, amounts), last.get(step)
    if before is not None:
        seconds *= before["seconds"] / _expected(step, before)
    amount = "changed" if "changed" in COSTS[step][1] else "tools"
    unit = "changed tools" if amount == "changed" else "tools"
    known = before is not None
    return StepForecast(step, amounts[amount], unit, seconds, bytes=written, measured=known)


def _expected(step: str, amounts: Mapping[str, int]) -> float:
    whole, each = COSTS[step]
    return whole + sum(cost * amounts[name] for name, cost in each.items())


def _asking(last: Mapping[str, Any], enrichment: EnrichmentEstimate) -> StepForecast:
    values = enrichment.to_dict()
    tokens = values["prompt_tokens"] + values["completion_tokens"]
    return StepForecast(
        "enrich",
        values["calls"],
        "calls",
        _times(last.get("calls"), values["calls"]),
        tokens=tokens,
        usd=values["cost_usd"],
        measured="calls" in last,
    )


def _encoding(
    uri: str,
    last: Mapping[str, Any],
    index: IndexSettings,
    texts: tuple[int, int] | None,
    snapshots: Mapping[str, str],
) -> StepForecast:
    step, kind, own = f"embed {index.name}", index.encoder.split("/")[0], f"texts {index.encoder}"
    default = TEXT_SECONDS.get(index.encoder, TEXT_SECONDS.get(kind))
    hosted = not runs_here(index.encoder)
    if texts is None:
        paid = (None, None) if hosted else (0, 0.0)
        return StepForecast(step, None, "texts", None, *paid, bytes=None)
    return StepForecast(
        step,
        texts[1],
        "texts",
        _times(last.get(own, default), texts[1]),
        tokens=round(texts[1] * _mean_tokens(uri, index, snapshots)) if hosted else 0,
        usd=None if hosted and texts[1] else 0.0,
        bytes=texts[1] * 4 * _dimensions(index),
        measured=own in last,
    )


def _times(each: float | None, count: int) -> float | None:
    return (each * count if each is not None else None) if count else 0.0


def _mean_tokens(uri: str, index: IndexSettings, snapshots: Mapping[str, str]) -> float:
    path = compose_index(uri, index, snapshots).path
    texts = read_rows(Lake(uri), path, ["text"]).get_column("text").head(SAMPLED)
    return float(texts.str.len_bytes().mean() or 0) / BYTES_PER_TOKEN  # pyright: ignore[reportArgumentType]


def _dimensions(index: IndexSettings) -> int:
    return encoder_for(index).dimensions if runs_here(index.encoder) else HOSTED_DIMENSIONS
