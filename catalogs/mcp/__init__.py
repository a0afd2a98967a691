"""MCP servers, live and as dumps."""
