"""Evaluation of retrieval by golden queries; needs the extra `eval`."""
