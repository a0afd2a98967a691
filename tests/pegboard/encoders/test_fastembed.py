"""The fastembed encoder against a stand-in package: the real one is an extra that fetches its
models from a hub.

The stand-in has the names, arguments and errors of fastembed 0.9.1, against which this encoder was
run by hand with files on disk."""

import json
import sys

import numpy as np
import pytest

from pegboard.encoders import encode_queries, load_encoder
from pegboard.errors import EncoderError

STAND_IN = """
import numpy as np

class Loaded:
    def __init__(self, folder):
        self._model_dir = folder

class TextEmbedding:
    custom = {}

    @staticmethod
    def list_supported_models():
        return [{"model": "Acme/tiny", "dim": 2, "model_file": "model.onnx"}]

    @classmethod
    def add_custom_model(cls, model, *, pooling, normalization, sources, dim):
        cls.custom[model] = (pooling, normalization, dim)

    def __init__(self, model_name, threads, providers, specific_model_path=None):
        assert providers == ["CPUExecutionProvider"]
        if specific_model_path is None:
            raise ValueError(f"Could not load model {model_name} from any source.")
        self.model = Loaded(specific_model_path)

    def passage_embed(self, texts, batch_size):
        yield from (np.array([len(text), 1.0]) for text in texts)

    def query_embed(self, texts, batch_size):
        yield from (np.array([1.0, len(text)]) for text in texts)
"""
DESCRIPTIONS = """
from enum import Enum

PoolingType = Enum("PoolingType", ["MEAN", "CLS"])

class ModelSource:
    def __init__(self, url):
        self.url = url
"""


@pytest.fixture(autouse=True)
def package(tmp_path, monkeypatch):
    (tmp_path / "fastembed").mkdir()
    (tmp_path / "fastembed/__init__.py").write_text(STAND_IN)
    (tmp_path / "fastembed/common").mkdir()
    (tmp_path / "fastembed/common/model_description.py").write_text(DESCRIPTIONS)
    (tmp_path / "fastembed-0.9.1.dist-info").mkdir()
    (tmp_path / "fastembed-0.9.1.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: fastembed\nVersion: 0.9.1\n"
    )
    monkeypatch.delitem(sys.modules, "fastembed", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("fastembed", None)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model/model.onnx").write_bytes(b"weights")
    return tmp_path / "model"


def test_documents_and_queries_each_take_their_way(folder):
    encoder = load_encoder("fastembed/Acme/tiny", folder=folder)

    np.testing.assert_allclose(encoder.encode(["abc"]), [[3 / 10**0.5, 1 / 10**0.5]], rtol=1e-6)
    np.testing.assert_allclose(
        encode_queries(encoder, ["abc"]), [[1 / 10**0.5, 3 / 10**0.5]], rtol=1e-6
    )
    assert encoder.encode([]).shape == (0, 2)
    assert encoder.encode(["abc"]).dtype == np.float32


def test_prefixes_are_added_and_are_part_of_the_fingerprint(folder):
    encoder = load_encoder(
        "fastembed/Acme/tiny", folder=folder, query_prefix="q:", document_prefix="d: "
    )

    np.testing.assert_allclose(encoder.encode(["a"]), [[4 / 17**0.5, 1 / 17**0.5]], rtol=1e-6)
    assert encoder.fingerprint.endswith("/l2/query='q:'/document='d: '")


def test_the_fingerprint_holds_the_loaded_weights_and_the_version(folder):
    encoder = load_encoder("fastembed/acme/TINY", folder=folder)

    assert encoder.fingerprint == "fastembed/Acme/tiny@9a129038d9a0/fastembed-0.9/l2"
    assert encoder.name == "fastembed/acme/TINY"


def test_a_failed_download_says_the_ways_out():
    with pytest.raises(
        EncoderError,
        match=r"Could not load model Acme/tiny.*pass folder=.*or use local/minilm-tools-v1",
    ):
        load_encoder("fastembed/Acme/tiny")


def test_an_unknown_model_names_those_there_are():
    with pytest.raises(EncoderError, match=r"no model 'Acme/huge'\. It has: Acme/tiny\."):
        load_encoder("fastembed/Acme/huge")


def write_pooling(folder, **modes):
    (folder / "1_Pooling").mkdir()
    config = {"word_embedding_dimension": 2, **modes}
    (folder / "1_Pooling/config.json").write_text(json.dumps(config))


def test_a_model_that_is_not_listed_is_described_by_its_folder(folder):
    from fastembed import TextEmbedding

    (folder / "onnx").mkdir()
    (folder / "onnx/model.onnx").write_bytes(b"weights")
    write_pooling(folder, pooling_mode_cls_token=False, pooling_mode_mean_tokens=True)

    encoder = load_encoder("fastembed/mine", folder=folder)

    assert encoder.fingerprint == "fastembed/mine@9a129038d9a0/fastembed-0.9/l2"
    assert encoder.encode(["abc"]).shape == (1, 2)
    ((pooling, normalised, dimensions),) = TextEmbedding.custom.values()
    assert (pooling.name, normalised, dimensions) == ("MEAN", True, 2)


def test_a_folder_that_does_not_say_how_to_pool_is_refused(folder):
    with pytest.raises(EncoderError, match=r"config\.json does not say how mine pools its tokens"):
        load_encoder("fastembed/mine", folder=folder)
    write_pooling(folder, pooling_mode_max_tokens=True)
    with pytest.raises(EncoderError, match="expected the mean of its tokens or the first one"):
        load_encoder("fastembed/mine", folder=folder)
