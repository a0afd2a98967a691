"""`pegboard releases prune`: by a configuration, or by a board alone."""

import argparse
import json

import pytest

from flows.cli.prune import register
from pegboard.cli.output import print_json
from pegboard.errors import PegboardError


@pytest.fixture(autouse=True)
def _no_board_in_the_environment(monkeypatch):
    monkeypatch.delenv("PEGBOARD_BOARD", raising=False)


@pytest.fixture
def three(workshop, hashing):
    """A board with three releases, the last of which is live."""
    tools = [workshop.tool(f"tool_{number}") for number in range(4)]
    return [
        workshop.publish({"git": tools[: number + 1]}, encoder=hashing(8)).release.id
        for number in range(3)
    ]


def ran(capsys, *arguments):
    """As the console script runs it below `pegboard releases`."""
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers(required=True))
    options = parser.parse_args(["prune", *map(str, arguments)])
    try:
        code = options.run(options)
    except PegboardError as error:
        print_json(str(error))
        code = error.exit_code
    return code, capsys.readouterr().out


def test_a_board_is_pruned_without_a_configuration(capsys, workshop, three):
    asked = ("--board", workshop.uri, "--keep", 1, "--days", 0, "--grace-hours", 1e-7)
    code, first = ran(capsys, *asked)
    _, dry = ran(capsys, *asked, "--dry-run")
    _, second = ran(capsys, *asked, "--json")

    assert code == 0
    assert f"marked    1             {three[0]}\n" in first
    assert (
        "Marked releases go with the first prune after 1e-07 hours, unless they are needed again."
        in first
    )
    assert f"would be removed  1              {three[0]}\n" in dry
    assert "bytes would be removed." in dry
    printed = json.loads(second)
    assert (printed["removed"], printed["kept"], printed["dry_run"]) == (
        [three[0]],
        [three[2], three[1]],
        False,
    )
    assert (
        printed["bytes"]
        == sum(printed[name]["bytes"] for name in ("versions", "files", "lake"))
        > 0
    )
    assert [one.id for one in workshop.store.all()] == [three[2], three[1]]


def test_the_configuration_says_what_is_kept_and_options_go_before_it(capsys, workshop, three):
    workshop.configure(board="keep = { releases = 9, days = 0 }")
    file = workshop.folder / "pegboard.toml"

    by_file = json.loads(ran(capsys, "-c", file, "--json")[1])
    by_option = json.loads(ran(capsys, "-c", file, "--keep", 1, "--json")[1])

    assert (len(by_file["kept"]), by_file["marked"]) == (3, [])
    assert (by_option["kept"], by_option["marked"]) == ([three[2], three[1]], [three[0]])


def test_without_any_word_on_it_thirty_releases_and_days_are_kept(
    capsys, workshop, three, monkeypatch
):
    monkeypatch.setenv("PEGBOARD_BOARD", workshop.uri)

    printed = json.loads(ran(capsys, "--json")[1])

    assert printed["kept"] == list(reversed(three))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--keep", "0"], 2, "--keep is 0: input should be greater than or equal to 1"),
        (
            ["--days", "-1", "--grace-hours", "0"],
            2,
            "--grace-hours is 0.0: input should be greater than 0",
        ),
        (["--board", "nowhere"], 4, "There is no board at nowhere"),
    ],
)
def test_what_cannot_be_is_said(capsys, workshop, three, arguments, code, message):
    board = () if "--board" in arguments else ("--board", workshop.uri)

    ended, said = ran(capsys, *board, *arguments)

    assert ended == code
    assert message in said


def test_without_a_board_or_a_configuration_it_says_what_is_missing(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    code, said = ran(capsys)

    assert code == 2
    assert "No configuration at " in said
