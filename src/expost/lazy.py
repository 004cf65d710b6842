"""Packages whose names are imported when they are asked for, so that the command line starts without NumPy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def importer(package: str, homes: Mapping[str, str], made: Mapping[str, Callable[[], Any]] | None = None) -> Any:
    """Return a package's ``__getattr__``: it imports a name from its module, once, when it is first asked for.

    Parameters
    ----------
    package : str
        Its dotted name.
    homes : mapping of str to str
        The module of each name, below the package.
    made : mapping of str to callable, optional
        Names that stand in no module, and what makes them.

    Examples
    --------
    >>> ask = importer("expost.goals", {"ErrorRate": "error_rate"})
    >>> ask("ErrorRate")(0.1)
    ErrorRate(at_most=0.1, margin=0.2)
    """

    def find(name: str) -> Any:
        if made is not None and name in made:
            value = made[name]()
        elif name in homes:
            value = getattr(import_module(f"{package}.{homes[name]}"), name)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    return find
