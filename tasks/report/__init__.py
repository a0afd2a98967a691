"""The report of a release: its values as JSON (`data.py`), and an HTML page made from them alone
(`page.py`).
"""
