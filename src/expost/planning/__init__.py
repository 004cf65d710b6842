"""What a goal would cost, said before any data are read."""

from expost.planning.planner import plan
from expost.planning.result import GoalPrice, MethodPrice, PricePlan, Saving

__all__ = ["GoalPrice", "MethodPrice", "PricePlan", "Saving", "plan"]
