"""Noisy gradient descent: clipped gradients with Gaussian noise, stage by stage, until a test passes (C6)."""
