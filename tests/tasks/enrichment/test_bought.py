"""The folder of what was written: it comes back as it was, and its name is its content."""

import pytest

from pegboard.errors import StoreError
from pegboard.records import Enrichment
from tasks.enrichment.bought import read_writings, read_written, write_writings, written_digests

TOOLS = {
    "kit/b/two": Enrichment(description="Zwei, für Köln.", questions=("wie?", "wo?")),
    "kit/a/one": Enrichment(
        "One.", "Not for two.", {"x": "a note", "required": "not a schema"}, ("q",), ("t", "u")
    ),
    "kit/c/three": Enrichment(),
}
AGENTS = {"kit/b": "Does two.", "kit/a": ""}


def test_what_was_written_comes_back_ordered_and_without_what_is_empty(workshop):
    writings = write_writings(workshop.lake, "bought", TOOLS, AGENTS)

    tools, agents = read_writings(workshop.lake, writings.path)

    assert (writings.tools, writings.agents) == (2, 1)
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
    writings = write_writings(workshop.lake, "bought", judged, {})
    other = write_writings(
        workshop.lake,
        "bought",
        judged | {"kit/b/two": Enrichment(dependencies=({**verdict, "needed": False},))},
        {},
    )

    assert read_writings(workshop.lake, writings.path)[0] == judged
    assert list(read_written(workshop.lake, writings.path, ["kit/b/two"])) == ["kit/b/two"]
    assert writings.path != other.path
    assert (
        written_digests(workshop.lake, writings.path).rows()
        != written_digests(workshop.lake, other.path).rows()
    )


def test_nothing_written_is_a_folder_like_any_other(workshop):
    writings = write_writings(workshop.lake, "enriched", {}, {})

    assert read_writings(workshop.lake, writings.path) == ({}, {})
    assert (writings.tools, writings.agents) == (0, 0)


def test_the_name_of_a_folder_is_its_content(workshop):
    writings = write_writings(workshop.lake, "bought", TOOLS, AGENTS)
    backwards = dict(reversed([item for item in TOOLS.items() if item[0] != "kit/c/three"]))

    assert write_writings(workshop.lake, "bought", backwards, AGENTS) == writings
    other = write_writings(workshop.lake, "bought", TOOLS, AGENTS | {"kit/b": "Does two!"})
    enriched = write_writings(workshop.lake, "enriched", TOOLS, AGENTS)
    assert len({writings.path, other.path, enriched.path}) == 3
    assert enriched.path == writings.path.replace("bought/", "enriched/")


def test_a_folder_that_is_not_there_is_said_by_its_path(workshop):
    with pytest.raises(StoreError, match="bought/none"):
        read_writings(workshop.lake, "bought/none")
