"""The hosted encoder against a real HTTP server on loopback; `llm/test_failures` has its
failures.
"""

import logging
from contextlib import contextmanager

import numpy as np
import pytest

from pegboard.encoders import encode_queries, load_encoder
from pegboard.errors import ConfigurationError, EncoderError
from tests.openai_server import KEY, LITELLM_WARNINGS, default_reply, failure, vectors

pytestmark = [*LITELLM_WARNINGS, pytest.mark.usefixtures("openai_key")]

NAME = "openai/test-embedding"


@pytest.fixture
def load(server):
    """A function that loads an encoder of the server, and records its waits between attempts."""

    def load(name=NAME, **options):
        load.waits = []
        return load_encoder(name, api_base=server.url, sleep=load.waits.append, **options)

    return load


@contextmanager
def fails(pattern):
    """The block raises EncoderError with such a message; no key is in it."""
    with pytest.raises(EncoderError, match=pattern) as caught:
        yield
    assert KEY not in str(caught.value)


def unit(*lengths):
    rows = np.float32([[length, 1, 0] for length in lengths])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def reverse(handler):
    status, headers, content = default_reply(handler.body)
    handler.answer(status, headers, {**content, "data": content["data"][::-1]})


@pytest.mark.parametrize("script", [[], [reverse]])
def test_unit_vectors_have_the_order_of_the_texts_and_not_of_the_reply(server, load, script):
    server.script = script

    np.testing.assert_allclose(load().encode(["a", "abc", "ab"]), unit(1, 3, 2), atol=1e-6)


@pytest.mark.parametrize(
    ("options", "lengths", "sizes"),
    [
        ({"batch_size": 2}, [1, 2, 3, 4, 5], [2, 2, 1]),
        ({"max_tokens": 200_000}, [100_000] * 3, [2, 1]),
    ],
)
def test_requests_are_bounded_in_texts_and_bytes(server, load, options, lengths, sizes):
    rows = load(**options).encode(["a" * length for length in lengths])

    assert [len(body["input"]) for body in server.bodies] == sizes
    np.testing.assert_allclose(rows, unit(*lengths), atol=1e-6)


def test_dimensions_are_sent_if_given_and_otherwise_read_from_one_small_reply(server, load):
    unknown = load()
    assert (unknown.dimensions, unknown.encode([]).shape) == (3, (0, 3))
    assert server.bodies == [{"model": "test-embedding", "input": ["dimensions"]}]

    given = load(dimensions=3)
    assert given.encode([]).shape == (0, 3)
    assert len(server.bodies) == 1
    given.encode(["a"])
    assert server.bodies[1]["dimensions"] == 3


def test_the_fingerprint_has_what_decides_a_vector_and_says_that_the_weights_are_unknown():
    options = {"dimensions": 256, "max_tokens": 500, "query_prefix": "query: "}
    cut = load_encoder("ollama/e5", api_base="http://gpu:11434", **options)

    for name in ("text-embedding-3-small", "openai/text-embedding-3-small"):
        assert load_encoder(name).fingerprint == (
            "openai/text-embedding-3-small@weights-unknown/default-dimensions/8191t/l2"
        )
    assert cut.fingerprint == "ollama/e5@weights-unknown/256d/500t/l2/query='query: '"


def test_queries_and_documents_have_their_prefix_or_input_type(server, load, monkeypatch):
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)
    prefixed = load(query_prefix="query: ", document_prefix="passage: ")

    for encoder in (prefixed, load("voyage/voyage-3")):
        encoder.encode(["a"])
        encode_queries(encoder, ["b"])

    assert [body["input"] for body in server.bodies[:2]] == [["passage: a"], ["query: b"]]
    assert [body["input_type"] for body in server.bodies[2:]] == ["document", "query"]


