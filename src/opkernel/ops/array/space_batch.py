"""Blocks of space moved into the batch and back: SpaceToBatch, BatchToSpace and their ND forms.

Gradients of moves between space and batch: the move back.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/spacetobatch_op.cc, batchtospace_op.cc.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.shapes.inference_context import ShapeFn
from opkernel.opdef.shapes.shape_handles import DimensionHandle, ShapeHandle
from opkernel.ops.array.fill import zeros
from opkernel.ops.array.pad import padded
from opkernel.ops.input_checks import require_equal, require_rank, require_vector
from opkernel.ops.kernel_types import REAL_NUMBERS
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_Sizes = Sequence[int]
_Pairs = Sequence[Sequence[int]]


class _Borders(NamedTuple):
    """The input `paddings` or `crops`, for a shape function."""

    shape: ShapeHandle
    values: Any


def _moved_shape(*, to_batch: bool) -> ShapeFn:
    """Inputs `input`, `block_shape` and `paddings` or `crops`."""

    def shape_fn(c: InferenceContext) -> None:
        blocks = c.input_tensor(1)
        sizes = None if blocks is None else blocks.tolist()
        borders = _Borders(c.input(2), c.input_tensor(2))
        _set_moved_shape(c, c.input(0), c.input(1), sizes, borders, to_batch=to_batch)

    return shape_fn


def _moved_square_shape(*, to_batch: bool) -> ShapeFn:
    """Inputs `input` of rank 4 and `paddings` or `crops`; attr `block_size`."""

    def shape_fn(c: InferenceContext) -> None:
        tensor = c.with_rank(c.input(0), 4)
        sizes = [c.get_attr("block_size")] * 2
        borders = _Borders(c.input(1), c.input_tensor(1))
        _set_moved_shape(c, tensor, c.vector(2), sizes, borders, to_batch=to_batch)

    return shape_fn


def _set_moved_shape(
    c: InferenceContext,
    tensor: ShapeHandle,
    blocks_shape: ShapeHandle,
    blocks: _Sizes | None,
    borders: _Borders,
    *,
    to_batch: bool,
) -> None:
    require_equal(c.rank(blocks_shape), 1, "block_shape must have rank 1.")
    count = c.value(c.dim(blocks_shape, 0))
    if count < 0:
        raise InvalidArgumentError("block_shape must have known size.")
    tensor = c.with_rank_at_least(tensor, count + 1)
    c.merge(borders.shape, c.matrix(count, 2))
    if blocks is not None and any(block < 1 for block in blocks):
        raise InvalidArgumentError("block_shape must be positive")
    batch = _moved_batch(c, c.dim(tensor, 0), blocks, count, to_batch=to_batch)
    unknown = c.unknown_dim()
    dims = [unknown] * count
    for i, border in enumerate([] if borders.values is None else borders.values.tolist()):
        if min(border) < 0:
            raise InvalidArgumentError(f"{'paddings' if to_batch else 'crops'} cannot be negative")
        if blocks is not None:
            move = _divided if to_batch else _multiplied
            dims[i] = move(c, c.dim(tensor, i + 1), blocks[i], border)
    rest = c.subshape(tensor, count + 1)
    c.set_output(0, c.concatenate(c.make_shape([batch, *dims]), rest))


def _moved_batch(
    c: InferenceContext,
    batch: DimensionHandle,
    blocks: _Sizes | None,
    count: int,
    *,
    to_batch: bool,
) -> DimensionHandle:
    if count == 0:
        return batch
    if blocks is None or not c.value_known(batch):
        return c.unknown_dim()
    for block in blocks:
        if to_batch:
            batch = c.multiply(batch, block)
        else:
            batch = c.divide(batch, block, evenly_divisible=True)
    return batch


def _divided(
    c: InferenceContext, dim: DimensionHandle, block: int, padding: _Sizes
) -> DimensionHandle:
    dim = c.add(c.add(dim, padding[0]), padding[1])
    return c.divide(dim, block, evenly_divisible=True)


def _multiplied(
    c: InferenceContext, dim: DimensionHandle, block: int, crop: _Sizes
) -> DimensionHandle:
    return c.subtract(c.subtract(c.multiply(dim, block), crop[0]), crop[1])


SPACE_TO_BATCH_ND = register_op(
    "SpaceToBatchND",
    inputs=["input: T", "block_shape: Tblock_shape", "paddings: Tpaddings"],
    outputs=["output: T"],
    attrs=[
        "T: type",
        "Tblock_shape: {int32, int64} = DT_INT32",
        "Tpaddings: {int32, int64} = DT_INT32",
    ],
    shape_fn=_moved_shape(to_batch=True),
    doc="""`input`, padded with zeros, with the places within each block moved into the batch.

    `input` is [batch, spatial..., rest...] with a spatial dimension for each of `block_shape`.""",
    traits="mostly_copies",
)

BATCH_TO_SPACE_ND = register_op(
    "BatchToSpaceND",
    inputs=["input: T", "block_shape: Tblock_shape", "crops: Tcrops"],
    outputs=["output: T"],
    attrs=[
        "T: type",
        "Tblock_shape: {int32, int64} = DT_INT32",
        "Tcrops: {int32, int64} = DT_INT32",
    ],
    shape_fn=_moved_shape(to_batch=False),
    doc="""`input` with the batch moved into blocks of space, and cropped: undoes SpaceToBatchND.

    `input` is [batch, spatial..., rest...] with a spatial dimension for each of `block_shape`.""",
    traits="mostly_copies",
)

SPACE_TO_BATCH = register_op(
    "SpaceToBatch",
    inputs=["input: T", "paddings: Tpaddings"],
    outputs=["output: T"],
    attrs=["T: type", "Tpaddings: {int32, int64} = DT_INT32", "block_size: int >= 2"],
    shape_fn=_moved_square_shape(to_batch=True),
    doc="SpaceToBatchND of images [batch, height, width, depth] with square blocks.",
    traits="mostly_copies",
)

BATCH_TO_SPACE = register_op(
    "BatchToSpace",
    inputs=["input: T", "crops: Tidx"],
    outputs=["output: T"],
    attrs=["T: type", "block_size: int >= 2", "Tidx: {int32, int64} = DT_INT32"],
    shape_fn=_moved_square_shape(to_batch=False),
    doc="BatchToSpaceND of images [batch, height, width, depth] with square blocks.",
    traits="mostly_copies",
)


@register_kernel(
    SPACE_TO_BATCH_ND,
    types={"T": REAL_NUMBERS},
    host_memory=["block_shape", "paddings"],
    kind="view",
    factory=True,
)
def space_to_batch_nd(*, T: DataType, xp: Any) -> Callable[[Any, Any, Any], Any]:
    return lambda tensor, block_shape, paddings: _space_to_batch(
        tensor, *_checked(tensor, block_shape, paddings, "paddings"), T, xp
    )


@register_kernel(
    SPACE_TO_BATCH, types={"T": REAL_NUMBERS}, host_memory=["paddings"], kind="view", factory=True
)
def space_to_batch(*, block_size: int, T: DataType, xp: Any) -> Callable[[Any, Any], Any]:
    blocks = np.array([block_size, block_size])

    def move(tensor: Any, paddings: Any) -> Any:
        _check_image(tensor)
        return _space_to_batch(tensor, *_checked(tensor, blocks, paddings, "paddings"), T, xp)

    return move


@register_kernel(
    BATCH_TO_SPACE_ND, types={"T": REAL_NUMBERS}, host_memory=["block_shape", "crops"], kind="view"
)
def batch_to_space_nd(tensor: Any, block_shape: Any, crops: Any) -> Any:
    return _batch_to_space(tensor, *_checked(tensor, block_shape, crops, "crops"))


@register_kernel(
    BATCH_TO_SPACE, types={"T": REAL_NUMBERS}, host_memory=["crops"], kind="view", factory=True
)
def batch_to_space(*, block_size: int) -> Callable[[Any, Any], Any]:
    blocks = np.array([block_size, block_size])

    def move(tensor: Any, crops: Any) -> Any:
        _check_image(tensor)
        return _batch_to_space(tensor, *_checked(tensor, blocks, crops, "crops"))

    return move


def _check_image(tensor: Any) -> None:
    require_rank(tensor, 4, f"Input rank should be: 4 instead of: {tensor.ndim}")


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
            f"Input batch dimension ({batch}) is not divisible by product of block sizes "
            f"({product})"
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


@g.register_gradient("SpaceToBatch")
def space_to_batch_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.BatchToSpace(grad, op.inputs[1], **g.attrs_of(op, "block_size")), None


@g.register_gradient("BatchToSpace")
def batch_to_space_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.SpaceToBatch(grad, op.inputs[1], **g.attrs_of(op, "block_size")), None


@g.register_gradient("SpaceToBatchND")
def space_to_batch_nd_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.BatchToSpaceND(grad, *op.inputs[1:]), None, None


@g.register_gradient("BatchToSpaceND")
def batch_to_space_nd_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.SpaceToBatchND(grad, *op.inputs[1:]), None, None
