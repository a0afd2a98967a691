"""Encoders of other distributions, found by the entry-point group `pegboard.encoders`."""

import sys

import pytest

from pegboard.encoders import encode_queries, load_encoder
from pegboard.errors import ConfigurationError, EncoderError

MODULE = """
import numpy as np

class Letters:
    dimensions, fingerprint = 2, "letters/1"

    def __init__(self, name, *, first="a"):
        self.name, self._first = name, first

    def encode(self, texts):
        rows = [[1, 0] if text.startswith(self._first) else [0, 1] for text in texts]
        return np.array(rows, np.float32)

def anything(name, **options):
    encoder = Letters(name)
    encoder.options = options
    return encoder

def failing(name):
    return Letters(int(name.partition("/")[2]))

def incomplete(name):
    return "no encoder"

not_callable = 3
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a distribution with one entry point: its metadata and, for `letters`, its module, on
    the import path.
    """

    def install(name, value, module=MODULE):
        site = tmp_path / f"site-{len(list(tmp_path.iterdir()))}"
        info = site / f"{site.name.replace('-', '_')}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {site.name}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[pegboard.encoders]\n{name} = {value}\n")
        (site / "plugin_of_a_test.py").write_text(module)
        monkeypatch.syspath_prepend(site)
        return site

    yield install
    sys.modules.pop("plugin_of_a_test", None)


def test_the_prefix_of_a_name_selects_the_plug_in(install):
    install("letters", "plugin_of_a_test:Letters")

    encoder = load_encoder("letters/latin/v2")

    assert encoder.name == "letters/latin/v2"
    assert encode_queries(encoder, ["abc", "xyz"]).tolist() == [[1, 0], [0, 1]]


def test_keyword_only_parameters_of_a_plug_in_are_its_options(install):
    install("letters", "plugin_of_a_test:Letters")

    assert load_encoder("letters/latin", first="x").encode(["xyz"]).tolist() == [[1, 0]]
    with pytest.raises(
        ConfigurationError, match=r"'letters/latin' has no option last\. It has: first\."
    ):
        load_encoder("letters/latin", last="x")
    with pytest.raises(ConfigurationError, match="'letters' names no model"):
        load_encoder("letters")
    install("any", "plugin_of_a_test:anything")
    assert load_encoder("any/latin", depth=3).options == {"depth": 3}  # it takes every option


@pytest.mark.parametrize(
    ("value", "module", "reason"),
    [
        ("Letters", "import a_package_that_is_missing", "ModuleNotFoundError: No module named"),
        ("Letters", "1 / 0", "ZeroDivisionError"),
        ("Renamed", MODULE, "AttributeError"),
        ("not_callable", MODULE, "TypeError: 3 is not a callable object"),
        ("failing", MODULE, "ValueError: invalid literal"),
    ],
)
def test_a_plug_in_that_does_not_load_is_an_error_with_its_name(install, value, module, reason):
    install("letters", f"plugin_of_a_test:{value}", module)

    with pytest.raises(
        EncoderError,
        match=rf"'letters' \(plugin_of_a_test:{value}\) cannot load .*: {reason}.*Repair or",
    ):
        load_encoder("letters/latin")


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        (["incomplete"], "it has no name, dimensions, fingerprint"),
        (["Letters", "anything"], "Several plug-ins add encoders of the name 'letters'.*all but"),
    ],
)
def test_no_encoder_and_two_plug_ins_of_one_name_are_errors(install, plugins, message):
    for plugin in plugins:
        install("letters", f"plugin_of_a_test:{plugin}")

    with pytest.raises(EncoderError, match=message):
        load_encoder("letters/latin")


def test_no_plug_in_replaces_a_built_in_kind(install):
    install("hashing", "plugin_of_a_test:Letters")

    assert load_encoder("hashing/8").fingerprint == "hashing-8/1"
