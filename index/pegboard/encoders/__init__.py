"""Encoders, which turn texts into vectors, and loading them by name.

    local/minilm-tools-v1             in process: the default, trained on requests for tools
    local/all-MiniLM-L6-v2            in process: the model that the default was trained from
    fastembed/BAAI/bge-small-en-v1.5  in process, downloads its weights at first use
    hashing/256                       word counts without meaning, for tests and trials of scale
    mine/model                        a plug-in: the entry point `mine` of `pegboard.encoders`
    openai/text-embedding-3-small     any other name is a hosted model, reached through LiteLLM

An encoder is any object with the four members of `Encoder`. An encoder that treats queries
differently from documents (a prefix, an input type) also has `encode_queries`; the function of that
name here calls it, or else `encode`. A plug-in's entry point is a class or function that takes the
full name and, as keyword-only parameters, its options, and returns an encoder. Two plug-ins of the
same name are an error, and a plug-in cannot replace a built-in kind.
Importing this module imports no runtime: no onnxruntime, no fastembed, no LiteLLM.
"""

import importlib
import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, cast
from weakref import WeakValueDictionary

from pegboard.errors import ConfigurationError, EncoderError, PegboardError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DEFAULT_ENCODER", "GROUP", "Encoder", "encode_queries", "load_encoder", "runs_here"]

DEFAULT_ENCODER = "local/minilm-tools-v1"
"""The embedded encoder, which runs in process and needs no key. Its card is beside its weights."""
GROUP = "pegboard.encoders"
"""Entry-point group of encoder plug-ins; an entry point's name is the prefix of encoder names
before `/`.
"""
UNDERSTOOD = 0.95
"""Minimum share of an index's texts that should be in a language of its encoder."""
# Imported when needed, since importing this module must not import a runtime.
_IN_PROCESS = {
    "local": ("pegboard.encoders.local", "LocalEncoder"),
    "fastembed": ("pegboard.encoders.fastembed", "FastembedEncoder"),
    "hashing": ("pegboard.encoders.hashing", "HashingEncoder"),
}
_HOSTED = ("pegboard.encoders.hosted", "HostedEncoder")
_shared: "WeakValueDictionary[str, Encoder]" = WeakValueDictionary()
_sharing = Lock()
_allowed: set[str] = set()
_MEMBERS = ("name", "dimensions", "fingerprint", "encode")


class Encoder(Protocol):
    """Turns texts into unit vectors.

    Attributes:
        name: the specification it was loaded by, such as `local/minilm-tools-v1`.
        dimensions: the length of a vector.
        fingerprint: everything that determines a vector: model, weights, truncation, pooling,
            normalisation. Only vectors of equal fingerprints may be compared.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    @property
    def fingerprint(self) -> str: ...

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return the vectors of the texts, shape (len(texts), dimensions), in their order, each of
        length 1.
        """
        ...


def load_encoder(name: str, **options: Any) -> Encoder:
    """Return the encoder of that name, ready to encode.

        encoder = load_encoder("local/minilm-tools-v1")
        encoder.encode(["Converts an amount from one currency to another"]).shape    # (1, 384)

    Args:
        name: `local/...`, `fastembed/...`, `hashing/...`, `<plug-in>/...`, or the usual LiteLLM
            name of a hosted model.
        options: options of that kind of encoder; see `LocalEncoder`, `FastembedEncoder` and
            `HostedEncoder`. `HashingEncoder` has none.

    Raises:
        EncoderError: the extra is not installed, the model is unknown, its files are not the
            expected ones, or a plug-in does not import or returns no encoder.
        ConfigurationError: the encoder has no such option, or no such value for it.
    """
    kind, _, model = name.partition("/")
    point = None if kind in _IN_PROCESS or not kind.strip() else _plugin(kind)
    if not name.strip() or (not model and (kind in _IN_PROCESS or point)):
        raise ConfigurationError(f"Encoder {name!r} names no model. Try '{DEFAULT_ENCODER}'.")
    if point:
        return _plugin_encoder(point, name, options)
    module, factory_name = _IN_PROCESS.get(kind, _HOSTED)
    factory = getattr(importlib.import_module(module), factory_name)
    _check_options(factory, name, options)
    return factory(name, **options)


def shared_encoder(name: str, **options: Any) -> Encoder:
    """Return an encoder as `load_encoder` does. The boards of a process share encoders that run in
    process, as long as a board references them.
    """
    if not runs_here(name):
        return load_encoder(name, **options)
    key = f"{name} {sorted(options.items())}"
    with _sharing:
        encoder = _shared.get(key)
        if encoder is None:
            encoder = _shared[key] = load_encoder(name, **options)
    return encoder


