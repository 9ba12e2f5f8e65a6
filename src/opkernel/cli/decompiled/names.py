"""The names of a program: short ones, of which the nodes' own names are the long form.

A node is called by the end of its name, `lstm_cell_1_MatMul` of `model/lstm_1/while/lstm_cell_1/MatMul`:
as many components as tell it from all others, with those left out that all of these share.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

__all__ = ["Names", "identifier", "paths_of"]

_Key = TypeVar("_Key", bound=Hashable)
_NOT_IDENTIFIER = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST = 60  # of the names that plans have for nodes
_LONG = 24  # what is longer, and has no components, is shortened by words
_MOST_COMPONENTS = 4  # of a short name, but for the first


class Path(NamedTuple):
    """The components of a name; or its words, of which none may be left out."""

    parts: tuple[str, ...]
    are_words: bool = False


def identifier(text: str) -> str:
    """The characters of a text that may stand in a name."""
    name = _NOT_IDENTIFIER.sub("_", text).strip("_")
    return name if name[:1].isalpha() else f"t{name}"


def paths_of(names: Iterable[str], hints: Iterable[str]) -> dict[str, Path]:
    """The components of the names that a plan made, given what it made them of.

    A plan's name is the end of a hint, with `_` for what no identifier has, `t` before a digit, and
    perhaps a number behind it that makes it unique.
    """
    known = {_NOT_IDENTIFIER.sub("_", hint)[-_LONGEST:].strip("_"): hint for hint in hints}
    paths = {}
    for name in names:
        base, _, number = name.rpartition("_")
        hint = known.get(name) or known.get(name.removeprefix("t"))
        numbered = known.get(base) or known.get(base.removeprefix("t"))
        paths[name] = _path(hint or (f"{numbered}_{number}" if numbered else name))
    return paths


def _path(name: str) -> Path:
    """The components of a name, without what TensorFlow's optimisation adds; else its words."""
    name = re.sub(r"_tfg_(inlined|region_specialized)_.*", "", name)
    name = re.sub(r"/ReadVariableOp(_\d+)?/resource$", r"/variable\1", name)
    if "/" in name or len(name) <= _LONG:
        return Path(tuple(name.split("/")))
    return Path(tuple(name.split("_")), are_words=True)


class Names:
    """Gives out names that nothing else has.

    Args:
        taken: The names that the program has for other things.
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = {*taken, *keyword.kwlist, *keyword.softkwlist, *dir(builtins)}

    def inside(self) -> Names:
        """The names of a function that stands in what has these."""
        return Names(self._taken)

    def unique(self, hint: str) -> str:
        """A name like `hint`."""
        chosen, number = hint, 0
        while chosen in self._taken:
            number += 1
            chosen = f"{hint}_{number}"
        self._taken.add(chosen)
        return chosen

    def short(self, paths: Mapping[_Key, Path]) -> dict[_Key, str]:
        """A name for each path."""
        found = Counter(name for path in paths.values() for name in set(_short_forms(path)))
        return {key: self._short(path, found) for key, path in paths.items()}

    def _short(self, path: Path, found: Mapping[str, int]) -> str:
        for name in _short_forms(path):
            is_own = found[name] == 1 or len(path.parts) == 1
            if is_own and name[:1].isalpha() and name not in self._taken:
                return self.unique(name)
        return self.unique(identifier("_".join(path.parts)))


def _short_forms(path: Path) -> Iterator[str]:
    """The ends of a path, alone and each behind one component from before, as names."""
    parts = [_NOT_IDENTIFIER.sub("_", part).strip("_") for part in path.parts]
    parts = [part for part in parts if part]
    most = len(parts) if path.are_words else min(len(parts), _MOST_COMPONENTS)
    for count in range(1, most + 1):
        yield "_".join(parts[-count:])
        for part in () if path.are_words else reversed(parts[:-count]):
            yield "_".join([part, *parts[-count:]])
