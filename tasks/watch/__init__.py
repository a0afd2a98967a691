"""Noticing that sources changed, and building their catalogs."""
