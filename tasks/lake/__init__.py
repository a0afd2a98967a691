"""What the pipeline remembers between runs."""
