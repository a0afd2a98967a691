"""Adapters for agent frameworks and model APIs, each a module that is imported by its name.

Importing one needs the package that it is for, and no other. Those of `openai` and `anthropic` make
plain JSON values and need nothing."""
