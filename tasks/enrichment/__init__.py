"""How an LLM is asked about tools: prompts, products, replies, the ledger, limits, calls, batches.

The step that uses all of it is `tasks/enrich.py`.
"""
