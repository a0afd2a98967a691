"""Parts of a strategy that call an LLM."""
