"""The pipeline's storage between runs."""
