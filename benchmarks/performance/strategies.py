"""How long a strategy takes: `python -m benchmarks.performance.strategies [--rows 10000] [--repeats
150] [--json]`.

A board of synthetic tools (see `bench_search`) with three dependencies each is asked in requests of
three clauses, none twice, by the embedded encoder, without an LLM. Strategies take turns, so that
other load on the machine hits all alike. Milliseconds; `encoder` is the share of a request's time
that the encoder takes."""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pegboard
from benchmarks.performance.search import machine, make_board
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


class Timed:
    """The embedded encoder, with the seconds that it took."""

    def __init__(self) -> None:
        self._encoder = load_encoder(DEFAULT_ENCODER)
        self.name, self.fingerprint = self._encoder.name, self._encoder.fingerprint
        self.dimensions = self._encoder.dimensions
        self.seconds = 0.0

    def encode(self, texts: Any) -> Any:
        """What the encoder makes of the texts."""
        began = time.perf_counter()
        try:
            return self._encoder.encode(texts)
        finally:
            self.seconds += time.perf_counter() - began


def requests(count: int) -> list[str]:
    """Requests of three clauses, all different."""
    dice = np.random.default_rng(1)

    def clause():
        return (
            f"{VERBS[dice.integers(8)]} the w{dice.integers(400)} of w{dice.integers(20_000)} "
            f"for number {dice.integers(10**6)}"
        )

    return [f"{clause()}, then {clause()} and {clause()}." for _ in range(count)]


def measure(rows: int, repeats: int) -> list[dict[str, Any]]:
    """The times of all strategies on one board."""
    encoder = Timed()
    with tempfile.TemporaryDirectory() as folder:
        board = pegboard.open(
            make_board(Path(folder), rows, (encoder.name, encoder.fingerprint), 3),
            encoder=encoder,
            refresh=3600,
        )
        asks: dict[str, Callable[[str], Any]] = {
            name: lambda request, strategy=strategy: board.find(
                request, K, strategy=strategy, llm=False
            )
            for name, strategy in STRATEGIES.items()
        }
        asks["agents"] = lambda request: board.search_agents(request, 5)
        asks["agents, clauses"] = lambda request: board.search_agents(request, 5, decompose=True)
        for ask in asks.values():
            ask("warm up, then look at it")
        spent: dict[str, list[tuple[float, float]]] = {name: [] for name in asks}
        asked = iter(requests(repeats * len(asks)))
        for _ in range(repeats):
            for name, ask in asks.items():
                request, before, began = next(asked), encoder.seconds, time.perf_counter()
                ask(request)
                spent[name].append((time.perf_counter() - began, encoder.seconds - before))
    found: list[dict[str, Any]] = []
    for name, pairs in spent.items():
        whole, encoding = (np.array(values) * 1000 for values in zip(*pairs, strict=True))
        p50, p99 = np.percentile(whole, [50, 99])
        found.append(
            {
                "strategy": name,
                "rows": rows,
                "p50": round(float(p50), 2),
                "p99": round(float(p99), 2),
                "encoder_p50": round(float(np.median(encoding)), 2),
                "encoder": round(float(encoding.sum() / whole.sum()), 3),
            }
        )
    return found


def main() -> None:
    """Print one line for each strategy."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=150)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.rows, options.repeats)
    if options.json:
        print(json.dumps({"machine": machine(), "strategies": found}, indent=2))
        return
    print(f"{machine()}\n{'strategy':<24}{'p50 ms':>9}{'p99 ms':>9}{'encoder p50':>13}{'share':>8}")
    for one in found:
        print(
            f"{one['strategy']:<24}{one['p50']:>9}{one['p99']:>9}{one['encoder_p50']:>13}{one['encoder']:>8.0%}"
        )


if __name__ == "__main__":
    main()