def runs_here(name: str) -> bool:
    """Whether the encoder of that name is built in, runs in this process and is thread-safe."""
    return name.partition("/")[0] in _IN_PROCESS


def allow_hosted(names: Iterable[str]) -> None:
    """Allow releases to use hosted encoders of these names in this process."""
    _allowed.update(names)


def check_allowed(name: str, allowed: Collection[str] = ()) -> None:
    """Raise EncoderError for a hosted encoder that the release names and the reader does not allow.
    Otherwise the writer of a release could decide where requests and a key of this process go.

    Args:
        allowed: hosted encoders that the reader allows in addition to those of `allow_hosted`.
    """
    if runs_here(name) or name in _allowed or name in allowed or _plugin(name.partition("/")[0]):
        return
    raise EncoderError(
        f"The release names the hosted encoder {name!r:.120}, to which all requests would be sent. "
        f"It is used only if you name it too: hosted_encoders=[...] of pegboard.open, "
        f"--hosted-encoder, or [[indexes]] of the pegboard.toml at hand. Or search mode='text'."
    )


def encode_queries(encoder: Encoder, texts: Sequence[str]) -> "NDArray[np.float32]":
    """Return the vectors of search queries, by the encoder's `encode_queries` if it has one, else
    by `encode`.
    """
    method = cast(
        "Callable[[Sequence[str]], NDArray[np.float32]]",
        getattr(encoder, "encode_queries", encoder.encode),
    )
    return method(texts)


def checked_texts(texts: Sequence[str]) -> list[str]:
    """Return the texts as a list. Raises EncoderError naming those that are not valid Unicode
    text.
    """
    if isinstance(texts, str):
        raise EncoderError("An encoder takes a list of texts, got one text. Pass [text].")
    checked = list(texts)
    if wrong := [index for index, text in enumerate(checked) if not _is_text(text)]:
        raise EncoderError(
            f"{len(wrong)} of {len(checked)} texts are not valid Unicode text: {wrong[:10]}. "
            "Correct or omit them."
        )
    return checked


def unit_rows(matrix: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return the matrix with each row scaled to length 1."""
    import numpy as np

    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def check_positive(name: str, **values: object) -> None:
    """Raise ConfigurationError naming every option of the encoder that is not an integer of at
    least 1.
    """
    if wrong := [
        f"{option} = {value!r}"
        for option, value in values.items()
        if type(value) is not int or value < 1
    ]:
        raise ConfigurationError(
            f"Encoder {name!r}: {', '.join(wrong)}. Give a whole number of at least 1."
        )


def prefix_notation(query_prefix: str, document_prefix: str) -> str:
    """Return the notation of prefixes at the end of a fingerprint; "" without prefixes."""
    prefixes = {"query": query_prefix, "document": document_prefix}
    return "".join(f"/{kind}={prefix!r}" for kind, prefix in prefixes.items() if prefix)


def _plugin(kind: str) -> "EntryPoint | None":
    from importlib.metadata import entry_points  # slow to import; built-in kinds do not need it

    points = sorted(entry_points(group=GROUP, name=kind), key=lambda point: point.value)
    if len(points) > 1:
        values = ", ".join(point.value for point in points)
        raise EncoderError(
            f"Several plug-ins add encoders of the name '{kind}': {values}. Uninstall all but one."
        )
    return points[0] if points else None


def _plugin_encoder(point: "EntryPoint", name: str, options: dict[str, Any]) -> Encoder:
    source = f"The encoder plug-in '{point.name}' ({point.value})"
    try:
        factory = point.load()
        _check_options(factory, name, options)
        encoder: object = factory(name, **options)
    except PegboardError:
        raise
    except Exception as error:  # a plug-in may raise anything, also when it is imported
        raise EncoderError(
            f"{source} cannot load {name!r}: {type(error).__name__}: {error}. Repair or uninstall "
            f"it."
        ) from error
    if missing := [member for member in _MEMBERS if not hasattr(encoder, member)]:
        raise EncoderError(
            f"{source} returned no encoder: it has no {', '.join(missing)}. See "
            f"pegboard.encoders.Encoder."
        )
    return cast(Encoder, encoder)


def _check_options(factory: Callable[..., Any], name: str, options: dict[str, Any]) -> None:
    parameters = inspect.signature(factory).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    available = [
        option
        for option, parameter in parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    if unknown := sorted(set(options) - set(available)):
        raise ConfigurationError(
            f"Encoder {name!r} has no option {', '.join(unknown)}. It has: "
            f"{', '.join(available) or 'none'}."
        )


def _is_text(text: object) -> bool:
    if not isinstance(text, str):
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        # A lone surrogate, which JSON may contain; tokenizers and HTTP bodies cannot carry it.
        return False
    return True
