"""OpenAPI documents."""
