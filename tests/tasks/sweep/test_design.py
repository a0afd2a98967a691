"""What a sweep measures, and what stands in the way."""

import json

import pytest

from pegboard.errors import ConfigurationError


def test_there_is_a_cell_for_every_index_plan_and_sample_and_the_whole_once(bench):
    laid = bench.design(tools="10,all", samples=2, seed=4)

    assert laid.catalog == 40
    assert [(one.size, one.seed) for one in laid.samples] == [(10, 4), (40, 4), (10, 5)]
    assert len(laid.cells) == len({cell.key for cell in laid.cells}) == 3 * 2 * 2
    assert {(cell.index, cell.strategy["name"]) for cell in laid.cells} == {
        (index, strategy) for index in ("whole", "names") for strategy in ("search", "clauses")
    }
    assert [one.parts for one in laid.indexes] == [("name", "description", "arguments"), ("name",)]


def test_what_the_release_does_not_have_is_told_at_once(bench):
    golden = bench.folder / "golden.jsonl"
    golden.write_text(
        golden.read_text("utf-8") + json.dumps({"query": "fly", "tools": ["fly_kite"]}), "utf-8"
    )

    with pytest.raises(ConfigurationError) as raised:
        bench.design(tools="2,50", strategies=["confident"], indexes=["whole", "other"], k="5")

    said = str(raised.value)
    assert f"Release {bench.release} cannot be swept so:" in said
    assert "tools: 50 are more than the 40 of the catalog" in said
    assert "k: 5 is more than the 2 tools of the smallest sample" in said
    assert "the release has no index 'other'; it has names, whole" in said
    assert "'confident' asks for probabilities, and index 'whole' is not calibrated" in said
    assert "1 queries need tools that the release does not have: fly_kite" in said


def test_k_is_no_more_than_the_catalog(bench):
    with pytest.raises(ConfigurationError, match="k: 41 is more than the 40 tools of the catalog"):
        bench.design(k="41")


def test_a_sample_without_a_query_is_refused_and_one_with_few_warned_of(bench):
    golden = bench.folder / "golden.jsonl"
    lines = [one for one in golden.read_text("utf-8").splitlines() if "then send" in one]
    golden.write_text("\n".join(lines), "utf-8")

    with pytest.raises(
        ConfigurationError, match="No golden query has all its tools in a sample of 1 tools"
    ):
        bench.design(tools="1,all", k="1")

    laid = bench.design(tools="8,all")
    assert len(laid.warnings) == 2
    assert laid.warnings[0].startswith(
        "3 golden queries have all their tools in the sample of 8 tools"
    )
