"""What a run gives its steps: lines of progress, and workers that make calls."""
