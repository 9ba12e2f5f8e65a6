"""What resources and variants hold, as far as shape inference knows: combining two accounts of it.

Source: MergeHandleShapesAndTypes and RelaxHandleShapesAndMergeTypes in TensorFlow
core/framework/shape_inference.cc.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.shape_algebra import ShapeAlgebra
from opkernel.opdef.shape_handles import ShapeAndType, ShapeHandle
from opkernel.types import DataType

__all__ = ["Combine", "combine_shapes_and_types", "merge_or_keep"]

Combine: TypeAlias = Callable[[ShapeHandle, ShapeHandle], ShapeHandle]


def merge_or_keep(old: ShapeHandle, new: ShapeHandle) -> ShapeHandle:
    """Both merged; a new shape that contradicts the old is left aside."""
    try:
        return ShapeAlgebra.merge(old, new)
    except InvalidArgumentError:
        return old


def combine_shapes_and_types(
    old: Sequence[ShapeAndType] | None, new: Sequence[ShapeAndType], combine: Combine
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
