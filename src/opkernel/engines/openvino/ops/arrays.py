"""Other shapes, orders and parts of the same elements: blocks of tensors, and blocks of images made channels or batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.engines.openvino.library import opset
from opkernel.engines.openvino.op_rule import INDEX, openvino_op
from opkernel.engines.openvino.tensors import (
    Shapes,
    common_order,
    ints,
    permuted,
    reshaped,
    scalar,
    shape_of,
    unpermuted,
)
from opkernel.ops.array.strided_slice import Masks, SparseSpec, strided_slice


@openvino_op("Identity", "StopGradient", "PreventGradient", "Snapshot", "PlaceholderWithDefault")
def identity(x: Any) -> Any:
    return x


@openvino_op("IdentityN", takes_empty=True)
def identity_n(inputs: list[Any]) -> Any:
    return tuple(inputs)


@openvino_op("Reshape", constants=["shape"])
@openvino_op("ExpandDims", constants=["dim"])
@openvino_op("Squeeze")
def reshape(x: Any, _: Any = None, *, output_shapes: Shapes) -> Any:
    return reshaped(x, output_shapes[0])


@openvino_op("Transpose", constants=["perm"])
def transpose(x: Any, perm: Any) -> Any:
    rank = len(shape_of(x))
    return permuted(x, [axis % rank for axis in perm.tolist()])


def _joined(parts: list[Any], axis: int) -> Any:
    full = [part for part in parts if 0 not in shape_of(part)]
    if len(full) == 1:
        return full[0]
    order = common_order(full)
    if order is None:
        return opset().concat(full, axis)
    joined = opset().concat([unpermuted(part)[0] for part in full], order[axis])
    return permuted(joined.output(0), order)


@openvino_op("ConcatV2", constants=["axis"], takes_empty=True)
def concat_v2(values: list[Any], axis: Any) -> Any:
    return _joined(values, int(axis) % len(shape_of(values[0])))


@openvino_op("Concat", constants=["concat_dim"], takes_empty=True)
def concat(concat_dim: Any, values: list[Any]) -> Any:
    return _joined(values, int(concat_dim) % len(shape_of(values[0])))


@openvino_op("Pack")
def pack(values: list[Any], *, axis: int) -> Any:
    shape = list(shape_of(values[0]))
    axis %= len(shape) + 1
    shape.insert(axis, 1)
    return _joined([reshaped(value, shape) for value in values], axis)


@openvino_op("Unpack")
def unpack(value: Any, *, num: int, axis: int, output_shapes: Shapes) -> Any:
    parts = opset().split(value, axis % len(shape_of(value)), num)
    return tuple(reshaped(parts.output(i), output_shapes[i]) for i in range(num))


@openvino_op("Split", constants=["split_dim"])
def split(split_dim: Any, value: Any, *, num_split: int) -> Any:
    parts = opset().split(value, int(split_dim) % len(shape_of(value)), num_split)
    return tuple(parts.outputs())


@openvino_op("SplitV", constants=["size_splits", "split_dim"])
def split_v(value: Any, size_splits: Any, split_dim: Any, *, output_shapes: Shapes) -> Any:
    axis = int(split_dim) % len(shape_of(value))
    lengths = [shape[axis] for shape in output_shapes]
    return tuple(opset().variadic_split(value, axis, ints(lengths)).outputs())


@openvino_op("Tile", constants=["multiples"])
def tile(x: Any, multiples: Any) -> Any:
    return opset().tile(x, ints(multiples.tolist()))


@openvino_op("BroadcastTo", constants=["shape"])
def broadcast_to(x: Any, shape: Any, *, output_shapes: Shapes) -> Any:
    if shape_of(x) == output_shapes[0]:  # OpenVINO crashes for scalars
        return x
    return opset().broadcast(x, ints(output_shapes[0]))


@openvino_op("Fill", constants=["dims"])
def fill(dims: Any, value: Any, *, output_shapes: Shapes) -> Any:
    return broadcast_to(value, dims, output_shapes=output_shapes)


@openvino_op("ZerosLike")
def zeros_like(x: Any, *, output_shapes: Shapes) -> Any:
    return np.zeros(output_shapes[0], np.float32)


@openvino_op("OnesLike")
def ones_like(x: Any, *, output_shapes: Shapes) -> Any:
    return np.ones(output_shapes[0], np.float32)


def _has_batch_dims(*, batch_dims: int) -> str:
    """OpenVINO 2026.4 crashes for batches of one row."""
    return "it has batch dimensions" if batch_dims else ""


@openvino_op("GatherV2", constants=["axis"], types={"indices": INDEX}, refuses=_has_batch_dims)
def gather_v2(params: Any, indices: Any, axis: Any) -> Any:
    return opset().gather(params, indices, ints([int(axis)]))


@openvino_op("Gather", types={"indices": INDEX})
def gather(params: Any, indices: Any) -> Any:
    return opset().gather(params, indices, ints([0]))


@openvino_op("Pad", constants=["paddings"], takes_empty=True)
def pad(x: Any, paddings: Any, *, output_shapes: Shapes) -> Any:
    return _padded(x, paddings, 0, output_shapes[0])


@openvino_op("PadV2", constants=["paddings", "constant_values"], takes_empty=True)
def pad_v2(x: Any, paddings: Any, constant_values: Any, *, output_shapes: Shapes) -> Any:
    """OpenVINO pads with 0 where the value is no constant."""
    return _padded(x, paddings, constant_values.item(), output_shapes[0])


def _padded(x: Any, paddings: Any, value: float, shape: tuple[int, ...]) -> Any:
    if 0 in shape_of(x):
        return np.full(shape, value, np.float32)
    if not paddings.size:
        return x
    x, order = unpermuted(x)
    rows = paddings[[order.index(axis) for axis in range(len(order))]]
    return permuted(opset().pad(x, *_borders(rows), "constant", scalar(value)).output(0), order)


@openvino_op("MirrorPad", constants=["paddings"])
def mirror_pad(x: Any, paddings: Any, *, mode: str) -> Any:
    return opset().pad(x, *_borders(paddings), mode.lower()) if paddings.size else x


def _borders(paddings: Any) -> tuple[Any, Any]:
    """How many elements to add before and after, for each axis."""
    before, after = paddings.reshape(-1, 2).T.tolist()
    return ints(before), ints(after)


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
    starts, steps = [one.start for one in found], [one.step for one in found]
    return opset().slice(x, ints(starts), ints(stops), ints(steps), ints(axes)).output(0)


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


@openvino_op("DepthToSpace")
def depth_to_space(x: Any, *, block_size: int, data_format: str) -> Any:
    return _on_images(opset().depth_to_space, x, block_size, data_format)


@openvino_op("SpaceToDepth")
def space_to_depth(x: Any, *, block_size: int, data_format: str) -> Any:
    return _on_images(opset().space_to_depth, x, block_size, data_format)


def _on_images(move: Callable[..., Any], x: Any, block_size: int, data_format: str) -> Any:
    """What a function for channels first makes of images in a layout."""
    is_last = data_format == "NHWC"
    images = permuted(x, (0, 3, 1, 2)) if is_last else x
    made = move(images, "blocks_first", block_size).output(0)
    return permuted(made, (0, 2, 3, 1)) if is_last else made


@openvino_op("SpaceToBatchND", constants=["block_shape", "paddings"])
def space_to_batch_nd(x: Any, block_shape: Any, paddings: Any) -> Any:
    return opset().space_to_batch(x, *_blocks(x, block_shape, paddings))


@openvino_op("BatchToSpaceND", constants=["block_shape", "crops"])
def batch_to_space_nd(x: Any, block_shape: Any, crops: Any) -> Any:
    return opset().batch_to_space(x, *_blocks(x, block_shape, crops))


def _blocks(x: Any, block_shape: Any, borders: Any) -> tuple[Any, Any, Any]:
    """For each axis the size of blocks, and how many elements are added, or taken away, before and after."""
    rest = len(shape_of(x)) - 1 - block_shape.size
    before, after = borders.reshape(-1, 2).T.tolist()
    sizes = [1, *block_shape.tolist(), *[1] * rest]
    return ints(sizes), ints([0, *before, *[0] * rest]), ints([0, *after, *[0] * rest])
