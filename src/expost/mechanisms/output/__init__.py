"""Output perturbation: noise on the minimiser, level by level, and the proof that a level suffices (A5, B6, B8)."""
