"""MCP servers as client configurations describe them: for builds, which list their tools, and for
the gateway, which calls them.
"""
