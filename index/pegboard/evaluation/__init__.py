"""Judging retrieval by golden queries: measures, intervals, comparisons. Needs the extra
`pegboard[eval]`.
"""
