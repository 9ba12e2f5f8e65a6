"""`HeldShapes`: the shapes and types that resources and variants hold, as far as known.

Source: MergeHandleShapesAndTypes and RelaxHandleShapesAndMergeTypes in TensorFlow
core/framework/shape_inference.cc.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra
from opkernel.opdef.shapes.shape_handles import ShapeAndType, ShapeHandle
from opkernel.types import DataType

_Held: TypeAlias = Sequence[ShapeAndType]
_Combine: TypeAlias = Callable[[_Held | None, _Held], list[ShapeAndType] | None]
"""The combination of old and new; None where they do not match, or nothing is learned."""


class HeldShapes(ShapeAlgebra):
    """The half of `InferenceContext` for the contents of resources and variants.

    It has, for each input and output of such a type, the shapes and types of the tensors in it.
    """

    __slots__ = ("_input_handles", "_output_handles")

    def __init__(self, input_handles: Iterable[list[ShapeAndType] | None]) -> None:
        self._input_handles = list(input_handles)
        self._output_handles: dict[int, list[ShapeAndType]] = {}

    def input_handle_shapes_and_types(self, index: int) -> list[ShapeAndType] | None:
        """The content of the resource or variant at an input; None if it is not known."""
        return self._input_handles[index] if index < len(self._input_handles) else None

    def set_input_handle_shapes_and_types(
        self, index: int, shapes_and_types: Sequence[ShapeAndType]
    ) -> None:
        """Replace the known contents of an input."""
        missing = index + 1 - len(self._input_handles)
        self._input_handles.extend([None] * missing)
        self._input_handles[index] = list(shapes_and_types)

    def output_handle_shapes_and_types(self, index: int) -> list[ShapeAndType] | None:
        """The content of the resource or variant at an output, by the shape function."""
        return self._output_handles.get(index)

    def held_by_outputs(self) -> Iterable[tuple[int, list[ShapeAndType]]]:
        """The contents of outputs that the shape function has set, by output."""
        return self._output_handles.items()

    def set_output_handle_shapes_and_types(
        self, index: int, shapes_and_types: Sequence[ShapeAndType]
    ) -> None:
        """Set the contents of the resource or variant at an output."""
        self._output_handles[index] = list(shapes_and_types)

    def merge_input_handle_shapes_and_types(
        self, index: int, shapes_and_types: Sequence[ShapeAndType]
    ) -> bool:
        """Refine the contents of an input; whether anything was learned."""
        return self._update_input_handles(index, shapes_and_types, _merged)

    def relax_input_handle_shapes_and_merge_types(
        self, index: int, shapes_and_types: Sequence[ShapeAndType]
    ) -> bool:
        """Relax the contents of an input to the part that holds of these too; whether their types agree."""
        return self._update_input_handles(index, shapes_and_types, _relaxed)

    def merge_output_handle_shapes_and_types(
        self, index: int, shapes_and_types: Sequence[ShapeAndType]
    ) -> bool:
        """Refine the contents of an output; whether anything was learned."""
        return self._update_output_handles(index, shapes_and_types, _merged)

    def relax_output_handle_shapes_and_merge_types(
        self, index: int, shapes_and_types: Sequence[ShapeAndType]
    ) -> bool:
        """Relax the contents of an output to the part that holds of these too; whether their types agree."""
        return self._update_output_handles(index, shapes_and_types, _relaxed)

    def _update_input_handles(
        self, index: int, new: Sequence[ShapeAndType], combine: _Combine
    ) -> bool:
        updated = combine(self.input_handle_shapes_and_types(index), new)
        if updated is not None:
            self.set_input_handle_shapes_and_types(index, updated)
        return updated is not None

    def _update_output_handles(
        self, index: int, new: Sequence[ShapeAndType], combine: _Combine
    ) -> bool:
        updated = combine(self._output_handles.get(index), new)
        if updated is not None:
            self._output_handles[index] = updated
        return updated is not None


def _merge_or_keep(old: ShapeHandle, new: ShapeHandle) -> ShapeHandle:
    """Both merged; a new shape that contradicts the old is left aside."""
    try:
        return ShapeAlgebra.merge(old, new)
    except InvalidArgumentError:
        return old


def _merged(old: _Held | None, new: _Held) -> list[ShapeAndType] | None:
    if old is None:
        return list(new)
    if not _types_agree(old, new):
        return None
    updated, refined = [], False
    for was, now in zip(old, new, strict=True):
        shape = _merge_or_keep(was.shape, now.shape)
        refined |= shape is not was.shape or was.dtype != now.dtype
        updated.append(ShapeAndType(shape, now.dtype, was.full_type))
    return updated if refined else None


def _relaxed(old: _Held | None, new: _Held) -> list[ShapeAndType] | None:
    """The content that covers both; full types do not outlast it."""
    if old is None:
        return list(new)
    if not _types_agree(old, new):
        return None
    pairs = zip(old, new, strict=True)
    return [ShapeAndType(ShapeAlgebra.relax(was.shape, now.shape), now.dtype) for was, now in pairs]


def _types_agree(old: _Held, new: _Held) -> bool:
    return len(old) == len(new) and all(
        was.dtype in (now.dtype, DataType.DT_INVALID) for was, now in zip(old, new, strict=True)
    )
