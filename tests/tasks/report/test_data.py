"""The values of a report, with and without a gate, a run, and a release before it."""

import shutil

import pytest

from pegboard.errors import StoreError
from pegboard.store.releases import ReleaseStore
from tasks.report.data import Reports, report_data
from tasks.report.gate import verdict_data
from tasks.report.storage import make_report

FIRST = {"against": None, "counts": {"added": 3, "changed": 0, "removed": 0}}
LATER = {"against": "abc", "counts": {"added": 1, "changed": 0, "removed": 2}}
PASSED = {"passed": True, "rules": [{"rule": "r", "passed": True}], "canaries": {"count": 0}}
CAPTURED = {"passed": False, "rules": [], "canaries": {"count": 0, "missed": 0}}
HELD = {"passed": False, "rules": [], "canaries": {"count": 2, "missed": 1}}


@pytest.fixture(scope="module")
def shared_plain(tmp_path_factory, workshop_type, hashing):
    workshop = workshop_type(tmp_path_factory.mktemp("plain"))
    servers = {"git": [workshop.tool("one")]}
    return workshop.uri, workshop.publish(servers, encoder=hashing(8)).release


@pytest.fixture
def plain(workshop, shared_plain):
    """A workshop with a release of one tool, without a gate."""
    uri, release = shared_plain
    shutil.copytree(uri, workshop.uri)
    return workshop, release


def test_a_board_without_tools_has_a_report(plain):
    workshop, _ = plain
    workshop.servers({"git": []})
    release = workshop.run(workshop.configure(), allow_removal=True).release

    report, data, _ = make_report(workshop.uri, release.id)

    assert (report.problem, data["twins"]["total"]) == ("", 0)
    assert data["changes"]["counts"]["removed"] == 1


@pytest.mark.parametrize(
    ("gate", "changes", "channels", "state", "title", "says"),
    [
        (
            {},
            FIRST,
            ["live"],
            "none",
            "First release, live",
            "Published without golden queries: nothing was measured. 3 tools.",
        ),
        (PASSED, LATER, ["live"], "passed", "Live", "1 rule holds. 1 new, 2 removed tools."),
        (PASSED, FIRST, ["new"], "passed", "First release, live on new", "1 rule holds. 3 tools."),
        (PASSED, {}, [], "passed", "Not live", "1 rule holds."),
        (HELD, LATER, [], "held", "Held, not live", "1 of 2 canaries broke."),
        (CAPTURED, LATER, [], "held", "Held, not live", "2 queries captured."),
        (HELD, LATER, ["live"], "failed", "Live, by hand", "1 of 2 canaries broke."),
    ],
)  # fmt: skip
def test_the_verdict_states_whether_the_release_is_live_and_why(
    gate, changes, channels, state, title, says
):
    captured = {"total": 2, "most": 1 if gate is CAPTURED else None}
    verdict = verdict_data(gate, changes, channels, captured)
    assert verdict == {"state": state, "title": title, "says": says}


def test_the_report_of_a_held_release_has_the_rules_of_its_gate(board, held_data):
    assert [rule["passed"] for rule in held_data["gate"]["rules"]] == [True, False]
    assert held_data["gate"]["live"] == board.passed.id
    assert held_data["release"]["channels"] == []


def test_lost_queries_have_the_tools_that_changed(held_data):
    lost = held_data["queries"]["lost"]

    assert lost["total"] == len(lost["shown"]) > 0
    first = lost["shown"][0]
    needed = first["needed"][0]
    assert first["before"][needed] <= 5
    assert first["now"][needed] is None or first["now"][needed] > 5
    assert any(tool.endswith(needed) for tool in first["changed"])


def test_changes_have_their_fields(board, held_data):
    changes = held_data["changes"]

    assert changes["against"] == board.passed.id
    assert changes["counts"] == {"added": 2, "removed": 1, "changed": 8, "unchanged": 12}
    assert changes["removed"] == {"total": 1, "shown": [{"id": "kit/roof/clean_roof"}]}
    pair = {"before": "Cleans the door of a customer.", "after": "Endpoint 7."}
    assert changes["changed"]["shown"][0]["fields"] == [{"field": "description", **pair}]


def test_a_report_has_only_data_of_the_run_that_made_its_release(board):
    assert report_data(board.uri, board.passed.id, board.run)["run"] is None


def test_a_release_without_a_gate_says_how_to_add_one(board_uri):
    release = ReleaseStore(board_uri).channel().release

    data = report_data(board_uri, release)

    assert data["verdict"]["state"] == "none"
    assert "[golden]" in data["gate"]["missing"]
    assert data["measures"]["rows"] == []


def test_an_unreadable_part_is_reported_missing_and_the_rest_is_present(plain, monkeypatch):
    workshop, release = plain

    def damaged(*_):
        raise StoreError("the table is damaged")

    monkeypatch.setattr("tasks.report.data.twins_data", damaged)

    data = report_data(workshop.uri, release.id)

    assert data["twins"] == {"missing": "the table is damaged"}
    assert data["counts"]["tools"] == 1
    assert not Reports(workshop.uri).exists(f"{release.id}.json")


def test_twins_of_a_large_release_are_not_compared(board, monkeypatch):
    monkeypatch.setattr("tasks.report.twins.MAX_TOOLS", 21)

    data = report_data(board.uri, board.held.id)

    assert "Not compared: the release has 22 tools" in data["twins"]["missing"]
