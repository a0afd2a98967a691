"""A search computes in the calling thread, so that searches of many threads do not compete."""

import os
import subprocess
import sys

PROGRAM = """
import time
import numpy as np
import pyarrow as pa
from pegboard.search.memory import MemoryIndex

rows, dimensions = 20_000, 384
vectors = np.random.default_rng(0).normal(size=(rows, dimensions)).astype(np.float32)
index = MemoryIndex(pa.table({
    "tool": [f"t{number}" for number in range(rows)],
    "agent": ["kit/tools"] * rows,
    "part": ["document"] * rows,
    "tokens": ["word"] * rows,
    "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dimensions),
    "name_tokens": ["name"] * rows,
    "actions": ["get list"] * rows,
    "summary_vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dimensions),
}))
searches = {
    "both": lambda: index.both_many(vectors[:1], [["other"]], 5),
    "vectors": lambda: index.vectors(vectors[:4], 5),
}
for search in searches:
    searches[search]()
    process_start = time.process_time()
    thread_start = time.thread_time()
    for _ in range(40):
        searches[search]()
    process_seconds = time.process_time() - process_start
    print(search, process_seconds / (time.thread_time() - thread_start))
"""
BLAS_THREADS = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "4")


def test_a_search_computes_in_the_calling_thread():
    # The ratio of the process's CPU time to the thread's does not depend on other load.
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **BLAS_THREADS},
        capture_output=True,
        text=True,
        check=True,
    )

    shares = dict(line.split() for line in result.stdout.splitlines())
    assert shares.keys() == {"both", "vectors"}
    assert {search: share for search, share in shares.items() if float(share) >= 1.2} == {}
