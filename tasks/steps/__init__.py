"""The steps of a build. `flows/reindex.py` calls them in this order: preflight, snapshot, revise,
plan, enrich, compose, edges, release_spec, embed, stage, suspicious, gate, publish, prune.

A step may use what earlier ones return. What steps share is in the other packages of `tasks`, none
of which imports a step. `maintain` is called by `stage` and `prune`."""
