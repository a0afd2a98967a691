"""Performance benchmarks: ratios within one run."""
