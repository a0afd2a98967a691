"""The MCP server: the gateway's own tools, sessions, notifications, resources and prompts."""
