"""The gateway `pegboard serve`: agents find and call the tools of a board over MCP and HTTP.

Needs the extra `serve`. Nothing else of the library imports this package.
"""
