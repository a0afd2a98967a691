"""The steps of a sweep: indexes, strategies, cut-offs and catalog sizes, measured cell by cell."""
