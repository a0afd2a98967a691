"""Code shared by all source kinds."""
