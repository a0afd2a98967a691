"""What runs in a peer's environment: it imports neither Pegboard nor its dependencies.

Every adapter has `PACKAGE`, the distribution whose version is reported, and `rank(tools, queries,
k, encode)`, which returns the ids of at most k tools for each query, best first. `encode(texts)`
returns a vector for each text.
"""
