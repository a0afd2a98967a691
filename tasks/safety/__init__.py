"""Untrusted text and credentials in catalogs."""
