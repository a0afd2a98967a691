"""How an LLM is asked about tools: products, prompts, requests, calls, replies, the ledger.

The step that uses all of it is `tasks/steps/enrich.py`.
"""
