"""Which tool needs which other: declared by catalogs, inferred from names, schemas and
descriptions, judged by an LLM.
"""
