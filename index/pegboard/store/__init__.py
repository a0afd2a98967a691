"""Releases, channels and tables in the store."""
