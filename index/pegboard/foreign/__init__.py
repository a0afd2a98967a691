"""Reading untrusted files and JSON within limits."""
