"""The vectors of a release, as its table has them."""

import numpy as np


def tool_vectors(release, index):
    """For each tool of an index its unit vectors, shape (rows of the tool, dimensions)."""
    rows = release._read(f"emb_{index}", ("tool", "vector")).to_pylist()
    vectors = {}
    for row in rows:
        vectors.setdefault(row["tool"], []).append(row["vector"])
    return {tool: np.array(own, np.float32) for tool, own in vectors.items()}
