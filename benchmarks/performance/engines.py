"""How fast `[run]` engines encode with the embedded encoder, and what a call of each costs.

    python -m benchmarks engines [--workers 1 2]

`encoder` is bare: the texts sorted by length, in one thread of this process. All take turns; texts
a second are medians over the rounds. `call_ms` is the best mean of a hundred calls that do nothing,
`start_s` the time until the first workers have answered, their imports included.
"""

import operator
import random
import shutil
import statistics
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.performance.shared import parser_of, print_rows, seconds_of
from flows.engines import Engine, open_engine
from flows.runner import DirectRunner
from pegboard.canonical import digest
from tasks.embed import Shard, at_once, embed_shard, encoder_for
from tasks.enrichment.vectors import encode_texts
from tasks.settings.configuration import (
    BoardSettings,
    Configuration,
    IndexSettings,
    RunSettings,
)

SHARDS = 8
WORDS = (
    "open close issue branch weather city money convert list delete harbour tide order room user"
)


class Measurement:
    """The texts, and the seconds of each way to encode them."""

    def __init__(self, folder: str, texts: int, encoder: str) -> None:
        chance, words = random.Random(1), WORDS.split()
        self.texts = [
            f"{number} " + " ".join(chance.choices(words, k=chance.randint(8, 40)))
            for number in range(texts)
        ]
        self.uri, self.index = str(Path(folder, "board")), IndexSettings(encoder=encoder)
        self.encoder = encoder_for(self.index)
        self.encoder.encode(self.texts[:64])
        self.seconds: dict[str, list[float]] = {}

    def configuration(self, run: dict[str, Any]) -> Configuration:
        board, settings = BoardSettings(uri=self.uri), RunSettings.model_validate(run)
        return Configuration(file=Path("pegboard.toml"), board=board, catalogs={}, run=settings)

    def shards(self) -> list[Shard]:
        """Return the shards of an empty lake."""
        shutil.rmtree(self.uri, ignore_errors=True)
        digests = [digest(text) for text in self.texts]
        frame = pl.DataFrame({"text_digest": digests, "text": self.texts}).sort("text_digest")
        pieces = enumerate(frame.iter_slices(-(-len(digests) // SHARDS)), start=1)
        return [Shard("emb_full", number, part) for number, part in pieces]

    def encode(self, name: str, engine: Engine | None = None) -> None:
        calls = [
            partial(embed_shard, self.uri, shard, self.index, engine) for shard in self.shards()
        ]
        limit = engine.workers if engine else at_once(self.index)
        self.note(name, lambda: DirectRunner().each(calls, limit))

    def note(self, name: str, work: Any) -> None:
        self.seconds.setdefault(name, []).append(seconds_of(work))


def call_seconds(engine: Engine) -> float:
    """The mean of a call that does nothing, the best of three."""
    calls = [partial(engine.run, partial(operator.add, 1, number)) for number in range(100)]
    run = partial(DirectRunner().each, calls, engine.workers)
    return min(seconds_of(run) for _ in range(3)) / len(calls)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--texts", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--encoder", default="local/minilm-tools-v1")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        measured, engines = Measurement(folder, options.texts, options.encoder), {}
        costs: dict[str, dict[str, float]] = {}
        for workers in options.workers:
            run = {"engine": "processes", "workers": workers}
            engine = opened.enter_context(open_engine(measured.configuration(run)))
            assert engine is not None
            label = f"processes {workers}"
            start = seconds_of(partial(call_seconds, engine))
            call = call_seconds(engine)
            costs[label] = {"start_s": start - 300 * call, "call_ms": 1_000 * call}
            engines[label] = engine
            measured.encode("warm", engine)
        for _ in range(options.rounds):
            encode = partial(encode_texts, measured.encoder, measured.texts, "bare")
            measured.note("encoder", encode)
            measured.encode("local")
            for label, engine in engines.items():
                measured.encode(label, engine)
    rows = [
        {
            "engine and workers": name,
            "texts/s": options.texts / statistics.median(seconds),
            "start_s": costs.get(name, {}).get("start_s", 0.0),
            "call_ms": costs.get(name, {}).get("call_ms", 0.0),
        }
        for name, seconds in measured.seconds.items()
        if name != "warm"
    ]
    print_rows("engines", rows, as_json=options.json)
