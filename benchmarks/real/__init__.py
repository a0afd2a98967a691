"""Catalogs that people have, fetched from package registries, and requests written for them.

The requests were written from knowledge of each product and its list of operations, before any
result was looked at. Kinds: `imperative` (short orders), `question`, `symptom` (what went wrong),
`paraphrase` (other words than the documentation's), `abbreviation`, `two` (two needs at once).
Where several tools are right, each is an alternative. No tool fits what `NAME.none.jsonl` asks."""
