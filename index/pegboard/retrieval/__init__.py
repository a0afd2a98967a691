"""How a request becomes a ranking of tools: small parts, and strategies that put them together (see
`parts`).
"""
