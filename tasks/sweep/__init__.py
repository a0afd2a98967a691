"""The steps of a sweep: which parts, which encoder, how many questions, which strategy and which k
find best, measured cell by cell.
"""
