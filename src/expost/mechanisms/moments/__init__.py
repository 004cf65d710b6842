"""Second moments: Laplace or Gaussian noise on XᵀX and Xᵀy, and the proofs that stop a search (A4, B6, C4)."""
