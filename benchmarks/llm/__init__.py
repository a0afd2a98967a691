"""What an LLM adds, measured by recorded replies: see `__main__.py`."""
