"""Golden queries: looked over, made from the catalogs' own examples, written by an LLM, and held
out of the index that they judge.
"""
