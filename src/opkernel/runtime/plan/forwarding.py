"""Which locals of a plan functions may write their results into: `y = add(x, b, x)` where x dies.

That saves taking memory and giving it back, a quarter of what tiny ops cost. A result may take the
place of an operand that nothing reads any more, that is an array of the same shape and type, and that
nobody else can see (rule 2 of `device/ownership.py`). Only what is certain counts, whatever shape
functions say: element-wise functions give arrays of their own, of rank 1 or more where an operand is;
and their shape is that of their operands broadcast together. A shape is known as the set of the locals, and shapes of constants, that it was broadcast
from; where adding an operand changes nothing in this set, it changes nothing in the shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from opkernel.kernel import FunctionKernel

_Shape = frozenset[str | tuple[int, ...]]

_LARGEST_SHAPE = 8
"""The most members of a shape: a shape broadcast from more counts as a new one, so that sets stay small."""


class ArraysOfPlan:
    """Certain facts about the locals and constants of a plan, by their names.

    State: `_shapes` are those of arrays of rank 1 or more, and that of constants of rank 0, which is
    empty; `_own` are the arrays that no name but their own refers to.
    """

    def __init__(self) -> None:
        self._shapes: dict[str, _Shape] = {}
        self._own: set[str] = set()

    def constant(self, name: str, value: Any) -> None:
        """A constant of this value."""
        self._shapes[name] = frozenset([value.shape] if value.ndim else ())

    def has_array(self, names: Iterable[str]) -> bool:
        """Whether one of some values is an array of rank 1 or more."""
        return any(map(self._shapes.get, names))

    def share(self, names: Iterable[str]) -> None:
        """Something else may refer to these values from here on."""
        self._own.difference_update(names)

    def compute(self, name: str, kernel: FunctionKernel, inputs: Sequence[str]) -> Sequence[str]:
        """Note the result of an element-wise function of arrays; the inputs it may be written into.

        These have its shape and type, and are no one else's.
        """
        shape = self._shape_of(inputs)
        dtype = kernel.output_types[0]
        places = tuple(
            [
                place
                for place, of_place in zip(inputs, kernel.input_types, strict=True)
                if place in self._own and self._shapes[place] == shape and of_place == dtype
            ]
        )
        self._shapes[name] = shape if len(shape) <= _LARGEST_SHAPE else frozenset([name])
        self._own.add(name)
        return places

    def _shape_of(self, inputs: Sequence[str]) -> _Shape:
        """The shape that inputs are broadcast to."""
        whole: _Shape = frozenset()
        for name in inputs:
            shape = self._shapes.get(name)
            if shape is None:
                shape = frozenset([name])
            if not shape <= whole:
                whole = shape if whole <= shape else whole | shape
        return whole
