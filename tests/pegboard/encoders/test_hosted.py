"""The hosted encoder against a real HTTP server on loopback that speaks the OpenAI embeddings
protocol.
"""

import json
import logging
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from pegboard.encoders import encode_queries, load_encoder
from pegboard.errors import ConfigurationError, EncoderError

pytestmark = [
    # pydantic says so while LiteLLM defines its types; it concerns chat replies.
    pytest.mark.filterwarnings(
        "ignore:Item .* on TypedDict class .* is using the `ReadOnly` qualifier:UserWarning"
    ),
    # pydantic says so when the OpenAI client rewrites a malformed reply; the tests below see what
    # becomes of it.
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning"),
]

NAME = "openai/test-embedding"
KEY = "sk-abcdefgh12345678"


class Server(ThreadingHTTPServer):
    """Answers each request with the next scripted reply, and with right vectors once there is
    none.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.bodies, self.keys = [], [], []
        self.released = threading.Event()  # what hangs, hangs until the test ends

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"

    @property
    def sizes(self):
        return [len(body["input"]) for body in self.bodies]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(body)
        self.server.keys.append(self.headers["Authorization"])
        reply = self.server.script.pop(0) if self.server.script else right
        if reply == "hang":
            self.server.released.wait()
            return
        status, headers, content = reply(body) if callable(reply) else reply
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": len(content),
            **headers,
        }.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def right(body):
    return vectors([[float(len(text)), 1.0, 0.0] for text in body["input"]])


def backwards(body):
    status, headers, content = right(body)
    return status, headers, {**content, "data": content["data"][::-1]}


def vectors(rows, indices=None):
    data = [
        {"object": "embedding", "index": at, "embedding": row}
        for at, row in zip(indices or range(9), rows, strict=False)
    ]
    return (
        200,
        {},
        {
            "object": "list",
            "model": "m",
            "data": data,
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
        },
    )


def failure(status, message="no", code=None, **headers):
    error = {"message": f"{message} (you sent {KEY})", "type": "x", "code": code}
    return (
        status,
        {name.replace("_", "-"): value for name, value in headers.items()},
        {"error": error},
    )


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    )
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def slept():
    return []


@pytest.fixture
def encoder(server, slept):
    return load_encoder(NAME, api_base=server.url, timeout=600, sleep=slept.append)


@contextmanager
def fails(pattern):
    """The block raises EncoderError with such a message, and no key leaves with it."""
    with pytest.raises(EncoderError, match=pattern) as caught:
        yield
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or KEY not in str(caught.value.__context__)


def unit(*lengths):
    rows = np.float32([[length, 1, 0] for length in lengths])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("reply", [right, backwards])
def test_texts_become_unit_vectors_in_their_order_whatever_that_of_the_reply(
    server, encoder, reply
):
    server.script = [reply]

    np.testing.assert_allclose(encoder.encode(["a", "abc", "ab"]), unit(1, 3, 2), atol=1e-6)


@pytest.mark.parametrize(
    ("options", "lengths", "sizes"),
    [
        ({"batch_size": 2}, [1, 2, 3, 4, 5], [2, 2, 1]),
        ({"max_tokens": 200_000}, [100_000] * 3, [2, 1]),
    ],
)
def test_requests_stay_within_the_batch_size_and_what_a_provider_takes(
    server, options, lengths, sizes
):
    encoder = load_encoder(NAME, api_base=server.url, **options)

    vectors = encoder.encode(["a" * length for length in lengths])

    assert server.sizes == sizes
    np.testing.assert_allclose(vectors, unit(*lengths), atol=1e-6)


def test_dimensions_not_asked_for_are_learnt_from_one_small_request(server, encoder):
    assert encoder.dimensions == 3
    assert encoder.encode([]).shape == (0, 3)
    assert server.bodies == [{"model": "test-embedding", "input": ["dimensions"]}]


def test_dimensions_asked_for_are_sent_and_known_without_a_request(server):
    encoder = load_encoder(NAME, api_base=server.url, dimensions=3)

    assert encoder.encode([]).shape == (0, 3)
    assert server.bodies == []
    encoder.encode(["a"])
    assert server.bodies[0]["dimensions"] == 3


def test_the_fingerprint_says_what_is_known_and_that_the_weights_are_not():
    plain, full = (
        load_encoder("text-embedding-3-small"),
        load_encoder("openai/text-embedding-3-small"),
    )
    cut = load_encoder(
        "ollama/e5",
        dimensions=256,
        max_tokens=500,
        query_prefix="query: ",
        api_base="http://gpu:11434",
    )

    assert (
        plain.fingerprint
        == "openai/text-embedding-3-small@weights-unknown/default-dimensions/8191t/l2"
    )
    assert full.fingerprint == plain.fingerprint
    assert cut.fingerprint == "ollama/e5@weights-unknown/256d/500t/l2/query='query: '"


def test_queries_and_documents_carry_the_prefix_the_model_wants(server):
    encoder = load_encoder(
        NAME, api_base=server.url, query_prefix="query: ", document_prefix="passage: "
    )

    encoder.encode(["a"])
    encode_queries(encoder, ["b"])

    assert [body["input"] for body in server.bodies] == [["passage: a"], ["query: b"]]


def test_a_provider_that_tells_queries_from_documents_is_told(server, monkeypatch):
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)
    encoder = load_encoder("voyage/voyage-3", api_base=server.url)

    encoder.encode(["a"])
    encode_queries(encoder, ["b"])

    assert [body["input_type"] for body in server.bodies] == ["document", "query"]


def test_a_text_over_the_limit_is_cut_by_tokens_counted_and_logged(server, caplog):
    encoder = load_encoder(NAME, api_base=server.url, max_tokens=10)

    with caplog.at_level(logging.WARNING):
        encoder.encode(["one two three " * 5, "short", "ten tokens at most, and more bytes"])

    assert server.bodies[0]["input"][0].split() == ["one", "two", "three"] * 3 + ["one"]
    assert server.bodies[0]["input"][1:] == ["short", "ten tokens at most, and more bytes"]
    assert encoder.truncated == 1
    assert "1 of 3 texts have more than 10 tokens" in caplog.text


def test_a_cut_never_leaves_half_a_character(server):
    encoder = load_encoder(NAME, api_base=server.url, max_tokens=5)

    encoder.encode(["鬱" * 20])

    assert set(server.bodies[0]["input"][0]) == {"鬱"}


def test_a_server_that_is_busy_is_asked_again_when_it_says(server, encoder, slept, caplog):
    server.script = [failure(429, Retry_After="7")]

    with caplog.at_level(logging.WARNING, logger="pegboard"):
        encoder.encode(["a"])

    assert slept == [7.0]
    assert server.sizes == [1, 1]
    assert f"{NAME}: attempt 1 failed (rate); again in 7.0 s" in caplog.text
    assert KEY not in caplog.text


def test_a_retry_after_that_is_a_date_is_honoured_too(server, encoder, slept):
    later = datetime.now(UTC) + timedelta(seconds=30)
    server.script = [failure(503, Retry_After=format_datetime(later, usegmt=True))]

    encoder.encode(["a"])

    left = (later - datetime.now(UTC)).total_seconds()
    assert left - 1 <= slept[0] <= 30  # the date has no fractions of a second


def test_a_wait_longer_than_a_run_should_take_is_not_waited_for(server, encoder, slept):
    server.script = [failure(429, Retry_After="3600")]

    with fails(r"the server asks to wait 3600 s.*refused after 1 attempt:"):
        encoder.encode(["a"])
    assert slept == []


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504, 529])
def test_a_failure_that_may_pass_is_tried_again(server, encoder, slept, status):
    server.script = [failure(status)]

    np.testing.assert_allclose(encoder.encode(["abc"]), unit(3), atol=1e-6)
    assert len(slept) == 1


def test_attempts_are_counted_in_one_place(server, slept):
    # LiteLLM's and the OpenAI client's own retries would multiply this.
    server.script = [failure(500)] * 20
    encoder = load_encoder(NAME, api_base=server.url, attempts=3, sleep=slept.append)

    with fails("No success after 3 attempts"):
        encoder.encode(["a"])
    assert len(server.bodies) == 3
    assert all(0 <= seconds <= 30 for seconds in slept)


@pytest.mark.parametrize(
    ("reply", "advice"),
    [
        (failure(400), "Sending it again would not help: check dimensions, batch_size"),
        (
            failure(400, "This model's maximum context length is 512 tokens"),
            r"less than max_tokens \(8191\)",
        ),
        (failure(401), "Set the environment variable OPENAI_API_KEY"),
        (failure(403), "Set the environment variable OPENAI_API_KEY"),
        (failure(404), "Check the model's name and api_base"),
        (failure(413), "Sending it again would not help"),
        (failure(422), "Sending it again would not help"),
        (
            failure(429, "You exceeded your current quota", "insufficient_quota"),
            "has no quota left",
        ),
    ],
)
def test_what_cannot_succeed_is_tried_once(server, encoder, slept, reply, advice):
    server.script = [reply]

    with fails(rf"{NAME} at {server.url} did not encode: .*{advice}"):
        encoder.encode(["a"])
    assert len(server.bodies) == 1
    assert slept == []


def test_a_missing_key_names_its_variable_and_asks_no_server(server, encoder, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")

    with fails("Set the environment variable OPENAI_API_KEY"):
        encoder.encode(["a"])
    assert server.bodies == []


def test_the_key_can_come_from_another_variable(server, monkeypatch):
    encoder = load_encoder(NAME, api_base=server.url, api_key_env="GATEWAY_KEY")

    with fails("GATEWAY_KEY, named by api_key_env, is not set"):
        encoder.encode(["a"])
    monkeypatch.setenv("GATEWAY_KEY", "gateway-secret")
    encoder.encode(["a"])

    assert server.keys == ["Bearer gateway-secret"]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (vectors([[1.0, 2.0]]), r"one vector for each of 2 texts, got 1 with indices \[0\]"),
        (vectors([[1.0, 2.0]] * 3), "for each of 2 texts, got 3"),
        (vectors([[1.0, 2.0]] * 2, [1, 1]), r"got 2 with indices \[1\]"),
        (vectors([[1.0, 2.0]] * 2, [1, 2]), r"got 2 with indices \[1, 2\]"),
        (vectors([[1.0, 2.0], [1.0, float("nan")]]), "NaN or infinity"),
        (vectors([[1.0, 2.0], [1.0, float("inf")]]), "NaN or infinity"),
        (vectors([[1.0, 2.0], [1.0, 1e200]]), "NaN or infinity"),
        (vectors([[1.0, 2.0], [0.0, 0.0]]), "nothing but zeros"),
        (vectors([[1.0, 2.0], [1.0, None]]), "NaN or infinity|not a list of indexed vectors"),
        (vectors([[1.0, 2.0], [1.0]]), "not a list of indexed vectors of one length"),
        (vectors([[1.0, 2.0], "////"]), "not a list of indexed vectors"),
        (vectors([[], []]), "nothing but zeros"),
        (
            (200, {}, {"data": [{"embedding": [1.0]}, {"embedding": [1.0]}]}),
            "not a list of indexed vectors",
        ),
        ((200, {}, {"data": ["a", "b"]}), "not a list of indexed vectors"),
        ((200, {}, {"data": None}), "got 0"),
    ],
)
def test_a_reply_that_is_not_a_vector_for_each_text_is_refused_whole(
    server, encoder, reply, problem
):
    server.script = [reply]

    with fails(rf"{NAME} at {server.url} answered, but .*({problem})"):
        encoder.encode(["a", "b"])
    assert len(server.bodies) == 1


def test_vectors_that_change_their_length_are_refused(server, encoder):
    encoder.encode(["a"])
    server.script = [vectors([[1.0, 2.0]])]

    with fails("expected vectors of 3 dimensions, got 2"):
        encoder.encode(["a"])


@pytest.mark.parametrize("content", [{}, [], b"<html>login</html>"])
def test_a_reply_of_another_kind_is_an_encoder_error(server, content):
    server.script = [(200, {}, content)]
    encoder = load_encoder(NAME, api_base=server.url, attempts=1)

    with fails("did not encode|answered, but"):
        encoder.encode(["a"])


def test_a_server_that_does_not_answer_is_given_up_on(server):
    server.script = ["hang"]
    encoder = load_encoder(NAME, api_base=server.url, timeout=0.3, attempts=1)

    with fails(r"No answer after 1 attempt: raise timeout \(0.3 s\)"):
        encoder.encode(["a"])


def test_a_server_that_is_not_there_is_an_encoder_error(server):
    address = server.url
    server.server_close()  # nobody listens at its port any more
    encoder = load_encoder(NAME, api_base=address, attempts=2, sleep=lambda _: None)

    with fails("No success after 2 attempts: check that the server is up"):
        encoder.encode(["a"])


def test_threads_share_an_encoder(encoder):
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(encoder.encode, [["a" * length] for length in range(1, 13)]))

    np.testing.assert_allclose(np.concatenate(results), unit(*range(1, 13)), atol=1e-6)


def test_a_name_without_a_provider_is_an_error_with_an_example():
    with pytest.raises(
        EncoderError, match=r"no provider for 'all-MiniLM-L6-v2'. Write provider/model"
    ):
        load_encoder("all-MiniLM-L6-v2")


@pytest.mark.parametrize(
    "options",
    [{"dimensions": 0}, {"batch_size": 0}, {"timeout": 0}, {"timeout": "60"}, {"attempts": 1.5}],
)
def test_a_wrong_value_is_a_wrong_configuration(options):
    [name] = options

    with pytest.raises(ConfigurationError, match=f"{name} = "):
        load_encoder(NAME, **options)


@pytest.mark.parametrize("module", ["litellm", "tenacity"])
def test_a_missing_package_answers_with_its_install_command(monkeypatch, module):
    monkeypatch.setitem(
        sys.modules, module, None
    )  # how Python marks a module that cannot be imported

    with pytest.raises(
        EncoderError, match=rf"{module}, which is not installed.*pip install 'pegboard\[litellm\]'"
    ):
        load_encoder(NAME)
