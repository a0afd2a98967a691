"""The command line of the pipeline."""
