"""Encoders of fastembed: ONNX models that run in this process, fetched from a hub when first used
and kept in its cache.

A model behind a name may change on the hub, so the fingerprint holds the digest of the weights that
were loaded. Pooling and truncation are fastembed's, and have changed between its minor versions, so
the fingerprint holds that version too."""

import hashlib
import importlib.metadata
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegboard.encoders import (
    DEFAULT_ENCODER,
    check_positive,
    checked_texts,
    prefix_notation,
    unit_rows,
)
from pegboard.errors import EncoderError
from pegboard.extras import import_extra


class FastembedEncoder:
    """One model of fastembed's list. Safe to share between threads.

    Texts longer than the model reads are cut by fastembed, which does not say so. A quantised model
    may give a text slightly different vectors in different batches; `batch_size=1` avoids that at
    the cost of speed.

    Args:
        name: `fastembed/<model>`, the model as fastembed lists it, or any name of yours with a
            `folder`.
        threads: how many threads one call may use.
        batch_size: how many texts go through the model at once.
        folder: the model's files, where they were brought by hand; nothing is fetched then. Of a
            model that fastembed does not list, those of sentence-transformers, with
            `onnx/model.onnx` and `1_Pooling/config.json`.
        query_prefix: what the model wants before a query, such as `query: `; fastembed adds it for
            few models.
        document_prefix: what the model wants before a document, such as `passage: `.
    """

    def __init__(
        self,
        name: str,
        *,
        threads: int = 2,
        batch_size: int = 32,
        folder: str | Path | None = None,
        query_prefix: str = "",
        document_prefix: str = "",
    ) -> None:
        check_positive(name, threads=threads, batch_size=batch_size)
        text_embedding = import_extra("fastembed").TextEmbedding
        description = _description(text_embedding, name.removeprefix("fastembed/"), folder)
        self.name = name
        self.dimensions = int(description["dim"])
        self._batch_size = batch_size
        self._query_prefix = query_prefix
        self._document_prefix = document_prefix
        self._model = _load(text_embedding, str(description["model"]), threads, folder)
        weights = _weights_digest(self._model, str(description["model_file"]))
        version = ".".join(importlib.metadata.version("fastembed").split(".")[:2])
        prefixes = prefix_notation(query_prefix, document_prefix)
        self.fingerprint = (
            f"fastembed/{description['model']}@{weights}/fastembed-{version}/l2{prefixes}"
        )

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of documents, shape (len(texts), dimensions), in their order."""
        return self._rows(self._model.passage_embed, self._document_prefix, texts)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of queries, shape (len(texts), dimensions), in their order."""
        return self._rows(self._model.query_embed, self._query_prefix, texts)

    def _rows(self, embed: Any, prefix: str, texts: Sequence[str]) -> NDArray[np.float32]:
        prefixed = [prefix + text for text in checked_texts(texts)]
        if not prefixed:
            return np.empty((0, self.dimensions), np.float32)
        rows = np.asarray(list(embed(prefixed, batch_size=self._batch_size)), np.float32)
        if rows.shape != (len(prefixed), self.dimensions):
            raise EncoderError(
                f"{self.name}: expected vectors of shape {(len(prefixed), self.dimensions)}, got "
                f"{rows.shape}. "
                "Is the folder that of another model?"
            )
        return unit_rows(rows)


def _description(text_embedding: Any, model: str, folder: str | Path | None) -> dict[str, Any]:
    models: list[dict[str, Any]] = text_embedding.list_supported_models()
    for description in models:
        if description["model"].lower() == model.lower():
            return description
    if folder is not None:
        return _registered(text_embedding, model, Path(folder))
    names = ", ".join(sorted(description["model"] for description in models))
    raise EncoderError(
        f"fastembed has no model {model!r}. It has: {names}. For another one pass folder=... with "
        "its files."
    )


def _registered(text_embedding: Any, model: str, folder: Path) -> dict[str, Any]:
    """Make a model of sentence-transformers known to fastembed, by the files of its folder."""
    descriptions = import_extra("fastembed.common.model_description")
    path = folder / "1_Pooling" / "config.json"
    try:
        config = json.loads(path.read_text("utf-8"))
        dimensions = int(config["word_embedding_dimension"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EncoderError(
            f"{path} does not say how {model} pools its tokens ({error!r}). Expected the folder of "
            'a sentence-transformers model, with {"word_embedding_dimension": ..., '
            '"pooling_mode_mean_tokens": true}.'
        ) from error
    pooling = {"pooling_mode_mean_tokens": "MEAN", "pooling_mode_cls_token": "CLS"}
    modes = [pooling[name] for name in pooling if config.get(name)]
    if len(modes) != 1 or (folder / "2_Dense").exists():
        raise EncoderError(
            f"{model} in {folder} cannot be used: expected the mean of its tokens or the first one "
            f"in {path.name}, and no dense layer behind it (2_Dense). Serve it by an API instead."
        )
    text_embedding.add_custom_model(
        model,
        pooling=descriptions.PoolingType[modes[0]],
        normalization=True,
        sources=descriptions.ModelSource(url=folder.as_uri()),
        dim=dimensions,
    )
    return {"model": model, "dim": dimensions, "model_file": "onnx/model.onnx"}


def _load(text_embedding: Any, model: str, threads: int, folder: str | Path | None) -> Any:
    where = {} if folder is None else {"specific_model_path": str(folder)}
    try:
        # The CPU always: the same texts must give the same vectors on a machine with an
        # accelerator.
        return text_embedding(model, threads=threads, providers=["CPUExecutionProvider"], **where)
    # whatever it raises: ValueError for a failed download, onnxruntime's and the hub's own for the
    # rest
    except Exception as error:
        raise EncoderError(
            f"fastembed could not load {model}: {str(error).rstrip('.')}. It fetches a model from "
            f"a hub when first used: connect this machine once "
            "(FASTEMBED_CACHE_PATH says where it keeps models), or bring the files and pass "
            "folder=..., "
            f"or use {DEFAULT_ENCODER}, which fetches nothing."
        ) from error


def _weights_digest(model: Any, model_file: str) -> str:
    # fastembed has no public name for the folder it loaded from. Without it the digest is unknown,
    # and says so.
    folder = getattr(getattr(model, "model", None), "_model_dir", None)
    path = Path(folder) / model_file if folder is not None else None
    if path is None or not path.is_file():
        return "weights-unknown"
    with path.open("rb") as weights:
        return hashlib.file_digest(weights, "sha256").hexdigest()[:12]
