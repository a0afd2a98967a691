"""Texts of many threads are encoded by few calls, and nothing of a caller reaches another."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pegboard.encoders import load_encoder, shared_encoder
from pegboard.encoders.batching import MAX_TEXTS, QueryBatches


class Encoding:
    """Encodes a text as its length, and holds its first call until it may go on."""

    def __init__(self):
        self.calls = []
        self.running = 0
        self.most = 0
        self.entered, self.go_on = threading.Event(), threading.Event()

    def __call__(self, texts):
        self.running += 1
        self.most = max(self.most, self.running)
        self.calls.append(list(texts))
        self.entered.set()
        assert self.go_on.wait(60)
        self.running -= 1
        if any(text.startswith("bad") for text in texts):
            raise ValueError(f"bad: {texts}")
        return np.array([[len(text)] for text in texts], np.float32)


@pytest.fixture
def encoding():
    return Encoding()


@pytest.fixture
def pool():
    with ThreadPoolExecutor(64) as pool:
        yield pool


def queue(batches, count):
    """Wait until so many calls are queued."""
    done = threading.Event()
    while len(batches._waiting) < count:
        done.wait(0.001)


def test_what_queued_behind_a_call_is_encoded_together(encoding, pool):
    batches = QueryBatches(encoding, 1)
    first = pool.submit(batches.encode, ["first"])
    assert encoding.entered.wait(60)
    futures = []
    for number in range(2 * MAX_TEXTS):
        futures.append(pool.submit(batches.encode, ["x" * number]))
        queue(batches, number + 1)
    encoding.go_on.set()
    assert first.result().tolist() == [[5]]
    assert [future.result().tolist() for future in futures] == [
        [[number]] for number in range(2 * MAX_TEXTS)
    ]
    assert [len(call) for call in encoding.calls] == [1, MAX_TEXTS, MAX_TEXTS]
    assert encoding.most == 1
    assert batches._free == 1


def test_a_text_of_several_callers_is_encoded_once_and_many_texts_of_one_stay_together(
    encoding, pool
):
    batches = QueryBatches(encoding, 1)
    many = ["y" * number for number in range(MAX_TEXTS + 5)]
    futures = [pool.submit(batches.encode, ["first"])]
    assert encoding.entered.wait(60)
    for texts in (["same"], many, ["same"], ["same", "other"]):
        futures.append(pool.submit(batches.encode, texts))
        queue(batches, len(futures) - 1)
    encoding.go_on.set()
    lengths = [future.result().ravel().tolist() for future in futures]
    assert lengths == [[5], [4], [len(text) for text in many], [4], [4, 5]]
    assert encoding.calls == [["first"], ["same"], many, ["same", "other"]]


def test_as_many_calls_run_at_once_as_may(encoding, pool):
    batches = QueryBatches(encoding, 3)
    futures = [pool.submit(batches.encode, [f"text {number}"]) for number in range(20)]
    queue(batches, 17)
    encoding.go_on.set()
    assert [future.result().tolist() for future in futures] == [[[6]]] * 10 + [[[7]]] * 10
    assert encoding.most == 3
    assert batches._free == 3


def test_an_error_reaches_only_the_caller_whose_text_caused_it(encoding, pool):
    batches = QueryBatches(encoding, 1)
    first = pool.submit(batches.encode, ["first"])
    assert encoding.entered.wait(60)
    futures = []
    for number, text in enumerate(["good", "bad 1", "fine", "bad 2"]):
        futures.append(pool.submit(batches.encode, [text]))
        queue(batches, number + 1)
    encoding.go_on.set()
    assert first.result().tolist() == futures[0].result().tolist() + np.array([[1]])
    assert futures[2].result().tolist() == [[4]]
    for future, text in ((futures[1], "bad 1"), (futures[3], "bad 2")):
        with pytest.raises(ValueError, match=text) as raised:
            future.result()
        assert ("bad 1" in str(raised.value)) != ("bad 2" in str(raised.value))
    with pytest.raises(ValueError, match="bad alone"):
        batches.encode(["bad alone"])
    assert encoding.calls.count(["bad alone"]) == 1
    assert batches.encode(["good"]).tolist() == [[4]]
    assert batches._free == 1


@pytest.mark.parametrize("leads", [False, True], ids=["queued", "leading"])
def test_a_thread_that_is_interrupted_while_it_waits_stops_no_other(
    encoding, pool, monkeypatch, leads
):
    batches = QueryBatches(encoding, 1)
    first = pool.submit(batches.encode, ["first"])
    assert encoding.entered.wait(60)

    idents = []

    class Interrupted(threading.Event):
        def wait(self, timeout=None):
            own = threading.get_ident() in idents
            if leads or not own:
                super().wait(timeout)
            if own:
                raise KeyboardInterrupt

    def interrupted():
        idents.append(threading.get_ident())
        try:
            batches.encode(["interrupted"])
        finally:
            idents.clear()

    monkeypatch.setattr("pegboard.encoders.batching.Event", Interrupted)
    stopped = pool.submit(interrupted)
    if leads:
        queue(batches, 1)
    else:
        with pytest.raises(KeyboardInterrupt):
            stopped.result()
    second = pool.submit(batches.encode, ["second"])
    queue(batches, 2 if leads else 1)
    encoding.go_on.set()
    with pytest.raises(KeyboardInterrupt):
        stopped.result()
    assert (first.result().tolist(), second.result().tolist()) == ([[5]], [[6]])
    assert encoding.calls == [["first"], ["second"]]
    assert batches._free == 1


def test_the_embedded_encoder_encodes_queries_of_threads_together(monkeypatch):
    monkeypatch.setattr("pegboard.encoders.local.processors", lambda: 1)
    encoder = load_encoder("local/minilm-tools-v1")
    texts = [f"the request of thread {number}, {'and so on ' * number}" for number in range(12)]
    alone = encoder.encode(texts)
    calls = []
    plain = encoder._queries._encode
    entered = threading.Event()
    go_on = threading.Event()

    def encode(batch):
        calls.append(len(batch))
        entered.set()
        assert go_on.wait(60)
        return plain(batch)

    encoder._queries._encode = encode
    with ThreadPoolExecutor(20) as pool:
        first = pool.submit(encoder.encode_queries, ["first"])
        assert entered.wait(60)
        futures = [pool.submit(encoder.encode_queries, [text]) for text in texts]
        queue(encoder._queries, len(texts))
        go_on.set()
        vectors = np.concatenate([future.result() for future in futures])
    assert first.result().shape == (1, 384)
    assert calls == [1, 12]
    np.testing.assert_allclose(vectors, alone, atol=1e-6)


def test_boards_of_a_process_share_an_encoder_that_runs_here_and_nothing_keeps_it():
    encoder = shared_encoder("hashing/24")
    assert shared_encoder("hashing/24") is encoder
    assert shared_encoder("hashing/25") is not encoder
    fingerprint = encoder.fingerprint
    del encoder
    assert shared_encoder("hashing/24").fingerprint == fingerprint
