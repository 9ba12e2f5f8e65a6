"""Blocks of tensors, and blocks of images made channels or batches."""

from __future__ import annotations

from typing import Any

from opkernel.engines.openvino.library import opset
from opkernel.engines.openvino.op_rule import openvino_op
from opkernel.engines.openvino.tensors import ints, permuted, reshaped, shape_of
from opkernel.ops.array.strided_slice_spec import Masks, SparseSpec, strided_slice

Shapes = list[tuple[int, ...]]


@openvino_op("Slice", constants=["begin", "size"])
def slice_(x: Any, begin: Any, size: Any, *, output_shapes: Shapes) -> Any:
    stops = [start + length for start, length in zip(begin.tolist(), output_shapes[0], strict=True)]
    return _sliced(x, [slice(*one) for one in zip(begin.tolist(), stops, strict=True)])


def _sliced(x: Any, slices: list[slice]) -> Any:
    """The slice of an output, by one slice an axis."""
    ranges = [range(*one.indices(size)) for one, size in zip(slices, shape_of(x), strict=True)]
    axes = [axis for axis, size in enumerate(shape_of(x)) if ranges[axis] != range(size)]
    if not axes:
        return x
    lowest = -(2**31)
    found = [ranges[axis] for axis in axes]
    stops = [one.stop if one.stop >= 0 else lowest for one in found]
    return (
        opset()
        .slice(
            x,
            ints([one.start for one in found]),
            ints(stops),
            ints([one.step for one in found]),
            ints(axes),
        )
        .output(0)
    )


@openvino_op("StridedSlice", constants=["begin", "end", "strides"])
def strided(
    x: Any,
    begin: Any,
    end: Any,
    strides: Any,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
    output_shapes: Shapes,
) -> Any:
    masks = Masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    spec = SparseSpec(begin.tolist(), end.tolist(), strides.tolist(), masks)
    index = strided_slice(spec, shape_of(x)).array_index
    slices = [
        slice(one, one + 1) if isinstance(one, int) else one
        for one in index
        if one is not None and one is not ...
    ]
    return reshaped(_sliced(x, slices), output_shapes[0])


def _spread(x: Any, parts: list[int], perm: list[int], shape: tuple[int, ...]) -> Any:
    return reshaped(permuted(reshaped(x, parts), perm), shape)


@openvino_op("DepthToSpace")
def depth_to_space(x: Any, *, block_size: int, data_format: str, output_shapes: Shapes) -> Any:
    block = block_size
    if data_format == "NHWC":
        n, h, w, c = shape_of(x)
        parts = [n, h, w, block, block, c // block**2]
        return _spread(x, parts, [0, 1, 3, 2, 4, 5], output_shapes[0])
    n, c, h, w = shape_of(x)
    parts = [n, block, block, c // block**2, h, w]
    return _spread(x, parts, [0, 3, 4, 1, 5, 2], output_shapes[0])


@openvino_op("SpaceToDepth")
def space_to_depth(x: Any, *, block_size: int, data_format: str, output_shapes: Shapes) -> Any:
    block = block_size
    if data_format == "NHWC":
        n, h, w, c = shape_of(x)
        parts = [n, h // block, block, w // block, block, c]
        return _spread(x, parts, [0, 1, 3, 2, 4, 5], output_shapes[0])
    n, c, h, w = shape_of(x)
    parts = [n, c, h // block, block, w // block, block]
    return _spread(x, parts, [0, 3, 5, 1, 2, 4], output_shapes[0])


@openvino_op("SpaceToBatchND", constants=["block_shape", "paddings"])
def space_to_batch_nd(x: Any, block_shape: Any, paddings: Any, *, output_shapes: Shapes) -> Any:
    blocks, pads = block_shape.tolist(), paddings.tolist()
    rank, spatial = len(shape_of(x)), len(blocks)
    rest = [0] * (rank - 1 - spatial)
    before, after = [0, *(one[0] for one in pads), *rest], [0, *(one[1] for one in pads), *rest]
    padded = (
        opset().pad(x, ints(before), ints(after), "constant").output(0)
        if any(before + after)
        else x
    )
    batch, *sizes = shape_of(padded)
    parts = [batch]
    for size, block in zip(sizes, blocks, strict=False):
        parts += size // block, block
    parts += sizes[spatial:]
    inner = range(2, 2 * spatial + 1, 2)
    outer = range(1, 2 * spatial, 2)
    perm = [*inner, 0, *outer, *range(2 * spatial + 1, len(parts))]
    return _spread(padded, parts, perm, output_shapes[0])


@openvino_op("BatchToSpaceND", constants=["block_shape", "crops"])
def batch_to_space_nd(x: Any, block_shape: Any, crops: Any, *, output_shapes: Shapes) -> Any:
    blocks = block_shape.tolist()
    batch, *sizes = shape_of(x)
    spatial = len(blocks)
    count = batch
    for block in blocks:
        count //= block
    parts = [*blocks, count, *sizes]
    perm = [spatial]
    for axis in range(spatial):
        perm += spatial + 1 + axis, axis
    perm += range(2 * spatial + 1, len(parts))
    whole = [size * block for size, block in zip(sizes, blocks, strict=False)]
    spread = _spread(x, parts, perm, (count, *whole, *sizes[spatial:]))
    slices = [slice(None)] * len(shape_of(x))
    for axis, (before, _) in enumerate(crops.tolist(), 1):
        slices[axis] = slice(before, before + output_shapes[0][axis])
    return _sliced(spread, slices)
