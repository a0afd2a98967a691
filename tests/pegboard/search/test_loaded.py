"""What a reader holds of a release in memory."""

import numpy as np
import pyarrow as pa

import pegboard
from pegboard.search.loaded import LoadedRelease


def test_rows_are_held_in_one_piece_and_vectors_are_used_where_they_are(board_uri, monkeypatch):
    read = LoadedRelease._read

    def in_pieces(self, name, columns=None):
        rows = read(self, name, columns)
        return pa.concat_tables([rows.slice(0, 1), rows.slice(1)])

    monkeypatch.setattr(LoadedRelease, "_read", in_pieces)
    store = pegboard.ReleaseStore(board_uri)
    loaded = LoadedRelease(store, store.get(store.channel().release), 50_000)
    index = loaded.index("full")
    for rows in (loaded._tool_rows, index.rows):
        assert {column.num_chunks for column in rows.columns} == {1}
    held = index.rows.column("vector").chunk(0).flatten().to_numpy()
    assert np.shares_memory(index._vectors, held)
