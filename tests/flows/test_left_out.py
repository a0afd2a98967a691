"""What a build does not list as it is written: said by kind, in every place where a build shows."""

import json

import pytest

from catalogs.shared import listing as listing_module
from catalogs.shared.listing import ListingBuilder
from flows.cli.printing import run_lines
from flows.options import BuildOptions, Incomplete, failure_of
from flows.prefect.artifacts import left_out_rows, source_rows
from flows.reindex import reindex
from tasks.report.data import run_data

PHP = {"type": "object", "properties": []}
TEXT = {"type": "string"}


@pytest.fixture
def odd_board(workshop):
    """A configuration whose one catalog has a good tool, two repaired ones and two rejected."""
    tools = [
        workshop.tool("good"),
        *(workshop.tool(name) | {"inputSchema": PHP} for name in ("list_a", "list_b")),
        workshop.tool("no_arguments") | {"inputSchema": TEXT},
        workshop.tool("good"),
    ]
    workshop.servers({"git": tools})
    return workshop.configure()


def test_a_build_says_by_kind_what_it_rejected_and_repaired(odd_board):
    outcome = json.loads(json.dumps(reindex(odd_board)))

    kit = outcome["catalogs"]["kit"]
    assert (kit["tools"], kit["rejected"]) == (3, 2)
    assert kit["rejections"] == {"schema": 1, "duplicate": 1}
    assert kit["notices"] == {"repaired": 2}
    assert [row["kind"] for row in outcome["rejected"]] == ["schema", "duplicate"]
    assert [row["where"].rpartition("[")[2] for row in outcome["notices"]] == ["1]", "2]"]
    lines = run_lines(outcome)
    assert "  kit: 3 tools of 1 agent, 2 rejected (1 schema, 1 duplicate), 2 repaired" in lines
    assert [line.split()[0] for line in lines if "git.tools[" in line] == [
        *("rejected", "rejected"),
        *("repaired", "repaired"),
    ]


def test_the_artifacts_of_a_build_have_a_row_for_each(odd_board):
    outcome = reindex(odd_board)

    assert [row["what"] for row in left_out_rows(outcome)] == [
        *("rejected", "rejected"),
        *("repaired", "repaired"),
    ]
    (row,) = source_rows(outcome)
    assert (row["rejected"], row["repaired"], row["skipped"]) == (2, 2, 0)


def test_an_unchanged_build_says_it_again(odd_board):
    first = reindex(odd_board)
    second = reindex(odd_board)

    assert (first["outcome"], second["outcome"]) == ("published", "unchanged")
    assert second["notices"] == first["notices"]
    assert second["rejected"] == first["rejected"]


def test_a_strict_build_fails_for_rejected_records_and_not_for_repaired_ones(odd_board, workshop):
    failure = failure_of(reindex(odd_board), strict=True)
    workshop.servers({"git": [workshop.tool("a") | {"inputSchema": PHP}]})
    repaired = reindex(odd_board, BuildOptions(allow_removal=True))

    assert isinstance(failure, Incomplete)
    assert failure.exit_code == 3
    assert "kit: 2 records rejected" in str(failure)
    assert repaired["notices"]
    assert failure_of(repaired, strict=True) is None


def test_a_strict_build_fails_for_a_listing_that_is_a_part(workshop):
    workshop.servers({"git": [workshop.tool("a")]})
    outcome = reindex(workshop.configure())
    part = {"catalog": "kit", "where": "page.json", "why": "it is a page", "kind": "partial"}

    failure = failure_of(outcome | {"notices": [part]}, strict=True)

    assert "kit, page.json: it is a page" in str(failure)


def test_the_report_has_both_with_their_kind(odd_board, workshop):
    outcome = reindex(odd_board)
    data = run_data(workshop.store.get(outcome["release"]), outcome)

    assert data is not None
    assert [row["what"] for row in data["rejected"]["shown"]] == [
        *("rejected", "rejected"),
        *("repaired", "repaired"),
    ]


def test_a_source_does_not_fail_for_its_notices(tmp_path, monkeypatch):
    monkeypatch.setattr(listing_module, "MAX_REJECTED", 3)
    builder = ListingBuilder("kit", tmp_path)

    for number in range(9):
        builder.notice("skipped", f"row {number}", "it is internal")

    notices = builder.build().notices
    assert len(notices) == 4
    assert "more than 3 notices" in notices[-1].why


def test_a_plan_counts_what_conditions_leave_out(workshop):
    workshop.servers({"git": [workshop.tool(name) for name in ("list_a", "list_b", "show")]})
    kit = '[catalogs.kit]\ntype = "mcp-dump"\npath = "servers.json"\nexclude.names = "list_*"\n'
    board = workshop.configure(catalogs=kit)

    outcome = json.loads(json.dumps(reindex(board, BuildOptions(dry_run=True))))

    assert outcome["plan"]["new"] == ["kit/git/show"]
    assert outcome["catalogs"]["kit"]["notices"] == {"skipped": 2}
    assert "  kit: 1 tool of 1 agent, 2 skipped" in run_lines(outcome)
