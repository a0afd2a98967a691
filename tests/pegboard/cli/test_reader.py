"""`pegboard releases`, `promote`, `rollback`, `doctor`, and what all commands share."""

import json
import re
import shutil
from dataclasses import replace

import pytest

import pegboard
from pegboard.cli.main import main


@pytest.fixture(scope="module")
def grown(tmp_path_factory, board_uri):
    """A copy of the board with a second release, which is not live."""
    uri = str(shutil.copytree(board_uri, tmp_path_factory.mktemp("grown") / "board"))
    store = pegboard.ReleaseStore(uri)
    live = store.all()[0]
    store.add(replace(live, id="f" * 12, digest="f" * 64))
    return uri, live.id


@pytest.fixture
def two(grown, tmp_path):
    uri, live = grown
    return str(shutil.copytree(uri, tmp_path / "board")), live, "f" * 12


def test_releases_are_listed_with_their_channels(run, two):
    uri, live, other = two

    listed = run("releases list --json", board=uri).json
    header, *_ = lines = run("releases list", board=uri).out.splitlines()

    assert {row["release"] for row in listed["releases"]} == {live, other}
    assert [(row["channel"], row["release"], row["generation"]) for row in listed["channels"]] == [
        ("live", live, 1)
    ]
    assert " ".join(header.split()) == "RELEASE CREATED (UTC) TOOLS AGENTS INDEXES CHANNELS"
    row = re.compile(rf"{live}  \S+ \S+ +14 +6 +fine, full +live")
    assert sum(bool(row.fullmatch(line)) for line in lines) == 1


def test_a_release_is_shown_by_its_beginning_or_its_channel(run, two):
    uri, live, _ = two

    by_channel = run("releases show live --json", board=uri).json
    text = run(f"releases show {live[:6]}", board=uri).out

    assert by_channel == run(f"releases show {live[:6]} --json", board=uri).json
    assert by_channel["tables"]["tools"]["rows"] == 14
    assert by_channel["manifest"]["default_index"] == "full"
    for line in (
        f"release   {live}\n",
        "channel   live\n",
        "index     full (default): hashing/256",
        "changes   14 new, 0 changed, 0 removed, 0 unchanged, against an empty board",
    ):
        assert line in text


def test_releases_are_verified_and_a_problem_ends_with_1(run, two):
    uri, live, other = two
    store = pegboard.ReleaseStore(uri)
    table = store.database.open_table("tools")
    table.update(where="name = 'list_rates'", values={"description": "spoilt"})
    release = store.get(live)
    pin = replace(release.tables["tools"], version=table.version)
    tables = {**release.tables, "tools": pin}
    store.add(replace(release, id="e" * 12, digest="e" * 64, tables=tables))

    good = run("releases verify", board=uri)
    values = run(f"releases verify {live[:6]} --json", board=uri).json
    spoilt = run("releases verify eee", board=uri)

    assert (good.code, good.out.splitlines()[1], good.out.splitlines()[-1]) == (
        0,
        "read  tools: 14 rows",
        f"Release {live} is as it was published.",
    )
    assert (values["sound"], values["problems"], values["rows"]["tools"]) == (True, [], 14)
    assert run(f"releases verify {other}", board=uri).code == 0
    assert (spoilt.code, spoilt.err) == (1, "")
    assert "WRONG  tools: 1 row: without the checksum" in spoilt.out
    assert f"Release {'e' * 12} is not as it was published: 1 problem." in spoilt.out


def test_promote_and_rollback_move_the_channel(run, two):
    uri, live, other = two

    def moved(line):
        values = run(f"{line} --json", board=uri).json
        return values["channel"], values["release"], values["generation"]

    assert run("promote fff", board=uri).out == f"live is now release {other} (generation 2)\n"
    assert moved("rollback") == ("live", live, 3)
    assert moved(f"promote {live} --channel canary") == ("canary", live, 1)
    assert moved(f"promote {other}") == ("live", other, 4)
    assert moved("promote canary") == ("live", live, 5)


