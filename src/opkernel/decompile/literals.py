"""Values as expressions of Python: numbers, small arrays, strings."""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.runtime.plan.text import tuple_text

_FEW = 16


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether NumPy alone knows a type."""
    return dtype.isbuiltin == 1


def literal(value: Any) -> str | None:
    """An array of a few numbers or strings as an expression; None for others."""
    kind = value.dtype.kind
    if value.size > _FEW or not is_plain(value.dtype) or kind not in "biufO":
        return None
    if value.size == 0 and value.ndim != 1:  # of which there may be any number of rows
        return None if kind == "O" else f"np.zeros({value.shape}, np.{value.dtype.name})"
    elements = value.tolist()
    if kind == "O":
        flat = elements if isinstance(elements, list) else [elements]
        is_text = value.ndim < 2 and all(isinstance(item, bytes) for item in flat)
        return f"np.array({elements!r}, object)" if is_text else None
    text = _numbers(value) if kind == "f" else repr(elements)
    dtype = "np.bool_" if kind == "b" else f"np.{value.dtype.name}"
    return f"np.array({text}, {dtype})" if value.ndim else f"{dtype}({text})"


def scalar_literal(value: Any) -> str | None:
    """An array of rank 0 as an expression that may stand where it is used; None for others."""
    return None if value.ndim else literal(value)


def number(value: float) -> str:
    """A float as an expression, infinite or no number as it may be."""
    return repr(value) if np.isfinite(value) else f"float({str(value)!r})"


def attr_literal(value: Any) -> str:
    """An attr of plain Python objects as an expression."""
    if isinstance(value, tuple):
        return tuple_text([*map(attr_literal, value)])
    return number(value) if isinstance(value, float) else repr(value)


def _numbers(value: Any) -> str:
    """Floats, in lists as in the array, as an expression."""
    if value.ndim:
        return f"[{', '.join(map(_numbers, value))}]"
    short = value.dtype.type(str(value[()]))
    return number(float(str(value[()])) if short == value else float(value))
