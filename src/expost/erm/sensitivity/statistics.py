"""How far sums over rows can move: second moments, first moments, the trace."""

from __future__ import annotations

from typing import Final

STATISTICS_SENSITIVITY: Final = 2**42
"""ℓ₁-sensitivity of either layout to the replacement of one row, in units of 2⁻⁴⁰.

Proof. One row adds the vector (x_i²; 2x_i x_j, i < j; y·x_i), whose ℓ₁ norm is Σ x_i² + Σ_{i<j} 2|x_i||x_j|
+ |y|Σ|x_i| = ‖x‖₁² + |y|·‖x‖₁ ≤ 2. In the full layout the off-diagonal entries x_i x_j and x_j x_i appear
once each instead of doubled, with the same total. Replacing a row subtracts one such vector and adds
another: at most 4, which is 4·2⁴⁰ units. The rows (e₁, 1) and (e₂, 1) attain it. ∎
"""

TRACE_SENSITIVITY: Final = 2**40
"""Sensitivity of the trace of XᵀX to the replacement of one row, in units of 2⁻⁴⁰.

Proof. One row adds ‖x‖₂², between 0 and 1. ∎
"""

PART_SENSITIVITY: Final = 2**41
"""ℓ₁-sensitivity of XᵀX alone (off-diagonals doubled), and of Xᵀy alone, in units of 2⁻⁴⁰: each moves by at most 2."""