@pytest.mark.parametrize(
    ("line", "code", "kind", "message"),
    [
        ("promote abc", 4, "BoardNotFound", "no release 'abc'"),
        ("promote fff --channel 'a b'", 2, "ConfigurationError", "cannot be named 'a b'"),
        ("rollback", 4, "BoardNotFound", "no earlier release"),
        ("rollback --channel nobody", 4, "BoardNotFound", "no earlier release"),
        ("releases show abc", 4, "BoardNotFound", "no release 'abc'"),
        ("releases verify abc", 4, "BoardNotFound", "no release 'abc'"),
        ("releases diff", 4, "BoardNotFound", "no earlier release"),
        ("find x --channel nobody", 4, "BoardNotFound", "no channel 'nobody'; it has: live"),
        ("find x --index nobody", 4, "BoardNotFound", "no index 'nobody'"),
    ],
)
def test_an_error_ends_with_its_exit_code_and_one_message(run, grown, line, code, kind, message):
    uri, live = grown

    plain = run(line, board=uri)
    in_json = run(f"{line} --json", board=uri)

    assert (plain.code, plain.out) == (code, "")
    assert plain.err.startswith(f"pegboard {line.split()[0]}: ")
    assert message in plain.err
    assert "Traceback" not in plain.err
    error = json.loads(in_json.out)["error"]
    assert (in_json.code, error["type"]) == (code, kind)
    assert message in error["message"]
    assert pegboard.ReleaseStore(uri).channel().release == live


def test_a_folder_without_a_board_ends_with_4_and_doctor_reports_it(run, tmp_path):
    searched = run("find x", board=tmp_path)
    checked = run("doctor", board=tmp_path)

    assert (searched.code, checked.code) == (4, 1)
    assert "There is no board at" in searched.err
    assert re.search(r"^WRONG    board: There is no board at ", checked.out, re.MULTILINE)


@pytest.mark.parametrize(
    "line",
    ["", "fnd", "releases", "tools", "graph show --mode fuzzy", "find x --board b -k many"],
)
def test_invalid_usage_ends_with_2_and_prints_the_usage(run, line):
    printed = run(line)

    assert printed.code == 2
    assert "usage: pegboard" in printed.err


def test_without_a_board_the_environment_and_then_the_configuration_names_it(
    run, workshop, board_uri, monkeypatch
):
    workshop.publish({"git": [workshop.tool("create_issue")]})
    elsewhere = workshop.folder / "elsewhere"
    elsewhere.mkdir()

    def found(folder, environment=None):
        monkeypatch.chdir(folder)
        if environment:
            monkeypatch.setenv("PEGBOARD_BOARD", environment)
        else:
            monkeypatch.delenv("PEGBOARD_BOARD", raising=False)
        return run("tools list --json")

    assert [tool["name"] for tool in found(workshop.folder).json["tools"]] == ["create_issue"]
    assert len(found(workshop.folder, board_uri).json["tools"]) == 14
    assert found(elsewhere).code == 2
    assert "Expected --board URI, the environment variable PEGBOARD_BOARD, or a peg" in (
        found(elsewhere).err
    )
    (elsewhere / "pegboard.toml").write_text("[board]\nuri = 5\n")
    assert "uri" in found(elsewhere).err


def test_doctor_checks_the_installation_and_a_board(run, board_uri):
    installation = run("doctor --json").json
    checks = {
        check["what"]: check for check in run("doctor --json", board=board_uri).json["checks"]
    }

    assert installation["wrong"] is False
    assert {"python", "pegboard", "lancedb", "embedded encoder"} <= {
        check["what"] for check in installation["checks"]
    }
    assert checks["board"]["say"].endswith("14 tools")
    assert checks["index full"]["say"] == "hashing/256 answers"
    assert all(check["state"] in ("good", "missing") for check in checks.values())
    assert "ok       board: release" in run("doctor", board=board_uri).out


def test_a_path_below_a_home_directory_that_nobody_has_is_a_message_and_no_traceback(capsys):
    code = main(["doctor", "-c", "~no-such-user/pegboard.toml"])

    error = capsys.readouterr().err
    assert code == 2
    assert "Traceback" not in error
    assert "Set HOME to a folder, or write the path without ~." in error
