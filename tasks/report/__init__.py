"""The report of a release: what is known of it as JSON values (`gathered.py`), and a page of HTML
made from nothing else (`page.py`).
"""
