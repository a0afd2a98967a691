"""How a request becomes a ranking of tools: small parts, and plans that put them together (see `parts`)."""
