"""One search in one index: vectors, text, or both."""
