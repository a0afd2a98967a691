"""`pegboard releases prune` and `pegboard report`: for a board or a configuration."""

import json
import shutil

import pytest


@pytest.fixture(scope="module")
def shared_releases(tmp_path_factory, workshop_type, hashing):
    workshop = workshop_type(tmp_path_factory.mktemp("three"))
    tools = [workshop.tool(f"tool_{number}", f"Does {number}.") for number in range(4)]
    return workshop.folder, [
        workshop.publish({"git": tools[: number + 1]}, encoder=hashing(8)).release.id
        for number in range(3)
    ]


@pytest.fixture
def releases(workshop, shared_releases):
    """The ids of the three releases of the workshop's board, of which the last is live."""
    folder, ids = shared_releases
    shutil.copytree(folder, workshop.folder, dirs_exist_ok=True)
    return ids


def test_prune_keeps_what_the_configuration_says_or_thirty_releases_and_days(
    command, workshop, releases, monkeypatch
):
    first, second, live = releases

    def prune(*options, releases=1, grace=24):
        keep = f"keep = {{ releases = {releases}, days = 0, grace_hours = {grace} }}"
        workshop.configure(board=keep)
        return command("releases", "prune", *options)[1]

    nine = json.loads(prune("--json", releases=9))
    young = json.loads(prune("--json"))
    monkeypatch.setenv("PEGBOARD_BOARD", workshop.uri)
    default = json.loads(command("releases", "prune", "--json")[1])
    for result in (nine, young, default):
        assert (result["kept"], result["removed"]) == ([live, second, first], [])
    monkeypatch.delenv("PEGBOARD_BOARD")

    dry = prune("--dry-run", grace=1e-7)
    assert f"would be removed 1 {first}" in " ".join(dry.split())
    assert "bytes would be removed." in dry
    removed = json.loads(prune("--json", grace=1e-7))
    assert (removed["removed"], removed["dry_run"]) == ([first], False)
    assert removed["bytes"] > 0
    assert [release.id for release in workshop.store.all()] == [live, second]


def test_a_report_goes_into_the_board_into_a_file_or_to_stdout(command, workshop, releases):
    reports = workshop.folder / "board" / "reports"

    printed = json.loads(command("report", "--json")[1])
    code, out, _ = command("report", "--release", releases[0][:8], "--out", "old.html")
    assert printed["release"]["id"] == releases[-1]
    assert (code, "page: old.html (" in out) == (0, True)
    assert releases[0] in (workshop.folder / "old.html").read_text("utf-8")
    assert not reports.exists()

    code, out, err = command("report", "--board", workshop.uri)
    page = reports / f"{releases[-1]}.html"
    assert code == 0
    assert f"page: {page} (" in out
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert json.loads(page.with_suffix(".json").read_text("utf-8"))["release"] == printed["release"]
    assert f"release {releases[-1]}" in err


def test_invalid_options_are_refused_with_what_is_expected(command, workshop, releases):
    for arguments, code, message in (
        ("releases prune --board nowhere", 4, "There is no board at nowhere"),
        ("report --board nowhere", 4, "There is no board at nowhere"),
        ("report --release ffff", 4, "no release 'ffff'"),
        ("report --channel canary", 4, "canary"),
        ("report --out .", 2, "cannot be written"),
        ("releases prune -c none.toml", 2, "/none.toml. Give one with -c"),
    ):
        ended, _, err = command(*arguments.split())
        assert (ended, message in err) == (code, True), err


@pytest.mark.parametrize("named_by", ["option", "environment", "file"])
@pytest.mark.parametrize("line", ["tools list", "releases list", "releases prune", "report"])
def test_a_store_has_the_options_of_pegboard_toml_however_the_board_is_named(
    command, workshop, monkeypatch, line, named_by
):
    storage = '{ aws_access_key_id = "${NOT_SET}" }'
    catalog = '[catalogs.kit]\ntype = "mcp-dump"\npath = "servers.json"\n'
    board = f'[board]\nuri = "s3://acme/board"\nstorage = {storage}\n'
    workshop.write("pegboard.toml", board + (catalog if named_by == "file" else ""))
    if named_by == "environment":
        monkeypatch.setenv("PEGBOARD_BOARD", "s3://acme/board/")
    option = ("--board", "s3://acme/board") if named_by == "option" else ()

    _, out, err = command(*line.split(), *option)

    assert "aws_access_key_id of s3://acme/board" in out + err
    assert "NOT_SET, which is not set" in " ".join((out + err).split())
