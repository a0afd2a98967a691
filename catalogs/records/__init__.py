"""Records in JSON Lines, CSV or Parquet."""
