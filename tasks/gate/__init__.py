"""The gate: golden queries are asked of what is staged, in every configuration, and the result
decides what goes live.
"""
