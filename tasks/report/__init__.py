"""The report of a release: JSON values (`data.py`), and an HTML page made from them (`page.py`)."""
