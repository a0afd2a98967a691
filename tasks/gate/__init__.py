"""The gate: golden queries are run on a staged release, and the results decide what goes live."""
