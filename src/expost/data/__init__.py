"""Where rows come from and how they are bounded.

Raw columns, public bounds and a target go in; :class:`Rows` come out, whose ℓ₁ norms and targets are at
most 1 exactly, in fixed point. Everything else in the library starts from those two facts.
"""

from expost.data.bounds import Bounds, resolve_bounds, resolve_target_bounds
from expost.data.encode import Encoding
from expost.data.fixed_point import FRACTION_BITS, ONE, clip_l1, clip_l2, clip_unit, to_fixed_point
from expost.data.kinds import Boolean, Categorical, Numeric
from expost.data.preparation import OnInvalid, Preparation, resolve_feature_bound
from expost.data.rows import Rows
from expost.data.schema import Schema

__all__ = [
    "FRACTION_BITS",
    "ONE",
    "Boolean",
    "Bounds",
    "Categorical",
    "Encoding",
    "Numeric",
    "OnInvalid",
    "Preparation",
    "Rows",
    "Schema",
    "clip_l1",
    "clip_l2",
    "clip_unit",
    "resolve_bounds",
    "resolve_feature_bound",
    "resolve_target_bounds",
    "to_fixed_point",
]
