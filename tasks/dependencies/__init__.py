"""Which tool needs which other: declared by catalogs, or inferred from names, schemas and
descriptions.
"""
