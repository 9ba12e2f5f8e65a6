"""The names in a part of a plan's tree, and copies of it with others: for programs, which choose their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any, TypeVar, cast

from opkernel.runtime.plan.tree import Name, Node, Plain

_T = TypeVar("_T")


def names_in(part: Any) -> Iterator[Name]:
    """The names that a part of a tree has, over and over; other texts may be among them."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, list | tuple | frozenset):
        for one in part:
            yield from names_in(one)
    elif isinstance(part, Node) and not isinstance(part, Plain):
        for name in _fields(part):
            if name != "inputs":  # of the node, wherever the statement has them from
                yield from names_in(getattr(part, name))


def renamed(part: _T, names: Mapping[Name, Name]) -> _T:
    """A copy of a part of a tree, with some names replaced by others."""
    found: Any = part
    if isinstance(part, str):
        found = names.get(part, part)
    elif isinstance(part, list | tuple | frozenset):
        found = type(part)([renamed(one, names) for one in part])
    elif isinstance(part, Node) and not isinstance(part, Plain):
        found = copy(part)
        for name in _fields(part):
            setattr(found, name, renamed(getattr(part, name), names))
    return cast(_T, found)


def _fields(part: Node) -> list[str]:
    return [name for cls in type(part).__mro__ for name in vars(cls).get("__slots__", ())]
