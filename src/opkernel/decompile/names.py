"""The names of a program: short forms of the nodes' own names.

A node is called by the end of its name, `lstm_cell_1_MatMul` of `model/lstm_1/while/lstm_cell_1/MatMul`:
as many components as tell it from all others, with those left out that all of these share.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from opkernel.runtime.plan import names

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


class Names(names.Names):
    """Gives out names that nothing else has."""

    def inside(self) -> Names:
        """The names of a function that stands in a module with these names."""
        return Names(self.taken)

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
    parts = [names.NOT_IDENTIFIER.sub("_", part).strip("_") for part in path.parts]
    parts = [part for part in parts if part]
    most = len(parts) if path.are_words else min(len(parts), _MOST_COMPONENTS)
    for count in range(1, most + 1):
        yield "_".join(parts[-count:])
        for part in () if path.are_words else reversed(parts[:-count]):
            yield "_".join([part, *parts[-count:]])
