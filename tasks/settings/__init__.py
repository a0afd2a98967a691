"""The settings in pegboard.toml."""
