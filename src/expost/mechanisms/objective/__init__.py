"""Objective perturbation: noise on the gradient, once with a certificate or level by level with tests (C2, C5)."""
