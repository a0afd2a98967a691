"""Python modules."""
