"""Tables about a board for people with SQL: `lake/public`, as Parquet."""
