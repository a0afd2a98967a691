"""Prefect as an adapter: the same runs as flows, their steps as tasks; nothing imports it."""
