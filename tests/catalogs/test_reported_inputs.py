"""Inputs of public reports: what a user expects of each. See `shared/cases/README.md`."""

from pathlib import Path

import pytest

CASES = Path(__file__).parents[3] / "shared" / "cases" / "ingest"


@pytest.fixture
def reported(listed):
    """A function that lists a reported input, whose path is relative to the folder of the cases."""
    if not CASES.is_dir():
        pytest.skip(f"the reported cases are not at {CASES}")

    def listing_of(kind, **options):
        return listed(kind, CASES, **options)

    return listing_of


def texts(listing):
    """Return the description of each tool by its id, of a listing without losses."""
    assert (listing.rejected, listing.failures, listing.unreadable) == ((), (), ())
    return {tool.id: tool.description for tool in listing.tools}


def test_a_dump_that_powershell_saved_is_read(reported):
    listing = reported("mcp-dump", path="mcp/utf16.json")

    assert texts(listing) == {"kit/utf16/t": "saved by PowerShell"}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("semi2.csv", {"kit/kit/add": "Add two", "kit/kit/sub": "Sub"}),
        ("tab.csv", {"kit/kit/add": "Add"}),
        ("u16.tsv", {"kit/kit/add": "Add"}),
    ],
)
def test_tables_with_semicolons_tabs_or_utf_16_are_read(reported, file, expected):
    assert texts(reported("records", path=f"csv2/{file}")) == expected
