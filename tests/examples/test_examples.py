"""The examples, installed and run as examples/README.md says; without a network, and in a copy of
the folder.
"""

import json
import shutil
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.children import clean_environment, end_child, start_child

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A copy of examples/, with both plug-ins installed beside it in `site`."""
    folder = tmp_path_factory.mktemp("examples")
    shutil.copytree(
        ROOT / "examples", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("board")
    )
    plugins = [str(folder / "own_source"), str(folder / "own_encoder")]
    options = ["--quiet", "--offline", "--no-deps", "--no-build-isolation", "--python"]
    command = [UV, "pip", "install", *options, sys.executable, "--target", folder / "site"]
    done = subprocess.run([*command, *plugins], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def environment(folder):
    """The environment with the plug-ins, without a Prefect server or the home of whoever runs the
    tests.
    """
    return {**clean_environment(folder / "home"), "PYTHONPATH": str(folder / "site")}


@pytest.fixture(scope="module")
def pegboard(folder, environment):
    """Run a command in the copy; returns its standard output."""

    def run(*arguments):
        command = [sys.executable, "-m", "pegboard", *arguments]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def operations(pegboard):
    """The board of the example source, built once."""
    pegboard("build", "-c", "own_source/pegboard.toml")
    return "own_source/board"


@pytest.fixture(scope="module")
def service(folder, environment, operations):
    """The address of the example service, which reads that board."""
    program = start_child(
        [sys.executable, "read_a_board.py", operations, "--port", "0"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    yield program.stdout.readline().removeprefix("Serving http://").partition("/")[0]
    end_child(program)
    program.stdout.close()


def get(address, path):
    connection = HTTPConnection(address)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def test_the_source_plug_in_lists_documented_targets_as_tools(pegboard, operations):
    hits = json.loads(pegboard("find", "restore the database", "--board", operations, "--json"))[
        "hits"
    ]

    assert hits[0]["name"] == "restore-db"
    assert hits[0]["tags"] == ["operations"]
    assert {hit["name"] for hit in hits} == {"stop", "restore-db", "rotate-certificates"}


def test_the_encoder_plug_in_finds_a_tool_in_spite_of_typos(pegboard):
    pegboard("build", "-c", "own_encoder/pegboard.toml")

    output = pegboard(
        "find", "reserv a tabel in a restaurnt", "--board", "own_encoder/board", "--json"
    )

    assert json.loads(output)["hits"][0]["name"] == "book_restaurant"


def test_the_service_answers_with_tools_for_an_api_call(service):
    status, reply = get(service, "/tools?request=restore+the+database&k=1")

    assert status == 200
    assert [tool["function"]["name"] for tool in reply["tools"]] == ["restore-db"]
    assert reply["release"]


def test_the_readme_runs_what_these_tests_run():
    text = (ROOT / "examples" / "README.md").read_text("utf-8")

    requests = ("restore the database", "a tabel in a restaurnt", "restore+the+database&k=1")
    assert [request for request in requests if request not in text] == []
