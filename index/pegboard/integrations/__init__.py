"""Adapters for agent frameworks and model APIs, one per module, imported by name.

An adapter needs only the package of its framework. `openai` and `anthropic` produce plain JSON
values and need no package."""
