"""`pegboard report`: for a board or a configuration, into the board, into a file, or as JSON."""

import argparse
import json

import pytest

from flows.cli.report import register
from pegboard.errors import PegboardError


@pytest.fixture(autouse=True)
def _no_board_in_the_environment(monkeypatch):
    monkeypatch.delenv("PEGBOARD_BOARD", raising=False)


@pytest.fixture
def two(workshop, hashing):
    """A board with two releases, the second of which is live."""
    tools = [workshop.tool(f"tool_{number}", f"Does {number}.") for number in range(3)]
    return [
        workshop.publish({"git": tools[: count + 1]}, encoder=hashing(8)).release.id
        for count in (1, 2)
    ]


def ran(capsys, *arguments):
    """As the console script runs it."""
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers(required=True))
    options = parser.parse_args(["report", *map(str, arguments)])
    try:
        code = options.run(options)
    except PegboardError as error:
        print(error)
        code = error.exit_code
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_it_writes_the_page_and_the_json_into_the_board_and_says_where(capsys, workshop, two):
    code, out, err = ran(capsys, "--board", workshop.uri)

    page = workshop.folder / "board" / "reports" / f"{two[1]}.html"
    assert code == 0
    assert out.startswith("No gate: Nothing was measured before it was published.")
    assert f"page: {page} (" in out
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert json.loads(page.with_suffix(".json").read_text("utf-8"))["release"]["id"] == two[1]
    assert f"release {two[1]}" in err


def test_a_configuration_names_the_board_and_the_channel(capsys, workshop, two):
    file = workshop.folder / "pegboard.toml"

    printed = json.loads(ran(capsys, "-c", file, "--json")[1])

    assert printed["release"]["id"] == two[1]
    assert not (workshop.folder / "board" / "reports").exists()


def test_an_older_release_goes_into_a_file_of_its_own(capsys, workshop, two, tmp_path):
    out = tmp_path / "old.html"

    code, said, _ = ran(capsys, "--board", workshop.uri, "--release", two[0][:8], "--out", out)

    assert code == 0
    assert f"page: {out} (" in said
    assert two[0] in out.read_text("utf-8")
    assert not (workshop.folder / "board" / "reports").exists()


def test_what_cannot_be_is_said(capsys, workshop, two, tmp_path):
    unknown = ran(capsys, "--board", workshop.uri, "--release", "ffff")
    nowhere = ran(capsys, "--board", tmp_path / "none")
    channel = ran(capsys, "--board", workshop.uri, "--channel", "canary")
    folder = ran(capsys, "--board", workshop.uri, "--out", tmp_path)

    assert [one[0] for one in (unknown, nowhere, channel, folder)] == [4, 4, 4, 2]
    assert "no release 'ffff'" in unknown[1]
    assert "There is no board at" in nowhere[1]
    assert "cannot be written" in folder[1]
