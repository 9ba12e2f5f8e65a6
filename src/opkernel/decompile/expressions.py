"""Names and values in the text of a program.

A node is called by the end of its name, `lstm_cell_1_MatMul` of `model/lstm_1/while/lstm_cell_1/MatMul`: as many components
as tell it from all others, with those left out that all of these share. Values are expressions of Python: numbers, small
arrays, strings.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from opkernel.runtime.plan.text import NOT_IDENTIFIER, Identifiers, tuple_text

_Key = TypeVar("_Key", bound=Hashable)
_LONG = 24  # a longer name without components is shortened by words
_MOST_COMPONENTS = 4  # of a short name, but for the first


class Path(NamedTuple):
    """The components of a name; or its words, all of them needed."""

    parts: tuple[str, ...]
    are_words: bool = False


def argument(name: str, expression: str) -> str:
    """An argument of a call: a keyword argument where the name can be one."""
    is_keyword = name.isascii() and name.isidentifier() and not keyword.iskeyword(name)
    return f"{name}={expression}" if is_keyword else f"**{{{name!r}: {expression}}}"


def path_of(name: str) -> Path:
    """The components of a name, without those of TensorFlow's optimisation; else its words."""
    name = re.sub(r"_tfg_(inlined|region_specialized)_.*", "", name)
    name = re.sub(r"/ReadVariableOp(_\d+)?/resource$", r"/variable\1", name)
    if "/" in name or len(name) <= _LONG:
        return Path(tuple(name.split("/")))
    return Path(tuple(name.split("_")), are_words=True)


class Names(Identifiers):
    """Gives out names that nothing else has."""

    def short(self, paths: Mapping[_Key, Path]) -> dict[_Key, str]:
        """A name for each path."""
        found = Counter(name for path in paths.values() for name in set(_short_forms(path)))
        return {key: self._short(path, found) for key, path in paths.items()}

    def _short(self, path: Path, found: Mapping[str, int]) -> str:
        for name in _short_forms(path):
            is_own = found[name] == 1 or len(path.parts) == 1
            if is_own and name[:1].isalpha() and name not in self.taken:
                return self.unique(name)
        return self.unique("_".join(path.parts))


def _short_forms(path: Path) -> Iterator[str]:
    """The ends of a path, alone and each behind one component from before, as names."""
    parts = [NOT_IDENTIFIER.sub("_", part).strip("_") for part in path.parts]
    parts = [part for part in parts if part]
    most = len(parts) if path.are_words else min(len(parts), _MOST_COMPONENTS)
    for count in range(1, most + 1):
        yield "_".join(parts[-count:])
        for part in () if path.are_words else reversed(parts[:-count]):
            yield "_".join([part, *parts[-count:]])


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
