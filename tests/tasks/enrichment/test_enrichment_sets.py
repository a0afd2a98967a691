"""Sets of enrichments come back as they were written, and their names are their content."""

import pytest

from pegboard.errors import StoreError
from pegboard.records import Enrichment
from tasks.enrichment.enrichment_sets import (
    enrichment_digests,
    read_agent_descriptions,
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
    path = write_enrichments(workshop.lake, TOOLS, AGENTS)
    nothing = write_enrichments(workshop.lake, {}, {})

    tools = read_tool_enrichments(workshop.lake, path)

    assert list(tools.items()) == [("kit/a/one", ONE), ("kit/b/two", TWO)]
    assert read_agent_descriptions(workshop.lake, path) == {"kit/b": "Does two."}
    assert [*read_tool_enrichments(workshop.lake, path, ["kit/b/two"])] == ["kit/b/two"]
    assert enrichment_digests(workshop.lake, path).get_column("id").to_list() == [*tools]
    assert read_tool_enrichments(workshop.lake, nothing) == {}
    assert read_agent_descriptions(workshop.lake, nothing) == {}
    with pytest.raises(StoreError, match="generated/none"):
        read_tool_enrichments(workshop.lake, "generated/none")


def test_the_name_of_a_set_is_its_content(workshop):
    path = write_enrichments(workshop.lake, TOOLS, AGENTS)
    backwards = {"kit/a/one": ONE, "kit/b/two": TWO}
    other = write_enrichments(workshop.lake, TOOLS, AGENTS | {"kit/b": "Does two!"})

    assert write_enrichments(workshop.lake, backwards, AGENTS) == path
    assert other != path