def test_a_text_over_the_limit_is_cut_by_tokens_counted_and_logged(server, load, caplog):
    encoder = load(max_tokens=10)
    short = ["short", "ten tokens at most, and more bytes"]

    with caplog.at_level(logging.WARNING):
        encoder.encode(["one two three " * 5, *short])
    encoder.encode(["鬱" * 20])  # several tokens each

    assert server.bodies[0]["input"] == ["one two three one two three one two three one", *short]
    assert set(server.bodies[1]["input"][0]) == {"鬱"}
    assert encoder.truncated == 2
    assert "1 of 3 texts have more than 10 tokens" in caplog.text


def test_a_busy_server_is_asked_again_after_the_time_that_it_names(server, load, caplog):
    server.script = [failure(429, Retry_After="7")]

    with caplog.at_level(logging.WARNING, logger="pegboard"):
        load().encode(["a"])

    assert load.waits == [7.0]
    assert len(server.bodies) == 2
    assert f"{NAME}: attempt 1 failed (rate); again in 7.0 s" in caplog.text
    assert KEY not in caplog.text


def test_a_server_that_asks_for_a_long_wait_is_not_asked_again(server, load):
    server.script = [failure(429, Retry_After="3600")]

    with fails(r"did not encode: .*the server asks to wait 3600 s"):
        load().encode(["a"])
    assert load.waits == []


def test_only_the_key_that_api_key_env_names_is_sent_to_an_api_base(server, load, monkeypatch):
    gateway = load(api_key_env="GATEWAY_KEY")

    load().encode(["a"])
    monkeypatch.delenv("OPENAI_API_KEY")
    load().encode(["a"])
    with fails("Set the environment variable GATEWAY_KEY, named by api_key_env"):
        gateway.encode(["a"])
    monkeypatch.setenv("GATEWAY_KEY", "gateway-secret")
    gateway.encode(["a"])

    assert server.keys == ["Bearer none", "Bearer none", "Bearer gateway-secret"]
    assert gateway.missing_key() is None


def test_a_name_that_is_an_address_gets_no_key(server):
    with pytest.raises(ConfigurationError, match="Give it as api_base"):
        load_encoder(f"huggingface/{server.url}")


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (vectors([[1.0, 2.0]]), r"one vector for each of 2 texts, got 1 with indices \[0\]"),
        (vectors([[1.0, 2.0]] * 3), "for each of 2 texts, got 3"),
        (vectors([[1.0, 2.0]] * 2, [1, 1]), r"got 2 with indices \[1\]"),
        (vectors([[1.0, 2.0]] * 2, [1, 2]), r"got 2 with indices \[1, 2\]"),
        (vectors([[1.0, 2.0], [1.0, float("nan")]]), "NaN or infinity"),
        (vectors([[1.0, 2.0], [1.0, 1e200]]), "NaN or infinity"),
        (vectors([[1.0, 2.0], [0.0, 0.0]]), "nothing but zeros"),
        (vectors([[], []]), "nothing but zeros"),
        (vectors([[1.0, 2.0], [1.0, None]]), "NaN or infinity|not a list of indexed vectors"),
        (vectors([[1.0, 2.0], [1.0]]), "not a list of indexed vectors of one length"),
        (vectors([[1.0, 2.0], "////"]), "not a list of indexed vectors"),
        ((200, {}, {"data": [{"embedding": [1.0]}] * 2}), "not a list of indexed vectors"),
        ((200, {}, {"data": ["a", "b"]}), "not a list of indexed vectors"),
        ((200, {}, {"data": None}), "got 0"),
    ],
)
def test_a_reply_without_a_valid_vector_for_each_text_is_rejected_whole(
    server, load, reply, problem
):
    server.script = [reply]

    with fails(rf"{NAME} at {server.url} answered, but .*({problem})"):
        load().encode(["a", "b"])
    assert len(server.bodies) == 1


def test_vectors_of_another_length_than_before_are_rejected(server, load):
    encoder = load()
    encoder.encode(["a"])
    server.script = [vectors([[1.0, 2.0]])]

    with fails("expected vectors of 3 dimensions, got 2"):
        encoder.encode(["a"])
