"""TensorFacts: all that shape inference knows of a tensor; and the facts that two tensors share.

Facts are relaxed where two ways lead to one tensor: the branches of a conditional, the turns of a
loop. Facts on which both ways agree stay. A dimension in which they differ becomes a new unknown
dimension, which stays the same through all further turns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opkernel.graph.inference.partial_elements import PartialValue, array_of
from opkernel.opdef import DimensionHandle, ShapeAndType, ShapeHandle
from opkernel.records import dataclass, field


@dataclass(frozen=True, slots=True, eq=False)
class TensorFacts:
    """The known facts of a tensor; none by default.

    Attributes:
        shape: its shape.
        held: the known contents of a resource or variant.
        value: its elements, if the tensor is small and of integers or bools.
        items: for a list, the known facts that hold of all its tensors.
    """

    shape: ShapeHandle = field(default_factory=ShapeHandle)
    held: Sequence[ShapeAndType] | None = None
    value: PartialValue | None = None
    items: TensorFacts | None = None

    @property
    def are_empty(self) -> bool:
        """Whether neither the shape nor the contents are known."""
        return self.shape.dims is None and self.held is None


NO_ITEMS = TensorFacts()
"""The facts about all tensors of a list that has none."""
ZERO_ITEMS = TensorFacts()
"""The facts about a list in which nothing was set: zeros, of whatever shape."""


class Relaxation:
    """Finds what holds of all the facts that a tensor may have; the same unknowns at every call."""

    def __init__(self) -> None:
        self._own: set[DimensionHandle] = set()

    def facts(self, old: TensorFacts, new: TensorFacts) -> TensorFacts:
        """The facts that hold of both; `old` itself where `new` adds no possibility."""
        shape = self.shape(old.shape, new.shape)
        held = self._held(old.held, new.held)
        value = _relax_value(old.value, new.value)
        items = self.items(old.items, new.items)
        if shape is old.shape and held is old.held and value is old.value and items is old.items:
            return old
        return TensorFacts(shape, held, value, items)

    def items(self, old: TensorFacts | None, new: TensorFacts | None) -> TensorFacts | None:
        """The facts about the tensors of both lists; `old` itself if `new` adds no possibility."""
        if old is None or new is None:
            return None
        if old is new or new is NO_ITEMS:
            return old
        if old is NO_ITEMS:
            return new
        if new is ZERO_ITEMS:
            return _without_value(old)
        return _without_value(new) if old is ZERO_ITEMS else self.facts(old, new)

    def shape(self, old: ShapeHandle, new: ShapeHandle) -> ShapeHandle:
        """The shape that covers both; `old` itself where `new` adds no possibility."""
        if old is new or old.dims is None:
            return old
        if new.dims is None or len(new.dims) != len(old.dims):
            return ShapeHandle()
        dims = tuple([self._dim(a, b) for a, b in zip(old.dims, new.dims, strict=True)])
        unchanged = all(a is b for a, b in zip(old.dims, dims, strict=True))
        return old if unchanged else ShapeHandle(dims)

    def _dim(self, old: DimensionHandle, new: DimensionHandle) -> DimensionHandle:
        if old is new or (old.value == new.value >= 0) or old in self._own:
            return old
        unknown = DimensionHandle()
        self._own.add(unknown)
        return unknown

    def _held(
        self, old: Sequence[ShapeAndType] | None, new: Sequence[ShapeAndType] | None
    ) -> Sequence[ShapeAndType] | None:
        if old is None or new is None or [e.dtype for e in old] != [e.dtype for e in new]:
            return None
        shapes = [self.shape(a.shape, b.shape) for a, b in zip(old, new, strict=True)]
        if all(shape is entry.shape for shape, entry in zip(shapes, old, strict=True)):
            return old
        return [
            ShapeAndType(shape, entry.dtype, entry.full_type)
            for shape, entry in zip(shapes, old, strict=True)
        ]


def _without_value(facts: TensorFacts) -> TensorFacts:
    return facts if facts.value is None else TensorFacts(facts.shape, facts.held, None, facts.items)


def _relax_value(old: PartialValue | None, new: PartialValue | None) -> PartialValue | None:
    if old is None or new is None or old.shape != new.shape:
        return None
    pairs = list(zip(old.flat, new.flat, strict=True))
    if all(_same(a, b) for a, b in pairs):
        return old
    relaxed = np.empty(old.size, dtype=object)
    relaxed[:] = [a if _same(a, b) else None for a, b in pairs]
    return array_of(relaxed.reshape(old.shape))


def _same(old: object, new: object) -> bool:
    return old is None or old is new or (isinstance(old, int) and old == new)


FactsKey = tuple[object, ...]
"""Equal for facts that differ in nothing but which unknown dimensions they are about."""


def key_of_facts(arguments: Sequence[TensorFacts]) -> tuple[FactsKey, list[DimensionHandle]]:
    """The key of several facts, and the unknown dimensions in them in the order of the key."""
    numbers: dict[DimensionHandle, int] = {}

    def of_dim(dim: object) -> object:
        if not isinstance(dim, DimensionHandle):
            return dim
        return dim.value if dim.value >= 0 else ("?", numbers.setdefault(dim, len(numbers)))

    def of_shape(shape: ShapeHandle) -> object:
        return None if shape.dims is None else tuple([of_dim(dim) for dim in shape.dims])

    def of_facts(facts: TensorFacts) -> object:
        held = None
        if facts.held is not None:
            held = tuple([(of_shape(entry.shape), entry.dtype) for entry in facts.held])
        value = facts.value
        elements = None if value is None else (value.shape, *map(of_dim, value.flat))
        return of_shape(facts.shape), held, elements, of_items(facts.items)

    def of_items(items: TensorFacts | None) -> object:
        return items if items in (None, NO_ITEMS, ZERO_ITEMS) else of_facts(items)

    key = tuple([of_facts(facts) for facts in arguments])
    return key, list(numbers)


class Renaming:
    """Says the same of other unknown dimensions; those that have no counterpart become new ones."""

    def __init__(self, old: Sequence[DimensionHandle], new: Sequence[DimensionHandle]) -> None:
        self._new = dict(zip(old, new, strict=True))

    def facts(self, facts: TensorFacts) -> TensorFacts:
        """The facts about the other dimensions."""
        held, value = facts.held, facts.value
        if held is not None:
            held = [ShapeAndType(self._shape(e.shape), e.dtype, e.full_type) for e in held]
        if value is not None:
            renamed = np.empty(value.size, dtype=object)
            renamed[:] = [self._dim(e) if isinstance(e, DimensionHandle) else e for e in value.flat]
            value = renamed.reshape(value.shape)
        items = facts.items
        if items not in (None, NO_ITEMS, ZERO_ITEMS):
            items = self.facts(items)
        return TensorFacts(self._shape(facts.shape), held, value, items)

    def _shape(self, shape: ShapeHandle) -> ShapeHandle:
        if shape.dims is None:
            return ShapeHandle()
        return ShapeHandle(tuple([self._dim(dim) for dim in shape.dims]))

    def _dim(self, dim: DimensionHandle) -> DimensionHandle:
        if dim.value >= 0:
            return dim
        return self._new.setdefault(dim, DimensionHandle())
