"""A time forecast of the slow steps of a build: LLM calls and encoding.

The seconds are those of the last build of this board, else those of a sample of the texts that is
encoded now. What no build and no sample told is unknown, and said to be."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pegboard.encoders import runs_here
from pegboard.tokens import BYTES_PER_TOKEN
from tasks.compose import compose_index
from tasks.embed import encoder_for
from tasks.lake.files import Lake
from tasks.lake.row_sets import read_rows
from tasks.plan import Plan
from tasks.settings.configuration import Configuration, IndexSettings

LAST_BUILD = "forecast.json"
SAMPLED = 64
"""Sample size for the time per text."""
WORTH_A_SAMPLE = 500
"""Texts to encode: fewer take seconds, about as long as loading the model for a sample."""
REST = ("compose", "stage", "publish", "report")


@dataclass(frozen=True, slots=True)
class StepForecast:
    """The forecast of a step; None is unknown.

    Attributes:
        amount, unit: how much there is to do.
        tokens, usd: what an LLM or a hosted encoder is paid for.
        basis: where the seconds come from; None where they are unknown.
    """

    step: str
    amount: int | None
    unit: str
    seconds: float | None
    tokens: int | None = 0
    usd: float | None = 0.0
    basis: Literal["last build", "sample"] | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """The forecast of a build's slow steps.

    Attributes:
        rest: the seconds that the other steps of the last build took, and its changed tools; empty
            before the first.
    """

    steps: tuple[StepForecast, ...]
    rest: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


def forecast_build(
    configuration: Configuration,
    plan: Plan,
    snapshots: Mapping[str, str],
    enrichment: Mapping[str, Any] | None = None,
) -> Forecast:
    """Return the forecast of a build that has been planned, so that its documents are composed.

    Args:
        snapshots: catalog -> digest.
        enrichment: what an LLM will be asked. How many texts its replies add is not known.
    """
    last: Mapping[str, Any] = Lake(configuration.uri).read_json(LAST_BUILD) or {}
    steps = [_asking(last, enrichment)] if enrichment is not None else []
    for index in configuration.indexes:
        texts = plan.texts.get(index.name, (0, None))[1]
        if texts != 0:
            steps.append(_encoding(configuration.uri, last, index, texts, snapshots))
    return Forecast(tuple(steps), last.get("rest", {}) if steps else {})


def remember_build(uri: str, seconds: Mapping[str, float], amounts: Mapping[str, int]) -> None:
    """Store the durations of a build for the next forecast.

    Args:
        seconds: of each phase.
        amounts: `changed` tools, `calls` that an LLM answered, and, if there is one encoder, its
            texts as `texts NAME`.
    """
    lake = Lake(uri)
    known: dict[str, Any] = lake.read_json(LAST_BUILD) or {}
    if amounts["changed"]:
        rest = sum(seconds.get(step, 0.0) for step in REST)
        known["rest"] = {"seconds": rest, "changed": amounts["changed"]}
    for name, count in amounts.items():
        phase = "enrich" if name == "calls" else "embed"
        if count and name != "changed":
            known[name] = seconds.get(phase, 0.0) / count
    lake.write_json(LAST_BUILD, known)


def _asking(last: Mapping[str, Any], values: Mapping[str, Any]) -> StepForecast:
    each: float | None = last.get("calls")
    return StepForecast(
        "enrich",
        values["calls"],
        "calls",
        None if each is None else each * values["calls"],
        tokens=values["prompt_tokens"] + values["completion_tokens"],
        usd=values["cost_usd"],
        basis=None if each is None else "last build",
    )


def _encoding(
    uri: str,
    last: Mapping[str, Any],
    index: IndexSettings,
    texts: int | None,
    snapshots: Mapping[str, str],
) -> StepForecast:
    step, each, basis = f"embed {index.name}", last.get(f"texts {index.encoder}"), "last build"
    hosted = not runs_here(index.encoder)
    if texts is None:
        return StepForecast(step, None, "texts", None, *((None, None) if hosted else ()))
    tokens = 0
    if hosted or (each is None and texts >= WORTH_A_SAMPLE):
        sample = _sample(uri, index, snapshots)
        if hosted:
            mean = sum(len(text.encode()) for text in sample) / max(1, len(sample))
            tokens = round(texts * mean / BYTES_PER_TOKEN)
        else:
            each, basis = _seconds_each(index, sample), "sample"
    return StepForecast(
        step,
        texts,
        "texts",
        None if each is None else each * texts,
        tokens=tokens,
        usd=None if hosted else 0.0,
        basis=None if each is None else basis,
    )


def _sample(uri: str, index: IndexSettings, snapshots: Mapping[str, str]) -> list[str]:
    """Some of the texts of an index, from all its catalogs."""
    path = compose_index(uri, index, snapshots).path
    texts = read_rows(Lake(uri), path, ["texts"]).explode("texts").get_column("texts").drop_nulls()
    return texts.gather_every(max(1, texts.len() // SAMPLED)).head(SAMPLED).to_list()


def _seconds_each(index: IndexSettings, sample: list[str]) -> float | None:
    encoder = encoder_for(index)
    encoder.encode(sample[:1])  # the first text waits for the model
    start = time.monotonic()
    encoder.encode(sample)
    return (time.monotonic() - start) / len(sample) if sample else None
