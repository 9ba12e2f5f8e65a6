"""Blocks of space moved into batch or depth, and back: SpaceToBatch, BatchToSpace, SpaceToDepth, DepthToSpace.

SpaceToBatchND and BatchToSpaceND take blocks of any rank. The gradient of each move is the move back.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/spacetobatch_op.cc, batchtospace_op.cc, spacetodepth_op.cc,
depthtospace_op.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import make_shape_from_format
from opkernel.opdef.shapes.inference_context import ShapeFn
from opkernel.opdef.shapes.shape_handles import ShapeHandle
from opkernel.opdef.shapes.tensor_format import TensorFormat
from opkernel.ops.array.fill import zeros
from opkernel.ops.array.pad_and_slice import padded
from opkernel.ops.input_checks import require, require_equal, require_rank, require_vector
from opkernel.ops.registration import ALL, REAL_NUMBERS, register_kernel
from opkernel.types import DataType

_Sizes = Sequence[int]
_Pairs = Sequence[Sequence[int]]


def _blocks(c: InferenceContext) -> tuple[ShapeHandle, ShapeHandle, _Sizes | None]:
    """The tensor, and the shape and the value of `block_shape`; where that is no input, blocks are squares."""
    if c.num_inputs() == 2:
        return c.with_rank(c.input(0), 4), c.vector(2), [c.get_attr("block_size")] * 2
    known = c.input_tensor(1)
    return c.input(0), c.input(1), None if known is None else known.tolist()


def _set_moved_shape(c: InferenceContext, *, to_batch: bool) -> None:
    """The shape of a move; the last input is `paddings` or `crops`."""
    borders = c.num_inputs() - 1
    tensor, blocks_shape, blocks = _blocks(c)
    pairs = c.input_tensor(borders)
    require_equal(c.rank(blocks_shape), 1, "block_shape must have rank 1.")
    count = c.value(c.dim(blocks_shape, 0))
    require(count >= 0, "block_shape must have known size.")
    tensor = c.with_rank_at_least(tensor, count + 1)
    c.merge(c.input(borders), c.matrix(count, 2))
    if blocks is not None and any(block < 1 for block in blocks):
        raise InvalidArgumentError("block_shape must be positive")
    batch = c.dim(tensor, 0)
    if count and (blocks is None or not c.value_known(batch)):
        batch = c.unknown_dim()
    for block in blocks or ():
        batch = c.multiply(batch, block) if to_batch else c.divide(batch, block, True)
    unknown = c.unknown_dim()
    dims = [unknown] * count
    for i, border in enumerate([] if pairs is None else pairs.tolist()):
        if min(border) < 0:
            raise InvalidArgumentError(f"{'paddings' if to_batch else 'crops'} cannot be negative")
        if blocks is not None and to_batch:
            dim = c.add(c.add(c.dim(tensor, i + 1), border[0]), border[1])
            dims[i] = c.divide(dim, blocks[i], evenly_divisible=True)
        elif blocks is not None:
            dim = c.multiply(c.dim(tensor, i + 1), blocks[i])
            dims[i] = c.subtract(c.subtract(dim, border[0]), border[1])
    rest = c.subshape(tensor, count + 1)
    c.set_output(0, c.concatenate(c.make_shape([batch, *dims]), rest))


def _declare_nd(signature: str, to_batch: bool, what: str) -> OpHandle:
    borders = "Tpaddings" if to_batch else "Tcrops"
    return register_op(
        signature,
        attrs=[
            "T: type",
            "Tblock_shape: {int32, int64} = DT_INT32",
            f"{borders}: {{int32, int64}} = DT_INT32",
        ],
        shape_fn=partial(_set_moved_shape, to_batch=to_batch),
        doc=f"""`input`{what}.

    `input` is [batch, spatial..., rest...] with a spatial dimension for each of `block_shape`.""",
        traits="mostly_copies",
    )


SPACE_TO_BATCH_ND = _declare_nd(
    "SpaceToBatchND(input: T, block_shape: Tblock_shape, paddings: Tpaddings) -> output: T",
    True,
    ", padded with zeros, with the places within each block moved into the batch",
)
BATCH_TO_SPACE_ND = _declare_nd(
    "BatchToSpaceND(input: T, block_shape: Tblock_shape, crops: Tcrops) -> output: T",
    False,
    " with the batch moved into blocks of space, and cropped: undoes SpaceToBatchND",
)


SPACE_TO_BATCH = register_op(
    "SpaceToBatch(input: T, paddings: Tpaddings) -> output: T",
    attrs=["T: type", "Tpaddings: {int32, int64} = DT_INT32", "block_size: int >= 2"],
    shape_fn=partial(_set_moved_shape, to_batch=True),
    doc="SpaceToBatchND of images [batch, height, width, depth] with square blocks.",
    traits="mostly_copies",
)

BATCH_TO_SPACE = register_op(
    "BatchToSpace(input: T, crops: Tidx) -> output: T",
    attrs=["T: type", "block_size: int >= 2", "Tidx: {int32, int64} = DT_INT32"],
    shape_fn=partial(_set_moved_shape, to_batch=False),
    doc="BatchToSpaceND of images [batch, height, width, depth] with square blocks.",
    traits="mostly_copies",
)


@register_kernel(
    SPACE_TO_BATCH_ND,
    types={"T": REAL_NUMBERS},
    host_memory=["block_shape", "paddings"],
    kind="view",
)
def space_to_batch_nd(tensor: Any, block_shape: Any, paddings: Any, *, T: DataType, xp: Any) -> Any:
    return _space_to_batch(tensor, *_checked(tensor, block_shape, paddings, "paddings"), T, xp)


@register_kernel(SPACE_TO_BATCH, types={"T": REAL_NUMBERS}, host_memory=["paddings"], kind="view")
def space_to_batch(tensor: Any, paddings: Any, *, block_size: int, T: DataType, xp: Any) -> Any:
    return _space_to_batch(tensor, *_checked_image(tensor, block_size, paddings, "paddings"), T, xp)


@register_kernel(
    BATCH_TO_SPACE_ND, types={"T": REAL_NUMBERS}, host_memory=["block_shape", "crops"], kind="view"
)
def batch_to_space_nd(tensor: Any, block_shape: Any, crops: Any) -> Any:
    return _batch_to_space(tensor, *_checked(tensor, block_shape, crops, "crops"))


@register_kernel(BATCH_TO_SPACE, types={"T": REAL_NUMBERS}, host_memory=["crops"], kind="view")
def batch_to_space(tensor: Any, crops: Any, *, block_size: int) -> Any:
    return _batch_to_space(tensor, *_checked_image(tensor, block_size, crops, "crops"))


def _checked_image(
    tensor: Any, block_size: int, borders: Any, name: str
) -> tuple[list[int], list[list[int]]]:
    """As `_checked`, of an image with square blocks."""
    require_rank(tensor, 4, f"Input rank should be: 4 instead of: {tensor.ndim}")
    return _checked(tensor, np.array([block_size, block_size]), borders, name)


def _checked(
    tensor: Any, block_shape: Any, borders: Any, name: str
) -> tuple[list[int], list[list[int]]]:
    """The blocks, and the paddings or crops, as lists."""
    require_vector(block_shape, f"block_shape rank should be 1 instead of {block_shape.ndim}")
    count = len(block_shape)
    if tensor.ndim < count + 1:
        raise InvalidArgumentError(f"input rank should be >= {count + 1} instead of {tensor.ndim}")
    require_equal(
        borders.shape, (count, 2), f"{name} should have shape [{count}, 2] instead of {{}}"
    )
    blocks: list[int] = block_shape.tolist()
    for i, block in enumerate(blocks):
        if block < 1:
            raise InvalidArgumentError(
                f"All values in block_shape must be positive, got value, {block} at index {i}."
            )
    pairs: list[list[int]] = borders.tolist()
    if any(size < 0 for pair in pairs for size in pair):
        raise InvalidArgumentError(f"{name.capitalize()} must be non-negative")
    return blocks, pairs


def _space_to_batch(
    tensor: Any, blocks: list[int], paddings: _Pairs, dtype: DataType, xp: Any
) -> Any:
    count, batch, rest = len(blocks), tensor.shape[0], tensor.shape[len(blocks) + 1 :]
    outer = []
    for i, (block, padding) in enumerate(zip(blocks, paddings, strict=True)):
        size = tensor.shape[i + 1] + sum(padding)
        if size % block:
            raise InvalidArgumentError(
                f"padded_shape[{i}]={size} is not divisible by block_shape[{i}]={block}"
            )
        outer.append(size // block)
    shape = check_allocation((batch * math.prod(blocks), *outer, *rest), dtype)
    if tensor.size == 0:
        return zeros(shape, dtype)
    if any(size for padding in paddings for size in padding):
        borders = [(0, 0), *paddings, *[(0, 0)] * len(rest)]
        tensor = padded(tensor, borders, zeros((), dtype), dtype, xp)
    pairs = zip(outer, blocks, strict=True)
    tensor = tensor.reshape((batch, *(n for pair in pairs for n in pair), *rest))
    inside, outside = range(2, 2 * count + 1, 2), range(1, 2 * count + 1, 2)
    last = range(2 * count + 1, tensor.ndim)
    return tensor.transpose((*inside, 0, *outside, *last)).reshape(shape)


def _batch_to_space(tensor: Any, blocks: list[int], crops: _Pairs) -> Any:
    count, product = len(blocks), math.prod(blocks)
    batch, spatial, rest = tensor.shape[0], tensor.shape[1 : count + 1], tensor.shape[count + 1 :]
    if batch % product:
        raise InvalidArgumentError(
            f"Input batch dimension ({batch}) is not divisible by product of block sizes ({product})"
        )
    index: list[Any] = [slice(None)]
    for i, (size, block, crop) in enumerate(zip(spatial, blocks, crops, strict=True)):
        if size * block < sum(crop):
            raise InvalidArgumentError(
                f"cropped_shape[{i}]={size * block - sum(crop)} must be non-negative"
            )
        index.append(slice(crop[0], size * block - crop[1]))
    tensor = tensor.reshape((*blocks, batch // product, *spatial, *rest))
    pairs = [axis for i in range(count) for axis in (count + 1 + i, i)]
    tensor = tensor.transpose((count, *pairs, *range(2 * count + 1, tensor.ndim)))
    whole = (size * block for size, block in zip(spatial, blocks, strict=True))
    return tensor.reshape((batch // product, *whole, *rest))[tuple(index)]


g.register_gradient("SpaceToBatch")(g.by_op("BatchToSpace", "block_size"))
g.register_gradient("BatchToSpace")(g.by_op("SpaceToBatch", "block_size"))
g.register_gradient("SpaceToBatchND")(g.by_op("BatchToSpaceND"))
g.register_gradient("BatchToSpaceND")(g.by_op("SpaceToBatchND"))


def _depth_shape(*, to_depth: bool) -> ShapeFn:
    """Height and width divided by the block, the depth times its square; or the other way round."""

    def shape_fn(c: InferenceContext) -> None:
        layout = TensorFormat.from_string(c.get_attr("data_format"))
        dims = c.with_rank(c.input(0), layout.num_dims(2)).dims or ()
        block = c.get_attr("block_size")
        space, depth = [dims[layout.spatial_index(i)] for i in (0, 1)], dims[layout.index("C")]
        if to_depth:
            space = [c.divide(dim, block, evenly_divisible=True) for dim in space]
            depth = c.multiply(depth, block * block)
        else:
            space = [c.multiply(dim, block) for dim in space]
            depth = c.divide(depth, block * block, evenly_divisible=True)
        c.set_output(0, make_shape_from_format(c, layout, dims[0], space, depth))

    return shape_fn


def _declare_depth(name: str, shape_fn: ShapeFn, doc: str) -> OpHandle:
    return register_op(
        f"{name}(input: T) -> output: T",
        attrs=[
            "T: type",
            "block_size: int >= 2",
            "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
        ],
        shape_fn=shape_fn,
        traits="cost=linear mostly_copies",
        doc=doc,
    )


SPACE_TO_DEPTH = _declare_depth(
    "SpaceToDepth",
    _depth_shape(to_depth=True),
    "Images `input` with the places within each block moved into the depth.",
)
DEPTH_TO_SPACE = _declare_depth(
    "DepthToSpace",
    _depth_shape(to_depth=False),
    "Images `input` with parts of the depth moved into blocks of space: undoes SpaceToDepth.",
)


@register_kernel(
    SPACE_TO_DEPTH,
    types={"T": (*ALL, DataType.DT_QINT8)},
    attrs={"data_format": "NHWC"},
    kind="view",
)
def space_to_depth(tensor: Any, *, block_size: int) -> Any:
    batch, height, width, depth = _image_shape(tensor)
    if height % block_size or width % block_size:
        raise InvalidArgumentError(
            f"Image width {width} and height {height} should be divisible by block_size: {block_size}"
        )
    rows, columns = height // block_size, width // block_size
    blocks = tensor.reshape((batch, rows, block_size, columns, block_size, depth))
    moved = blocks.transpose((0, 1, 3, 2, 4, 5))
    return moved.reshape((batch, rows, columns, block_size * block_size * depth))


@register_kernel(DEPTH_TO_SPACE, types={"T": ALL}, attrs={"data_format": "NHWC"}, kind="view")
def depth_to_space(tensor: Any, *, block_size: int) -> Any:
    batch, rows, columns, depth = _image_shape(tensor)
    square = block_size * block_size
    require(not depth % square, f"Input depth dimension {depth} should be divisible by: {square}")
    inner = depth // square
    blocks = tensor.reshape((batch, rows, columns, block_size, block_size, inner))
    moved = blocks.transpose((0, 1, 3, 2, 4, 5))
    return moved.reshape((batch, rows * block_size, columns * block_size, inner))


def _image_shape(tensor: Any) -> tuple[int, ...]:
    require_rank(tensor, 4, f"Input rank should be: 4 instead of: {tensor.ndim}")
    shape: tuple[int, ...] = tensor.shape
    return shape


g.register_gradient("SpaceToDepth")(g.by_op("DepthToSpace", "block_size", "data_format"))
g.register_gradient("DepthToSpace")(g.by_op("SpaceToDepth", "block_size", "data_format"))
