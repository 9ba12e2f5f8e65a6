"""`parse_shape_and_slice`: which part of a saved tensor is meant, as checkpoints write it.

Source: ParseShapeAndSlice in TensorFlow core/util/saved_tensor_slice_util.cc, and
core/framework/tensor_slice.cc.
"""

import re

from opkernel.errors import InternalError, InvalidArgumentError

__all__ = ["parse_shape_and_slice"]

_INTEGER = re.compile(r"\s*[+-]?\d+\s*")


def parse_shape_and_slice(text: str) -> list[int]:
    """The shape of the slice that `text` means: `3 4 -:0,2` is [3, 2], of a [3, 4] tensor.

    Raises:
        InvalidArgumentError: the text has another form.
        InternalError: the slice does not fit the shape.
    """
    *sizes, slice_text = text.split(" ")
    if not sizes:
        raise InvalidArgumentError(
            f"Need least two elements in shape_and_slice specification: {text}"
        )
    extents = [_extent(part, slice_text) for part in slice_text.split(":") if part]
    shape = [_size(size, text) for size in sizes]
    if len(extents) != len(shape):
        raise InternalError(f"Mismatching ranks: shape = {shape}, slice = {slice_text}")
    for i, (extent, size) in enumerate(zip(extents, shape, strict=True)):
        if extent is not None and sum(extent) > size:
            raise InternalError(
                f"Extent in dimension {i} out of bounds: shape = {shape}, slice = {slice_text}"
            )
    return [
        size if extent is None else extent[1] for extent, size in zip(extents, shape, strict=True)
    ]


def _size(size: str, text: str) -> int:
    if not _INTEGER.fullmatch(size):
        raise InvalidArgumentError(f"Non numerical dimension in shape_and_slice: {text}")
    if int(size) < 0:
        raise InvalidArgumentError(f"Negative dimension in shape_and_slice: {text}")
    return int(size)


def _extent(part: str, slice_text: str) -> tuple[int, int] | None:
    """Start and length of a slice in one dimension; None for all of it."""
    if part == "-":
        return None
    numbers = [number for number in part.split(",") if number]
    if len(numbers) != 2 or not all(map(_INTEGER.fullmatch, numbers)):
        raise InvalidArgumentError(
            f"Expected a pair of numbers or '-' but got '{part}': string = {slice_text}"
        )
    start, length = map(int, numbers)
    if start < 0 or length <= 0:
        raise InvalidArgumentError(
            "Expected non-negative start and positive length but got "
            f"start = {start}, length = {length}: string = {slice_text}"
        )
    return start, length
