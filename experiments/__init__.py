"""The paper's experiments, on its data sets or on anyone's.

This is simulation on data that may be looked at: the noise is seeded, the true excess risk is written down, and
nothing here protects anyone. Every page and figure says so (:data:`experiments.plan.SIMULATION`).
"""

from experiments.methods import Method, methods_for
from experiments.plan import SIMULATION, Plan, Task
from experiments.runner import run_experiment

__all__ = ["SIMULATION", "Method", "Plan", "Task", "methods_for", "run_experiment"]
