"""Names for the array types this room passes around."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
#: int64, or Python integers (object dtype) where 64 bits would not be enough.
IntegerArray = npt.NDArray[np.int64] | npt.NDArray[np.object_]
AnyArray = npt.NDArray[Any]
