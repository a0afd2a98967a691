"""Prefect as an adapter: the same runs as flows, their steps as tasks. The only package that
imports Prefect, with `flows.steps`.
"""
