"""The learned ranker of the hybrid search: features of a candidate, weights, probabilities."""
