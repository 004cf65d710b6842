"""Values that cannot be changed, and how they are written to JSON and read back."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["FrozenMapping", "freeze", "plain", "restored"]


class FrozenMapping(Mapping[str, Any]):
    """A read-only dictionary, so that a frozen release is frozen all the way down.

    By hand because ``types.MappingProxyType`` cannot be pickled, and estimators are.
    """

    __slots__ = ("_items",)
    _items: dict[str, Any]

    def __init__(self, items: Mapping[str, Any] | None = None) -> None:
        frozen = {str(key): freeze(value) for key, value in (items or {}).items()}
        object.__setattr__(self, "_items", frozen)

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a release cannot be changed")

    def __reduce__(self) -> tuple[type[FrozenMapping], tuple[dict[str, Any]]]:
        return (FrozenMapping, (dict(self._items),))

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._items.items(), key=lambda item: item[0])))

    def __repr__(self) -> str:
        return repr(dict(self._items))


def freeze(value: Any) -> Any:
    """Return an immutable copy made of plain Python values."""
    if isinstance(value, Mapping):
        return FrozenMapping(value)
    if hasattr(value, "__array__"):
        return freeze(np.asarray(value).tolist())
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def plain(value: Any) -> Any:
    """Return dictionaries, lists and numbers that JSON can hold."""
    if dataclasses.is_dataclass(value):
        return {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}  # JSON has no infinity, and a bare string could be somebody's class label
    return value


def restored(value: Any) -> Any:
    """Undo :func:`plain`, as far as tuples and infinities go."""
    if isinstance(value, dict):
        if set(value) == {"float"} and value["float"] in ("inf", "-inf", "nan"):
            return float(value["float"])
        return {key: restored(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(restored(item) for item in value)
    return value
