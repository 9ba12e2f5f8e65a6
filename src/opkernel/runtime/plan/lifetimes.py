"""Where the locals of a plan die, and which of them functions may then write their results into.

A local is deleted as soon as nothing reads it any more. It is read only after it is set, within one turn of a
loop. Only the variables of the loop live on to the next turn. So a local dies at its last mention. If that is an
`if` statement, the local dies on each branch: at its last mention there, or at the start of the branch. A local
from outside of a loop dies behind the loop. A local that is set on a branch may be unbound elsewhere, and is
deleted on that branch only.

`y = add(x, b, x)` where x dies saves taking memory and giving it back, a quarter of what tiny ops cost. A result
may take the place of an operand that nothing reads any more, that is an array of the same shape and type, and that
nobody else can see (rule 2 of `device/ownership.py`). Only what is certain counts, whatever shape
functions say: element-wise functions give arrays of their own, of rank 1 or more where an operand is;
and their shape is that of their operands broadcast together. A shape is known as the set of the locals, and shapes of constants, that it was broadcast
from; where adding an operand changes nothing in this set, it changes nothing in the shape.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from opkernel.kernel import FunctionKernel
from opkernel.runtime.plan import tree
from opkernel.runtime.plan.tree import Block, Branches, Name, Path, Statement, While

_Names = dict[str, None]
"""Names in the order in which they were found."""


def mark_lifetimes(block: Block, bound_on: Mapping[str, Path], kept: Collection[str]) -> None:
    """Set in the statements of a plan what dies where; `kept` are locals that live to its end."""
    _Lifetimes(bound_on).block(block, frozenset(), (kept,))


def first_mentions(block: Block, found: dict[Name, bool] | None = None) -> dict[Name, bool]:
    """The locals that a block mentions, in order; each with whether it is set before it is read.

    They are added to the locals `found` before.
    """
    found = {} if found is None else found
    note = found.setdefault
    for item in block:
        if isinstance(item, While):
            for name in item.variables:
                note(name, False)
            first_mentions(item.condition, found)
        for name in item.reads:
            note(name, False)
        if isinstance(item, Statement):
            for name in item.sets:
                note(name, True)
        elif isinstance(item, Branches):
            for branch in item.branches:
                first_mentions(branch.block, found)
        else:
            first_mentions(item.body, found)
    return found


class _Lifetimes:
    """Walks backwards; `later` are the collections of names that are needed afterwards."""

    def __init__(self, bound_on: Mapping[str, Path]) -> None:
        self._bound_on = bound_on

    def block(self, block: Block, path: Path, later: tuple[Collection[str], ...]) -> _Names:
        """Mark a block; the names that it needs from before, or mentions."""
        found: _Names = {}
        later = (found, *later)
        for item in reversed(block):
            if isinstance(item, Statement):
                names = self._statement(item, path, later)
            elif isinstance(item, Branches):
                names = self._branches(item, path, later)
            else:
                names = self._while(item, later)
            found.update(names)
        return found

    def _statement(self, item: Statement, path: Path, later: tuple[Collection[str], ...]) -> _Names:
        if isinstance(item, tree.Assign) and item.is_turn:
            # Locals that it sets live on, at the head of the loop.
            names = dict.fromkeys(item.reads)
            later = (item.sets, *later)
        else:
            names = dict.fromkeys((*item.reads, *item.sets))
        dying = self._dying(names, path, later)
        item.releases = item.reads if dying == item.reads else dying
        return names

    def _branches(self, item: Branches, path: Path, later: tuple[Collection[str], ...]) -> _Names:
        tested = dict.fromkeys(item.reads)
        item.releases = self._dying(tested, path, later)
        later = (tested, *later)
        of_branch = [self.block(b.block, b.path, later) for b in item.branches]
        found = {name: None for names in of_branch for name in names}
        for branch, names in zip(item.branches, of_branch, strict=True):
            branch.releases = self._dying(found, branch.path, (names, *later))
        if item.branches[-1].test is not None:
            dies = self._dying(found, path, later)
            if dies:
                item.branches.append(tree.Branch(None, path, [], dies))
        return tested | found

    def _while(self, item: While, later: tuple[Collection[str], ...]) -> _Names:
        inside = tree.names_set([item])
        outside = {name: None for name in first_mentions([item]) if name not in inside}
        tested = dict.fromkeys(item.reads)
        body = self.block(item.body, item.path, (outside,))
        needed = (tested, body, outside, *later)
        condition = self.block(item.condition, item.path, needed)
        alive = [name for name in item.variables if name not in condition]
        alive += [n for n in dict.fromkeys((*condition, *tested)) if any(n in x for x in needed)]
        alive = [name for name in alive if name in inside]
        item.body_releases = self._dying(alive, item.path, (body,))
        item.releases = self._dying([*alive, *outside], item.path, later)
        return outside | dict.fromkeys(item.variables)

    def _dying(
        self, names: Iterable[str], path: Path, later: tuple[Collection[str], ...]
    ) -> Sequence[str]:
        """The names that are bound on a path and not needed later."""
        dying, bound_on = [], self._bound_on
        for name in names:
            for needed in later:
                if name in needed:
                    break
            else:
                bound = bound_on[name]
                if bound is path or bound <= path:
                    dying.append(name)
        return tuple(dying)


_Shape = frozenset[str | tuple[int, ...]]

_SCALAR: _Shape = frozenset()

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
        shape, own = self._shape_of(inputs), self._own
        self._shapes[name] = shape if len(shape) <= _LARGEST_SHAPE else frozenset([name])
        places: Sequence[str] = ()
        if not own.isdisjoint(inputs):
            places = self._places(shape, kernel, inputs)
        own.add(name)
        return places

    def _places(
        self, shape: _Shape, kernel: FunctionKernel, inputs: Sequence[str]
    ) -> tuple[str, ...]:
        """The inputs that are arrays of their own, of the shape and type of a result."""
        own, shapes, node = self._own, self._shapes, kernel.properties
        (dtype,) = node.output_types
        found = []
        for name, of_input in zip(inputs, node.input_types, strict=True):
            if name in own and of_input == dtype:
                of_name = shapes[name]
                if of_name is shape or of_name == shape:
                    found.append(name)
        return tuple(found)

    def _shape_of(self, inputs: Sequence[str]) -> _Shape:
        """The shape that inputs are broadcast to."""
        whole, shapes = _SCALAR, self._shapes
        for name in inputs:
            shape = shapes.get(name)
            if shape is None:
                shape = frozenset([name])
            if whole is _SCALAR:
                whole = shape
            elif shape is not whole and not shape <= whole:
                whole = shape if whole <= shape else whole | shape
        return whole
