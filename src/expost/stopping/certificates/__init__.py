"""Proofs of accuracy from what is released anyway: the null model, few statistics, second moments, the minimiser."""
