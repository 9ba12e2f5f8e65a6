"""Module: an object whose variables are found by where they stand in it.

Source: TensorFlow python/module/module.py, python/trackable/autotrackable.py.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from typing import Any

from opkernel.training.variable import Variable


class Module:
    """A base for models: what its attributes hold is part of it.

        class Dense(opkernel.Module):
            def __init__(self, inputs: int, outputs: int) -> None:
                self.kernel = opkernel.Variable(np.zeros((inputs, outputs), np.float32))

            @opkernel.function
            def __call__(self, x):
                return x @ self.kernel

    Variables, modules, and lists, tuples and dicts of them count, however deep. Attributes whose names begin with
    `_` count too.
    """

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All its variables, each once, in the order of their paths' lengths."""
        return tuple(named_variables(self).values())

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """The variables that training changes."""
        return tuple([variable for variable in self.variables if variable.trainable])

    @property
    def named_variables(self) -> dict[str, Variable]:
        """Its variables by path: `layers/0/kernel`."""
        return named_variables(self)


def named_variables(root: Any) -> dict[str, Variable]:
    """The variables that an object holds, by path; each once, under the shortest."""
    found: dict[str, Variable] = {}
    seen = {id(root): root}  # kept, so that no other object gets its id
    queue = deque([("", root)])
    while queue:
        path, one = queue.popleft()
        if isinstance(one, Variable):
            found[path] = one
            continue
        for name, child in children_of(one):
            if id(child) not in seen:
                seen[id(child)] = child
                queue.append((f"{path}/{name}" if path else name, child))
    return found


def children_of(one: Any) -> Iterator[tuple[Any, Any]]:
    """What an object holds that is tracked, with the names by which TensorFlow saves it."""
    if hasattr(one, "_tracked_children"):
        pairs: Any = one._tracked_children().items()
    elif isinstance(one, list | tuple):
        fields = getattr(one, "_fields", ())
        pairs = [*zip(fields, one, strict=False), *((str(i), child) for i, child in enumerate(one))]
    elif isinstance(one, Mapping):
        pairs = one.items()
    else:
        pairs = vars(one).items() if isinstance(one, Module) else ()
    for name, child in pairs:
        if _is_tracked(child):
            yield name, child


def _is_tracked(value: Any) -> bool:
    """Whether a value is an object of its own; lists and dicts are, though they hold nothing."""
    if isinstance(value, Variable | Module) or hasattr(value, "_tracked_children"):
        return True
    if isinstance(value, tuple):
        return any(map(_is_tracked, value))
    return type(value) in _CONTAINERS or (isinstance(value, list | dict) and len(value) > 0)


_CONTAINERS = (list, dict, OrderedDict)
