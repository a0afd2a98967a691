"""Other libraries that retrieve tools, on the same tools, requests and encoder as Pegboard.

Each runs in a process of an environment of its own (`requirements.txt`): `worker/` holds one small
adapter for each, which only that process imports, and `process.py` speaks JSON lines with it. A
peer composes its own texts and asks for their vectors, which are those of Pegboard's encoder.
"""
