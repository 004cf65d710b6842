"""Packages whose names are imported when they are asked for, so that the command line starts without NumPy.

A package lists its public names once, as the imports that a type checker reads::

    if TYPE_CHECKING:
        from expost.goals.labels_and_base_rate import ErrorRate as ErrorRate

    __getattr__, __all__ = public_names(__name__)
"""

from __future__ import annotations

import ast
import inspect
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def public_names(
    package: str,
    made: Mapping[str, Callable[[], Any]] | None = None,
    listed: Sequence[str] = (),
    moved: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], list[str]]:
    """Return a package's ``__getattr__``, which imports a name once it is asked for, and its ``__all__``.

    Parameters
    ----------
    package : str
        Its dotted name.
    made : mapping of str to callable, optional
        Names that stand in no module, and what makes them.
    listed : sequence of str, optional
        Further modules that list names of the package, as it does itself.
    moved : mapping of str to str, optional
        Names that were public here, and the package that has them: they are found with a warning that says so.

    Examples
    --------
    >>> import expost.goals
    >>> find, names = public_names("expost.goals", listed=["expost.goals.flags"])
    >>> find("ErrorRate")(0.1)
    ErrorRate(at_most=0.1, margin=0.2)
    """
    home = sys.modules[package]
    made, moved = made or {}, moved or {}
    homes: dict[str, str] = {}
    for block in (line for name in (package, *listed) for line in ast.parse(inspect.getsource(sys.modules[name])).body):
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for line in block.body:
                if isinstance(line, ast.ImportFrom) and line.module is not None:
                    homes |= {alias.asname: line.module for alias in line.names if alias.asname is not None}

    def find(name: str) -> Any:
        if name in made:
            value = made[name]()
        elif name in homes:
            value = getattr(import_module(homes[name]), name)
        elif name in moved:
            now = f"from {moved[name]} import {name}"
            warnings.warn(f"{package}.{name} goes with the next minor version; {now}", DeprecationWarning, stacklevel=2)
            value = getattr(import_module(moved[name]), name)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(home, name, value)
        return value

    return find, sorted({*homes, *made})
