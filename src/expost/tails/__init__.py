"""Public numbers about noise: how large its norms and energies get. Nothing here has seen a row."""
