"""From raw cells to bounded rows: schemas, kinds of columns, files, and the one entrance.

Raw columns, public bounds and a target go in; :class:`Rows` come out, whose norms and targets are at most 1 exactly, in
fixed point. Everything else in the library starts from those two facts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from expost.lazy import public_names

if TYPE_CHECKING:
    from expost.table.bounds import (
        Bounds as Bounds,
        resolve_bounds as resolve_bounds,
        resolve_target_bounds as resolve_target_bounds,
    )
    from expost.table.bounds_encoding import Preparation as Preparation, resolve_feature_bound as resolve_feature_bound
    from expost.table.encoding import Encoding as Encoding
    from expost.table.entrance import OnInvalid as OnInvalid
    from expost.table.kinds import Boolean as Boolean, Categorical as Categorical, Dated as Dated, Numeric as Numeric
    from expost.table.rows import (
        FRACTION_BITS as FRACTION_BITS,
        ONE as ONE,
        Rows as Rows,
        clip_l1 as clip_l1,
        to_fixed_point as to_fixed_point,
    )
    from expost.table.schema import Schema as Schema

__getattr__, __all__ = public_names(__name__)
