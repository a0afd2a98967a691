"""Encoders that run elsewhere, reached through LiteLLM: OpenAI, Cohere, Voyage, Ollama, any
OpenAI-compatible server.

Inputs go out in requests of bounded size, each retried by `llm.failures` and nowhere else. A reply
is used only if it answers every input with a finite vector of the expected length. Which weights
answer behind a hosted name cannot be known, and the fingerprint says so.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pegboard.encoders import check_positive, checked_texts, prefix_notation
from pegboard.errors import CompletionError, EncoderError
from pegboard.extras import import_extra
from pegboard.llm.endpoint import Endpoint, import_litellm
from pegboard.llm.failures import failure_kind, retrying

logger = logging.getLogger(__name__)

_MAX_REQUEST_BYTES = 250_000
"""Maximum bytes of texts in a request. OpenAI rejects more than 300,000 tokens, and a token has at
least one byte."""

_MAX_SECONDS_OF_RETRIES = 120
"""Maximum seconds spent on retries of a request. Hourly and daily quotas answer with longer
Retry-After values, for which a run should stop and resume later."""

# These providers' names for queries and documents; without one, a query is embedded as a document.
_INPUT_TYPES = {"cohere": ("search_query", "search_document"), "voyage": ("query", "document")}


class _NoRetries(int):
    """A truthy zero. LiteLLM reads `max_retries or 2` for embeddings: a plain 0 makes the
    OpenAI client retry twice underneath.
    """

    def __bool__(self) -> bool:
        return True


class HostedEncoder:
    """A model that LiteLLM reaches. Safe to share between threads. Keys are read from the
    environment, at each call.

    Args:
        name: the model's name in LiteLLM.
        dimensions: the length of vectors to ask the model for. If None, the model's default length
            is used. It is learned from the first reply; reading it before any text was encoded
            costs a request with one short text.
        api_base: the address of the server, if not the provider's own. Only the key of
            `api_key_env` is sent there. Not part of the fingerprint, since a gateway does not
            change vectors.
        api_key_env: the environment variable with the key, if not the provider's usual one.
        max_tokens: the maximum length of a text; longer texts are cut, counted and logged. Tokens
            are those of OpenAI's cl100k, an estimate for other models.
        batch_size: the maximum number of texts in a request.
        timeout: seconds to wait for a reply.
        attempts: the maximum number of attempts for a request.
        query_prefix: the prefix that the model expects before a query, such as `query: `.
        document_prefix: the prefix that the model expects before a document, such as `passage: `.
        sleep: waits between attempts.
    """

    def __init__(
        self,
        name: str,
        *,
        dimensions: int | None = None,
        api_base: str | None = None,
        api_key_env: str | None = None,
        max_tokens: int = 8191,
        batch_size: int = 128,
        timeout: float = 60,
        attempts: int = 4,
        query_prefix: str = "",
        document_prefix: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        check_positive(
            name,
            dimensions=1 if dimensions is None else dimensions,
            max_tokens=max_tokens,
            batch_size=batch_size,
            attempts=attempts,
        )
        self._litellm = import_litellm()
        import_extra("tenacity")  # fail now rather than at the first request
        self.name = name
        self.truncated = 0  # texts cut to max_tokens since this encoder was loaded
        self._endpoint = Endpoint(
            name, api_base=api_base, api_key_env=api_key_env, timeout=timeout, kind="encoder"
        )
        self._provider = self._endpoint.provider
        self._requested_dimensions = dimensions
        self._dimensions = dimensions
        self._max_tokens = max_tokens
        self._batch_size = batch_size
        self._attempts = attempts
        self._sleep = sleep
        self._query_prefix = query_prefix
        self._document_prefix = document_prefix
        self._lock = threading.Lock()
        length = f"{dimensions}d" if dimensions else "default-dimensions"
        prefixes = prefix_notation(query_prefix, document_prefix)
        self.fingerprint = (
            f"{self._provider}/{self._endpoint.model}@weights-unknown/{length}/{max_tokens}t/l2"
            f"{prefixes}"
        )

    def missing_key(self) -> str | None:
        """Return the environment variable that a request needs and that is not set, if any."""
        return self._endpoint.missing_key()

    @property
    def dimensions(self) -> int:
        """The length of a vector; costs one request if it was neither set nor learned yet."""
        if self._dimensions is None:
            self.encode(["dimensions"])
        return cast("int", self._dimensions)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of documents, shape (len(texts), dimensions), in their order.

        Raises:
            EncoderError: the server did not answer, refused, or did not return one vector for each
                text.
        """
        return self._encode(
            texts, self._document_prefix, _INPUT_TYPES.get(self._provider, (None, None))[1]
        )

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of queries, shape (len(texts), dimensions), in their order. Raises as
        `encode` does.
        """
        return self._encode(
            texts, self._query_prefix, _INPUT_TYPES.get(self._provider, (None, None))[0]
        )

    def _encode(
        self, texts: Sequence[str], prefix: str, input_type: str | None
    ) -> NDArray[np.float32]:
        inputs = self._cut([prefix + text for text in checked_texts(texts)])
        if not inputs:
            return np.empty((0, self.dimensions), np.float32)
        return np.concatenate(
            [self._ask(request, input_type) for request in _requests(inputs, self._batch_size)]
        )

    def _ask(self, inputs: list[str], input_type: str | None) -> NDArray[np.float32]:
        arguments = self._arguments(inputs, input_type)
        calls = retrying(
            "Retrying", self._attempts, _MAX_SECONDS_OF_RETRIES, self._sleep, self._note_retry
        )
        try:
            reply = calls(self._litellm.embedding, **arguments)
        except Exception as error:  # LiteLLM's tree, and what the clients beneath it let through
            failure = self._failure(error, calls.statistics.get("attempt_number", 1))
        else:
            return self._checked(reply, len(inputs))
        # Raised outside the handler: a vendor's exception may quote the key, so it must not become
        # the context.
        raise failure

    def _arguments(self, inputs: list[str], input_type: str | None) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self.name,
            "input": inputs,
            "timeout": self._endpoint.timeout,
            "num_retries": 0,
            "max_retries": _NoRetries(0),
            **self._address(),
        }
        if self._requested_dimensions is not None:
            # By default LiteLLM passes this parameter to OpenAI's own models only.
            arguments["dimensions"] = self._requested_dimensions
            arguments["allowed_openai_params"] = ["dimensions"]
        if input_type is not None:
            arguments["input_type"] = input_type
        return arguments

    def _cut(self, texts: list[str]) -> list[str]:
        cut_texts = [self._shortened(text) for text in texts]
        count = sum(
            1 for text, cut_text in zip(texts, cut_texts, strict=True) if text is not cut_text
        )
        if count:
            with self._lock:
                self.truncated += count
            message = "%s: %d of %d texts have more than %d tokens; the rest of them is not encoded"
            logger.warning(message, self.name, count, len(texts), self._max_tokens)
        return cut_texts

    def _shortened(self, text: str) -> str:
        if len(text.encode()) <= self._max_tokens:  # a token has at least one byte
            return text
        # Without a model name LiteLLM uses its bundled tokenizer; for some names it would download
        # another one.
        tokens = self._litellm.encode(model="", text=text)
        if len(tokens) <= self._max_tokens:
            return text
        # A cut inside a character leaves a replacement character behind.
        return self._litellm.decode(model="", tokens=tokens[: self._max_tokens]).rstrip("\ufffd")

    def _checked(self, reply: Any, expected: int) -> NDArray[np.float32]:
        try:
            answers = {int(answer["index"]): answer["embedding"] for answer in reply.data or []}
            count = len(reply.data or [])
            matrix = np.asarray([answers[index] for index in sorted(answers)], np.float64)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._invalid(
                f"its reply is not a list of indexed vectors of one length ({type(error).__name__})"
            ) from None
        if count != expected or sorted(answers) != list(range(expected)):
            raise self._invalid(
                f"expected one vector for each of {expected} texts, got {count} with indices "
                f"{sorted(answers)[:10]}"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.linalg.norm(matrix, axis=-1, keepdims=True)
        if matrix.ndim != 2 or not np.isfinite(norms).all() or not norms.all():
            raise self._invalid("a vector holds NaN or infinity, or nothing but zeros")
        with self._lock:
            self._dimensions = self._dimensions or matrix.shape[1]
        if matrix.shape[1] != self._dimensions:
            raise self._invalid(
                f"expected vectors of {self._dimensions} dimensions, got {matrix.shape[1]}"
            )
        return (matrix / norms).astype(np.float32)

    def _address(self) -> dict[str, str]:
        """Return the address and the key as arguments of LiteLLM. Raises EncoderError without a
        key.
        """
        try:
            return self._endpoint.address()
        except CompletionError as error:
            raise EncoderError(str(error)) from None

    def _note_retry(self, state: Any) -> None:
        logger.warning(
            "%s: attempt %d failed (%s); again in %.1f s",
            self.name,
            state.attempt_number,
            failure_kind(state.outcome.exception()),
            state.next_action.sleep,
        )

    def _failure(self, error: Exception, attempts: int) -> EncoderError:
        times = f" in {attempts} attempts" if attempts > 1 else ""
        return EncoderError(str(self._endpoint.failure(error, f"did not encode{times}")))

    def _invalid(self, problem: str) -> EncoderError:
        return EncoderError(
            f"{self._endpoint} answered, but {problem}. The reply was discarded. Check the model "
            f"and the server."
        )


def _requests(inputs: list[str], batch_size: int) -> Iterator[list[str]]:
    """Return the inputs in order, cut into requests of at most batch_size texts and
    _MAX_REQUEST_BYTES.
    """
    request: list[str] = []
    size = 0
    for text in inputs:
        length = len(text.encode())
        if request and (len(request) == batch_size or size + length > _MAX_REQUEST_BYTES):
            yield request
            request = []
            size = 0
        request.append(text)
        size += length
    if request:
        yield request
