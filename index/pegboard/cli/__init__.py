"""The command line of the reader."""
