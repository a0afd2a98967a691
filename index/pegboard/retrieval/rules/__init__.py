"""Parts of a strategy that need no LLM."""
