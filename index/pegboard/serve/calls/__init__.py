"""Calls to the tools of a board: the MCP servers, APIs and functions behind it."""
