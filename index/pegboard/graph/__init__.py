"""The dependencies between tools: held, traversed, exported, explained (Graph RAG-Tool Fusion)."""
