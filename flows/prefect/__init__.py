"""Prefect as an adapter: the same run as a flow, its steps as tasks; nothing imports it."""
