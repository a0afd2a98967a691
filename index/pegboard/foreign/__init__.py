"""Bytes and JSON that others wrote: read within limits."""
