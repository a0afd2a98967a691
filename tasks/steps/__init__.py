"""The steps of a build. `flows/reindex.py` calls them in this order: preflight, snapshot, revise,
plan, enrich, compose, edges, release_spec, embed, stage, gate, publish, prune.

A step may use what earlier ones return. What steps share is in the other packages of `tasks`.
`maintain` is called by `stage` and `prune`."""
