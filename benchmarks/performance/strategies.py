"""`python -m benchmarks strategies [--rows 10000] [--json]`: time of each strategy.

A board of synthetic tools (see `boards`) with three dependencies each gets requests of three
clauses, all different, by the embedded encoder, without an LLM. Strategies take turns, so that
other load on the machine affects all alike. `encoder share` is the part of a request's time that
the encoder takes.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pegboard
from benchmarks.performance.boards import synthetic_board
from benchmarks.performance.shared import parser_of, print_rows, seconds_of
from pegboard.encoders import load_encoder
from tasks.settings.configuration import DEFAULT_ENCODER

K = 10
STRATEGIES: dict[str, Any] = {
    "search, vector": {"modes": ["vector"]},
    "search, hybrid": "search",
    "clauses": "clauses",
    "dependencies": "dependencies",
    "clauses, dependencies": {"transforms": ["clauses"], "refine": ["dependencies"]},
    "rag-tool-fusion": "rag-tool-fusion",
    "plan-select": "plan-select",
    "tool-rag": "tool-rag",
}
VERBS = ("find", "book", "send", "convert", "list", "cancel", "open", "translate")


class TimedEncoder:
    """The embedded encoder, with the seconds that it took."""

    def __init__(self) -> None:
        self._encoder = load_encoder(DEFAULT_ENCODER)
        self.name, self.fingerprint = self._encoder.name, self._encoder.fingerprint
        self.dimensions = self._encoder.dimensions
        self.seconds = 0.0

    def encode(self, texts: Any) -> Any:
        """The vectors of the texts."""
        began = time.perf_counter()
        try:
            return self._encoder.encode(texts)
        finally:
            self.seconds += time.perf_counter() - began


def requests(count: int) -> list[str]:
    """Requests of three clauses, all different."""
    dice = np.random.default_rng(1)

    def clause() -> str:
        return (
            f"{VERBS[dice.integers(8)]} the w{dice.integers(400)} of w{dice.integers(20_000)} "
            f"for number {dice.integers(10**6)}"
        )

    return [f"{clause()}, then {clause()} and {clause()}." for _ in range(count)]


def measure(folder: Path, rows: int, repeats: int) -> list[dict[str, Any]]:
    """The times of all strategies on one board."""
    encoder = TimedEncoder()
    uri = synthetic_board(folder, rows, (encoder.name, encoder.fingerprint), 3)
    board = pegboard.open(uri, encoder=encoder, refresh=3600)
    works: dict[str, Callable[[str], Any]] = {
        name: lambda request, strategy=strategy: board.find(
            request, K, strategy=strategy, llm=False
        )
        for name, strategy in STRATEGIES.items()
    }
    works["agents"] = lambda request: board.search_agents(request, 5)
    works["agents, clauses"] = lambda request: board.search_agents(request, 5, decompose=True)
    for work in works.values():
        work("warm up, then look at it")
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    texts = iter(requests(repeats * len(works)))
    for _ in range(repeats):
        for name, work in works.items():
            text, before = next(texts), encoder.seconds
            taken = seconds_of(lambda: work(text))  # noqa: B023
            times[name].append((taken, encoder.seconds - before))
    return [_row(name, rows, np.array(pairs) * 1000) for name, pairs in times.items()]


def _row(name: str, rows: int, times: Any) -> dict[str, Any]:
    whole, encoding = times.T
    p50, p99 = (float(value) for value in np.percentile(whole, [50, 99]))
    return {
        "strategy": name,
        "tools": rows,
        "p50 ms": p50,
        "p99 ms": p99,
        "encoder p50 ms": float(np.median(encoding)),
        "encoder share": float(encoding.sum() / whole.sum()),
    }


def main() -> None:
    """Print one line for each strategy."""
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=150)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(Path(folder), options.rows, options.repeats)
    print_rows("strategies", measured, as_json=options.json)
