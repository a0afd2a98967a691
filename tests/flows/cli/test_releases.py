"""`pegboard releases prune` and `pegboard report`: for a board or a configuration."""

import json

import pytest


@pytest.fixture
def releases(workshop, hashing):
    """The ids of three releases, of which the last is live."""
    tools = [workshop.tool(f"tool_{number}", f"Does {number}.") for number in range(4)]
    return [
        workshop.publish({"git": tools[: number + 1]}, encoder=hashing(8)).release.id
        for number in range(3)
    ]


def test_options_override_the_configuration_which_overrides_thirty_releases_and_days(
    command, workshop, releases, monkeypatch
):
    first, second, live = releases
    board = ("releases", "prune", "--board", workshop.uri, "--keep", 1, "--days", 0)
    workshop.configure(board="keep = { releases = 9, days = 0 }")

    by_file = json.loads(command("releases", "prune", "--json")[1])
    by_option = json.loads(command("releases", "prune", "--keep", 1, "--json")[1])
    monkeypatch.setenv("PEGBOARD_BOARD", workshop.uri)
    by_default = json.loads(command("releases", "prune", "--json")[1])
    assert (len(by_file["kept"]), by_file["marked"]) == (3, [])
    assert (by_option["kept"], by_option["marked"]) == ([live, second], [first])
    assert by_default["kept"] == [live, second, first]

    code, marked, _ = command(*board)
    _, dry, _ = command(*board, "--grace-hours", 1e-7, "--dry-run")
    assert code == 0
    assert f"marked 1 {first}" in " ".join(marked.split())
    assert "Marked releases go with the first prune after 24 hours, unless" in marked
    assert f"would be removed 1 {first}" in " ".join(dry.split())
    assert "bytes would be removed." in dry
    removed = json.loads(command(*board, "--grace-hours", 1e-7, "--json")[1])
    parts = [removed[name]["bytes"] for name in ("versions", "files", "lake")]
    assert (removed["removed"], removed["dry_run"]) == ([first], False)
    assert removed["bytes"] == sum(parts) > 0
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
        ("releases prune --keep 0", 2, "--keep is 0: input should be greater than or equal to 1"),
        ("releases prune --days -1 --grace-hours 0", 2, "--grace-hours is 0.0: input should be"),
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
@pytest.mark.parametrize(
    "line", ["tools list", "releases list", "releases prune", "report", "rollback", "doctor"]
)
def test_a_store_has_the_options_of_pegboard_toml_however_the_board_is_named(
    command, workshop, monkeypatch, line, named_by
):
    storage = '{ aws_access_key_id = "${NOT_SET}" }'
    workshop.write("pegboard.toml", f'[board]\nuri = "s3://acme/board"\nstorage = {storage}\n')
    if named_by == "file":
        workshop.write(
            "pegboard.toml",
            f'[board]\nuri = "s3://acme/board"\nstorage = {storage}\n'
            f'[catalogs.kit]\ntype = "mcp-dump"\npath = "servers.json"\n',
        )
    if named_by == "environment":
        monkeypatch.setenv("PEGBOARD_BOARD", "s3://acme/board/")
    option = ("--board", "s3://acme/board") if named_by == "option" else ()

    _, out, err = command(*line.split(), *option)

    assert "aws_access_key_id of s3://acme/board" in out + err
    assert "NOT_SET, which is not set" in " ".join((out + err).split())
