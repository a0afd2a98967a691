"""Convert declarations of tools to JSON Schema: function schemas, Python functions, loosely written
parameters, OpenAPI schemas."""
