"""The folder of what was written: it comes back as it was, and its name is its content."""

import pytest

from pegboard.errors import StoreError
from pegboard.records import Enrichment
from tasks.enrichment.enrichment_sets import (
    enrichment_digests,
    read_enrichments,
    read_tool_enrichments,
    write_enrichments,
)

TOOLS = {
    "kit/b/two": Enrichment(description="Zwei, für Köln.", questions=("wie?", "wo?")),
    "kit/a/one": Enrichment(
        "One.", "Not for two.", {"x": "a note", "required": "not a schema"}, ("q",), ("t", "u")
    ),
    "kit/c/three": Enrichment(),
}
AGENTS = {"kit/b": "Does two.", "kit/a": ""}


def test_what_was_written_comes_back_ordered_and_without_what_is_empty(workshop):
    enrichments = write_enrichments(workshop.lake, "generated", TOOLS, AGENTS)

    tools, agents = read_enrichments(workshop.lake, enrichments.path)

    assert (enrichments.tools, enrichments.agents) == (2, 1)
    assert list(tools.items()) == [(key, TOOLS[key]) for key in ("kit/a/one", "kit/b/two")]
    assert agents == {"kit/b": "Does two."}


def test_verdicts_on_dependencies_come_back_and_are_part_of_the_name(workshop):
    verdict = {
        "tool": "kit/a/one",
        "parameter": "x",
        "needed": True,
        "direct": False,
        "reason": "It says so.",
    }
    judged = {"kit/b/two": Enrichment(dependencies=(verdict,)), "kit/a/one": TOOLS["kit/a/one"]}
    enrichments = write_enrichments(workshop.lake, "generated", judged, {})
    other = write_enrichments(
        workshop.lake,
        "generated",
        judged | {"kit/b/two": Enrichment(dependencies=({**verdict, "needed": False},))},
        {},
    )

    assert read_enrichments(workshop.lake, enrichments.path)[0] == judged
    assert list(read_tool_enrichments(workshop.lake, enrichments.path, ["kit/b/two"])) == [
        "kit/b/two"
    ]
    assert enrichments.path != other.path
    assert (
        enrichment_digests(workshop.lake, enrichments.path).rows()
        != enrichment_digests(workshop.lake, other.path).rows()
    )


def test_nothing_written_is_a_folder_like_any_other(workshop):
    enrichments = write_enrichments(workshop.lake, "enriched", {}, {})

    assert read_enrichments(workshop.lake, enrichments.path) == ({}, {})
    assert (enrichments.tools, enrichments.agents) == (0, 0)


def test_the_name_of_a_folder_is_its_content(workshop):
    enrichments = write_enrichments(workshop.lake, "generated", TOOLS, AGENTS)
    backwards = dict(reversed([item for item in TOOLS.items() if item[0] != "kit/c/three"]))

    assert write_enrichments(workshop.lake, "generated", backwards, AGENTS) == enrichments
    other = write_enrichments(workshop.lake, "generated", TOOLS, AGENTS | {"kit/b": "Does two!"})
    enriched = write_enrichments(workshop.lake, "enriched", TOOLS, AGENTS)
    assert len({enrichments.path, other.path, enriched.path}) == 3
    assert enriched.path == enrichments.path.replace("generated/", "enriched/")


def test_a_folder_that_is_not_there_is_said_by_its_path(workshop):
    with pytest.raises(StoreError, match="generated/none"):
        read_enrichments(workshop.lake, "generated/none")
