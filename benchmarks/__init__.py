"""Public benchmarks of papers, and performance benchmarks; not part of any distribution."""
