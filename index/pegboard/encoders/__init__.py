"""What turns texts into vectors, and how one is loaded by name.

    local/all-MiniLM-L6-v2          runs here, weights from the package index      pegboard[local]
    fastembed/BAAI/bge-small-en-v1.5  runs here, weights from a hub at first use     pegboard[fastembed]
    openai/text-embedding-3-small   any other name is a LiteLLM model, run elsewhere   pegboard[litellm]

An encoder is anything with the four members of `Encoder`. Some models want a query told apart from a document (a prefix, an input type);
such an encoder has a fifth, `encode_queries`, and whoever holds a query calls the function of that name here, which falls back on `encode`.
Importing this module imports no runtime: no onnxruntime, no fastembed, no LiteLLM.
"""

import importlib
import inspect
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from pegboard.errors import ConfigurationError, EncoderError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Encoder", "encode_queries", "load_encoder"]

# Imported when asked for: loading this module must load no runtime.
_IN_PROCESS = {
    "local": ("pegboard.encoders.local", "LocalEncoder"),
    "fastembed": ("pegboard.encoders.fastembed", "FastembedEncoder"),
}
_HOSTED = ("pegboard.encoders.hosted", "HostedEncoder")


class Encoder(Protocol):
    """Turns texts into unit vectors.

    Attributes:
        name: the specification it was loaded by, such as `local/all-MiniLM-L6-v2`.
        dimensions: the length of a vector.
        fingerprint: everything that decides a vector: model, weights, truncation, pooling, normalisation. Vectors may be compared
            only where fingerprints are equal.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    @property
    def fingerprint(self) -> str: ...

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """The vectors of the texts, shape (len(texts), dimensions), in their order, each of length 1."""
        ...


def load_encoder(name: str, **options: Any) -> Encoder:
    """The encoder of that name, ready to encode.

        encoder = load_encoder("local/all-MiniLM-L6-v2")
        encoder.encode(["Converts an amount from one currency to another"]).shape    # (1, 384)

    Args:
        name: `local/...`, `fastembed/...`, or the usual LiteLLM name of a hosted model.
        options: what that kind of encoder can be told; see `LocalEncoder`, `FastembedEncoder` and `HostedEncoder`.

    Raises:
        EncoderError: the extra is not installed, the model is unknown, or its files are not the expected ones.
        ConfigurationError: the encoder has no such option, or no such value for it.
    """
    kind, _, model = name.partition("/")
    if not name.strip() or (kind in _IN_PROCESS and not model):
        raise ConfigurationError(f"Encoder {name!r} names no model. Try 'local/all-MiniLM-L6-v2'.")
    module, factory_name = _IN_PROCESS.get(kind, _HOSTED)
    factory = getattr(importlib.import_module(module), factory_name)
    known = [
        name for name, option in inspect.signature(factory).parameters.items() if option.kind is option.KEYWORD_ONLY
    ]
    if unknown := sorted(set(options) - set(known)):
        raise ConfigurationError(f"Encoder {name!r} has no option {', '.join(unknown)}. It has: {', '.join(known)}.")
    return factory(name, **options)


def encode_queries(encoder: Encoder, texts: Sequence[str]) -> "NDArray[np.float32]":
    """The vectors of search queries: by the encoder's own `encode_queries` where it has one, else by `encode`."""
    method = cast("Callable[[Sequence[str]], NDArray[np.float32]]", getattr(encoder, "encode_queries", encoder.encode))
    return method(texts)


def import_extra(module: str) -> Any:
    """The imported module of an optional extra; raises EncoderError with the install command where it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == module:
            raise missing_extra(module) from None
        raise EncoderError(
            f"{module} is installed but does not import: {error}. Reinstall it: {install_command(module)}"
        ) from error


def missing_extra(module: str, requirement: str | None = None) -> EncoderError:
    """The error for a package that is not installed; `requirement` is what brings it, where that is another package."""
    command = install_command(requirement or module)
    return EncoderError(f"This encoder needs the package {module}, which is not installed. Install it: {command}")


def install_command(package: str) -> str:
    """How to install the extra that brings a package, read from this distribution's own metadata."""
    import importlib.metadata  # slow to import, and only an error needs it

    try:
        requirements = importlib.metadata.requires("pegboard") or []
    except importlib.metadata.PackageNotFoundError:  # run from a source tree that was never installed
        requirements = []
    for requirement in requirements:
        extra = re.search(r"extra == ['\"]([\w-]+)", requirement)
        if extra and re.match(rf"{re.escape(package)}(?![\w-])", requirement):
            return f"pip install 'pegboard[{extra[1]}]'"
    return f"pip install {package}"


def checked_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list; raises EncoderError naming those that no encoder takes: what is no text, or no valid Unicode."""
    if isinstance(texts, str):
        raise EncoderError("An encoder takes a list of texts, got one text. Pass [text].")
    checked = list(texts)
    if wrong := [at for at, text in enumerate(checked) if not _is_text(text)]:
        raise EncoderError(
            f"{len(wrong)} of {len(checked)} texts are not valid Unicode text: {wrong[:10]}. Mend or leave them out."
        )
    return checked


def unit_rows(matrix: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """The matrix with each row scaled to length 1."""
    import numpy as np

    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def check_positive(name: str, **values: object) -> None:
    """Raises ConfigurationError naming every option of the encoder that is not a whole number of at least 1."""
    if wrong := [f"{option} = {value!r}" for option, value in values.items() if type(value) is not int or value < 1]:
        raise ConfigurationError(f"Encoder {name!r}: {', '.join(wrong)}. Give a whole number of at least 1.")


def prefix_notation(query_prefix: str, document_prefix: str) -> str:
    """How prefixes appear at the end of a fingerprint; nothing where there are none."""
    prefixes = {"query": query_prefix, "document": document_prefix}
    return "".join(f"/{kind}={prefix!r}" for kind, prefix in prefixes.items() if prefix)


def _is_text(text: object) -> bool:
    if not isinstance(text, str):
        return False
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, as JSON may hold: no tokenizer and no HTTP body can carry it
        return False
    return True
