"""Calibrate the scores of each index: curves through requests that the board answers and requests
that it does not.

Where no requests without an answer are known, they are made by leaving out: the right tools of a
request are taken away, and what is best then is an example of a best tool that does not fit. Such
examples are harder than unrelated requests. `benchmarks/performance/abstention.py` measures how
well a calibration so made recognises unrelated ones.

Golden requests should be written as people ask. Those that stand in the index themselves, as
questions of their tools, find themselves: on MetaTool, a hybrid threshold made from such to let 95
% through refused 58 % of new requests. `unseen` leaves them out."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from pegboard.encoders import Encoder, encode_queries
from pegboard.errors import ConfigurationError, PublishError
from pegboard.evaluation.golden import ToolNames
from pegboard.ranker.features import Measures
from pegboard.ranker.model import Ranker, default_ranker
from pegboard.retrieval.calibration import (
    MIN_REQUESTS,
    Calibration,
    Curve,
    Scores,
    Threshold,
    scores_by_mode,
)
from pegboard.retrieval.strategy import Strategy
from pegboard.search.loaded import IN_MEMORY_ROWS, LoadedRelease
from pegboard.search.text import DEFAULT_LANGUAGE, query_words
from pegboard.store.contract import CONTRACT, embedding_table
from pegboard.store.database import open_table, store_errors
from pegboard.store.releases import Pin, Release, ReleaseStore
from tasks.embed import encoder_for
from tasks.golden.leaks import DocumentWords
from tasks.golden.reading import read_golden
from tasks.lake.files import Lake
from tasks.lake.query_vectors import CachedQueryEncoder
from tasks.release_spec import ReleaseSpec
from tasks.settings.configuration import Configuration
from tasks.settings.release import default_strategy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEPTH = 100
"""Tools of each ranking, as many as a hybrid search has at least; the right ones are left out."""
BATCH = 256
ACCEPT = (90, 95, 99)
"""Percent of the requests with an answer that the thresholds let through."""
SHOWN = 5
RIDGE = 1e-3
"""Of the mean loss, on standardised scores: keeps the slope finite where the classes are apart."""
FLAT = 1e-9
"""Standard deviation below which scores are constant."""


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """What came of the golden requests.

    Attributes:
        queries: how many have a right tool in the release.
        unknown: the names and ids that no tool of the release has.
        indexes: the calibration of every index, as a manifest holds it; without those for which too
            few requests are left.
        seen: how many stand word for word in the index and were left out: they find themselves, and
            say nothing of other requests.
    """

    queries: int = 0
    unknown: tuple[str, ...] = ()
    indexes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    seen: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return asdict(self)


def calibrate_release(
    configuration: Configuration,
    spec: ReleaseSpec,
    pins: Mapping[str, Pin],
    encoder: Encoder | None = None,
) -> CalibrationResult:
    """Search the staged tables for the golden requests; nothing without any.

    Requests whose right tools are all unknown are left out, since a source may have lost a tool
    over night; an index for which fewer than `[golden] min_queries` are left has no calibration.
    Raises PublishError if the default strategy needs one and no gate chooses another.

    Args:
        pins: what was staged.
        encoder: stands in for those that are configured.
    """
    golden = read_golden(configuration)
    if golden is None:
        return CalibrationResult()
    indexes = {index.name: {} for index in configuration.indexes}
    manifest = {"default_index": configuration.default, "indexes": indexes}
    staged = Release(spec.release, spec.digest, CONTRACT, datetime.now(UTC), pins, manifest)
    loaded = LoadedRelease(ReleaseStore(configuration.uri), staged, IN_MEMORY_ROWS)
    meant, unknown = golden.relevant_tools(ToolNames(loaded.tool_names()))
    calibrations: dict[str, Mapping[str, Any]] = {}
    usable = len(meant)
    for index in configuration.indexes:
        fresh = unseen(meant, _texts(configuration.uri, pins[embedding_table(index.name)], meant))
        usable = min(usable, len(fresh))
        if len(fresh) >= golden.min_queries:
            searched = loaded.index(index.name)
            made_by = CachedQueryEncoder.of(encoder or encoder_for(index), Lake(configuration.uri))
            calibration = calibrate_index(
                searched,
                made_by,
                fresh,
                golden.unanswerable,
                name=index.name,
                language=index.language,
                ranker=spec.rankers[index.name],
                min_queries=golden.min_queries,
            )
            calibrations[index.name] = calibration.to_dict()
    calibrated = CalibrationResult(len(meant), tuple(unknown), calibrations, len(meant) - usable)
    if (
        configuration.gate is None
    ):  # a gate asks by the strategy that it chooses, and says what cannot be asked
        _check_strategy(configuration, calibrated, golden.min_queries)
    return calibrated


def _check_strategy(
    configuration: Configuration, calibrated: CalibrationResult, min_queries: int
) -> None:
    """Raise PublishError if the default strategy needs a calibration that is missing."""
    strategy = default_strategy(configuration.find.strategy)
    if strategy is None or not Strategy.from_dict(strategy).needs_calibration():
        return
    indexes = strategy.get("indexes") or [configuration.default]
    if missing := sorted(set(indexes) - set(calibrated.indexes)):
        usable = calibrated.queries - calibrated.seen
        raise PublishError(
            f"Nothing was published: the default strategy '{strategy['name']}' asks for "
            f"probabilities, and index {', '.join(missing)} cannot "
            f"be calibrated: {usable} golden requests can be used, {min_queries} are needed. "
            f"{len(calibrated.unknown)} tools that they "
            f"name are not in the release, and {calibrated.seen} requests stand in the index word "
            f"for word. Add requests to "
            "[golden], or choose another [find] strategy."
        )


def _texts(
    uri: str, pin: Pin, meant: Sequence[tuple[str, Collection[str]]]
) -> dict[str, list[str]]:
    """Return the texts of an index by the id of the tool, of the right tools."""
    right = {tool for _, tools in meant for tool in tools}
    table = open_table(ReleaseStore(uri).database, pin.table, uri, pin.version)
    with store_errors(uri):
        rows = table.search().select(["tool", "text"]).to_arrow()
    texts: dict[str, list[str]] = {}
    for tool, text in zip(
        rows.column("tool").to_pylist(), rows.column("text").to_pylist(), strict=True
    ):
        if tool in right:
            texts.setdefault(tool, []).append(text)
    return texts


class SearchableIndex(Protocol):
    """A searchable index, `MemoryIndex` or `LanceIndex`."""

    def both(self, query: "NDArray[np.float32]", tokens: Sequence[str], n: int) -> Measures: ...


def calibrate_index(
    searched: SearchableIndex,
    encoder: Encoder,
    golden: Sequence[tuple[str, Collection[str]]],
    unanswerable: Sequence[str] = (),
    *,
    share: float = 0.5,
    name: str = "",
    language: str = DEFAULT_LANGUAGE,
    ranker: Ranker | None = None,
    min_queries: int = MIN_REQUESTS,
) -> Calibration:
    """Return what the scores of an index mean, by requests that are searched in it.

    Args:
        encoder: the one that made the index's vectors.
        golden: requests that the board answers, each with the ids of the right tools.
        unanswerable: requests that no tool of the board answers; made by leaving out where there
            are none.
        share: the share of all requests to come that is taken to have an answer; what a probability
            means depends on it.
        name: of the index, for messages.
        language: of the index.
        ranker: of the index; the library's if None.
        min_queries: the least number of either kind.

    Raises:
        ConfigurationError: there are too few requests, one is blank, or one has no right tools.
    """
    _check(golden, unanswerable, share, name, min_queries)
    found = partial(found_scores, searched, encoder, language, ranker or default_ranker())
    answerable = found([query for query, _ in golden])
    if unanswerable:
        others = found(unanswerable)
    else:
        others = [
            without(scores, tools) for scores, (_, tools) in zip(answerable, golden, strict=True)
        ]
    return calibrate_scores(answerable, others, left_out=not unanswerable, share=share)


def unseen(
    golden: Sequence[tuple[str, Collection[str]]], documents: Mapping[str, Sequence[str]]
) -> list[tuple[str, Collection[str]]]:
    """Return the golden requests of which no document of their right tools is a copy.

    Args:
        documents: the texts of the index by the tool's id; those of the right tools are enough.
    """
    words = {tool: [DocumentWords(text) for text in texts] for tool, texts in documents.items()}
    return [
        (query, tools)
        for query, tools in golden
        if not any(text.has_copy(query) for tool in tools for text in words.get(tool, ()))
    ]


def found_scores(
    searched: SearchableIndex,
    encoder: Encoder,
    language: str,
    ranker: Ranker,
    queries: Sequence[str],
) -> list[dict[str, Scores]]:
    """Return the scores by mode of what each query finds, in an index of that language."""
    import numpy as np

    found: list[dict[str, Scores]] = []
    for start in range(0, len(queries), BATCH):
        batch = queries[start : start + BATCH]
        vectors = np.asarray(encode_queries(encoder, batch), np.float32)
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        for query, unit in zip(batch, units, strict=True):
            both = searched.both(unit, query_words(query, language), DEPTH)
            ranked = ranker.rank(query, both)
            rankings = {"vector": both.vector, "text": both.text, "ranker": ranked}
            found.append(scores_by_mode(query, rankings, language))
    return found


def without(found: Mapping[str, Scores], tools: Collection[str]) -> dict[str, Scores]:
    """Return what a query would find if those tools were not there."""
    return {
        mode: {tool: score for tool, score in scores.items() if tool not in tools}
        for mode, scores in found.items()
    }


def calibrate_scores(
    answerable: Sequence[Mapping[str, Scores]],
    unanswerable: Sequence[Mapping[str, Scores]],
    *,
    left_out: bool,
    share: float = 0.5,
) -> Calibration:
    """Calibrate each mode of searching; a mode that cannot separate the requests has no curve.

    Args:
        answerable: the scores by mode of requests with an answer.
        unanswerable: of those without one.
    """
    import numpy as np

    curves: dict[str, Curve] = {}
    for mode in answerable[0] if answerable else ():
        right, wrong = (
            np.array([max(scores[mode].values(), default=0.0) for scores in side])
            for side in (answerable, unanswerable)
        )
        if curve := _curve(right, wrong, share):
            curves[mode] = curve
    return Calibration(curves, len(answerable), len(unanswerable), left_out, share)


def _curve(
    right: "NDArray[np.float64]", wrong: "NDArray[np.float64]", share: float
) -> Curve | None:
    """Return the curve through the best scores of requests with and without an answer."""
    import numpy as np

    scores = np.concatenate([right, wrong])
    slope, bias = fit_logistic(scores, np.arange(len(scores)) < len(right), share)
    if slope <= 0:
        return None
    curve = Curve(round(slope, 6), round(bias, 6), {})
    likely = [curve.probability(score) for score in scores.tolist()]
    thresholds = _thresholds(likely[: len(right)], likely[len(right) :])
    return Curve(curve.slope, curve.bias, thresholds)


def fit_logistic(
    scores: "NDArray[np.float64]", labels: "NDArray[np.bool_]", share: float = 0.5
) -> tuple[float, float]:
    """Return slope and bias of the logistic curve through labelled scores, each of shape
    (examples,); slope 0 if all scores are equal.

    Args:
        labels: both values present.
        share: the share of requests to come that is taken to be True; the examples are weighted so,
            however many of each there are.
    """
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    mean, spread = scores.mean(), scores.std()
    if spread <= FLAT:
        return 0.0, float(np.log(share / (1 - share)))
    balance = np.where(labels, share / labels.mean(), (1 - share) / (1 - labels.mean()))
    model = LogisticRegression(C=1 / RIDGE, solver="newton-cholesky", tol=1e-9, max_iter=1000)
    with threadpool_limits(1):
        model.fit(((scores - mean) / spread)[:, None], labels, sample_weight=balance / len(labels))
    slope = float(model.coef_[0][0] / spread)
    return slope, float(np.ravel(model.intercept_)[0] - slope * mean)


def _thresholds(answerable: Sequence[float], unanswerable: Sequence[float]) -> dict[str, Threshold]:
    import numpy as np

    thresholds: dict[str, Threshold] = {}
    for percent in ACCEPT:
        least = float(np.quantile(answerable, 1 - percent / 100, method="lower"))
        right, wrong = (
            float(np.mean(np.array(side) >= least)) for side in (answerable, unanswerable)
        )
        thresholds[f"accept_{percent}"] = Threshold(least, round(right, 4), round(wrong, 4))
    return thresholds


def _check(
    golden: Sequence[tuple[str, Collection[str]]],
    unanswerable: Sequence[str],
    share: float,
    name: str,
    min_queries: int,
) -> None:
    problems: list[str] = []
    if len(golden) < min_queries:
        problems.append(f"{len(golden)} golden requests; expected {min_queries} or more")
    if 0 < len(unanswerable) < min_queries:
        problems.append(
            f"{len(unanswerable)} unanswerable requests; expected {min_queries} or more, or none: "
            f"then they are made from the golden ones"
        )
    if blank := [at for at, (query, _) in enumerate(golden) if not query.strip()]:
        problems.append(f"golden requests {blank[:SHOWN]} are blank ({len(blank)})")
    if blank := [at for at, query in enumerate(unanswerable) if not query.strip()]:
        problems.append(f"unanswerable requests {blank[:SHOWN]} are blank ({len(blank)})")
    if bare := [at for at, (_, tools) in enumerate(golden) if not tools]:
        problems.append(f"golden requests {bare[:SHOWN]} have no right tool ({len(bare)})")
    if not 0 < share < 1:
        problems.append(
            f"the share of requests with an answer is {share}; expected more than 0 and less than 1"
        )
    if problems:
        raise ConfigurationError(
            f"The scores of index '{name}' cannot be calibrated: {'; '.join(problems)}. Add "
            f"requests to the files of [golden], "
            "mend them, or leave [golden] out."
        )
