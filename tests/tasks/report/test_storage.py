"""Reports as files of a board."""

import json
from datetime import UTC, datetime, timedelta

from tasks.report.data import Reports
from tasks.report.storage import make_report, remove_reports, report_release


def test_a_report_is_stored_in_the_board_and_a_later_one_keeps_the_data_of_the_run(board):
    run = board.run | {"rejected": board.run["rejected"] * 50}
    report, data, _ = make_report(board.uri, board.held.id, run)

    folder = board.workshop.folder / "board" / "reports"
    assert report.html == str(folder / f"{board.held.id}.html")
    values = json.loads((folder / f"{board.held.id}.json").read_text("utf-8"))
    assert {name: values[name] for name in data} == data
    assert data["verdict"]["title"] == report.title == "Held, not live"
    assert (folder / f"{board.held.id}.html").stat().st_size == report.bytes > 30_000
    assert not list(folder.glob("*.tmp"))

    later, data, _ = make_report(board.uri, board.held.id[:6], store=False)
    assert later.html is None
    assert data["run"]["seconds"] == board.run["seconds"]


def test_a_failed_report_does_not_fail_the_run(workshop, hashing):
    release = workshop.publish({"git": [workshop.tool("one")]}, encoder=hashing(8)).release
    (workshop.folder / "board" / "reports").write_text("a file where the folder would be")
    configuration = workshop.configure()

    refused = report_release(configuration, release.id)
    unknown = report_release(configuration, "feedbeef")

    assert refused.html is None
    assert "cannot be" in refused.problem
    assert "`pegboard report --release" in refused.problem
    assert "feedbeef" in unknown.problem


def test_reports_are_removed_with_their_releases(workshop):
    now = datetime.now(UTC) + timedelta(seconds=5)
    ago = datetime.now(UTC) - timedelta(hours=1)
    assert remove_reports(workshop.uri, set(), before=now) == 0  # there is no report yet

    reports = Reports(workshop.uri)
    for name in ("aaa.html", "aaa.json", "bbb.html", "bbb.json"):
        reports.write_text(name, "12345")

    assert remove_reports(workshop.uri, {"aaa"}, before=ago) == 0
    assert remove_reports(workshop.uri, {"aaa"}, before=now, dry_run=True) == 10
    assert remove_reports(workshop.uri, {"aaa"}, before=now) == 10
    assert sorted(reports.walk()) == ["aaa.html", "aaa.json"]
