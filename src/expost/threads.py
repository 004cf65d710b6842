"""How many processors there are, and BLAS kept to one of them while a search runs or a pass is made.

A search is thousands of small products: on a shared machine BLAS threads cost far more there than they bring.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller() -> Any:
    return ThreadpoolController()  # looks through the loaded libraries, which takes milliseconds: once is enough


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses one thread."""
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited


def processors() -> int:
    """Return how many processors this process may use; not every system can tell that from how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
