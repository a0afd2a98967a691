"""Real tools, their catalog's example queries and other people's requests, through every step and
the reader.
"""

from pathlib import Path

import polars as pl
import pytest

import pegboard

METATOOL = Path(__file__).parents[3] / "shared" / "benchmarks" / "metatool"
INDEXES = '[[indexes]]\nencoder = "local/minilm-tools-v1"\n'
CATALOG = f"""
[catalogs.metatool]
type = "records"
path = "{METATOOL}/plugin_des.json"
examples = {{ path = "{METATOOL}/example_queries.jsonl", query = "query", tool = "tool" }}
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not METATOOL.is_dir(), reason="the benchmark files are not beside this checkout"
)
def test_nine_of_ten_requests_find_their_tool_among_five(workshop, real_encoder):
    release = workshop.run(workshop.configure(INDEXES, CATALOG)).release
    asked = pl.read_ndjson(METATOOL / "single_tool_queries.jsonl").gather_every(3)
    requests = asked.get_column("query").to_list()
    board = pegboard.open(workshop.uri, encoder=real_encoder, refresh=3600)

    vectors = real_encoder.encode(requests)
    found = [
        tool in {hit.tool.name for hit in board.search(request, 5, vector=vector)}
        for request, tool, vector in zip(requests, asked.get_column("tool"), vectors, strict=True)
    ]

    assert (release.tables["emb_full"].rows, len(found)) == (199, 931)
    assert release.manifest["indexes"]["full"]["shape"] == "centroid"
    assert sum(found) / len(found) >= 0.89
