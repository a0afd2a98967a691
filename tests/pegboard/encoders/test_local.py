"""The embedded encoder, with its real weights."""

import logging
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from pegboard.encoders import encode_queries, load_encoder
from pegboard.encoders.local import MAX_BATCH_TOKENS
from pegboard.errors import EncoderError
from pegboard.text.languages import knows_only_english

NAME = "local/minilm-tools-v1"
TEXTS = [
    "Converts an amount from one currency to another",
    "convert 30 dollars to yen",
    "Creates an issue in a GitHub repository",
    "open a bug report on the project",
    "Returns the weather forecast for a city",
    "will it rain in Paris tomorrow",
    "",
    "日本の天気予報",
    "a very long text " * 100,
]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder(NAME)


@pytest.fixture
def model_folder(tmp_path):
    weights = Path(find_spec("pegboard").submodule_search_locations[0]) / "encoders"
    for name in ("model.onnx", "tokenizer.json"):
        shutil.copy(weights / "minilm-tools-v1" / name, tmp_path)
    return tmp_path


def test_what_decides_a_vector_is_in_the_fingerprint(encoder):
    assert (encoder.name, encoder.dimensions) == (NAME, 384)
    assert encoder.fingerprint == "minilm-tools-v1-int8@c9d1c1b08223/256t/mean/l2"


@pytest.mark.parametrize(
    ("name", "known"),
    [
        (NAME, [0.0723, 0.1078, -0.1039, 0.0329, -0.0263, -0.0857]),
        ("local/all-MiniLM-L6-v2", [0.0379, 0.0933, -0.1283, -0.0148, -0.0403, -0.1081]),
    ],
)
def test_a_known_text_keeps_its_vector(name, known):
    # Holds tokenizer, pooling and normalisation in place; wide enough for processors that add two
    # 8-bit products in 16 bits.
    [vector] = load_encoder(name).encode(["Converts an amount from one currency to another"])

    np.testing.assert_allclose(vector[:6], known, atol=2e-2)
    assert knows_only_english(name)


def test_a_request_is_nearest_to_the_tool_that_serves_it(encoder):
    tools = encoder.encode(TEXTS[0:6:2])
    requests = encode_queries(encoder, TEXTS[1:6:2])

    similarities = requests @ tools.T

    assert similarities.argmax(axis=1).tolist() == [0, 1, 2]
    assert similarities.diagonal().min() > 0.3
    assert (similarities - np.diag(similarities.diagonal())).max() < 0.2


def test_a_vector_depends_neither_on_its_batch_nor_on_the_padding_nor_on_the_threads(encoder):
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    single_thread = load_encoder(NAME, threads=1, batch_size=4)

    # Bitwise equal where this was measured; a processor with other kernels may round the last digit
    # otherwise.
    np.testing.assert_allclose(encoder.encode(TEXTS), alone, atol=1e-6)
    np.testing.assert_allclose(single_thread.encode(TEXTS), alone, atol=1e-6)
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1])[::-1], alone, atol=1e-6)


def test_the_tokens_of_a_batch_are_bounded_whatever_the_texts(encoder, monkeypatch):
    shapes = []
    session = encoder._session

    class Recording:
        def run(self, outputs, feeds):
            shapes.append(feeds["input_ids"].shape)
            return session.run(outputs, feeds)

    monkeypatch.setattr(encoder, "_session", Recording())
    encoder.encode(["word " * 300] * 9 + ["word"] * 70)
    assert sum(texts for texts, _ in shapes) == 79
    assert max(texts * tokens for texts, tokens in shapes) <= MAX_BATCH_TOKENS
    assert max(texts for texts, _ in shapes) == 32
    assert len(shapes) == 8  # 32, 32 and 6 short ones; 2, 2, 2, 2 and 1 long ones


def test_an_overlong_text_is_cut_counted_and_logged(caplog):
    encoder = load_encoder(NAME)

    with caplog.at_level(logging.WARNING):
        vectors = encoder.encode(["word " * 254, "word " * 254 + "penguin", "short"])

    assert encoder.truncated == 1
    assert "1 of 3 texts have more than 256 tokens" in caplog.text
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)


def test_files_brought_by_hand_give_the_same_vectors(encoder, model_folder):
    by_hand = load_encoder(NAME, folder=model_folder)

    assert by_hand.fingerprint == encoder.fingerprint
    np.testing.assert_array_equal(by_hand.encode(TEXTS[:2]), encoder.encode(TEXTS[:2]))


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_file_that_is_not_the_pinned_one_is_refused_with_both_digests(model_folder, name):
    with (model_folder / name).open("ab") as file:
        file.write(b" ")

    with pytest.raises(
        EncoderError,
        match=rf"{name} is not the pinned file: expected sha256 \w{{64}}, got \w{{64}}\. Reinstall",
    ):
        load_encoder(NAME, folder=model_folder)


def test_a_missing_file_is_an_error_with_its_path(tmp_path):
    with pytest.raises(EncoderError, match=r"tokenizer.json cannot be read \(No such file"):
        load_encoder(NAME, folder=tmp_path)
