"""Sets of enrichments come back as they were written, and their names are their content."""

import pytest

from pegboard.errors import StoreError
from pegboard.records import Enrichment
from tasks.enrichment.enrichment_sets import (
    enrichment_digests,
    read_enrichments,
    read_tool_enrichments,
    write_enrichments,
)

ONE = Enrichment(
    "One.", "Not for two.", {"x": "a note", "required": "not a schema"}, ("q",), ("t", "u")
)
TWO = Enrichment(description="Zwei, für Köln.", questions=("wie?", "wo?"))
TOOLS = {"kit/b/two": TWO, "kit/a/one": ONE, "kit/c/three": Enrichment()}
AGENTS = {"kit/b": "Does two.", "kit/a": ""}


def test_enrichments_come_back_ordered_and_without_empty_ones(workshop):
    enrichments = write_enrichments(workshop.lake, "generated", TOOLS, AGENTS)
    nothing = write_enrichments(workshop.lake, "enriched", {}, {})

    tools, agents = read_enrichments(workshop.lake, enrichments.path)

    assert (enrichments.tools, enrichments.agents) == (2, 1)
    assert list(tools.items()) == [("kit/a/one", ONE), ("kit/b/two", TWO)]
    assert agents == {"kit/b": "Does two."}
    assert [*read_tool_enrichments(workshop.lake, enrichments.path, ["kit/b/two"])] == ["kit/b/two"]
    assert enrichment_digests(workshop.lake, enrichments.path).get_column("id").to_list() == [
        *tools
    ]
    assert read_enrichments(workshop.lake, nothing.path) == ({}, {})
    assert (nothing.tools, nothing.agents) == (0, 0)
    with pytest.raises(StoreError, match="generated/none"):
        read_enrichments(workshop.lake, "generated/none")


def test_the_name_of_a_set_is_its_content(workshop):
    generated = write_enrichments(workshop.lake, "generated", TOOLS, AGENTS)
    backwards = {"kit/a/one": ONE, "kit/b/two": TWO}
    other = write_enrichments(workshop.lake, "generated", TOOLS, AGENTS | {"kit/b": "Does two!"})
    enriched = write_enrichments(workshop.lake, "enriched", TOOLS, AGENTS)

    assert write_enrichments(workshop.lake, "generated", backwards, AGENTS) == generated
    assert other.path != generated.path
    assert enriched.path == generated.path.replace("generated/", "enriched/")
