"""`HeldShapes`: what resources and variants hold, as far as shape inference knows.

Source: MergeHandleShapesAndTypes and RelaxHandleShapesAndMergeTypes in TensorFlow
core/framework/shape_inference.cc.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.shape_algebra import ShapeAlgebra
from opkernel.opdef.shape_handles import ShapeAndType, ShapeHandle
from opkernel.types import DataType

__all__ = ["HeldShapes"]

_Combine: TypeAlias = Callable[[ShapeHandle, ShapeHandle], ShapeHandle]


class HeldShapes(ShapeAlgebra):
    """The half of `InferenceContext` that knows what its resources and variants hold.

    For each input and output that is one: the shapes and types of the tensors that it holds.
    """

    __slots__ = ("_input_handles", "_output_handles")

    def __init__(self, input_handles: Iterable[list[ShapeAndType] | None]) -> None:
        self._input_handles = list(input_handles)
        self._output_handles: dict[int, list[ShapeAndType]] = {}

    def input_handle_shapes_and_types(self, index: int) -> list[ShapeAndType] | None:
        """What the resource or variant at an input holds; None if that is not known."""
        return self._input_handles[index] if index < len(self._input_handles) else None

    def set_input_handle_shapes_and_types(
        self, index: int, shapes_and_types: Sequence[ShapeAndType]
    ) -> None:
        """Replace what is known of what an input holds."""
        missing = index + 1 - len(self._input_handles)
        self._input_handles.extend([None] * missing)
        self._input_handles[index] = list(shapes_and_types)

    def output_handle_shapes_and_types(self, index: int) -> list[ShapeAndType] | None:
        """What the shape function said that the resource or variant at an output holds."""
        return self._output_handles.get(index)

    def set_output_handle_shapes_and_types(
        self, index: int, shapes_and_types: Sequence[ShapeAndType]
    ) -> None:
        """Say what the resource or variant at an output holds."""
        self._output_handles[index] = list(shapes_and_types)

    def merge_input_handle_shapes_and_types(
        self, index: int, shapes_and_types: Sequence[ShapeAndType]
    ) -> bool:
        """Refine what an input holds; whether anything was learned."""
        return self._update_input_handles(index, shapes_and_types, _merge_or_keep)

    def relax_input_handle_shapes_and_merge_types(
        self, index: int, shapes_and_types: Sequence[ShapeAndType]
    ) -> bool:
        """Keep of what an input holds that which holds of these too; whether it changed."""
        return self._update_input_handles(index, shapes_and_types, self.relax)

    def merge_output_handle_shapes_and_types(
        self, index: int, shapes_and_types: Sequence[ShapeAndType]
    ) -> bool:
        """Refine what an output holds; whether anything was learned."""
        return self._update_output_handles(index, shapes_and_types, _merge_or_keep)

    def relax_output_handle_shapes_and_merge_types(
        self, index: int, shapes_and_types: Sequence[ShapeAndType]
    ) -> bool:
        """Keep of what an output holds that which holds of these too; whether it changed."""
        return self._update_output_handles(index, shapes_and_types, self.relax)

    def _update_input_handles(
        self, index: int, new: Sequence[ShapeAndType], combine: _Combine
    ) -> bool:
        updated = _combine_shapes_and_types(self.input_handle_shapes_and_types(index), new, combine)
        if updated is not None:
            self.set_input_handle_shapes_and_types(index, updated)
        return updated is not None

    def _update_output_handles(
        self, index: int, new: Sequence[ShapeAndType], combine: _Combine
    ) -> bool:
        updated = _combine_shapes_and_types(self._output_handles.get(index), new, combine)
        if updated is not None:
            self._output_handles[index] = updated
        return updated is not None


def _merge_or_keep(old: ShapeHandle, new: ShapeHandle) -> ShapeHandle:
    """Both merged; a new shape that contradicts the old is left aside."""
    try:
        return ShapeAlgebra.merge(old, new)
    except InvalidArgumentError:
        return old


def _combine_shapes_and_types(
    old: Sequence[ShapeAndType] | None, new: Sequence[ShapeAndType], combine: _Combine
) -> list[ShapeAndType] | None:
    """Old and new combined, or None if that changes nothing or they do not match."""
    if old is None:
        return list(new)
    if len(old) != len(new):
        return None
    updated, refined = [], False
    for was, now in zip(old, new, strict=True):
        if was.dtype not in (now.dtype, DataType.DT_INVALID):
            return None
        shape = combine(was.shape, now.shape)
        refined |= shape is not was.shape or was.dtype != now.dtype
        updated.append(ShapeAndType(shape, now.dtype, was.full_type))
    return updated if refined else None
